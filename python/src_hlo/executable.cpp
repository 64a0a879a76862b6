// Compiling and running modules with Python's arrays.
//
// Note [Arguments from Python]
//   Each array of the entry's parameters takes one argument, tuples flattened. Tensors and objects
//   with the buffer protocol are read in place; `convert` in lamella/hlo/_arrays.py makes a Tensor
//   of everything else. Wrong arguments raise an error before the run begins. Later failures go
//   through `on_failure` of lamella/hlo/_run.py, which saves what is needed to repeat the run.
#include <algorithm>
#include <optional>
#include <vector>

#include "lamella/graph/client/ahead_of_time.h"
#include "lamella/graph/client/compile.h"
#include "lamella/graph/custom_call/operator_tensors.h"
#include "lamella/graph/execute/executor.h"
#include "lamella/graph/execute/machine_code.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/runtime/tensor_value.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {
namespace {

constexpr int64_t kWorkToReleaseGil = 32768;
// The most bytes of inputs that are saved for a failed run.
constexpr size_t kLargestInputs = size_t{256} << 20;

// One array among the parameters of the entry.
struct Leaf {
  const hlo::Shape* shape;
  const hlo::Instruction* parameter;
};
struct ExecutableHandle {
  std::shared_ptr<const hlo::Executable> executable;
  std::vector<Leaf> leaves;
  std::string platform;
  bool without_gil;
};
PyTypeObject* executable_type = nullptr;
PyObject* on_failure = nullptr;

const ExecutableHandle& executable_of(PyObject* self) { return held<ExecutableHandle>(self); }

// Whether a run may take long, or wait for a thread that needs the GIL.
bool may_take_long(const hlo::Module& module) {
  int64_t work = 0;
  for (const hlo::Computation* computation : module.computations) {
    for (const hlo::Instruction* i : computation->instructions) {
      if (i->opcode == hlo::Opcode::CustomCall || i->opcode == hlo::Opcode::While) return true;
      for (const hlo::Shape* one : hlo::array_leaves(*i->shape)) {
        work += 1 + one->elements();
        if (work >= kWorkToReleaseGil) return true;
      }
    }
  }
  return false;
}

// ---- Arguments ---------------------------------------------------------------------------------

[[noreturn]] void refuse(const char* what, size_t at, const Leaf& leaf, std::string_view got) {
  throw lamella::Error(str(what, ": expected argument ", at, " ('", leaf.parameter->name,
                           "') to be ", leaf.shape->to_string(false), ", got ", got));
}

hlo::Value value_of(PyObject* object, const char* what, size_t at, const Leaf& leaf) {
  std::string got;
  hlo::Value value = value_from(object, leaf.shape, what, &got);
  if (!value) refuse(what, at, leaf, got);
  return value;
}

// Tuples and lists among the arguments are tuples of the program if there are as many arguments as
// parameters.
void flatten(PyObject* object, const hlo::Shape& shape, std::vector<Ref>* flat, const char* what) {
  if (shape.is_array()) {
    flat->push_back(Ref::borrow(object));
    return;
  }
  if (!shape.is_tuple()) {
    if (object == Py_None) return;
    throw lamella::Error(str(what, ": expected None for a ", shape.to_string(false), ", got ",
                             Py_TYPE(object)->tp_name));
  }
  const auto& shapes = shape.tuple_shapes();
  if (!PyTuple_Check(object) && !PyList_Check(object)) {
    throw lamella::Error(str(what, ": expected a tuple for ", shape.to_string(false), ", got ",
                             Py_TYPE(object)->tp_name));
  }
  Ref items(required(PySequence_Fast(object, what)));
  Py_ssize_t size = PySequence_Fast_GET_SIZE(items.get());
  LAMELLA_CHECK(size == static_cast<Py_ssize_t>(shapes.size()), what, ": expected a tuple of ",
                shapes.size(), " for ", shape.to_string(false), ", got ", size);
  for (Py_ssize_t i = 0; i < size; ++i) {
    flatten(PySequence_Fast_GET_ITEM(items.get(), i), shapes[static_cast<size_t>(i)], flat, what);
  }
}

std::vector<hlo::Value> values_of(const ExecutableHandle& handle, PyObject* args,
                                  const char* what) {
  const std::vector<Leaf>& leaves = handle.leaves;
  const auto& parameters = handle.executable->module().entry->parameters;
  auto given = static_cast<size_t>(PyTuple_GET_SIZE(args));
  std::vector<hlo::Value> values;
  values.reserve(leaves.size());
  bool nested = false;
  for (size_t i = 0; i < given && given == parameters.size(); ++i) {
    nested |= !parameters[i]->shape->is_array();
  }
  if (nested && leaves.size() == given) {
    // As many arguments as arrays: they are nested only if an object is a tuple, a list or None.
    nested = false;
    for (size_t i = 0; i < given; ++i) {
      PyObject* object = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
      nested |= !parameters[i]->shape->is_array() &&
                (PyTuple_Check(object) || PyList_Check(object) || object == Py_None);
    }
  }
  if (nested) {
    std::vector<Ref> flat;
    for (size_t i = 0; i < given; ++i) {
      flatten(PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)), *parameters[i]->shape, &flat,
              what);
    }
    for (size_t i = 0; i < leaves.size(); ++i) {
      values.push_back(value_of(flat[i].get(), what, i, leaves[i]));
    }
    return values;
  }
  LAMELLA_CHECK(given == leaves.size(), what, ": expected ", leaves.size(),
                leaves.size() == 1 ? " argument for '" : " arguments for '",
                handle.executable->module().entry->name, "', got ", given);
  for (size_t i = 0; i < leaves.size(); ++i) {
    values.push_back(
        value_of(PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)), what, i, leaves[i]));
  }
  return values;
}

// ---- Running -----------------------------------------------------------------------------------

// Lets Python code save what is needed to repeat a failed run; the pending error stays, or is
// replaced by the one that it returns.
void report_failure(PyObject* self, const std::vector<hlo::Value>& leaves) {
  if (on_failure == nullptr || !PyErr_ExceptionMatches(PyExc_Exception)) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  try {
    size_t bytes = 0;
    for (const hlo::Value& leaf : leaves) bytes += leaf.bytes();
    std::vector<TensorBase> tensors;
    for (const hlo::Value& leaf : leaves) {
      if (bytes > kLargestInputs) break;
      for (TensorBase& one : hlo::tensors_of_value(leaf)) tensors.push_back(std::move(one));
    }
    Ref list = bytes > kLargestInputs ? Ref::borrow(Py_None) : Ref(list_of(std::move(tensors)));
    Ref done(PyObject_CallFunctionObjArgs(on_failure, self, list.get(), value, nullptr));
  } catch (...) {
    // Errors of the hook are dropped in favour of the run's own error.
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

// The device of the first tensor that is on one, tuples and lists looked into.
std::optional<Device> device_among(PyObject* args, const char* what) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(args); ++i) {
    PyObject* one = PySequence_Fast_GET_ITEM(args, i);
    if (PyTuple_Check(one) || PyList_Check(one)) {
      if (std::optional<Device> found = device_among(one, what)) return found;
    } else if (PyObject_TypeCheck(one, bridge->tensor_type)) {
      TensorBase tensor = TensorBase::adopt(bridge->read(one, what));
      if (!tensor.defined()) throw PythonError();
      if (tensor.is_cuda()) return tensor.device();
    }
  }
  return std::nullopt;
}
// Arguments on the host are copied to the device.
PyObject* run_on(Device device, const ExecutableHandle& handle, PyObject* args, const char* what) {
  std::vector<Ref> flat;
  const auto& parameters = handle.executable->module().entry->parameters;
  const auto given = static_cast<size_t>(PyTuple_GET_SIZE(args));
  if (given == parameters.size()) {
    for (size_t i = 0; i < given; ++i) {
      flatten(PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)), *parameters[i]->shape, &flat,
              what);
    }
  } else {
    for (size_t i = 0; i < given; ++i) {
      flat.push_back(Ref::borrow(PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i))));
    }
  }
  LAMELLA_CHECK(flat.size() == handle.leaves.size(), what, ": expected ", handle.leaves.size(),
                " arguments for '", handle.executable->module().entry->name, "', got ",
                flat.size());
  std::vector<TensorBase> tensors;
  for (size_t i = 0; i < flat.size(); ++i) {
    const Leaf& leaf = handle.leaves[i];
    TensorBase tensor;
    if (PyObject_TypeCheck(flat[i].get(), bridge->tensor_type)) {
      tensor = TensorBase::adopt(bridge->read(flat[i].get(), what));
      if (!tensor.defined()) throw PythonError();
      if (!hlo::has_shape(tensor, *leaf.shape)) refuse(what, i, leaf, hlo::shape_text(tensor));
    } else {
      tensor = hlo::tensors_of_value(value_of(flat[i].get(), what, i, leaf))[0];
    }
    tensors.push_back(std::move(tensor));
  }
  std::vector<TensorBase> results;
  {
    WithoutGil others(handle.without_gil);
    results = handle.executable->run_on_device(tensors, device);
  }
  return list_of(std::move(results));
}

PyObject* run(PyObject* self, PyObject* args, const char* what) {
  const ExecutableHandle& handle = executable_of(self);
  std::optional<Device> device;
  if (!guarded(
          [&] {
            device = device_among(args, what);
            return true;
          },
          false)) {
    return nullptr;
  }
  if (device) return guarded([&] { return run_on(*device, handle, args, what); });
  std::vector<hlo::Value> leaves;
  if (!guarded(
          [&] {
            leaves = values_of(handle, args, what);
            return true;
          },
          false)) {
    return nullptr;
  }
  std::vector<hlo::Value> kept;
  std::vector<TensorBase> results;
  bool done = guarded(
      [&] {
        const auto& parameters = handle.executable->module().entry->parameters;
        if (parameters.size() == leaves.size()) {
          bool plain = std::all_of(parameters.begin(), parameters.end(),
                                   [](const auto* p) { return p->shape->is_array(); });
          if (plain) {
            WithoutGil others(handle.without_gil);
            results = hlo::tensors_of_value(handle.executable->run(leaves));
            return true;
          }
        }
        if (on_failure != nullptr) kept = leaves;
        std::vector<hlo::Value> arguments;
        size_t next = 0;
        for (const hlo::Instruction* parameter : handle.executable->module().entry->parameters) {
          arguments.push_back(hlo::value_of_leaves(parameter->shape, leaves, &next));
        }
        WithoutGil others(handle.without_gil);
        results = hlo::tensors_of_value(handle.executable->run(arguments));
        return true;
      },
      false);
  if (!done) {
    report_failure(self, kept.empty() ? leaves : kept);
    return nullptr;
  }
  return guarded([&] { return list_of(std::move(results)); });
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) {
    PyErr_SetString(PyExc_TypeError, "Executable: expected no keyword arguments");
    return nullptr;
  }
  return run(self, args, "hlo");
}
PyObject* run_as(PyObject* self, PyObject* args) {
  const char* what;
  PyObject* arrays;
  if (!PyArg_ParseTuple(args, "sO!:_run", &what, &PyTuple_Type, &arrays)) return nullptr;
  return run(self, arrays, what);
}

PyObject* compile(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"module",           "platform",      "interpreted", "verified",
                                "flush_subnormals", "device_graphs", nullptr};
  PyObject* object;
  const char* platform = "Host";
  int interpreted = 0, verified = 0, flush_subnormals = 0, device_graphs = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|spppp:compile", const_cast<char**>(names),
                                   &object, &platform, &interpreted, &verified, &flush_subnormals,
                                   &device_graphs)) {
    return nullptr;
  }
  return guarded([&] {
    const ModuleHandle& module = module_from(object, "compile");
    hlo::CompileOptions options;
    options.platform = platform;
    options.flush_subnormals = flush_subnormals != 0;
    options.device_graphs = device_graphs != 0;
    ExecutableHandle handle;
    handle.platform = platform;
    handle.without_gil = may_take_long(*module);
    {
      WithoutGil others(handle.without_gil);
      if (interpreted != 0) {
        if (verified == 0) hlo::verify(*module);
        handle.executable = hlo::make_evaluator(module, options);
      } else {
        handle.executable = hlo::compile(module, options, verified != 0);
      }
    }
    for (const hlo::Instruction* parameter : module->entry->parameters) {
      for (const hlo::Shape* leaf : hlo::array_leaves(*parameter->shape)) {
        handle.leaves.push_back({leaf, parameter});
      }
    }
    static bool warned = false;
    if (const std::string problem = hlo::compiler_problem(); !problem.empty() && !warned) {
      warned = true;
      const std::string text = "compile: programs run by rules, which is slower: " + problem;
      if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) != 0) throw PythonError();
    }
    return hold(executable_type, std::move(handle));
  });
}

// (module, function): the object file as bytes, and the header as text.
PyObject* compile_ahead_of_time(PyObject*, PyObject* args) {
  PyObject* object;
  const char* function;
  if (!PyArg_ParseTuple(args, "Os:compile", &object, &function)) return nullptr;
  return guarded([&] {
    const ModuleHandle& module = module_from(object, "compile");
    hlo::ProgramFiles files;
    {
      WithoutGil others(true);
      files = hlo::compile_ahead_of_time(*module, function);
    }
    return required(Py_BuildValue("y#s", files.object.data(),
                                  static_cast<Py_ssize_t>(files.object.size()),
                                  files.header.c_str()));
  });
}

PyObject* get_module(PyObject* self, void*) {
  return guarded([&] { return module_object(executable_of(self).executable->shared_module()); });
}
PyObject* get_plan(PyObject* self, void*) {
  return guarded([&] { return module_object(executable_of(self).executable->plan()); });
}
PyObject* get_input_shapes(PyObject* self, void*) {
  return guarded([&] {
    const auto& parameters = executable_of(self).executable->module().entry->parameters;
    Ref tuple(required(PyTuple_New(static_cast<Py_ssize_t>(parameters.size()))));
    for (size_t i = 0; i < parameters.size(); ++i) {
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       shape_object(*parameters[i]->shape));
    }
    return tuple.release();
  });
}
PyObject* get_output_shape(PyObject* self, void*) {
  return guarded(
      [&] { return shape_object(*executable_of(self).executable->module().entry->root->shape); });
}

PyObject* get_platform(PyObject* self, void*) { return text_object(executable_of(self).platform); }

PyObject* set_failure_hook(PyObject*, PyObject* hook) {
  Py_INCREF(hook);
  Py_XDECREF(std::exchange(on_failure, hook));
  Py_RETURN_NONE;
}

PyGetSetDef getset[] = {
    {"module", get_module, nullptr, "The module it runs.", nullptr},
    {"plan", get_plan, nullptr,
     "The module as it runs: an instruction for each step, in order; instructions that are "
     "compiled to one loop or one function of machine code are fusions.",
     nullptr},
    {"input_shapes", get_input_shapes, nullptr, "Of the entry's parameters.", nullptr},
    {"output_shape", get_output_shape, nullptr, "Of the entry's result.", nullptr},
    {"platform", get_platform, nullptr, "Which registrations of custom calls it uses.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyObject* explain(PyObject* self, PyObject*) {
  return guarded([&] { return text_object(executable_of(self).executable->explain()); });
}
PyMethodDef methods[] = {
    {"_run", run_as, METH_VARARGS, nullptr},
    {"explain", explain, METH_NOARGS,
     "How the instructions run, as text: which are machine code, and why the others are not."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("A module made ready to run: call it with arrays.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_holder<ExecutableHandle>)},
    {Py_tp_call, reinterpret_cast<void*>(call)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {0, nullptr}};
PyType_Spec spec = {"lamella._hlo.Executable", sizeof(Holder<ExecutableHandle>), 0,
                    Py_TPFLAGS_DEFAULT, slots};

PyMethodDef functions[] = {{"compile", method(compile), METH_VARARGS | METH_KEYWORDS, nullptr},
                           {"_compile_ahead_of_time", compile_ahead_of_time, METH_VARARGS, nullptr},
                           {"_set_failure_hook", set_failure_hook, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

std::shared_ptr<const hlo::Executable> executable_from(PyObject* object, bool* without_gil) {
  if (!PyObject_TypeCheck(object, executable_type)) {
    PyErr_SetString(PyExc_TypeError, "expected an Executable");
    throw PythonError();
  }
  const ExecutableHandle& handle = executable_of(object);
  *without_gil = handle.without_gil;
  return handle.executable;
}

int add_executables(PyObject* module) {
  executable_type = add_type(module, &spec);
  return executable_type == nullptr ? -1 : PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
