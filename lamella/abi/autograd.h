/* Autograd's part of the frozen C ABI: derivatives as constant tables, nodes of the backward graph,
 * and the engine. Pure C. The C++ headers in lamella/layers/autograd that users include are inline
 * over it. See abi.h for ownership, errors and versions.
 */
#ifndef LAMELLA_ABI_AUTOGRAD_H_
#define LAMELLA_ABI_AUTOGRAD_H_

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Derivatives ---------------------------------------------------------------------------- */

/* Note [Derivatives are tables]
 *   One boxed kernel records every operator. The differences between operators are in a constant
 *   table: which arguments have gradients, what is saved for the formulas, and the formulas.
 *
 *   A slot is one differentiable argument: a Tensor, Tensor?, Tensor[] or Tensor?[] of the schema.
 *   Slots are numbered in the order of the table's `slots`. A list gives one result per entry;
 *   `first` says where each slot's results begin.
 */

/* The part of an argument or return that is saved. For a list of tensors, a list of these. */
enum {
  LAMELLA_SAVE_VALUE = 0,          /* itself; tensors with a check of their version */
  LAMELLA_SAVE_SIZES = 1,          /* INT_LIST; of a tensor list: LIST of INT_LIST */
  LAMELLA_SAVE_STRIDES = 2,        /* INT_LIST */
  LAMELLA_SAVE_DTYPE = 3,          /* INT; of a tensor list: INT_LIST */
  LAMELLA_SAVE_DEVICE = 4,         /* DEVICE */
  LAMELLA_SAVE_DIM = 5,            /* INT */
  LAMELLA_SAVE_NUMEL = 6,          /* INT */
  LAMELLA_SAVE_STORAGE_OFFSET = 7, /* INT */
  LAMELLA_SAVE_DEFINED = 8,        /* BOOL: a tensor was given */
  LAMELLA_SAVE_COUNT = 9,          /* INT: length of a list */
  LAMELLA_SAVE_META = 10 /* a tensor of the same shape, strides and dtype on the meta device */
};
typedef struct lamella_saved {
  uint8_t what;      /* LAMELLA_SAVE_* */
  uint8_t is_return; /* 0: of argument `index`, 1: of return `index` */
  uint16_t index;
  uint32_t reserved;
  uint64_t used_by; /* slots whose gradient needs it: kept only when one of them is wanted */
} lamella_saved;

/* The inputs and results of a backward formula. Everything but the results is borrowed. A
 * value that was not saved, because no wanted slot needs it, is NONE. */
typedef struct lamella_backward {
  const lamella_value* saved;   /* in the order of the table */
  lamella_tensor* const* grads; /* one for each return of the operator; NULL: none */
  uint32_t grad_count;
  uint32_t slot_count;
  uint64_t needs;           /* bit i: a result of slot i is wanted */
  const uint32_t* first;    /* slot i has results[first[i]] up to results[first[i + 1] - 1] */
  lamella_tensor** results; /* to be filled with owned tensors; all NULL before: no gradient */
} lamella_backward;

/* What a forward-mode formula works on. Returns are those of the call, tangents of returns are to
 * be filled in. Of an operator that writes its argument, arguments[] holds a copy from before. */
typedef struct lamella_forward {
  const lamella_value* arguments;  /* primals */
  const lamella_value* returns;    /* of the call */
  lamella_tensor* const* tangents; /* as results of lamella_backward; NULL: no tangent */
  const uint32_t* first;
  uint32_t slot_count;
  uint32_t return_count;
  lamella_tensor** results; /* one for each return of the operator; owned; NULL: no tangent */
} lamella_forward;

typedef lamella_status (*lamella_backward_function)(const lamella_backward*);
typedef lamella_status (*lamella_forward_function)(const lamella_forward*);
/* Clears the bits of returns that may not require gradients in a call with these arguments. */
typedef lamella_status (*lamella_output_condition)(const lamella_value* arguments,
                                                   uint64_t* differentiable_returns);

enum {
  /* result: auto_linear. The operator, applied to the tangents, gives the tangent. */
  LAMELLA_FORWARD_LINEAR = 1u << 0,
  /* result: auto_element_wise. From the backward formula: conj(backward(conj(tangent))), summed. */
  LAMELLA_FORWARD_ELEMENTWISE = 1u << 1,
  /* The operator is not differentiable: its returns never require gradients. */
  LAMELLA_NOT_DIFFERENTIABLE = 1u << 2
};

typedef struct lamella_keyed_derivative lamella_keyed_derivative;

typedef struct lamella_derivative {
  const char* name;                   /* of the node: "MulBackward0" */
  lamella_backward_function backward; /* NULL: raises in backward */
  lamella_forward_function forward;   /* NULL: by flags, or raises in forward mode */
  const uint16_t* slots;              /* argument of each slot, ascending */
  const lamella_saved* saved;
  uint32_t slot_count; /* at most 64 */
  uint32_t saved_count;
  uint64_t differentiable_returns; /* bit i: return i may require gradients. Others never do; those
                                      of an integral or bool dtype do not in any case */
  uint32_t flags;
  uint32_t reserved;
  uint64_t unimplemented; /* slots without a tangent's formula: a tangent of theirs raises */
  const lamella_keyed_derivative* keyed; /* used in the place of this table where a call comes by
                                            their key. Those tables have none themselves */
  uint32_t keyed_count;
  uint32_t reserved2;
  lamella_output_condition condition; /* NULL: differentiable_returns holds for every call */
} lamella_derivative;

struct lamella_keyed_derivative {
  const char* key; /* "AutogradCUDA" */
  const lamella_derivative* derivative;
};

/* Registers the derivative of an operator: "ns::name.overload" or, in the block's namespace,
 * "name.overload". The table must live until the block is closed. Calls without a tensor that
 * requires gradients never see it. */
LAMELLA_ABI_API lamella_status lamella_library_derivative(lamella_library* library,
                                                          const char* name,
                                                          const lamella_derivative* derivative,
                                                          const char* file,
                                                          uint32_t line) LAMELLA_ABI_NOEXCEPT;

/* ---- Modes ---------------------------------------------------------------------------------- */

/* Of this thread. Each returns the former value. */
enum {
  LAMELLA_MODE_NO_GRAD = 1u << 0,        /* gradients are not recorded */
  LAMELLA_MODE_INFERENCE = 1u << 1,      /* tensors made now never take part in autograd */
  LAMELLA_MODE_NO_FORWARD = 1u << 2,     /* tangents are not propagated */
  LAMELLA_MODE_ANOMALY = 1u << 3,        /* nodes remember where they were recorded */
  LAMELLA_MODE_NO_NAN_CHECK = 1u << 4,   /* anomaly mode without the search for NaN */
  LAMELLA_MODE_SAVED_HOOKS = 1u << 5,    /* hooks for saved tensors are set on this thread */
  LAMELLA_MODE_COMPOSITE_CHECK = 1u << 6 /* composite kernels are held to their rules */
};
LAMELLA_ABI_API uint32_t lamella_modes(void) LAMELLA_ABI_NOEXCEPT;
/* Sets the bits of `which` to those of `value`; keeps the key sets of the thread in step. */
LAMELLA_ABI_API uint32_t lamella_set_modes(uint32_t which, uint32_t value) LAMELLA_ABI_NOEXCEPT;

/* ---- Tensors -------------------------------------------------------------------------------- */

/* Whether a call on the tensor is recorded: also true for a view whose base was written with
 * gradients meanwhile. */
LAMELLA_ABI_API int32_t lamella_tensor_requires_grad(lamella_tensor* tensor) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_tensor_set_requires_grad(lamella_tensor* tensor,
                                                                int32_t value) LAMELLA_ABI_NOEXCEPT;
/* Gives the tensor the memory, shape, dtype and device of `source`. It keeps its gradient and its
 * place in the graph. */
LAMELLA_ABI_API lamella_status lamella_tensor_set_data(lamella_tensor* tensor,
                                                       lamella_tensor* source) LAMELLA_ABI_NOEXCEPT;
/* The accumulated gradient, owned by the caller; NULL: none. */
LAMELLA_ABI_API lamella_tensor* lamella_tensor_grad(lamella_tensor* tensor) LAMELLA_ABI_NOEXCEPT;
/* grad: borrowed; NULL removes the gradient. Checks shape, dtype and device. */
LAMELLA_ABI_API lamella_status lamella_tensor_set_grad(lamella_tensor* tensor,
                                                       lamella_tensor* grad) LAMELLA_ABI_NOEXCEPT;
/* Keeps the gradient of a tensor that is not a leaf. */
LAMELLA_ABI_API lamella_status lamella_tensor_retain_grad(lamella_tensor* tensor)
    LAMELLA_ABI_NOEXCEPT;
/* Whether a tensor that is not a leaf keeps its gradient. */
LAMELLA_ABI_API int32_t lamella_tensor_retains_grad(lamella_tensor* tensor) LAMELLA_ABI_NOEXCEPT;
/* The tensor that this one is a view of, owned by the caller; NULL: not a view. */
LAMELLA_ABI_API lamella_tensor* lamella_tensor_base(lamella_tensor* tensor) LAMELLA_ABI_NOEXCEPT;
/* Another tensor over the same memory: without history, and with a count of writes of its own. */
LAMELLA_ABI_API lamella_status lamella_tensor_data(lamella_tensor* tensor,
                                                   lamella_tensor** result) LAMELLA_ABI_NOEXCEPT;
/* A hook on the tensor's gradient: `call` gets a borrowed gradient and may leave an owned one in
 * *replacement (NULL: unchanged). `dispose(context)` runs once. *id: for the removal. */
typedef struct lamella_tensor_hook {
  lamella_status (*call)(void* context, lamella_tensor* grad, lamella_tensor** replacement);
  void (*dispose)(void* context);
  void* context;
} lamella_tensor_hook;
LAMELLA_ABI_API lamella_status lamella_tensor_add_hook(lamella_tensor* tensor,
                                                       const lamella_tensor_hook* hook,
                                                       uint64_t* id) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_tensor_remove_hook(lamella_tensor* tensor,
                                                uint64_t id) LAMELLA_ABI_NOEXCEPT;
/* The same, but a number that is none of the tensor's hooks is an error. */
LAMELLA_ABI_API lamella_status lamella_tensor_drop_hook(lamella_tensor* tensor,
                                                        uint64_t id) LAMELLA_ABI_NOEXCEPT;

/* ---- Nodes ---------------------------------------------------------------------------------- */

typedef struct lamella_node lamella_node;

/* The functions of a node made outside of Lamella. All of them get the node's context. */
typedef struct lamella_node_class {
  const char* name;
  /* grads: one for each output of the forward, NULL: none. results: one for each input, NULL
   * before, to be filled with owned tensors. */
  lamella_status (*apply)(void* context, lamella_tensor* const* grads, uint32_t grad_count,
                          lamella_tensor** results, uint32_t result_count);
  /* Frees what was saved, after a backward without retain_graph. May be NULL. */
  void (*release_saved)(void* context);
  /* Runs once when the node ends. */
  void (*dispose)(void* context);
} lamella_node_class;

/* A node with one reference and no edges. Takes ownership of the context, also on failure. */
LAMELLA_ABI_API lamella_status lamella_node_make(const lamella_node_class* type, void* context,
                                                 lamella_node** node) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_node_retain(lamella_node* node) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_node_release(lamella_node* node) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API const char* lamella_node_name(const lamella_node* node) LAMELLA_ABI_NOEXCEPT;
/* Its inputs' edges, in order; once, before it has outputs. NULL or a tensor without gradients
 * gives an empty edge. */
LAMELLA_ABI_API lamella_status lamella_node_set_inputs(lamella_node* node,
                                                       lamella_tensor* const* inputs,
                                                       uint32_t count) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API uint32_t lamella_node_input_count(const lamella_node* node) LAMELLA_ABI_NOEXCEPT;
/* Whether the gradient of input i goes anywhere. */
LAMELLA_ABI_API int32_t lamella_node_needs_input(const lamella_node* node,
                                                 uint32_t i) LAMELLA_ABI_NOEXCEPT;
/* The node that the gradient of input i goes to, with the input of it; NULL: none. Owned. */
LAMELLA_ABI_API lamella_node* lamella_node_next(const lamella_node* node, uint32_t i,
                                                uint32_t* input) LAMELLA_ABI_NOEXCEPT;
/* Makes the tensor the node's next output. NULL counts as an output without a tensor. `written`:
 * the tensor was written in place, and is rebased with all its views. */
LAMELLA_ABI_API lamella_status lamella_node_add_output(lamella_node* node, lamella_tensor* tensor,
                                                       int32_t written) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API uint32_t lamella_node_output_count(const lamella_node* node) LAMELLA_ABI_NOEXCEPT;
/* A zero tensor like output i was, owned by the caller. */
LAMELLA_ABI_API lamella_status lamella_node_zeros(const lamella_node* node, uint32_t i,
                                                  lamella_tensor** zeros) LAMELLA_ABI_NOEXCEPT;
/* The node that a tensor's gradient goes to, with the input of it; NULL: none. Owned. */
LAMELLA_ABI_API lamella_node* lamella_tensor_node(lamella_tensor* tensor,
                                                  uint32_t* input) LAMELLA_ABI_NOEXCEPT;

/* A tensor kept for backward, with a check of its version when it is taken out. */
typedef struct lamella_saved_tensor lamella_saved_tensor;
/* is_output: it is an output of `node`, so that keeping it must not keep the node. */
LAMELLA_ABI_API lamella_status lamella_saved_tensor_make(
    lamella_tensor* tensor, int32_t is_output, lamella_saved_tensor** saved) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_saved_tensor_release(lamella_saved_tensor* saved) LAMELLA_ABI_NOEXCEPT;
/* node: the node whose backward runs, for the message and as the history of a saved output. */
LAMELLA_ABI_API lamella_status
lamella_saved_tensor_unpack(const lamella_saved_tensor* saved, lamella_node* node,
                            lamella_tensor** tensor) LAMELLA_ABI_NOEXCEPT;

/* ---- The engine ----------------------------------------------------------------------------- */

enum {
  LAMELLA_RETAIN_GRAPH = 1u << 0,
  LAMELLA_CREATE_GRAPH = 1u << 1, /* the backward is recorded itself */
  LAMELLA_ALLOW_UNUSED = 1u << 2  /* an input that the roots do not depend on gives NULL */
};
/* Runs backward from `roots` with `grads` (NULL entries: ones, for roots of one element). With
 * inputs == NULL, gradients are accumulated in all leaves reached. Otherwise in the given tensors
 * only: if `results` is NULL into their grad, else into results[i] (owned by the caller), which for
 * each input holds the gradient. */
LAMELLA_ABI_API lamella_status lamella_backward_run(lamella_tensor* const* roots,
                                                    lamella_tensor* const* grads,
                                                    uint32_t root_count,
                                                    lamella_tensor* const* inputs,
                                                    uint32_t input_count, uint32_t flags,
                                                    lamella_tensor** results) LAMELLA_ABI_NOEXCEPT;

/* The boxed kernels that autogradNotImplementedFallback() and
 * autogradNotImplementedInplaceOrViewFallback() stand for. */
LAMELLA_ABI_API lamella_status lamella_autograd_not_implemented(
    const lamella_kernel* kernel, const lamella_operator* op, uint64_t key_set,
    const lamella_value* arguments, lamella_value* returns) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API lamella_status lamella_autograd_inplace_or_view(
    const lamella_kernel* kernel, const lamella_operator* op, uint64_t key_set,
    const lamella_value* arguments, lamella_value* returns) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* LAMELLA_ABI_AUTOGRAD_H_ */
