/* Policies' part of the frozen C ABI: what an operator's declaration says to the layers. Pure C. */
#ifndef LAMELLA_ABI_POLICY_H_
#define LAMELLA_ABI_POLICY_H_

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The word that an operator's declaration, its tags or its kernels give for a policy: "autocast",
 * "autocast.cuda" (for one device type), "batching" or "hlo". NULL where nothing is said, or the
 * policy is unknown. Valid as long as the operator is defined. */
LAMELLA_ABI_API const char* lamella_operator_policy(const lamella_operator* op,
                                                    const char* policy) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
