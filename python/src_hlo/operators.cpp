// Operators in HLO modules and HLO modules as operators; conversion of traced graphs to modules.
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <optional>
#include <vector>

#include "lamella/core/allocator.h"
#include "lamella/graph/client/module_operator.h"
#include "lamella/graph/custom_call/operator_call.h"
#include "lamella/graph/lowering/graph_to_module.h"
#include "lamella/graph/lowering/lowering.h"
#include "python/src_hlo/hlo.h"

namespace lamella::python {
namespace {

// The registration of an operator that runs a module.
struct Registration {
  std::string file;  // where it was defined
  std::optional<Library> library;
};
using Holding = std::unique_ptr<Registration>;

PyTypeObject* registration_type = nullptr;

void end_registration(Holding& registration) {
  // Waits for calls on other threads, which may need the GIL to finish.
  WithoutGil others;
  registration->library.reset();
}
PyObject* close(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    end_registration(held<Holding>(self));
    Py_RETURN_NONE;
  });
}
void destroy(PyObject* self) {
  end_registration(held<Holding>(self));
  destroy_holder<Holding>(self);
}

PyObject* define_operator(PyObject*, PyObject* args) {
  const char* name;
  PyObject* module;
  const char* platform;
  const char* file;
  unsigned int line;
  if (!PyArg_ParseTuple(args, "sOssI:_define_operator", &name, &module, &platform, &file, &line)) {
    return nullptr;
  }
  return guarded([&] {
    const ModuleHandle& handle = module_from(module, "as_operator");
    hlo::CompileOptions options;
    options.platform = platform;
    auto made = std::make_unique<Registration>();
    made->file = file;
    {
      WithoutGil others;
      made->library.emplace(hlo::define_operator(name, handle, options, made->file.c_str(), line));
    }
    return hold(registration_type, std::move(made));
  });
}

PyObject* operator_call_facts(PyObject*, PyObject* args) {
  const char* name;
  PyObject* shapes;
  const char* arguments;
  if (!PyArg_ParseTuple(args, "sOs:operator_call_facts", &name, &shapes, &arguments)) {
    return nullptr;
  }
  return guarded([&] {
    Ref list(required(PySequence_Fast(shapes, "operator_call_facts: expected shapes")));
    std::vector<hlo::Shape> operands;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
      operands.push_back(
          shape_from(PySequence_Fast_GET_ITEM(list.get(), i), "operator_call_facts"));
    }
    hlo::OperatorCallFacts facts = hlo::operator_call_facts(name, operands, arguments);
    Ref aliases(required(PyDict_New()));
    for (const hlo::OperandAlias& alias : facts.aliases) {
      Ref output(numbers_object(alias.output));
      Ref operand(required(PyLong_FromLongLong(alias.operand)));
      if (PyDict_SetItem(aliases.get(), output.get(), operand.get()) != 0) throw PythonError();
    }
    return required(Py_BuildValue("NNNN", shape_object(std::move(facts.shape)),
                                  text_object(facts.arguments), aliases.release(),
                                  PyBool_FromLong(facts.has_side_effect)));
  });
}

PyObject* schema_of_module(PyObject*, PyObject* args) {
  const char* name;
  PyObject* module;
  if (!PyArg_ParseTuple(args, "sO:_schema_of_module", &name, &module)) return nullptr;
  return guarded([&] {
    return text_object(hlo::schema_of_module(name, *module_from(module, "as_operator")));
  });
}

const tracing::Graph* graph_from(PyObject* object) {
  return static_cast<const tracing::Graph*>(bridge->graph(object));
}
// Numbers of values; None means an undefined tensor.
std::vector<tracing::ValueId> values_from(PyObject* object, const char* what) {
  Ref list(required(PySequence_Fast(object, what)));
  std::vector<tracing::ValueId> ids;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    PyObject* one = PySequence_Fast_GET_ITEM(list.get(), i);
    size_t id = one == Py_None ? tracing::kNoValue : PyLong_AsSize_t(one);
    if (PyErr_Occurred() != nullptr) throw PythonError();
    ids.push_back(static_cast<tracing::ValueId>(id));
  }
  return ids;
}

PyObject* from_trace(PyObject*, PyObject* args) {
  PyObject *graph, *inputs = Py_None, *outputs = Py_None, *tangents = Py_None;
  const char* name;
  int rules = 0, writes = 1, portable = 0;
  if (!PyArg_ParseTuple(args, "Os|pOOpOp:_from_trace", &graph, &name, &rules, &inputs, &outputs,
                        &writes, &tangents, &portable)) {
    return nullptr;
  }
  const tracing::Graph* traced = graph_from(graph);
  if (traced == nullptr) return nullptr;
  return guarded([&] {
    hlo::GraphPart part = hlo::whole_graph(*traced);
    if (inputs != Py_None) part.inputs = values_from(inputs, "_from_trace: expected inputs");
    if (outputs != Py_None) part.outputs = values_from(outputs, "_from_trace: expected outputs");
    part.rules = rules != 0 || portable != 0;
    part.portable = portable != 0;
    part.writes = writes != 0;
    if (tangents != Py_None)
      part.tangents = values_from(tangents, "_from_trace: expected tangents");
    return module_object(hlo::module_of_graph(*traced, name, part));
  });
}

PyObject* divide_trace(PyObject*, PyObject* args) {
  PyObject *graph, *tangents;
  Py_ssize_t results;
  if (!PyArg_ParseTuple(args, "OOn:_divide_trace", &graph, &tangents, &results)) return nullptr;
  const tracing::Graph* traced = graph_from(graph);
  if (traced == nullptr) return nullptr;
  return guarded([&] {
    std::vector<tracing::ValueId> saved =
        hlo::divide_graph(*traced, values_from(tangents, "_divide_trace: expected tangents"),
                          static_cast<size_t>(results));
    std::vector<int64_t> numbers(saved.begin(), saved.end());
    return numbers_object(numbers);
  });
}

PyObject* lowered_operators(PyObject*, PyObject*) {
  return guarded([&] {
    std::vector<std::string_view> names = hlo::lowering::lowered_operators();
    Ref list(required(PyList_New(0)));
    for (std::string_view name : names) {
      Ref text(required(text_object(name)));
      if (PyList_Append(list.get(), text.get()) != 0) throw PythonError();
    }
    return list.release();
  });
}

// Frees cached memory: after a trace and its compilation this is the memory of all that the
// function computed and of the compiler, which calls of the program do not need.
PyObject* release_memory(PyObject*, PyObject*) {
  empty_cpu_cache();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"close", close, METH_NOARGS, "Undefines the operator; waits for calls that are inside."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("An operator that is a module.")},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};
PyType_Spec spec = {"lamella._hlo._OperatorRegistration", sizeof(Holder<Holding>), 0,
                    Py_TPFLAGS_DEFAULT, slots};
PyMethodDef functions[] = {
    {"_define_operator", define_operator, METH_VARARGS, nullptr},
    {"_schema_of_module", schema_of_module, METH_VARARGS, nullptr},
    {"_from_trace", from_trace, METH_VARARGS, nullptr},
    {"_divide_trace", divide_trace, METH_VARARGS, nullptr},
    {"_release_memory", release_memory, METH_NOARGS, nullptr},
    {"_lowered_operators", lowered_operators, METH_NOARGS, nullptr},
    {"operator_call_facts", operator_call_facts, METH_VARARGS,
     "operator_call_facts(op, shapes, arguments)\n\nWhat a custom call of the operator must "
     "declare: its shape, the text of its arguments, the operand that each output (a tuple) is "
     "written to, and whether it acts on the world outside."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_operators(PyObject* module) {
  registration_type = add_type(module, &spec);
  return registration_type == nullptr ? -1 : PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
