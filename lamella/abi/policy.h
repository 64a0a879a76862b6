/* Policies' part of the frozen C ABI: the properties in an operator's declaration that layers
 * read, and its documentation. Pure C. */
#ifndef LAMELLA_ABI_POLICY_H_
#define LAMELLA_ABI_POLICY_H_

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The word that an operator's declaration, its tags or its kernels give for a policy: "autocast",
 * "autocast.cuda" (for one device type), "batching" or "hlo". NULL if it gives none, or the
 * policy is unknown. Valid as long as the operator is defined. */
LAMELLA_ABI_API const char* lamella_operator_policy(const lamella_operator* op,
                                                    const char* policy) LAMELLA_ABI_NOEXCEPT;

/* Sets the documentation of an operator that `library` defines. `name`: "add.Tensor", with or
 * without its namespace; `text` is copied, and takes the place of an earlier one. Fails for an
 * operator that the library does not define. Since 1.1. */
LAMELLA_ABI_API lamella_status lamella_library_document(lamella_library* library, const char* name,
                                                        const char* text) LAMELLA_ABI_NOEXCEPT;
/* That documentation, or NULL. Valid as long as the operator is defined and its text is not
 * replaced. Lamella's own operators are documented in a file of the Python package. Since 1.1. */
LAMELLA_ABI_API const char* lamella_operator_doc(const lamella_operator* op) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
