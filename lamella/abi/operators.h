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

#ifdef __cplusplus
}
#endif
#endif /* LAMELLA_ABI_OPERATORS_H_ */
