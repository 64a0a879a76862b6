// lamella.hlo.Builder and Op.
#include "python/src_hlo/builder.h"

#include "lamella/graph/runtime/tensor_value.h"

namespace lamella::python {

PyTypeObject* builder_type = nullptr;
PyTypeObject* op_type = nullptr;

namespace {

PyObject* constant = nullptr;  // of lamella/hlo/_arrays.py

BuilderHandle& builder_of(PyObject* self) { return held<BuilderHandle>(self); }
const OpHandle& op_of(PyObject* self) { return held<OpHandle>(self); }
hlo::Op own_op(PyObject* object, const char* what) {
  if (Py_TYPE(object) != op_type) {
    PyErr_Format(PyExc_TypeError, "%s: expected an Op, got %s", what, Py_TYPE(object)->tp_name);
    throw PythonError();
  }
  return op_of(object).op;
}

// ---- Builders ----------------------------------------------------------------------------------

PyObject* make_builder(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"name", "die_immediately_on_error", nullptr};
  const char* name = "computation";
  int immediately = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|sp:Builder", const_cast<char**>(names), &name,
                                   &immediately)) {
    return nullptr;
  }
  return guarded([&] {
    auto builder = std::make_shared<hlo::Builder>(name);
    builder->set_die_immediately_on_error(immediately != 0);
    return hold(type, BuilderHandle{std::move(builder)});
  });
}

PyObject* build(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"root", nullptr};
  PyObject* root = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:build", const_cast<char**>(names), &root)) {
    return nullptr;
  }
  return guarded([&] {
    BuilderHandle& handle = builder_of(self);
    handle.next_parameter = 0;
    auto built =
        root == Py_None ? handle.builder->Build() : handle.builder->Build(own_op(root, "build"));
    return module_object(std::move(built).value().module());
  });
}

// Builder.parameter(shape, name=None, parameter_number=None).
PyObject* parameter(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"shape", "name", "parameter_number", nullptr};
  PyObject *shape, *name = Py_None, *number = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:parameter", const_cast<char**>(names),
                                   &shape, &name, &number)) {
    return nullptr;
  }
  return guarded([&] {
    BuilderHandle& handle = builder_of(self);
    int64_t n = handle.next_parameter;
    if (number != Py_None) {
      n = PyLong_AsLongLong(number);
      if (n == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    }
    std::string text = name == Py_None ? str("p", n) : std::string(text_of(name, "parameter"));
    hlo::Op op = hlo::Parameter({handle.builder.get(), python_place()}, n,
                                shape_from(shape, "parameter"), text);
    handle.next_parameter = n + 1;
    return hold(op_type, OpHandle{handle.builder, op});
  });
}

// Builder.constant(value, dtype=None).
PyObject* make_constant(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"value", "dtype", nullptr};
  PyObject *value, *dtype = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:constant", const_cast<char**>(names), &value,
                                   &dtype)) {
    return nullptr;
  }
  return guarded([&] {
    BuilderHandle& handle = builder_of(self);
    Arguments all{"constant", handle.builder, python_place()};
    hlo::ElementType type =
        dtype == Py_None ? hlo::ElementType::Invalid : element_from({dtype, "dtype", all});
    hlo::Op op = hlo::ConstantLiteral({handle.builder.get(), all.where}, literal_from(value, type));
    return hold(op_type, OpHandle{handle.builder, op});
  });
}

PyObject* get_builder_name(PyObject* self, void*) {
  return text_object(builder_of(self).builder->name());
}
PyObject* get_first_error(PyObject* self, void*) {
  hlo::Status status = builder_of(self).builder->first_error();
  if (status.ok()) Py_RETURN_NONE;
  return text_object(status.message());
}
PyObject* build_constant(PyObject* self, PyObject* root) {
  return guarded([&] {
    auto built = builder_of(self).builder->BuildConstantSubGraph(own_op(root, "build_constant"));
    return module_object(std::move(built).value().module());
  });
}
PyObject* is_constant(PyObject* self, PyObject* op) {
  return guarded([&] {
    return PyBool_FromLong(builder_of(self).builder->IsConstant(own_op(op, "is_constant")).value());
  });
}
PyObject* set_op_metadata(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"op_type", "op_name", "source_file", "source_line", nullptr};
  const char *type = "", *name = "", *file = "";
  int line = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|sssi:set_op_metadata", const_cast<char**>(names),
                                   &type, &name, &file, &line)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    hlo::OpMetadata metadata;
    metadata.set_op_type(type);
    metadata.set_op_name(name);
    metadata.set_source_file(file);
    metadata.set_source_line(line);
    builder_of(self).builder->SetOpMetadata(std::move(metadata));
    Py_RETURN_NONE;
  });
}
PyObject* clear_op_metadata(PyObject* self, PyObject*) {
  builder_of(self).builder->ClearOpMetadata();
  Py_RETURN_NONE;
}
PyObject* set_frontend_attributes(PyObject* self, PyObject* dictionary) {
  return guarded([&]() -> PyObject* {
    if (!PyDict_Check(dictionary)) {
      throw lamella::TypeError("set_frontend_attributes: expected a dict of str");
    }
    hlo::FrontendAttributes attributes;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dictionary, &at, &key, &value) != 0) {
      (*attributes.mutable_map())[std::string(text_of(key, "set_frontend_attributes"))] =
          std::string(text_of(value, "set_frontend_attributes"));
    }
    builder_of(self).builder->SetFrontendAttributes(attributes);
    Py_RETURN_NONE;
  });
}
PyObject* set_up_alias(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"output_index", "parameter_number", "parameter_index", "must",
                                nullptr};
  PyObject *output, *index = nullptr;
  long long number;
  int must = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OL|Op:set_up_alias", const_cast<char**>(names),
                                   &output, &number, &index, &must)) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    Arguments all{"set_up_alias", nullptr, {}};
    std::vector<int64_t> from;
    if (index != nullptr) from = integers_from({index, "parameter_index", all}, index);
    builder_of(self).builder->SetUpAlias(
        integers_from({output, "output_index", all}, output), number, from,
        must != 0 ? hlo::Builder::AliasKind::kMustAlias : hlo::Builder::AliasKind::kMayAlias);
    Py_RETURN_NONE;
  });
}

PyGetSetDef builder_getset[] = {
    {"name", get_builder_name, nullptr, nullptr, nullptr},
    {"first_error", get_first_error, nullptr, "The text of the first error, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef builder_methods[] = {
    {"build", method(build), METH_VARARGS | METH_KEYWORDS,
     "build(root=None)\n\nEnds the computation and returns its Module. The result is `root`, or "
     "the op that was made last. Raises the first error with the location of its call."},
    {"parameter", method(parameter), METH_VARARGS | METH_KEYWORDS,
     "parameter(shape, name=None, parameter_number=None)\n\nThe next parameter."},
    {"constant", method(make_constant), METH_VARARGS | METH_KEYWORDS,
     "constant(value, dtype=None)\n\nA constant with the elements of a number or an array."},
    {"build_constant", build_constant, METH_O,
     "The module that computes an op that needs no parameters."},
    {"is_constant", is_constant, METH_O, "Whether an op needs no parameters."},
    {"set_op_metadata", method(set_op_metadata), METH_VARARGS | METH_KEYWORDS,
     "set_op_metadata(op_type='', op_name='', source_file='', source_line=0)\n\nThe metadata "
     "of all later instructions."},
    {"clear_op_metadata", clear_op_metadata, METH_NOARGS, nullptr},
    {"set_frontend_attributes", set_frontend_attributes, METH_O,
     "Sets the frontend attributes of all later instructions: a dict of str."},
    {"set_up_alias", method(set_up_alias), METH_VARARGS | METH_KEYWORDS,
     "set_up_alias(output_index, parameter_number, parameter_index=(), must=False)\n\nThe "
     "result's part may (or must) take the memory of the parameter's."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot builder_slots[] = {
    {Py_tp_doc, const_cast<char*>("Builder(name='computation', die_immediately_on_error=False)\n\n"
                                  "Makes a computation by a function call for each instruction.")},
    {Py_tp_new, reinterpret_cast<void*>(make_builder)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_holder<BuilderHandle>)},
    {Py_tp_getset, builder_getset},
    {Py_tp_methods, builder_methods},
    {0, nullptr}};
PyType_Spec builder_spec = {"lamella._hlo.Builder", sizeof(Holder<BuilderHandle>), 0,
                            Py_TPFLAGS_DEFAULT, builder_slots};

// ---- Ops ---------------------------------------------------------------------------------------

PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] {
    const OpHandle& handle = op_of(self);
    return shape_object(handle.builder->GetShape(handle.op).value());
  });
}
PyObject* get_builder(PyObject* self, void*) {
  return guarded([&] { return hold(builder_type, BuilderHandle{op_of(self).builder}); });
}
PyObject* get_valid(PyObject* self, void*) {
  return PyBool_FromLong(op_of(self).op.valid() ? 1 : 0);
}
PyObject* represent_op(PyObject* self) {
  return guarded([&] {
    const OpHandle& handle = op_of(self);
    auto instruction = handle.builder->GetInstruction(handle.op);
    return text_object(instruction.ok()
                           ? str("<lamella.hlo.Op ", hlo::to_string(**instruction), ">")
                           : std::string("<lamella.hlo.Op that is not valid>"));
  });
}
Py_hash_t hash_op(PyObject* self) {
  const OpHandle& handle = op_of(self);
  auto value = static_cast<Py_hash_t>(handle.op.handle() * 31) ^
               static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(handle.builder.get()) >> 4);
  return value == -1 ? -2 : value;
}
int truth_of_op(PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "Op: expected no use as a bool: its value is not known while building; see "
                  "select(), conditional() and while_()");
  return -1;
}

PyGetSetDef op_getset[] = {
    {"shape", get_shape, nullptr, "Of its value.", nullptr},
    {"builder", get_builder, nullptr, "The builder of its computation.", nullptr},
    {"valid", get_valid, nullptr, "False if it could not be made; build() says why.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot op_slots[] = {
    {Py_tp_doc, const_cast<char*>("A value of a computation that is being built.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_holder<OpHandle>)},
    {Py_tp_repr, reinterpret_cast<void*>(represent_op)},
    {Py_tp_hash, reinterpret_cast<void*>(hash_op)},
    {Py_nb_bool, reinterpret_cast<void*>(truth_of_op)},
    {Py_tp_getset, op_getset},
    {0, nullptr}};
PyType_Spec op_spec = {"lamella._hlo.Op", sizeof(Holder<OpHandle>), 0, Py_TPFLAGS_DEFAULT,
                       op_slots};

PyObject* set_constant_maker(PyObject*, PyObject* maker) {
  Py_INCREF(maker);
  Py_XDECREF(std::exchange(constant, maker));
  Py_RETURN_NONE;
}
PyMethodDef functions[] = {{"_set_constant_maker", set_constant_maker, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

hlo::Literal literal_from(PyObject* object, hlo::ElementType type) {
  std::string wanted(type == hlo::ElementType::Invalid ? "" : hlo::element_name(type));
  Ref pair(required(PyObject_CallFunction(constant, "Os", object, wanted.c_str())));
  PyObject* made = PyTuple_GET_ITEM(pair.get(), 0);
  std::string_view name = text_of(PyTuple_GET_ITEM(pair.get(), 1), "constant");
  TensorBase tensor = TensorBase::adopt(bridge->read(made, "constant"));
  if (!tensor.defined()) throw PythonError();
  auto element = hlo::element_from_name(name);
  LAMELLA_CHECK_VALUE(element.has_value() && hlo::is_array_type(*element),
                      "constant: expected elements that HLO has, got ", tensor.scalar_type());
  hlo::Shape shape = hlo::Shape::array(*element, tensor.sizes().vec());
  return hlo::value_of_tensor(&shape, tensor).to_literal();
}

int add_builder(PyObject* module) {
  builder_type = add_type(module, &builder_spec);
  op_type = add_type(module, &op_spec);
  if (builder_type == nullptr || op_type == nullptr) return -1;
  return PyModule_AddFunctions(module, functions) != 0 ? -1 : add_builder_functions(module);
}

}  // namespace lamella::python
