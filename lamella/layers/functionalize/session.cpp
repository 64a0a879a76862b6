// Wraps the arguments of a session's function, and unwraps its results.
#include <unordered_map>

#include "lamella/abi/autograd.h"
#include "lamella/core/error.h"
#include "lamella/layers/functionalize/value.h"

namespace lamella::functionalize {
namespace {

bool records_gradients(const Tensor& tensor) {
  return (lamella_thread.modes & LAMELLA_MODE_NO_GRAD) == 0 &&
         (tensor.impl()->key_set & kGradientBits) != 0;
}

// All memory of a storage as a one-dimensional tensor.
Tensor line_of(Session& session, const Tensor& tensor) {
  Below below(&session);
  auto count =
      static_cast<int64_t>(lamella_tensor_storage_bytes(tensor.impl()) / tensor.itemsize());
  return tensor.detach().as_strided({count}, {1}, 0);
}

}  // namespace

std::vector<TensorBase> wrap_arguments(Session* session, const std::vector<TensorBase>& tensors) {
  std::unordered_map<lamella_tensor*, TensorBase> made;
  std::unordered_map<lamella_storage*, std::vector<Tensor>> by_storage;
  std::vector<TensorBase> wrappers;
  for (const TensorBase& given : tensors) {
    Tensor tensor(given);
    if (!made.emplace(tensor.impl(), TensorBase()).second) continue;
    if (tensor.impl()->storage != nullptr) by_storage[tensor.impl()->storage].push_back(tensor);
  }
  for (const TensorBase& given : tensors) {
    Tensor tensor(given);
    TensorBase& wrapper = made[tensor.impl()];
    if (wrapper.defined()) {
      wrappers.push_back(wrapper);
      continue;
    }
    const std::vector<Tensor>* together = nullptr;
    if (tensor.impl()->storage != nullptr) together = &by_storage[tensor.impl()->storage];
    bool shares = together != nullptr && together->size() > 1;
    bool gradients = false;
    bool lazy = false;
    for (size_t i = 0; shares && i < together->size(); ++i) {
      gradients |= records_gradients((*together)[i]) && (*together)[i].requires_grad();
      lazy |= (*together)[i].is_conj() || (*together)[i].is_neg();
    }
    Input argument;
    argument.tensor = tensor;
    if (shares && !gradients && !lazy) {
      Tensor line = line_of(*session, tensor);
      Tensor whole = wrap_value(*session, line, true);
      for (const Tensor& one : *together) {
        Geometry to(one.impl());
        Tensor view{make_view_as(whole, to.sizes, to.strides, to.offset, to.dtype)};
        note_view(view.impl(), strided_chain(shared_of(view.impl()), to));
        made[one.impl()] = view;
        Input shared_argument{one, view, Tensor(make_detached(view)), line};
        note_view(shared_argument.origin.impl(), alias_of(view.impl()).view);
        session->arguments.push_back(shared_argument);
      }
    } else {
      argument.wrapper = wrap_value(*session, tensor, true);
      shared_of(argument.wrapper.impl()).ambiguous = shares;
      argument.origin = Tensor(make_detached(argument.wrapper));
      note_view(argument.origin.impl(), nullptr);
      argument.whole = tensor;
      made[tensor.impl()] = argument.wrapper;
      session->arguments.push_back(argument);
    }
    wrappers.push_back(made[tensor.impl()]);
  }
  return wrappers;
}

namespace {

// The tensor of one output, computed before arguments are written back. Undefined for a view of an
// argument, which value_after() computes.
Tensor value_before(Session& session, const Tensor& output) {
  Shared& shared = shared_of(output.impl());
  if (session.views.copies) return value_of(output.impl());
  for (const Input& argument : session.arguments) {
    if (argument.origin.impl()->storage == output.impl()->storage) return Tensor();
  }
  flush(session, shared);
  Chain view = alias_of(output.impl()).view;
  Below below(&session);
  return replay(shared.base, view, ViewRule{});
}

// The tensor of an output that views an argument's memory.
Tensor value_after(Session& session, const Tensor& output) {
  Chain view = alias_of(output.impl()).view;
  for (const Input& argument : session.arguments) {
    if (argument.origin.impl()->storage != output.impl()->storage) continue;
    Below below(&session);
    Tensor value = replay(argument.whole, view, ViewRule{});
    return value.is_same(argument.tensor) ? value.alias() : value;
  }
  return Tensor();
}

// Applies to an argument the sizes, strides and storage that the function gave its wrapper.
void change_metadata(Session& session, const Input& argument, const Tensor& value) {
  Geometry now(argument.wrapper.impl());
  bool same_storage = argument.wrapper.impl()->storage == argument.origin.impl()->storage;
  if (same_storage && now == Geometry(argument.origin.impl())) return;
  Tensor target = argument.tensor;
  if (same_storage) {
    Below below(&session);
    target.as_strided_(now.sizes, now.strides, now.offset);
    return;
  }
  if (shared_of(argument.wrapper.impl()).resized) {
    Below below(&session);
    target.resize_(now.sizes);
    target.copy_(value);
    return;
  }
  for (const Input& other : session.arguments) {
    if (other.origin.impl()->storage != argument.wrapper.impl()->storage) continue;
    Below below(&session);
    target.set_(other.tensor, now.offset, now.sizes, now.strides);
    return;
  }
  Below below(&session);
  target.set_(value);
}

}  // namespace

std::vector<TensorBase> finish(Session* session, const std::vector<TensorBase>& outputs) {
  std::vector<Tensor> written(session->arguments.size()), moved(session->arguments.size());
  for (size_t i = 0; i < written.size(); ++i) {
    const Input& argument = session->arguments[i];
    if (shared_of(argument.origin.impl()).generation != 0) {
      written[i] = value_of(argument.origin.impl());
    }
    if (argument.wrapper.impl()->storage != argument.origin.impl()->storage) {
      moved[i] = value_of(argument.wrapper.impl());
    }
  }
  std::vector<TensorBase> values(outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!is_functional(outputs[k].impl())) values[k] = outputs[k];
    for (const Input& argument : session->arguments) {
      if (argument.wrapper.is_same(outputs[k])) values[k] = argument.tensor;
    }
    if (!values[k].defined()) values[k] = value_before(*session, Tensor(outputs[k]));
  }
  for (size_t i = 0; i < written.size(); ++i) {
    if (!written[i].defined()) continue;
    Below below(session);
    Tensor(session->arguments[i].tensor).copy_(written[i]);
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!values[k].defined()) values[k] = value_after(*session, Tensor(outputs[k]));
    // Distinct tensors of the function become distinct objects, even over the same memory.
    for (size_t j = 0; j < k; ++j) {
      if (values[j].is_same(values[k]) && !outputs[j].is_same(outputs[k])) {
        Below below(session);
        values[k] = Tensor(values[k]).alias();
      }
    }
  }
  for (size_t i = 0; i < written.size(); ++i) {
    change_metadata(*session, session->arguments[i], moved[i]);
  }
  return values;
}

}  // namespace lamella::functionalize
