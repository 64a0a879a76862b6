/* Autocast's part of the frozen C ABI: what a thread casts to, for which device types, and casts of
 * weights that are kept. Pure C. lamella/layers/autocast/autocast.h is the C++ over it.
 *
 * Note [Autocast on a thread]
 *   Each thread has, for each device type, whether autocast is on and the dtype of lower precision.
 *   While it is on for some device type, operators with an autocast class (their declaration's
 *   word, see policy.h and ops/autocast.yaml) cast the tensors on that device type among their
 *   arguments; then they are called with autocast off, so that what they are made of is not cast
 *   again. Other operators are not touched.
 */
#ifndef LAMELLA_ABI_AUTOCAST_H_
#define LAMELLA_ABI_AUTOCAST_H_

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Device types are numbered as in lamella/core/device.h. */
LAMELLA_ABI_API int32_t lamella_autocast_enabled(uint8_t device_type) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_autocast_set_enabled(uint8_t device_type,
                                                  int32_t enabled) LAMELLA_ABI_NOEXCEPT;
/* All at once: bit i is device type number i. Returns what was before. */
LAMELLA_ABI_API uint64_t lamella_autocast_exchange(uint64_t device_types) LAMELLA_ABI_NOEXCEPT;
/* The dtype of lower precision. Before it is set: bfloat16 for cpu, xla and hpu, else float16. */
LAMELLA_ABI_API uint8_t lamella_autocast_dtype(uint8_t device_type) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_autocast_set_dtype(uint8_t device_type,
                                                uint8_t dtype) LAMELLA_ABI_NOEXCEPT;

/* Note [Casts of weights]
 *   The cast of a float32 leaf that requires gradients to the dtype of lower precision is kept for
 *   this thread, so that a weight is cast once for all its uses. It is given up when the outermost
 *   region ends (the depth comes back to 0), with clear_cache, or with the thread; and it is not
 *   used again once the weight was written, has other memory, or grad mode is another. It keeps no
 *   weight alive that its own gradient's graph does not. While calls are traced, batched or
 *   otherwise intercepted on the thread, casts are neither kept nor used.
 */
LAMELLA_ABI_API int32_t lamella_autocast_cache_enabled(void) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_autocast_set_cache_enabled(int32_t enabled) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_autocast_clear_cache(void) LAMELLA_ABI_NOEXCEPT;
/* Adds to the depth of regions on this thread and returns it; at 0 the kept casts are given up. */
LAMELLA_ABI_API int32_t lamella_autocast_nesting(int32_t step) LAMELLA_ABI_NOEXCEPT;

/* `tensor` as `dtype`, differentiably; itself where it is not to be cast: on another device type,
 * not floating-point, float64, or of the dtype already. *result is owned by the caller. */
LAMELLA_ABI_API lamella_status lamella_autocast_cast(lamella_tensor* tensor, uint8_t dtype,
                                                     uint8_t device_type,
                                                     lamella_tensor** result) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
