/* What a bridge into another framework needs of operators, a part of the frozen C ABI: those that a
 * library defines, and their derivatives by what they save. Pure C; see abi.h for ownership, errors
 * and versions. All of it since 1.1.
 */
#ifndef LAMELLA_ABI_OPERATORS_H_
#define LAMELLA_ABI_OPERATORS_H_

#include "lamella/abi/autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Calls visit(context, op) for each operator that a library defines, in the order of their
 * definition. handle: of lamella_load_library(). A failure of `visit` ends it and is returned. */
LAMELLA_ABI_API lamella_status lamella_visit_operators(
    void* handle, lamella_status (*visit)(void* context, const lamella_operator* op),
    void* context) LAMELLA_ABI_NOEXCEPT;

/* The same for all operators, those with kernels only and without a schema among them. */
LAMELLA_ABI_API lamella_status
lamella_visit_all_operators(lamella_status (*visit)(void* context, const lamella_operator* op),
                            void* context) LAMELLA_ABI_NOEXCEPT;
/* Calls changed(context, op, 1) for each operator that is defined from now on, and with 0 for each
 * whose definition ends, until lamella_unwatch_operators(context). It must not register anything.
 */
LAMELLA_ABI_API lamella_status lamella_watch_operators(void (*changed)(void* context,
                                                                       const lamella_operator* op,
                                                                       int32_t defined),
                                                       void* context) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_unwatch_operators(void* context) LAMELLA_ABI_NOEXCEPT;

/* The derivative that is registered for the operator, NULL: none. Valid as long as the operator is
 * defined and its derivative is registered. */
LAMELLA_ABI_API const lamella_derivative* lamella_operator_derivative(const lamella_operator* op)
    LAMELLA_ABI_NOEXCEPT;

/* Note [A derivative by what it saves]
 *   `arguments` and `returns` are those of an earlier call of the operator. Of them the derivative
 *   reads only what its table says it saves (of a tensor whose sizes alone are saved any tensor
 *   of that shape serves), and others may be NONE. The call is recorded where modes and tensors say
 *   so, like any other: gradients of the results lead to whatever of the given tensors requires
 *   them. A list that is a slot must be given, because its length says how many results it has.
 *   Both fail with LAMELLA_NOT_IMPLEMENTED, by the operator's name, where there is no formula.
 */

/* The gradients of slots whose bit in `needs` is set. grads: one for each return, those of a list
 * one after the other, NULL: none. results[i], one for each entry of each slot in their order,
 * become owned tensors; NULL: no gradient. Writes nothing into results if it fails. */
LAMELLA_ABI_API lamella_status lamella_call_backward(
    const lamella_operator* op, const lamella_value* arguments, const lamella_value* returns,
    lamella_tensor* const* grads, uint32_t grad_count, uint64_t needs, lamella_tensor** results,
    uint32_t result_count) LAMELLA_ABI_NOEXCEPT;
/* The tangents of the returns. tangents: as `results` above, NULL: none; results: as `grads`. */
LAMELLA_ABI_API lamella_status lamella_call_forward(
    const lamella_operator* op, const lamella_value* arguments, const lamella_value* returns,
    lamella_tensor* const* tangents, uint32_t tangent_count, lamella_tensor** results,
    uint32_t result_count) LAMELLA_ABI_NOEXCEPT;

/* ---- Transforms ----------------------------------------------------------------------------- */

/* Begins a vmap over `size` examples on this thread, within those that run; each example draws its
 * own random numbers. *level: for vmap.h. */
LAMELLA_ABI_API lamella_status lamella_vmap_enter(int64_t size,
                                                  uint32_t* level) LAMELLA_ABI_NOEXCEPT;
/* Ends it. */
LAMELLA_ABI_API void lamella_vmap_leave(uint32_t level) LAMELLA_ABI_NOEXCEPT;
/* The tensor, batched at every vmap of this thread, so that it has a gradient for each example. */
LAMELLA_ABI_API lamella_status lamella_vmap_wrap_all(lamella_tensor* tensor,
                                                     lamella_tensor** result) LAMELLA_ABI_NOEXCEPT;
/* All examples of a tensor, the batch in dimension 0, also where it is the same for all of them. To
 * be called before the vmap ends. */
LAMELLA_ABI_API lamella_status lamella_vmap_unwrap_all(
    lamella_tensor* tensor, uint32_t level, lamella_tensor** result) LAMELLA_ABI_NOEXCEPT;

/* Begins (1) forward mode for the process, or ends it (0), which takes the tangents of all tensors.
 * Only one runs at a time. */
LAMELLA_ABI_API lamella_status lamella_forward_mode(int32_t begins) LAMELLA_ABI_NOEXCEPT;
/* Gives the tensor a tangent of its shape and dtype. */
LAMELLA_ABI_API lamella_status
lamella_tensor_set_tangent(lamella_tensor* tensor, lamella_tensor* tangent) LAMELLA_ABI_NOEXCEPT;
/* The tangent, owned by the caller; NULL: none. */
LAMELLA_ABI_API lamella_tensor* lamella_tensor_tangent(const lamella_tensor* tensor)
    LAMELLA_ABI_NOEXCEPT;

/* ---- Threads and memory of the host --------------------------------------------------------- */

/* Threads of another program, for parallel loops. run() calls task(job, n) once for each n from 0
 * to below `tasks`, on any of its threads and on the caller's, and returns after the last of them;
 * count() says how many may be of use. Both must not throw. */
typedef struct lamella_host_threads {
  void (*run)(void* context, int32_t tasks, void (*task)(void* job, int32_t n), void* job);
  int32_t (*count)(void* context);
  void* context;
} lamella_host_threads;
/* Loops that begin on this thread run there, NULL: on Lamella's own. Returns what was set before.
 * `threads` stays the caller's, and must exist as long as it is set. */
LAMELLA_ABI_API const lamella_host_threads* lamella_set_host_threads(
    const lamella_host_threads* threads) LAMELLA_ABI_NOEXCEPT;

/* The dtype of factories that are called without one, by its number. Set, it must be a type of
 * floating-point numbers. */
LAMELLA_ABI_API uint8_t lamella_default_dtype(void) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_set_default_dtype(uint8_t dtype) LAMELLA_ABI_NOEXCEPT;

/* Points a contiguous tensor of lamella_tensor_from_blob() without a deleter at other memory, of
 * the same size. Returns 0, and does nothing, where anything else refers to the tensor or its
 * memory. */
LAMELLA_ABI_API int32_t lamella_tensor_move_blob(lamella_tensor* tensor,
                                                 void* data) LAMELLA_ABI_NOEXCEPT;

/* Memory of another program, for new tensors on the CPU that are not small. allocate() returns
 * memory that is aligned to 64 bytes, and in *owner what release(owner) gives back, once, on any
 * thread; or NULL, after which Lamella takes memory of its own. Both must not throw. */
typedef struct lamella_host_memory {
  void* (*allocate)(void* context, size_t bytes, void** owner);
  void (*release)(void* owner);
  void* context;
} lamella_host_memory;
/* As lamella_set_host_threads(). Tensors may outlive the setting, but release() must exist as long
 * as they do. */
LAMELLA_ABI_API const lamella_host_memory* lamella_set_host_memory(
    const lamella_host_memory* memory) LAMELLA_ABI_NOEXCEPT;
/* The owner of a tensor's memory that `memory` gave; NULL: other memory. */
LAMELLA_ABI_API void* lamella_tensor_host_memory(
    const lamella_tensor* tensor, const lamella_host_memory* memory) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* LAMELLA_ABI_OPERATORS_H_ */
