/* The thread pool's part of the frozen C ABI: loops of extensions run on the threads that Lamella's
 * own kernels run on. Pure C. lamella/parallel.h is the C++ over it.
 */
#ifndef LAMELLA_ABI_THREADS_H_
#define LAMELLA_ABI_THREADS_H_

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Calls function(context, first, last) for disjoint ranges that cover [begin, end), each at least
 * `grain` long where there is more than one. The function must not throw. */
LAMELLA_ABI_API lamella_status lamella_parallel_for(int64_t begin, int64_t end, int64_t grain,
                                                    void (*function)(void* context, int64_t first,
                                                                     int64_t last),
                                                    void* context) LAMELLA_ABI_NOEXCEPT;
/* Threads that one loop may use, the caller's included. */
LAMELLA_ABI_API int32_t lamella_thread_count(void) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_set_thread_count(int32_t threads) LAMELLA_ABI_NOEXCEPT;
/* Whether the caller runs inside of such a loop: a nested one is then serial. */
LAMELLA_ABI_API int32_t lamella_in_parallel_loop(void) LAMELLA_ABI_NOEXCEPT;
/* The number of the caller among the threads of its loop, below lamella_thread_count() as it was
 * when the loop began; 0 outside of one. No two threads have the same at one time. */
LAMELLA_ABI_API int32_t lamella_thread_number(void) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
