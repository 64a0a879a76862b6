// Functionalization: turns in-place writes and views into pure operators. Internal to Lamella;
// Python has lamella.func.functionalize.
//
// Note [Programs without writes]
//   While a session is open on a thread, operators do not write and, if wanted, do not alias: what
//   is called below the Functionalize key is a program of pure operators with the same results.
//
//   A functional wrapper is a tensor without memory: real sizes, strides, offset and dtype, as they
//   would be without the layer, but its storage has no data. Its state is kept with the storage,
//   which all aliases share (Shared): the value of the whole storage, the writes since then, and
//   for each alias the chain of views that leads to it from the whole (View).
//
//   - A pure operator is called with the values of its arguments; its results are wrapped.
//   - A view operator's kernel runs on the wrapper, for it touches nothing but sizes, strides and
//     offset; the view is noted. Its value is computed when it is needed, by the same views, or by
//     their *_copy forms, of the value of the whole.
//   - An operator that writes is replaced by its functional form (plan.h). The result is the new
//     value of the alias. It is noted as pending; when another alias is read, pending values go
//     into the whole by the inverse of each view (select_scatter of select, ...: views.cpp).
//   - A composite kernel runs on the wrappers, so that the operators it calls come here.
//   When the session ends, arguments that were written get their value by one copy_ each.
//
// Note [Above and below]
//   A session has two levels. The function itself sees wrappers, which have no history: autograd,
//   autocast and vmap inside of the function work on them as on any tensor. Calls of the pure
//   program see what layers were there when the session was opened (a tracer, autograd of the
//   arguments, vmap around), with the grad modes of the moment.
#pragma once
#include <vector>

#include "lamella/core/tensor_base.h"

namespace lamella::functionalize {

struct Session;

// Opens a session on this thread. copies: views become copies as well. The first one of the
// process registers the layer's kernel.
LAMELLA_PRIVATE_API Session* begin(bool copies);
// The session of this thread, NULL where none is open.
LAMELLA_PRIVATE_API Session* current();
// From now on views become copies as well; returns whether they did before.
LAMELLA_PRIVATE_API bool set_copies(Session* session, bool copies);
// The wrappers of arguments. The same tensor gets the same wrapper, and tensors that share memory
// get wrappers that share memory.
LAMELLA_PRIVATE_API std::vector<TensorBase> wrap_arguments(Session* session,
                                                           const std::vector<TensorBase>& tensors);
// To be called when the function returned: writes changes back to the arguments, and returns the
// tensors behind `outputs`. An output that is an argument is returned as that argument; one that
// shares memory with an argument still does, unless views become copies.
LAMELLA_PRIVATE_API std::vector<TensorBase> finish(Session* session,
                                                   const std::vector<TensorBase>& outputs);
// Closes the session; to be called in any case, on its thread.
LAMELLA_PRIVATE_API void end(Session* session) noexcept;

LAMELLA_PRIVATE_API bool is_functional(const lamella_tensor* tensor);

// What the layer calls for an operator that writes, or for a view operator where views become
// copies: "aten::add.Tensor" for "aten::add_.Tensor". Makes an operator where there is none. NULL:
// it stays as it is.
LAMELLA_PRIVATE_API const lamella_operator* functional_form(const lamella_operator* op);
LAMELLA_PRIVATE_API const lamella_operator* copy_form(const lamella_operator* op);

}  // namespace lamella::functionalize
