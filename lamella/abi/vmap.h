/* vmap's part of the frozen C ABI: for batching rules of operators that are defined outside of
 * Lamella. Pure C. lamella/layers/vmap/batch_rule.h is inline over it. See abi.h for ownership,
 * errors and versions.
 */
#ifndef LAMELLA_ABI_VMAP_H_
#define LAMELLA_ABI_VMAP_H_

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  LAMELLA_VMAP_ERROR = 0,     /* drawing random numbers is an error */
  LAMELLA_VMAP_DIFFERENT = 1, /* each example draws its own */
  LAMELLA_VMAP_SAME = 2       /* all examples see the same */
};

/* One running vmap of this thread. */
typedef struct lamella_vmap_level {
  uint32_t number; /* a level within another one has a higher number */
  uint32_t randomness;
  int64_t size; /* of the batch */
} lamella_vmap_level;

/* The highest level at which a tensor is batched; its number is 0 where it is not batched. Fails
 * where that vmap has ended, or runs on another thread. */
LAMELLA_ABI_API lamella_status
lamella_vmap_level_of(const lamella_tensor* tensor, lamella_vmap_level* level) LAMELLA_ABI_NOEXCEPT;
/* What the tensor wraps if it is batched at this level, owned by the caller: all examples, the
 * batch in dimension 0. NULL: it is not. */
LAMELLA_ABI_API lamella_tensor* lamella_vmap_unwrap(lamella_tensor* tensor,
                                                    uint32_t level) LAMELLA_ABI_NOEXCEPT;
/* The reverse. `value` has the batch in dimension 0. */
LAMELLA_ABI_API lamella_status lamella_vmap_wrap(lamella_tensor* value, uint32_t level,
                                                 lamella_tensor** result) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* LAMELLA_ABI_VMAP_H_ */
