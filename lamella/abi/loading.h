/* Loading and unloading libraries of operators: a part of the frozen C ABI. Pure C; see abi.h for
 * ownership, errors and versions.
 *
 * Note [Unloading]
 *   Unloading ends a library's registrations at once: it returns when no other thread is inside its
 *   kernels, or after five seconds. Its code stays mapped while something needs it: nodes of
 *   backward graphs, hooks, deleters of memory, kernels that a thread is still inside, compiled
 *   programs. A later load or unload of any library unmaps it when nothing does. If it is loaded
 *   again before, its registrations come back and its static initialisers do not run again.
 *   A library that was opened with dlopen() alone ends with dlclose(), whatever still needs it.
 */
#ifndef LAMELLA_ABI_LOADING_H_
#define LAMELLA_ABI_LOADING_H_

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a shared library. Fails where it cannot be opened, and with all that went wrong in its
 * registrations; it is not kept then. Each success takes one unload. */
LAMELLA_ABI_API lamella_status lamella_load_library(const char* path,
                                                    void** handle) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_unload_library(void* handle) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* LAMELLA_ABI_LOADING_H_ */
