// Functionalization: turns in-place writes and views into pure operators. Internal to Lamella;
// Python has lamella.func.functionalize.
//
// Note [Programs without writes]
//   While a session is open on a thread, calls become calls of pure operators with the same results
//   below the Functionalize key: none of them writes its arguments and, if requested, none returns
//   views.
//
//   A functional wrapper is a tensor without memory: its sizes, strides, offset and dtype are what
//   they would be without the layer, but its storage has no data. All aliases of a storage share
//   one state (Shared): the value of the whole storage, the writes since then, and for each alias
//   the chain of views that leads to it from the whole (View).
//
//   - A pure operator is called with the values of its arguments; its results are wrapped.
//   - A view operator's kernel runs on the wrapper, as it changes only sizes, strides and offset,
//     and the view is recorded. Its value is computed when it is needed, by applying the chain of
//     views, or their *_copy forms, to the value of the whole.
//   - An operator that writes is replaced by its functional form (plan.h). The result is the new
//     value of the alias, and is kept as a pending write. When another alias is read, pending
//     writes are applied to the whole by the inverse of each view (select_scatter for select, ...:
//     views.cpp).
//   - A composite kernel runs on the wrappers, so that the operators it calls reach this layer.
//   When the session of a function ends, each argument that was written gets its value by one
//   copy_.
//
// Note [Above and below]
//   A session has two levels. The function itself sees wrappers, which have no autograd history:
//   autograd, autocast and vmap inside of the function treat them as any tensor. The calls of pure
//   operators, below, pass through the layers that were active when the session was opened (a
//   tracer, autograd of the arguments, an outer vmap), with the current grad modes.
//
// Note [Loose sessions]
//   A thread may have one session that no function bounds, the loose one, for wrappers that a
//   program makes and reads itself. Calls on such a wrapper come to this layer by the wrapper's
//   key, and the layers above have seen them. Its views are exact: each is computed by its own
//   operator when it is made, and again after each write through it.
#pragma once
#include <vector>

#include "lamella/core/tensor_base.h"

namespace lamella::functionalize {

struct Session;

// Opens a session on this thread. `copies`: views become copies as well. The first session of the
// process registers the layer's kernel.
LAMELLA_PRIVATE_API Session* begin(bool copies);
// The session of this thread, NULL where none is open.
LAMELLA_PRIVATE_API Session* current();
// Sets whether views become copies as well; returns the previous setting.
LAMELLA_PRIVATE_API bool set_copies(Session* session, bool copies);
// The wrappers of arguments. The same tensor gets the same wrapper, and tensors that share memory
// get wrappers that share memory.
LAMELLA_PRIVATE_API std::vector<TensorBase> wrap_arguments(Session* session,
                                                           const std::vector<TensorBase>& tensors);
// To be called when the function has returned: writes changes back to the arguments, and returns
// the tensors behind `outputs`. An output that is an argument is returned as that argument; one
// that shares memory with an argument keeps sharing it, unless views become copies.
LAMELLA_PRIVATE_API std::vector<TensorBase> finish(Session* session,
                                                   const std::vector<TensorBase>& outputs);
// Closes the session; to be called in any case, on its thread.
LAMELLA_PRIVATE_API void end(Session* session) noexcept;

// Makes a wrapper of the thread's loose session; the first opens it.
LAMELLA_PRIVATE_API TensorBase wrap_loose(const TensorBase& tensor);
// Sets whether the loose session wraps what calls without wrappers make; `copies` as above.
// `checked`: an error where the strides of a copy differ from those of the view it stands for.
LAMELLA_PRIVATE_API void set_loose(bool on, bool copies, bool checked);
// The value of a wrapper; with all writes so far if `synced`, else as it was when last read.
LAMELLA_PRIVATE_API TensorBase loose_value(const TensorBase& wrapper, bool synced);
// Makes writes to a wrapper and its aliases errors.
LAMELLA_PRIVATE_API void freeze(const TensorBase& wrapper);

LAMELLA_PRIVATE_API bool is_functional(const lamella_tensor* tensor);

// The operator that replaces one that writes ("aten::add.Tensor" for "aten::add_.Tensor"), or a
// view operator where views become copies. Defined on demand if there is none. NULL: not replaced.
LAMELLA_PRIVATE_API const lamella_operator* functional_form(const lamella_operator* op);
LAMELLA_PRIVATE_API const lamella_operator* copy_form(const lamella_operator* op);

}  // namespace lamella::functionalize
