// Nodes of the backward graph as Python objects: what `Tensor.grad_fn` gives.

#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lamella/core/ivalue.h"
#include "lamella/layers/autograd/saved.h"
#include "python/src/autograd.h"
#include "python/src/autograd_where.h"
#include "python/src/errors.h"

namespace lamella::python {

PyTypeObject NodeType = {PyVarObject_HEAD_INIT(nullptr, 0)};

namespace {

PyNode* as_node(PyObject* object) { return reinterpret_cast<PyNode*>(object); }
bool is_context(PyObject* object) { return PyObject_TypeCheck(object, &ContextType); }

// The objects of built-in nodes, which own their nodes; guarded by the GIL. A node has the same
// object as long as there are references to the object.
std::unordered_map<const autograd::Node*, PyObject*>& known_nodes() {
  static auto* known = new std::unordered_map<const autograd::Node*, PyObject*>();
  return *known;
}
// A type for each name of a node: `type(x.grad_fn).__name__`.
PyObject* types_by_name = nullptr;

PyTypeObject* type_for(const std::string& name) {
  if (types_by_name == nullptr) types_by_name = PyDict_New();
  Ref key(types_by_name != nullptr ? PyUnicode_FromString(name.c_str()) : nullptr);
  if (!key) return nullptr;
  PyObject* known = PyDict_GetItemWithError(types_by_name, key.get());
  if (known != nullptr) return reinterpret_cast<PyTypeObject*>(known);
  if (PyErr_Occurred() != nullptr) return nullptr;
  Ref made(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "O(O){s:s,s:()}",
                                 key.get(), &NodeType, "__module__", "lamella.autograd.graph",
                                 "__slots__"));
  if (!made || PyDict_SetItem(types_by_name, key.get(), made.get()) != 0) return nullptr;
  return reinterpret_cast<PyTypeObject*>(made.get());
}

// ---- Attributes ----

PyObject* node_name(PyObject* self, PyObject*) {
  autograd::NodePtr node = hold_node(self);
  if (!node) return nullptr;
  return PyUnicode_FromString(node->name().c_str());
}
PyObject* node_repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", _PyType_Name(Py_TYPE(self)), self);
}

PyObject* next_functions(PyObject* self, void*) {
  autograd::NodePtr node = hold_node(self);
  if (!node) return nullptr;
  Ref tuple(PyTuple_New(node->edge_count()));
  for (uint32_t i = 0; tuple && i < node->edge_count(); ++i) {
    const autograd::Edge& edge = node->edge(i);
    PyObject* pair =
        Py_BuildValue("Nk", wrap_node(edge.node), static_cast<unsigned long>(edge.input));
    if (pair == nullptr) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), pair);
  }
  return tuple.release();
}
PyObject* get_metadata(PyObject* self, void*) {
  autograd::NodePtr node = hold_node(self);
  if (!node) return nullptr;
  return guarded([&] { return metadata_of(node.get()); });
}
PyObject* get_variable(PyObject* self, void*) {
  autograd::NodePtr node = hold_node(self);
  if (!node) return nullptr;
  if (!node->is_leaf()) {
    return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'",
                        _PyType_Name(Py_TYPE(self)));
  }
  return wrap(static_cast<autograd::LeafNode*>(node.get())->variable());
}
// (size, dtype, device) of the gradient of each output, None for outputs without gradients.
PyObject* input_metadata(PyObject* self, void*) {
  autograd::NodePtr node = hold_node(self);
  if (!node) return nullptr;
  Ref list(PyList_New(0));
  for (uint32_t i = 0; list && i < node->output_count(); ++i) {
    const autograd::OutputMeta& meta = node->output(i);
    Ref item;
    if (meta.ndim < 0) {
      item = Ref::borrow(Py_None);
    } else {
      IntArrayRef sizes = meta.sizes();
      item = Ref(Py_BuildValue(
          "NNN", size_object(sizes.data(), static_cast<Py_ssize_t>(sizes.size())),
          dtype_object(static_cast<ScalarType>(meta.dtype)),
          device_object(Device(static_cast<DeviceType>(meta.device_type), meta.device_index))));
    }
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}

// node._leaves_beyond(own): the leaves that the node's graph reaches without the nodes in `own`.
PyObject* leaves_beyond(PyObject* self, PyObject* own) {
  Ref given(PySequence_Tuple(own)), leaves(PyList_New(0));
  if (!given || !leaves) return nullptr;
  return guarded([&]() -> PyObject* {
    std::vector<autograd::NodePtr> todo;
    std::unordered_set<const autograd::Node*> seen;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given.get()); ++i) {
      autograd::NodePtr node = hold_node(PyTuple_GET_ITEM(given.get(), i));
      if (!node) return nullptr;
      seen.insert(node.get());
    }
    auto visit = [&](autograd::NodePtr node) {
      if (node && seen.insert(node.get()).second) todo.push_back(std::move(node));
    };
    autograd::NodePtr first = hold_node(self);
    if (!first) return nullptr;
    visit(std::move(first));
    while (!todo.empty()) {
      autograd::NodePtr node = std::move(todo.back());
      todo.pop_back();
      for (uint32_t i = 0; i < node->edge_count(); ++i) visit(node->edge(i).node);
      if (!node->is_leaf()) continue;
      Ref leaf(wrap_node(std::move(node)));
      if (!leaf || PyList_Append(leaves.get(), leaf.get()) != 0) return nullptr;
    }
    return leaves.release();
  });
}

template <bool Before>
PyObject* register_node_hook(PyObject* self, PyObject* hook) {
  const char* what = Before ? "register_prehook" : "register_hook";
  if (!PyCallable_Check(hook)) {
    return PyErr_Format(PyExc_TypeError, "%s: expected a function, got %s", what,
                        Py_TYPE(hook)->tp_name);
  }
  autograd::NodePtr node = hold_node(self);
  if (!node) return nullptr;
  return guarded([&] { return add_node_hook(node.get(), hook, Before); });
}

// ---- Saved values: node._saved_self ----

// What finds node._raw_saved_self, of _set_raw_saved(); NULL: nothing does.
PyObject* raw_saved = nullptr;
constexpr char kRawSaved[] = "_raw_saved_";

constexpr char kSaved[] = "_saved_";
constexpr size_t kSavedLength = sizeof(kSaved) - 1;

PyObject* node_getattro(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  if (text != nullptr && strncmp(text, kSaved, kSavedLength) == 0) {
    autograd::NodePtr node = hold_node(self);
    lamella_value saved{{0}, 0, LAMELLA_NONE, 0, 0};
    bool known = false;
    lamella_status status = LAMELLA_OK;
    if (node) status = node->saved_value(text + kSavedLength, &saved, &known);
    if (known || status != LAMELLA_OK) {
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(traceback);
      if (status != LAMELLA_OK) return raise_status(status);
      return guarded([&]() -> PyObject* {
        bool list = saved.tag >= LAMELLA_INT_LIST && saved.tag <= LAMELLA_LIST;
        Ref result(to_python(saved, SchemaType(), true));
        return result && list ? PySequence_Tuple(result.get()) : result.release();
      });
    }
  }
  if (text != nullptr && raw_saved != nullptr &&
      strncmp(text, kRawSaved, sizeof(kRawSaved) - 1) == 0) {
    found = PyObject_CallFunction(raw_saved, "Os", self, text + sizeof(kRawSaved) - 1);
    if (found != Py_None) {
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(traceback);
      return found;
    }
    Py_DECREF(found);
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return nullptr;
}
PyObject* node_dir(PyObject* self, PyObject*) {
  Ref base(
      PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self));
  Ref names(base ? PySequence_List(base.get()) : nullptr);
  if (!names) return nullptr;
  autograd::NodePtr node = hold_node(self);
  if (!node) {  // of a context whose outputs are gone
    PyErr_Clear();
    return names.release();
  }
  return guarded([&]() -> PyObject* {
    for (const std::string& name : node->saved_names()) {
      Ref text(PyUnicode_FromString((kSaved + name).c_str()));
      if (!text || PyList_Append(names.get(), text.get()) != 0) return nullptr;
    }
    return names.release();
  });
}

// _set_raw_saved(find): makes node._raw_saved_self what find(node, "self") returns, unless None.
PyObject* set_raw_saved(PyObject*, PyObject* find) {
  Py_INCREF(find);
  Py_XSETREF(raw_saved, find);
  Py_RETURN_NONE;
}
// _count_saved(node, name): how many tensors are kept as a list under the name; -1: one that is no
// list; None: none are.
PyObject* count_saved(PyObject*, PyObject* args) {
  PyObject* self;
  const char* name;
  if (!PyArg_ParseTuple(args, "O!s:_count_saved", &NodeType, &self, &name)) return nullptr;
  autograd::NodePtr node = hold_node(self);
  if (!node) return nullptr;
  return guarded([&]() -> PyObject* {
    autograd::Node::Inside inside(*node);
    bool is_list = false;
    size_t count = node->saved_tensors(name, &is_list).size();
    if (is_list) return PyLong_FromSize_t(count);
    if (count == 0) Py_RETURN_NONE;
    return PyLong_FromLong(-1);
  });
}
// _hook_saved(node, name, index, pack, unpack): hooks for one of these tensors.
PyObject* hook_saved(PyObject*, PyObject* args) {
  PyObject *self, *pack, *unpack;
  const char* name;
  Py_ssize_t index;
  if (!PyArg_ParseTuple(args, "O!snOO:_hook_saved", &NodeType, &self, &name, &index, &pack,
                        &unpack)) {
    return nullptr;
  }
  autograd::NodePtr node = hold_node(self);
  if (!node) return nullptr;
  return guarded([&]() -> PyObject* {
    autograd::Node::Inside inside(*node);
    bool is_list = false;
    std::vector<autograd::SavedTensor*> tensors = node->saved_tensors(name, &is_list);
    LAMELLA_CHECK(static_cast<size_t>(index) < tensors.size() && !tensors[index]->is_empty(),
                  "register_hooks: expected a saved tensor, got None");
    tensors[index]->set_hooks(make_saved_hooks(pack, unpack));
    Py_RETURN_NONE;
  });
}
PyMethodDef functions[] = {{"_set_raw_saved", set_raw_saved, METH_O, nullptr},
                           {"_count_saved", count_saved, METH_VARARGS, nullptr},
                           {"_hook_saved", hook_saved, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

// ---- Life ----

// The classes of nodes are made by type(), whose own traversal visits the class. A second visit
// here would let the collector clear a class that is in use.
int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_node(self)->dict);
  return visit_owned(as_node(self)->node, visit, arg);
}
int node_clear(PyObject* self) {
  Py_CLEAR(as_node(self)->dict);
  return 0;
}
void node_dealloc(PyObject* object) {
  PyNode* self = as_node(object);
  PyObject_GC_UnTrack(object);
  if (self->weak_references != nullptr) PyObject_ClearWeakRefs(object);
  Py_CLEAR(self->dict);
  if (autograd::Node* node = std::exchange(self->node, nullptr)) {
    known_nodes().erase(node);
    autograd::NodePtr::adopt(node);
  }
  Py_TYPE(object)->tp_free(object);
}

PyMethodDef methods[] = {
    {"name", node_name, METH_NOARGS, "The node's name: 'MulBackward0'."},
    {"register_hook", register_node_hook<false>, METH_O,
     "Calls hook(grad_inputs, grad_outputs) when the node has run; a tuple that it returns "
     "replaces grad_inputs."},
    {"register_prehook", register_node_hook<true>, METH_O,
     "Calls hook(grad_outputs) before the node runs; a tuple that it returns replaces them."},
    {"_leaves_beyond", leaves_beyond, METH_O, nullptr},
    {"__dir__", node_dir, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {
    {"next_functions", next_functions, nullptr,
     "For each input of the call, the node of its gradient, and the number of that node's output.",
     nullptr},
    {"metadata", get_metadata, nullptr, "A dict for the node's metadata.", nullptr},
    {"variable", get_variable, nullptr, "The leaf, of a node that accumulates.", nullptr},
    {"_input_metadata", input_metadata, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

autograd::NodePtr hold_node(PyObject* self) {
  autograd::Node* node = as_node(self)->node;
  // Another thread, which waits for the GIL, may be about to destroy a context's node.
  if (node != nullptr && (!is_context(self) || node->try_retain())) {
    return is_context(self) ? autograd::NodePtr::adopt(node) : autograd::NodePtr::borrow(node);
  }
  PyErr_Format(PyExc_RuntimeError,
               "%s: expected its graph to be there, got a context whose outputs are gone or were "
               "not recorded",
               _PyType_Name(Py_TYPE(self)));
  return {};
}

PyObject* wrap_node(autograd::NodePtr node) {
  if (!node) Py_RETURN_NONE;
  if (void* context = node->python_object()) {
    auto* object = static_cast<PyObject*>(context);
    Py_INCREF(object);
    return object;
  }
  auto known = known_nodes().find(node.get());
  if (known != known_nodes().end()) {
    Py_INCREF(known->second);
    return known->second;
  }
  PyTypeObject* type = type_for(node->name());
  PyObject* self = type != nullptr ? type->tp_alloc(type, 0) : nullptr;
  if (self == nullptr) return nullptr;
  known_nodes().emplace(node.get(), self);
  as_node(self)->node = node.unsafe_release();
  return self;
}

int add_nodes(PyObject* module) {
  NodeType.tp_name = "lamella.autograd.graph.Node";
  NodeType.tp_doc = "A node of the backward graph.";
  NodeType.tp_basicsize = sizeof(PyNode);
  NodeType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  NodeType.tp_dictoffset = offsetof(PyNode, dict);
  NodeType.tp_weaklistoffset = offsetof(PyNode, weak_references);
  NodeType.tp_traverse = node_traverse;
  NodeType.tp_clear = node_clear;
  NodeType.tp_dealloc = node_dealloc;
  NodeType.tp_repr = node_repr;
  NodeType.tp_getattro = node_getattro;
  NodeType.tp_methods = methods;
  NodeType.tp_getset = getset;
  if (PyType_Ready(&NodeType) != 0) return -1;
  if (PyModule_AddFunctions(module, functions) != 0) return -1;
  Py_INCREF(&NodeType);
  return PyModule_AddObject(module, "_Node", reinterpret_cast<PyObject*>(&NodeType));
}

}  // namespace lamella::python
