// The Python types of the recorder and its graphs; lamella/_trace.py and lamella/_graph.py wrap
// them for users.
#include "python/src/trace.h"

#include "lamella/dispatch/registry.h"
#include "lamella/schema/parser.h"
#include "python/src/errors.h"
#include "python/src/gil.h"

namespace lamella::python {
namespace {

using tracing::Graph;
using tracing::kNoValue;
using tracing::Node;
using tracing::Recorder;
using tracing::ValueId;
using tracing::ValueKind;

PyTypeObject GraphType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject RecorderType = {PyVarObject_HEAD_INIT(nullptr, 0)};

struct PyGraph {
  PyObject_HEAD Graph* graph;
};
struct PyRecorder {
  PyObject_HEAD Recorder* recorder;
};
Graph& graph_of(PyObject* self) { return *reinterpret_cast<PyGraph*>(self)->graph; }
Recorder& recorder_of(PyObject* self) { return *reinterpret_cast<PyRecorder*>(self)->recorder; }

PyObject* graph_object(Graph graph) {
  PyObject* self = GraphType.tp_alloc(&GraphType, 0);
  if (self != nullptr) reinterpret_cast<PyGraph*>(self)->graph = new Graph(std::move(graph));
  return self;
}
PyObject* none_ref() { return Ref::borrow(Py_None).release(); }
PyObject* text_object(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
}
PyObject* ids_object(ArrayRef<ValueId> ids) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(ids.size())));
  for (size_t i = 0; list && i < ids.size(); ++i) {
    PyObject* id = ids[i] == kNoValue ? none_ref() : PyLong_FromUnsignedLong(ids[i]);
    if (id == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), id);
  }
  return list.release();
}

// Tensors of a sequence, None as undefined ones.
bool read_tensors(PyObject* object, const char* what, std::vector<TensorBase>* tensors) {
  Ref items(PySequence_Tuple(object));
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    if (item != Py_None && !is_tensor(item)) {
      PyErr_Format(PyExc_TypeError, "%s: expected a Tensor at place %zd, got %s", what, i,
                   Py_TYPE(item)->tp_name);
      return false;
    }
    tensors->push_back(item == Py_None ? TensorBase() : tensor_ref(item));
  }
  return true;
}

PyObject* list_object(std::vector<TensorBase> tensors) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; list && i < tensors.size(); ++i) {
    PyObject* item = wrap(std::move(tensors[i]));
    if (item == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item);
  }
  return list.release();
}

// ---- Recorder ----------------------------------------------------------------------------------

PyObject* recorder_new(PyTypeObject* type, PyObject* args, PyObject*) {
  int decompose, strict, locations;
  if (!PyArg_ParseTuple(args, "ppp:_Recorder", &decompose, &strict, &locations)) return nullptr;
  return guarded([&]() -> PyObject* {
    PyObject* self = type->tp_alloc(type, 0);
    if (self != nullptr) {
      reinterpret_cast<PyRecorder*>(self)->recorder =
          new Recorder({decompose != 0, strict != 0, locations != 0});
    }
    return self;
  });
}
void recorder_dealloc(PyObject* self) {
  delete reinterpret_cast<PyRecorder*>(self)->recorder;
  Py_TYPE(self)->tp_free(self);
}
PyObject* recorder_add_input(PyObject* self, PyObject* args) {
  const char* name;
  PyObject* tensor;
  if (!PyArg_ParseTuple(args, "sO!:add_input", &name, &TensorType, &tensor)) return nullptr;
  return guarded([&]() -> PyObject* {
    recorder_of(self).add_input(name, tensor_ref(tensor));
    Py_RETURN_NONE;
  });
}
PyObject* recorder_name_parameter(PyObject* self, PyObject* args) {
  const char* name;
  PyObject* tensor;
  if (!PyArg_ParseTuple(args, "sO!:name_parameter", &name, &TensorType, &tensor)) return nullptr;
  return guarded([&]() -> PyObject* {
    recorder_of(self).name_outside(ValueKind::kParameter, name, tensor_ref(tensor));
    Py_RETURN_NONE;
  });
}
// run(function, args, kwargs): calls it with the trace running.
PyObject* recorder_run(PyObject* self, PyObject* args) {
  PyObject *function, *positional, *keywords;
  if (!PyArg_ParseTuple(args, "OO!O!:run", &function, &PyTuple_Type, &positional, &PyDict_Type,
                        &keywords)) {
    return nullptr;
  }
  Recorder& recorder = recorder_of(self);
  if (!guarded([&] { return recorder.start(), true; }, false)) return nullptr;
  PyObject* result = call_object(function, positional, keywords);
  recorder.stop();
  return result;
}
PyObject* recorder_finish(PyObject* self, PyObject* outputs) {
  return guarded([&]() -> PyObject* {
    std::vector<TensorBase> tensors;
    if (!read_tensors(outputs, "trace", &tensors)) return nullptr;
    return graph_object(recorder_of(self).finish(tensors));
  });
}
// The tensors from outside that recorded calls have used so far.
PyObject* recorder_outside(PyObject* self, PyObject*) {
  return guarded([&] { return list_object(recorder_of(self).outside()); });
}
PyObject* recorder_escapes(PyObject* self, PyObject*) {
  Ref list(PyList_New(0));
  for (const tracing::Escape& escape : recorder_of(self).escapes()) {
    Ref row(
        Py_BuildValue("(ssi)", escape.what.c_str(), escape.where.file.c_str(), escape.where.line));
    if (!list || !row || PyList_Append(list.get(), row.get()) != 0) return nullptr;
  }
  return list.release();
}
PyMethodDef recorder_methods[] = {
    {"add_input", recorder_add_input, METH_VARARGS, nullptr},
    {"name_parameter", recorder_name_parameter, METH_VARARGS, nullptr},
    {"run", recorder_run, METH_VARARGS, nullptr},
    {"finish", recorder_finish, METH_O, nullptr},
    {"outside", recorder_outside, METH_NOARGS, nullptr},
    {"escapes", recorder_escapes, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// ---- Reading graphs ----------------------------------------------------------------------------

PyObject* graph_new(PyTypeObject*, PyObject*, PyObject*) {
  return guarded([] { return graph_object(Graph()); });
}
void graph_dealloc(PyObject* self) {
  delete reinterpret_cast<PyGraph*>(self)->graph;
  Py_TYPE(self)->tp_free(self);
}
PyObject* graph_str(PyObject* self) {
  return guarded([&] { return text_object(graph_of(self).str()); });
}
PyObject* graph_run(PyObject* self, PyObject* inputs) {
  return guarded([&]() -> PyObject* {
    std::vector<TensorBase> given;
    if (!read_tensors(inputs, "graph", &given)) return nullptr;
    const Graph& graph = graph_of(self);
    std::vector<TensorBase> outputs;
    if (graph.largest() >= int64_t{kWorkToReleaseGil}) {
      WithoutGil others;
      outputs = graph.run(given);
    } else {
      outputs = graph.run(given);
    }
    return list_object(std::move(outputs));
  });
}
const char* kind_name(ValueKind kind) {
  constexpr const char* names[] = {"input", "parameter", "constant", "result"};
  return names[static_cast<int>(kind)];
}
PyObject* numbers_object(IntArrayRef numbers) {
  Ref list(PyList_New(static_cast<Py_ssize_t>(numbers.size())));
  for (size_t i = 0; list && i < numbers.size(); ++i) {
    PyObject* number = PyLong_FromLongLong(numbers[i]);
    if (number == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), number);
  }
  return list.release();
}
// values(): a dictionary for each, in order.
PyObject* graph_values(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const Graph& graph = graph_of(self);
    Ref list(PyList_New(0));
    for (ValueId id = 0; id < graph.values().size(); ++id) {
      const tracing::Value& v = graph.value(id);
      bool named = v.kind != ValueKind::kResult;
      Ref row(Py_BuildValue("{s:s,s:s,s:s,s:N,s:N,s:I,s:O,s:N}", "kind", kind_name(v.kind), "dtype",
                            dtype_name(v.dtype), "device", v.device.str().c_str(), "shape",
                            numbers_object(graph.sizes(id)), "stride",
                            numbers_object(graph.strides(id)), "root", v.root, "requires_grad",
                            v.requires_grad ? Py_True : Py_False, "name",
                            named ? text_object(graph.name(id)) : none_ref()));
      if (!list || !row || PyList_Append(list.get(), row.get()) != 0) return nullptr;
    }
    return list.release();
  });
}
PyObject* graph_tensor(PyObject* self, PyObject* number) {
  unsigned long id = PyLong_AsUnsignedLong(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    const Graph& graph = graph_of(self);
    LAMELLA_CHECK_INDEX(id < graph.values().size(), "graph: expected the number of a value, got ",
                        id);
    return wrap(TensorBase(graph.tensor(static_cast<ValueId>(id))));
  });
}
PyObject* operands_object(const Graph& graph, ArrayRef<tracing::Operand> operands,
                          const std::vector<SchemaType>& types) {
  Ref list(PyList_New(0));
  for (size_t i = 0; i < operands.size(); ++i) {
    SchemaType type = i < types.size() ? types[i] : SchemaType();
    Ref item(operand_to_python(graph, operands[i], type));
    if (!list || !item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}
// nodes(): a dictionary for each, in order.
PyObject* graph_nodes(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const Graph& graph = graph_of(self);
    Ref list(PyList_New(0));
    for (const Node& node : graph.nodes()) {
      const Program* program = program_of(node.op);
      std::vector<SchemaType> types(node.argument_count);
      for (const Param& param : program->params) types[param.index] = param.type;
      tracing::SourceLocation where = graph.location(node);
      std::string name = node.op->name;
      if (*node.op->overload != 0) name += std::string(".") + node.op->overload;
      constexpr const char* modes[] = {"inherit", "off", "on"};
      Ref row(Py_BuildValue("{s:N,s:s,s:N,s:N,s:N,s:N,s:N,s:s,s:i,s:s,s:N,s:K}", "op",
                            text_object(name), "schema", lamella_operator_schema(node.op), "args",
                            operands_object(graph, graph.arguments(node), types), "returns",
                            operands_object(graph, graph.returns(node), program->return_types),
                            "uses", ids_object(graph.used_by(node)), "makes",
                            ids_object(graph.made_by(node)), "writes",
                            ids_object(graph.written_by(node)), "file", where.file.c_str(), "line",
                            where.line, "grad", modes[static_cast<int>(node.grad_mode)], "text",
                            text_object(graph.node_text(node)), "also_writes",
                            static_cast<unsigned long long>(node.also_writes)));
      if (!list || !row || PyList_Append(list.get(), row.get()) != 0) return nullptr;
    }
    return list.release();
  });
}
// outside(): the numbers of the values that are neither inputs nor made by the trace.
PyObject* graph_outside(PyObject* self, PyObject*) {
  return guarded([&] {
    const Graph& graph = graph_of(self);
    std::vector<ValueId> ids;
    for (ValueId id = 0; id < graph.values().size(); ++id) {
      ValueKind kind = graph.value(id).kind;
      if (kind != ValueKind::kInput && kind != ValueKind::kResult) ids.push_back(id);
    }
    return ids_object(ids);
  });
}
// used(prefix): the numbers of the values that operators use whose names begin with the prefix.
PyObject* graph_used(PyObject* self, PyObject* prefix) {
  const char* text = PyUnicode_AsUTF8(prefix);
  if (text == nullptr) return nullptr;
  return guarded([&] {
    const Graph& graph = graph_of(self);
    std::vector<ValueId> ids;
    for (const Node& node : graph.nodes()) {
      if (!std::string_view(node.op->name).starts_with(text)) continue;
      for (ValueId id : graph.used_by(node)) ids.push_back(id);
    }
    return ids_object(ids);
  });
}
PyObject* graph_count(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(graph_of(self).nodes().size());
}
PyObject* graph_inputs(PyObject* self, PyObject*) { return ids_object(graph_of(self).inputs()); }
PyObject* graph_outputs(PyObject* self, PyObject*) { return ids_object(graph_of(self).outputs()); }
PyObject* graph_mutated(PyObject* self, PyObject*) {
  return guarded([&] { return ids_object(graph_of(self).mutated()); });
}
PyObject* graph_difference(PyObject* self, PyObject* args) {
  PyObject* other;
  int contents;
  if (!PyArg_ParseTuple(args, "O!p:difference", &GraphType, &other, &contents)) return nullptr;
  return guarded(
      [&] { return text_object(graph_of(self).difference(graph_of(other), contents != 0)); });
}
PyObject* graph_without_dead_code(PyObject* self, PyObject*) {
  return guarded([&] { return graph_object(graph_of(self).without_dead_code()); });
}

// ---- Making graphs -----------------------------------------------------------------------------

struct Facts {
  ScalarType dtype = ScalarType::Undefined;
  Device device{DeviceType::CPU};
  std::vector<int64_t> sizes, strides;
  ValueId root = kNoValue;
  bool requires_grad = false;
};
bool read_numbers(PyObject* object, std::vector<int64_t>* numbers) {
  Ref items(PySequence_Tuple(object));
  for (Py_ssize_t i = 0; items && i < PyTuple_GET_SIZE(items.get()); ++i) {
    numbers->push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(items.get(), i)));
  }
  return PyErr_Occurred() == nullptr;
}
// (dtype, device, shape, stride, root or None, requires_grad)
bool read_facts(const Graph& graph, PyObject* row, Facts* facts) {
  PyObject *dtype, *device, *sizes, *strides, *root;
  int requires_grad;
  if (!PyTuple_Check(row)) {
    PyErr_SetString(PyExc_TypeError, "graph: expected a tuple of facts");
    return false;
  }
  if (!PyArg_ParseTuple(row, "O!O!OOOp:facts", &DtypeType, &dtype, &DeviceType_, &device, &sizes,
                        &strides, &root, &requires_grad)) {
    return false;
  }
  facts->dtype = reinterpret_cast<PyDtype*>(dtype)->type;
  facts->device = reinterpret_cast<PyDevice*>(device)->device;
  facts->requires_grad = requires_grad != 0;
  if (!read_numbers(sizes, &facts->sizes) || !read_numbers(strides, &facts->strides)) return false;
  bool right = facts->sizes.size() == facts->strides.size();
  for (int64_t size : facts->sizes) right = right && size >= 0;
  if (root != Py_None) {
    unsigned long number = PyLong_AsUnsignedLong(root);
    if (PyErr_Occurred() != nullptr) return false;
    // A value may be its own root.
    right = right && number <= graph.values().size();
    facts->root = number == graph.values().size() ? kNoValue : static_cast<ValueId>(number);
  }
  if (!right) PyErr_SetString(PyExc_ValueError, "load: expected the shape of a tensor");
  return right;
}
PyObject* graph_add_input(PyObject* self, PyObject* args) {
  const char* name;
  PyObject* row;
  if (!PyArg_ParseTuple(args, "sO:add_input", &name, &row)) return nullptr;
  return guarded([&]() -> PyObject* {
    Graph& graph = graph_of(self);
    Facts facts;
    if (!read_facts(graph, row, &facts)) return nullptr;
    ValueId id = graph.add_input(name, facts.dtype, facts.device, facts.sizes, facts.strides);
    if (facts.root != kNoValue) graph.set_root(id, facts.root);
    graph.set_requires_grad(id, facts.requires_grad);
    return PyLong_FromUnsignedLong(id);
  });
}
// add_outside(is_parameter, name, tensor)
PyObject* graph_add_outside(PyObject* self, PyObject* args) {
  const char* name;
  PyObject* tensor;
  int is_parameter;
  if (!PyArg_ParseTuple(args, "psO!:add_outside", &is_parameter, &name, &TensorType, &tensor)) {
    return nullptr;
  }
  return guarded([&] {
    return PyLong_FromUnsignedLong(
        graph_of(self).add_outside(is_parameter != 0 ? ValueKind::kParameter : ValueKind::kConstant,
                                   name, tensor_ref(tensor)));
  });
}
// add_node(name, overload, args, returns, facts of results, place or None, grad, also_writes);
// Ellipsis among the arguments means the default.
PyObject* graph_add_node(PyObject* self, PyObject* args) {
  const char *name, *overload;
  PyObject *given, *returned, *made, *place;
  int grad;
  unsigned long long also_writes;
  if (!PyArg_ParseTuple(args, "ssO!O!O!OiK:add_node", &name, &overload, &PyList_Type, &given,
                        &PyList_Type, &returned, &PyList_Type, &made, &place, &grad,
                        &also_writes)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    Graph& graph = graph_of(self);
    const lamella_operator* op = nullptr;
    detail::check(lamella_find_operator(name, overload, &op));
    const Program* program = program_of(op);
    LAMELLA_CHECK_VALUE(PyList_GET_SIZE(given) == op->argument_count &&
                            PyList_GET_SIZE(returned) == op->return_count,
                        "load: expected ", op->argument_count, " arguments and ", op->return_count,
                        " returns of ", name, ", got ", PyList_GET_SIZE(given), " and ",
                        PyList_GET_SIZE(returned));
    auto defined = static_cast<ValueId>(graph.values().size());
    std::vector<IValue> values(op->argument_count + op->return_count);
    std::vector<std::vector<ValueId>> ids(values.size());
    for (uint32_t i = 0; i < values.size(); ++i) {
      bool is_return = i >= op->argument_count;
      PyObject* object =
          is_return ? PyList_GET_ITEM(returned, i - op->argument_count) : PyList_GET_ITEM(given, i);
      if (object == Py_Ellipsis) {
        values[i] = IValue::from_borrowed(program->defaults[i]);
        continue;
      }
      if (!operand_from_python(object, SchemaType(), &values[i], &ids[i])) return nullptr;
      size_t limit = is_return ? defined + static_cast<size_t>(PyList_GET_SIZE(made)) : defined;
      for (ValueId id : ids[i]) {
        LAMELLA_CHECK_VALUE(id == kNoValue || (id < limit && (!is_return || id >= defined)),
                            "load: expected values to be defined once, before they are used, got %",
                            id, " in ", name);
      }
    }
    // A node is added with all its values or not at all.
    std::vector<Facts> facts(static_cast<size_t>(PyList_GET_SIZE(made)));
    graph.begin_node(op);
    for (uint32_t i = 0; i < op->argument_count; ++i) graph.add_operand(values[i].value(), ids[i]);
    for (size_t k = 0; k < facts.size(); ++k) {
      if (!read_facts(graph, PyList_GET_ITEM(made, static_cast<Py_ssize_t>(k)), &facts[k])) {
        graph.abandon_node();
        return nullptr;
      }
      ValueId id = graph.add_result(facts[k].dtype, facts[k].device, facts[k].sizes,
                                    facts[k].strides, facts[k].root);
      graph.set_requires_grad(id, facts[k].requires_grad);
    }
    for (size_t i = op->argument_count; i < values.size(); ++i) {
      graph.add_operand(values[i].value(), ids[i]);
    }
    uint32_t at = tracing::kNoPlace;
    if (place != Py_None) at = static_cast<uint32_t>(PyLong_AsUnsignedLong(place));
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (op->argument_count < 64) also_writes &= (1ull << op->argument_count) - 1;
    graph.end_node(at, static_cast<tracing::GradMode>(grad < 0 || grad > 2 ? 0 : grad),
                   also_writes);
    Py_RETURN_NONE;
  });
}
PyObject* graph_finish(PyObject* self, PyObject* args) {
  PyObject *outputs, *places;
  if (!PyArg_ParseTuple(args, "O!O!:finish", &PyList_Type, &outputs, &PyList_Type, &places)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    Graph& graph = graph_of(self);
    std::vector<ValueId> ids;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) {
      PyObject* item = PyList_GET_ITEM(outputs, i);
      unsigned long id = item == Py_None ? kNoValue : PyLong_AsUnsignedLong(item);
      if (PyErr_Occurred() != nullptr) return nullptr;
      LAMELLA_CHECK_VALUE(id == kNoValue || id < graph.values().size(),
                          "load: expected outputs to be values of the graph, got %", id);
      ids.push_back(static_cast<ValueId>(id));
    }
    std::vector<tracing::SourceLocation> locations;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places); ++i) {
      const char* file;
      int line;
      if (!PyArg_ParseTuple(PyList_GET_ITEM(places, i), "si:place", &file, &line)) return nullptr;
      locations.push_back({file, line});
    }
    graph.set_outputs(std::move(ids));
    graph.set_locations(std::move(locations));
    Py_RETURN_NONE;
  });
}
PyMethodDef graph_methods[] = {{"run", graph_run, METH_O, nullptr},
                               {"values", graph_values, METH_NOARGS, nullptr},
                               {"nodes", graph_nodes, METH_NOARGS, nullptr},
                               {"outside", graph_outside, METH_NOARGS, nullptr},
                               {"used", graph_used, METH_O, nullptr},
                               {"count", graph_count, METH_NOARGS, nullptr},
                               {"tensor", graph_tensor, METH_O, nullptr},
                               {"inputs", graph_inputs, METH_NOARGS, nullptr},
                               {"outputs", graph_outputs, METH_NOARGS, nullptr},
                               {"mutated", graph_mutated, METH_NOARGS, nullptr},
                               {"difference", graph_difference, METH_VARARGS, nullptr},
                               {"without_dead_code", graph_without_dead_code, METH_NOARGS, nullptr},
                               {"add_input", graph_add_input, METH_VARARGS, nullptr},
                               {"add_outside", graph_add_outside, METH_VARARGS, nullptr},
                               {"add_node", graph_add_node, METH_VARARGS, nullptr},
                               {"finish", graph_finish, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};

// _match_schema(name, overload, schema): maps arguments that were saved for that schema to the
// operator's current schema: (positions of the old arguments, None for a default; problem or None).
PyObject* match_schema(PyObject*, PyObject* args) {
  const char *name, *overload, *text;
  if (!PyArg_ParseTuple(args, "sss:_match_schema", &name, &overload, &text)) return nullptr;
  return guarded([&]() -> PyObject* {
    const lamella_operator* op = lamella_lookup_operator(name, overload, 1);
    std::string full = name;
    if (*overload != 0) full += std::string(".") + overload;
    if (op == nullptr) return Py_BuildValue("(Os)", Py_None, (full + ": is not defined").c_str());
    FunctionSchema old, now;
    try {
      old = parse_schema(text);
      now = parse_schema(lamella_operator_schema(op));
    } catch (const SchemaError& error) {
      return Py_BuildValue("(Os)", Py_None, (full + ": " + error.message()).c_str());
    }
    std::string why;
    if (!now.is_backward_compatible_with(old, &why)) {
      return Py_BuildValue("(Os)", Py_None, why.c_str());
    }
    Ref positions(PyList_New(0));
    for (const Argument& argument : now.arguments) {
      int at = old.argument_index(argument.name);
      Ref position(at < 0 ? none_ref() : PyLong_FromLong(at));
      if (!positions || !position || PyList_Append(positions.get(), position.get()) != 0) {
        return nullptr;
      }
    }
    return Py_BuildValue("(OO)", positions.get(), Py_None);
  });
}

PyMethodDef functions[] = {{"_match_schema", match_schema, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

int ready(PyObject* module, PyTypeObject* type, const char* name, size_t size) {
  type->tp_name = name;
  type->tp_basicsize = static_cast<Py_ssize_t>(size);
  type->tp_flags = Py_TPFLAGS_DEFAULT;
  if (PyType_Ready(type) != 0) return -1;
  Py_INCREF(type);
  return PyModule_AddObject(module, std::string_view(name).substr(11).data(),
                            reinterpret_cast<PyObject*>(type));
}

}  // namespace

bool note_read_slowly(lamella_tensor* tensor, const char* what) {
  return guarded(
      [&] {
        if (Recorder* recorder = Recorder::current()) recorder->note_read(tensor, what);
        return true;
      },
      false);
}
void note_made(PyObject* tensor) {
  if (Recorder* recorder = Recorder::current()) recorder->note_made(tensor_ref(tensor));
}

const void* traced_graph(PyObject* object) {
  if (!PyObject_TypeCheck(object, &GraphType)) {
    PyErr_Format(PyExc_TypeError, "expected a traced graph, got %s", Py_TYPE(object)->tp_name);
    return nullptr;
  }
  return &graph_of(object);
}

int add_trace(PyObject* module) {
  install_place_hooks();
  RecorderType.tp_new = recorder_new;
  RecorderType.tp_dealloc = recorder_dealloc;
  RecorderType.tp_methods = recorder_methods;
  GraphType.tp_new = graph_new;
  GraphType.tp_dealloc = graph_dealloc;
  GraphType.tp_methods = graph_methods;
  GraphType.tp_str = graph_str;
  if (ready(module, &RecorderType, "lamella._C._Recorder", sizeof(PyRecorder)) != 0 ||
      ready(module, &GraphType, "lamella._C._Graph", sizeof(PyGraph)) != 0) {
    return -1;
  }
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
