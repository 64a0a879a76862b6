// Training steps: programs that write tensors and set gradients.
//
// Note [Calls of steps]
//   The inputs of a step are each of its tensors once, then learning rates, then existing
//   gradients, then tensors from outside. A step is specialised for which of its leaves are the
//   same tensor and for their gradients. Its first results are those of the function, then come
//   gradients; the last ones are written to inputs.
#include "python/src_hlo/compiled_step.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "lamella/abi/autograd.h"
#include "lamella/graph/runtime/tensor_value.h"
#include "lamella/layers/autograd/variable.h"
#include "python/src/object.h"
#include "python/src_hlo/compiled_guards.h"

namespace lamella::python {
namespace {

struct StepProgram {
  std::shared_ptr<const hlo::Executable> executable;
  bool without_gil = false;
  std::vector<size_t> first;  // for each leaf, the first leaf that is the same tensor
  std::vector<std::optional<TensorGuard>> gradients;  // of each leaf; empty: it has none
  std::vector<size_t> own;                            // leaves, each tensor once
  std::vector<size_t> graded;                         // of `own`, those whose gradient is an input
  std::vector<size_t> written;                        // inputs
  std::vector<size_t> set, cleared;  // of `own`, those that get a gradient, or lose it
  size_t returned = 0;               // results of the function
};
PyTypeObject* step_type = nullptr;

TensorBase gradient_of(lamella_tensor* tensor) {
  if (!autograd::is_leaf(tensor)) return {};
  return TensorBase::adopt(lamella_tensor_grad(tensor));
}
bool has_same_gradients(const StepProgram& step, const std::vector<lamella_tensor*>& leaves) {
  std::vector<lamella_tensor*> distinct;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (step.first[i] != i) {
      if (leaves[step.first[i]] != leaves[i]) return false;
      continue;
    }
    distinct.push_back(leaves[i]);
    TensorBase grad = gradient_of(leaves[i]);
    const std::optional<TensorGuard>& expected = step.gradients[i];
    if (grad.defined() != expected.has_value()) return false;
    if (!expected) continue;
    Ref object(required(bridge->wrap(grad.unsafe_release())));
    if (!expected->fits(object.get())) return false;
  }
  std::ranges::sort(distinct);
  return std::ranges::adjacent_find(distinct) == distinct.end();
}

// The start of a tensor's storage; null for a tensor without elements.
const char* memory_of(const TensorBase& tensor) {
  const lamella_tensor* t = tensor.impl();
  return t->numel == 0 ? nullptr
                       : static_cast<const char*>(t->data) -
                             t->storage_offset * static_cast<int64_t>(tensor.itemsize());
}
bool are_apart(const std::vector<TensorBase>& tensors, const std::vector<size_t>& written) {
  std::vector<const char*> memory;
  memory.reserve(tensors.size());
  for (const TensorBase& tensor : tensors) memory.push_back(memory_of(tensor));
  std::vector<const char*> sorted = memory;
  std::ranges::sort(sorted);
  return std::ranges::all_of(written, [&](size_t i) {
    auto [begin, end] = std::ranges::equal_range(sorted, memory[i]);
    return memory[i] == nullptr || end - begin == 1;
  });
}

// Whether a tensor is contiguous in memory that may be read and written directly.
bool is_plain(const lamella_tensor* tensor) {
  constexpr uint32_t other =
      LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG | LAMELLA_TENSOR_INFERENCE | LAMELLA_TENSOR_WRAPPER;
  bool here = tensor->device_type == static_cast<uint8_t>(DeviceType::CPU);
  if (!here || (tensor->flags & other) != 0) return false;
  int64_t expected = 1;
  for (int32_t d = tensor->ndim; d-- > 0;) {
    if (tensor->sizes[d] != 1 && tensor->strides[d] != expected) return false;
    expected *= tensor->sizes[d];
  }
  return true;
}

void append(PyObject* list, std::vector<TensorBase>* tensors) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    tensors->push_back(tensor_ref(PyList_GET_ITEM(list, i)));
  }
}

// (leaves, learning rates, tensors from outside): the list of the function's results;
// NotImplemented if the program is for other gradients; None, with nothing done, if a tensor that
// is written shares memory with another or is not contiguous.
PyObject* run_step(PyObject* self, PyObject* args, PyObject*) {
  PyObject *list, *rates, *outside;
  if (!PyArg_ParseTuple(args, "O!O!O!:_Step", &PyList_Type, &list, &PyList_Type, &rates,
                        &PyList_Type, &outside)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    const auto& step = held<StepProgram>(self);
    std::vector<lamella_tensor*> leaves;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      leaves.push_back(tensor_of(PyList_GET_ITEM(list, i)));
    }
    if (leaves.size() != step.first.size() || !has_same_gradients(step, leaves)) {
      Py_RETURN_NOTIMPLEMENTED;
    }
    std::vector<TensorBase> given;
    for (size_t i : step.own) given.push_back(TensorBase::borrow(leaves[i]));
    append(rates, &given);
    for (size_t k : step.graded) given.push_back(gradient_of(leaves[step.own[k]]));
    append(outside, &given);
    bool fits = are_apart(given, step.written) && std::ranges::all_of(step.written, [&](size_t i) {
                  return is_plain(given[i].impl());
                });
    if (!fits) Py_RETURN_NONE;

    const auto& parameters = step.executable->module().entry->parameters;
    std::vector<hlo::Value> values;
    values.reserve(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      values.push_back(hlo::value_of_tensor(parameters[i]->shape, given[i]));
    }
    std::vector<TensorBase> made;
    {
      WithoutGil others(step.without_gil);
      made = hlo::tensors_of_value(step.executable->run(values));
    }
    std::vector<TensorBase> to;
    for (size_t i : step.written) to.push_back(std::move(given[i]));
    auto fresh = static_cast<std::ptrdiff_t>(made.size() - step.written.size());
    std::vector<TensorBase> from(std::make_move_iterator(made.begin() + fresh),
                                 std::make_move_iterator(made.end()));
    write_back(to, from);
    for (size_t n = 0; n < step.set.size(); ++n) {
      const TensorBase& grad = made[step.returned + n];
      detail::check(lamella_tensor_set_grad(leaves[step.own[step.set[n]]], grad.impl()));
    }
    for (size_t k : step.cleared) {
      detail::check(lamella_tensor_set_grad(leaves[step.own[k]], nullptr));
    }
    made.resize(step.returned);
    return list_of(std::move(made));
  });
}

// (executable, first, own, graded, written, set, cleared, returned, gradients or None).
PyObject* make(PyObject*, PyObject* args) {
  PyObject *executable, *first, *own, *graded, *written, *set, *cleared, *gradients;
  Py_ssize_t returned;
  if (!PyArg_ParseTuple(args, "OOOOOOOnO!:_step", &executable, &first, &own, &graded, &written,
                        &set, &cleared, &returned, &PyList_Type, &gradients)) {
    return nullptr;
  }
  return guarded([&] {
    StepProgram step;
    step.executable = executable_from(executable, &step.without_gil);
    for (auto [from, to] : {std::pair(first, &step.first), std::pair(own, &step.own),
                            std::pair(graded, &step.graded), std::pair(written, &step.written),
                            std::pair(set, &step.set), std::pair(cleared, &step.cleared)}) {
      *to = sizes_from(from);
    }
    step.returned = static_cast<size_t>(returned);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(gradients); ++i) {
      PyObject* grad = PyList_GET_ITEM(gradients, i);
      step.gradients.emplace_back();
      if (grad != Py_None) step.gradients.back().emplace(grad);
    }
    return hold(step_type, std::move(step));
  });
}

// Copies each value of a list to the tensor with the same index of another list: see write_back().
PyObject* write_lists_back(PyObject*, PyObject* args) {
  PyObject *tensors, *values;
  if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &tensors, &PyList_Type, &values)) {
    return nullptr;
  }
  std::vector<TensorBase> to, from;
  append(tensors, &to);
  append(values, &from);
  return PyBool_FromLong(write_back(to, from));
}

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("A compiled step of training: see Note [Calls of steps].")},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_holder<StepProgram>)},
    {Py_tp_call, reinterpret_cast<void*>(run_step)},
    {0, nullptr}};
PyType_Spec spec = {"lamella._hlo._Step", sizeof(Holder<StepProgram>), 0, Py_TPFLAGS_DEFAULT,
                    slots};
PyMethodDef functions[] = {{"_step", make, METH_VARARGS, nullptr},
                           {"_write_back", write_lists_back, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool write_back(const std::vector<TensorBase>& tensors, const std::vector<TensorBase>& values) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const lamella_tensor *to = tensors[i].impl(), *from = values[i].impl();
    bool fits = to->scalar_type == from->scalar_type && to->numel == from->numel;
    if (!fits || !is_plain(to) || !is_plain(from)) return false;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    lamella_tensor *to = tensors[i].impl(), *from = values[i].impl();
    size_t bytes =
        static_cast<size_t>(to->numel) * element_size(static_cast<ScalarType>(to->scalar_type));
    if (bytes != 0) std::memcpy(to->data, from->data, bytes);
    lamella_tensor_bump_version(to);
  }
  return true;
}

std::vector<size_t> sizes_from(PyObject* numbers) {
  Ref list(required(PySequence_Fast(numbers, "numbers")));
  std::vector<size_t> made;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    made.push_back(PyLong_AsSize_t(PySequence_Fast_GET_ITEM(list.get(), i)));
    if (PyErr_Occurred() != nullptr) throw PythonError();
  }
  return made;
}

int add_steps(PyObject* module) {
  step_type = add_type(module, &spec);
  return step_type == nullptr ? -1 : PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
