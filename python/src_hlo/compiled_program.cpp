// Runs programs of compiled functions: forward programs, training steps, and programs that write
// tensors, set gradients and return views.
//
// Note [Runs of compiled functions]
//   The leaves of a call are the tensors among its arguments and those that the function reads. The
//   inputs of a program are leaves, then learning rates, then existing gradients, then tensors from
//   outside. A training step takes each tensor once, and is specialised for which of its leaves are
//   the same tensor and for their gradients. The first results of a program are those of the
//   function that are no views of inputs, then come new gradients; the last ones are written to
//   inputs.
#include "python/src_hlo/compiled_program.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "lamella/abi/autograd.h"
#include "lamella/api/functions.h"
#include "lamella/layers/autograd/grad_mode.h"
#include "lamella/layers/autograd/variable.h"
#include "python/src/object.h"

namespace lamella::python {
namespace {

PyTypeObject* program_type = nullptr;

TensorBase gradient_of(lamella_tensor* tensor) {
  if (!autograd::is_leaf(tensor)) return {};
  return TensorBase::adopt(lamella_tensor_grad(tensor));
}
bool has_same_gradients(const CompiledProgram& program, std::span<PyObject* const> leaves) {
  std::vector<PyObject*> distinct;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (program.first[i] != i) {
      if (leaves[program.first[i]] != leaves[i]) return false;
      continue;
    }
    distinct.push_back(leaves[i]);
    TensorBase grad = gradient_of(tensor_of(leaves[i]));
    const std::optional<TensorGuard>& expected = program.gradients[i];
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
  if (written.empty()) return true;
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

// Copies each value to the tensor with the same index. No two of the tensors share memory.
void write_back(const std::vector<TensorBase>& tensors, const std::vector<TensorBase>& values) {
  NoGradGuard no_grad;
  for (size_t i = 0; i < tensors.size(); ++i) {
    lamella_tensor *to = tensors[i].impl(), *from = values[i].impl();
    if (to->scalar_type != from->scalar_type || to->numel != from->numel || !is_plain(to) ||
        !is_plain(from)) {
      Tensor(tensors[i]).copy_(Tensor(values[i]));
      continue;
    }
    size_t bytes = static_cast<size_t>(to->numel) * tensors[i].itemsize();
    if (bytes != 0) std::memcpy(to->data, from->data, bytes);
    lamella_tensor_bump_version(to);
  }
}

std::vector<TensorBase> inputs_of(const CompiledProgram& program,
                                  std::span<PyObject* const> leaves) {
  std::vector<TensorBase> given;
  PyObject* outside = program.outside.get();
  given.reserve(leaves.size() + program.rates.size() + program.graded.size() +
                static_cast<size_t>(PyList_GET_SIZE(outside)));
  for (size_t i : program.own) given.push_back(tensor_ref(leaves[i]));
  for (const OutsidePlace& place : program.rates) {
    PyObject* now = place.get();
    LAMELLA_CHECK(now != nullptr, "compile: expected an optimizer with a learning rate, got none");
    double rate = PyFloat_AsDouble(now);
    if (PyErr_Occurred() != nullptr) throw PythonError();
    given.push_back(lamella::scalar_tensor(rate, TensorOptions(kDouble).device(kCPU)));
  }
  for (size_t k : program.graded) given.push_back(gradient_of(tensor_of(leaves[program.own[k]])));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outside); ++i) {
    given.push_back(tensor_ref(PyList_GET_ITEM(outside, i)));
  }
  return given;
}

// The results of the function and the new gradients: the first of `made`, and views of `given`.
std::vector<TensorBase> results_of(const CompiledProgram& program, std::vector<TensorBase> made,
                                   const std::vector<TensorBase>& given) {
  if (program.fresh == program.results.size()) {
    made.resize(program.fresh);
    return made;
  }
  std::optional<NoGradGuard> no_grad;
  if (program.is_step) no_grad.emplace();
  std::vector<TensorBase> results;
  size_t next = 0;
  for (const auto& alias : program.results) {
    if (!alias) {
      results.push_back(std::move(made[next++]));
      continue;
    }
    const TensorBase& of = given[alias->input];
    if (alias->offset == 0 && of.sizes() == IntArrayRef(alias->sizes) &&
        of.strides() == IntArrayRef(alias->strides)) {
      results.push_back(of);
    } else {
      results.push_back(
          Tensor(of).as_strided(alias->sizes, alias->strides, of.storage_offset() + alias->offset));
    }
  }
  // A new gradient must not share memory with a result or another gradient.
  std::unordered_set<const void*> memory;
  for (size_t i = 0; i < results.size(); ++i) {
    bool is_gradient = i >= results.size() - program.set.size();
    if (is_gradient && (program.results[i] || memory.contains(results[i].impl()->data))) {
      results[i] = Tensor(results[i]).clone();
    }
    memory.insert(results[i].impl()->data);
  }
  return results;
}

// A list of (container, key).
std::vector<OutsidePlace> rates_from(PyObject* list) {
  std::vector<OutsidePlace> rates;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    rates.push_back(place_from(PyList_GET_ITEM(list, i)));
  }
  return rates;
}
// None, or (number of the input, sizes, strides, offset).
std::optional<CompiledProgram::Alias> alias_from(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  Py_ssize_t input;
  PyObject *sizes, *strides;
  long long offset;
  if (!PyArg_ParseTuple(object, "nOOL", &input, &sizes, &strides, &offset)) throw PythonError();
  auto numbers = [](PyObject* given) {
    std::vector<size_t> found = sizes_from(given);
    return std::vector<int64_t>(found.begin(), found.end());
  };
  return CompiledProgram::Alias{static_cast<size_t>(input), numbers(sizes), numbers(strides),
                                offset};
}

// (executable, gradient program or None, own, rates, graded, outside, written, results, set,
// cleared, whether it is a step, first, gradients).
PyObject* make(PyObject*, PyObject* args) {
  PyObject *executable, *gradient, *own, *rates, *graded, *outside, *written, *results, *set,
      *cleared, *first, *gradients;
  int is_step;
  if (!PyArg_ParseTuple(args, "OOOO!OO!OO!OOpOO!:_program", &executable, &gradient, &own,
                        &PyList_Type, &rates, &graded, &PyList_Type, &outside, &written,
                        &PyList_Type, &results, &set, &cleared, &is_step, &first, &PyList_Type,
                        &gradients)) {
    return nullptr;
  }
  return guarded([&] {
    CompiledProgram program;
    program.executable = executable_from(executable, &program.without_gil);
    if (gradient != Py_None) program.gradient = gradient_program_of(gradient);
    for (auto [from, to] :
         {std::pair(own, &program.own), std::pair(graded, &program.graded),
          std::pair(written, &program.written), std::pair(set, &program.set),
          std::pair(cleared, &program.cleared), std::pair(first, &program.first)}) {
      *to = sizes_from(from);
    }
    program.rates = rates_from(rates);
    program.outside = Ref::borrow(outside);
    program.is_step = is_step != 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results); ++i) {
      program.results.push_back(alias_from(PyList_GET_ITEM(results, i)));
      program.fresh += program.results.back() ? 0 : 1;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(gradients); ++i) {
      PyObject* grad = PyList_GET_ITEM(gradients, i);
      program.gradients.emplace_back();
      if (grad != Py_None) program.gradients.back().emplace(grad);
    }
    return hold(program_type, std::move(program));
  });
}

// (again, leaves): the list of the function's results; NotImplemented if the program is for other
// gradients, and None if a tensor that is written shares memory with another.
PyObject* call(PyObject* self, PyObject* args, PyObject*) {
  PyObject *again, *list;
  if (!PyArg_ParseTuple(args, "OO!:_Program", &again, &PyList_Type, &list)) return nullptr;
  return guarded([&]() -> PyObject* {
    std::span<PyObject* const> leaves(PySequence_Fast_ITEMS(list),
                                      static_cast<size_t>(PyList_GET_SIZE(list)));
    std::vector<TensorBase> results;
    RunOutcome outcome = run_program(held<CompiledProgram>(self), again, leaves, &results);
    if (outcome == RunOutcome::OtherGradients) Py_RETURN_NOTIMPLEMENTED;
    if (outcome == RunOutcome::SharedMemory) Py_RETURN_NONE;
    return list_of(std::move(results));
  });
}
int traverse(PyObject* self, visitproc visit, void* arg) {
  const auto& program = held<CompiledProgram>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(program.outside.get());
  for (const OutsidePlace& place : program.rates) Py_VISIT(place.container.get());
  return 0;
}
int clear(PyObject* self) {
  held<CompiledProgram>(self).rates.clear();
  return 0;
}
void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  destroy_holder<CompiledProgram>(self);
}

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("A program of a compiled function.")},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(call)},
                       {0, nullptr}};
PyType_Spec spec = {"lamella._hlo._Program", sizeof(Holder<CompiledProgram>), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
PyMethodDef functions[] = {{"_program", make, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

RunOutcome run_program(const CompiledProgram& program, PyObject* again,
                       std::span<PyObject* const> leaves, std::vector<TensorBase>* results) {
  if (!program.first.empty() && !has_same_gradients(program, leaves)) {
    return RunOutcome::OtherGradients;
  }
  std::vector<TensorBase> given = inputs_of(program, leaves);
  if (!are_apart(given, program.written)) return RunOutcome::SharedMemory;
  if (program.gradient) {
    *results = run_with_gradient(*program.gradient, again, given);
  } else {
    WithoutGil others(program.without_gil);
    *results = run_executable(*program.executable, given);
  }
  if (program.is_direct()) return RunOutcome::Done;
  if (!program.written.empty()) {
    std::vector<TensorBase> to;
    for (size_t i : program.written) to.push_back(given[i]);
    auto first = results->begin() + static_cast<std::ptrdiff_t>(program.fresh);
    write_back(to, {first, results->end()});
  }
  *results = results_of(program, std::move(*results), given);
  size_t returned = results->size() - program.set.size();
  for (size_t n = 0; n < program.set.size(); ++n) {
    const TensorBase& grad = (*results)[returned + n];
    PyObject* leaf = leaves[program.own[program.set[n]]];
    detail::check(lamella_tensor_set_grad(tensor_of(leaf), grad.impl()));
  }
  for (size_t k : program.cleared) {
    detail::check(lamella_tensor_set_grad(tensor_of(leaves[program.own[k]]), nullptr));
  }
  results->resize(returned);
  return RunOutcome::Done;
}

const CompiledProgram& compiled_program_of(PyObject* object) {
  if (Py_TYPE(object) != program_type) {
    PyErr_SetString(PyExc_TypeError, "expected a _Program");
    throw PythonError();
  }
  return held<CompiledProgram>(object);
}

int add_programs(PyObject* module) {
  program_type = add_type(module, &spec);
  return program_type == nullptr ? -1 : PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
