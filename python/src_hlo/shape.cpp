// lamella.hlo.Shape.
#include <functional>

#include "python/src_hlo/hlo.h"

namespace lamella::python {

PyTypeObject* shape_type = nullptr;

PyObject* shape_object(hlo::Shape shape) { return hold(shape_type, std::move(shape)); }

hlo::Shape shape_from(PyObject* object, const char* what) {
  if (Py_TYPE(object) == shape_type) return held<hlo::Shape>(object);
  if (PyUnicode_Check(object)) return hlo::Shape::parse(text_of(object, what));
  PyErr_Format(PyExc_TypeError, "%s: expected a Shape or its text, as 'f32[2,3]', got %s", what,
               Py_TYPE(object)->tp_name);
  throw PythonError();
}

namespace {

const hlo::Shape& shape_of(PyObject* self) { return held<hlo::Shape>(self); }

PyObject* make_shape(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"text", nullptr};
  PyObject* text;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Shape", const_cast<char**>(names), &text)) {
    return nullptr;
  }
  return guarded([&] { return shape_object(shape_from(text, "Shape")); });
}

// Shape.array(element_type, dimensions, layout=None).
PyObject* make_array(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"element_type", "dimensions", "layout", nullptr};
  const char* type_name;
  PyObject *dimensions, *layout = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sO|O:Shape.array", const_cast<char**>(names),
                                   &type_name, &dimensions, &layout)) {
    return nullptr;
  }
  return guarded([&] {
    auto type = hlo::element_from_name(type_name);
    LAMELLA_CHECK_VALUE(type.has_value() && hlo::is_array_type(*type),
                        "Shape.array: expected 'element_type' to be one of arrays, as 'f32', got '",
                        type_name, "'");
    auto numbers = [](PyObject* list) {
      Ref items(required(PySequence_Fast(list, "Shape.array: expected a sequence of int")));
      std::vector<int64_t> found;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
        found.push_back(PyLong_AsLongLong(PySequence_Fast_GET_ITEM(items.get(), i)));
        if (found.back() == -1 && PyErr_Occurred() != nullptr) throw PythonError();
      }
      return found;
    };
    return shape_object(layout == Py_None
                            ? hlo::Shape::array(*type, numbers(dimensions))
                            : hlo::Shape::array(*type, numbers(dimensions), numbers(layout)));
  });
}

PyObject* make_tuple(PyObject*, PyObject* elements) {
  return guarded([&] {
    Ref items(required(PySequence_Fast(elements, "Shape.tuple: expected a sequence of shapes")));
    std::vector<hlo::Shape> shapes;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      shapes.push_back(shape_from(PySequence_Fast_GET_ITEM(items.get(), i), "Shape.tuple"));
    }
    return shape_object(hlo::Shape::tuple(std::move(shapes)));
  });
}
PyObject* make_token(PyObject*, PyObject*) {
  return guarded([] { return shape_object(hlo::Shape::token()); });
}

PyObject* get_element_type(PyObject* self, void*) {
  return text_object(hlo::element_name(shape_of(self).element_type()));
}
PyObject* get_dimensions(PyObject* self, void*) {
  return guarded([&] { return numbers_object(shape_of(self).dimensions()); });
}
PyObject* get_layout(PyObject* self, void*) {
  if (!shape_of(self).has_layout()) Py_RETURN_NONE;
  return guarded([&] { return numbers_object(shape_of(self).minor_to_major()); });
}
PyObject* get_rank(PyObject* self, void*) { return PyLong_FromLongLong(shape_of(self).rank()); }
PyObject* get_elements(PyObject* self, void*) {
  return PyLong_FromLongLong(shape_of(self).elements());
}
PyObject* get_bytes(PyObject* self, void*) { return PyLong_FromLongLong(shape_of(self).bytes()); }
PyObject* get_tuple_shapes(PyObject* self, void*) {
  return guarded([&] {
    const auto& shapes = shape_of(self).tuple_shapes();
    Ref tuple(required(PyTuple_New(static_cast<Py_ssize_t>(shapes.size()))));
    for (size_t i = 0; i < shapes.size(); ++i) {
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), shape_object(shapes[i]));
    }
    return tuple.release();
  });
}
PyObject* get_dynamic(PyObject* self, void*) {
  return guarded([&] {
    const hlo::Shape& shape = shape_of(self);
    Ref tuple(required(PyTuple_New(static_cast<Py_ssize_t>(shape.rank()))));
    for (int64_t i = 0; i < shape.rank(); ++i) {
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       PyBool_FromLong(shape.is_dynamic(i) ? 1 : 0));
    }
    return tuple.release();
  });
}
template <bool (hlo::Shape::*Is)() const>
PyObject* get_is(PyObject* self, void*) {
  return PyBool_FromLong((shape_of(self).*Is)() ? 1 : 0);
}

PyObject* to_string(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"layout", nullptr};
  int layout = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:to_string", const_cast<char**>(names),
                                   &layout)) {
    return nullptr;
  }
  return guarded([&] { return text_object(shape_of(self).to_string(layout != 0)); });
}
PyObject* compatible(PyObject* self, PyObject* other) {
  return guarded([&] {
    return PyBool_FromLong(shape_of(self).compatible(shape_from(other, "compatible")) ? 1 : 0);
  });
}
PyObject* as_text(PyObject* self) {
  return guarded([&] { return text_object(shape_of(self).to_string()); });
}
PyObject* represent(PyObject* self) {
  return guarded([&] { return text_object("Shape('" + shape_of(self).to_string() + "')"); });
}
PyObject* reduce(PyObject* self, PyObject*) {
  Ref text(as_text(self));
  return text ? Py_BuildValue("O(O)", shape_type, text.get()) : nullptr;
}
PyObject* compare(PyObject* self, PyObject* other, int operation) {
  if ((operation != Py_EQ && operation != Py_NE) || Py_TYPE(other) != shape_type) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong((shape_of(self) == shape_of(other)) == (operation == Py_EQ) ? 1 : 0);
}
Py_hash_t hash(PyObject* self) {
  auto value = static_cast<Py_hash_t>(std::hash<std::string>()(shape_of(self).to_string()));
  return value == -1 ? -2 : value;
}

PyGetSetDef getset[] = {
    {"element_type", get_element_type, nullptr, "'f32' and the like; 'tuple', 'token'.", nullptr},
    {"dimensions", get_dimensions, nullptr, "Sizes of an array.", nullptr},
    {"layout", get_layout, nullptr, "Dimensions of an array from minor to major, or None.",
     nullptr},
    {"rank", get_rank, nullptr, "Number of dimensions.", nullptr},
    {"elements", get_elements, nullptr, "Number of elements of an array.", nullptr},
    {"bytes", get_bytes, nullptr, "Bytes of an array in memory; of a tuple, of its arrays.",
     nullptr},
    {"tuple_shapes", get_tuple_shapes, nullptr, "Shapes of a tuple's elements.", nullptr},
    {"dynamic_dimensions", get_dynamic, nullptr, "Whether each dimension is a bound only.",
     nullptr},
    {"is_tuple", get_is<&hlo::Shape::is_tuple>, nullptr, nullptr, nullptr},
    {"is_token", get_is<&hlo::Shape::is_token>, nullptr, nullptr, nullptr},
    {"is_array", get_is<&hlo::Shape::is_array>, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {
    {"array", method(make_array), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "array(element_type, dimensions, layout=None)\n\nThe shape of an array."},
    {"tuple", make_tuple, METH_O | METH_STATIC, "tuple(shapes)\n\nThe shape of a tuple."},
    {"token", make_token, METH_NOARGS | METH_STATIC, "token()\n\nThe shape of a token."},
    {"to_string", method(to_string), METH_VARARGS | METH_KEYWORDS,
     "to_string(layout=True)\n\nXLA's text."},
    {"compatible", compatible, METH_O, "Whether element types and sizes are equal."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("Shape(text)\n\nWhat a value of HLO is: an array of an element "
                                  "type, a tuple of shapes, a token.")},
    {Py_tp_new, reinterpret_cast<void*>(make_shape)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_holder<hlo::Shape>)},
    {Py_tp_str, reinterpret_cast<void*>(as_text)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {0, nullptr}};
PyType_Spec spec = {"lamella.hlo.Shape", sizeof(Holder<hlo::Shape>), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

int add_shapes(PyObject* module) {
  shape_type = add_type(module, &spec);
  if (shape_type == nullptr) return -1;
  // (name, NumPy's name, dtype of the tensors that carry the elements) of each type of arrays.
  Ref names(PyList_New(0));
  if (!names) return -1;
  for (size_t i = 1; i < hlo::ElementTable::kCount; ++i) {
    auto type = static_cast<hlo::ElementType>(i);
    if (!hlo::is_array_type(type)) continue;
    bool is_signed = hlo::element_kind(type) == hlo::ElementKind::Signed;
    ScalarType carrier =
        hlo::scalar_type_of(type).value_or(is_signed ? ScalarType::Char : ScalarType::Byte);
    Ref row(Py_BuildValue("(sss)", std::string(hlo::element_name(type)).c_str(),
                          hlo::numpy_name(type).c_str(), dtype_name(carrier)));
    if (!row || PyList_Append(names.get(), row.get()) != 0) return -1;
  }
  return PyModule_AddObject(module, "_element_types", names.release());
}

}  // namespace lamella::python
