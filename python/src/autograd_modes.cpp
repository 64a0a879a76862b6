// no_grad, enable_grad, set_grad_enabled, inference_mode: contexts and decorators over the modes of
// a thread.
#include <cstring>

#include "python/src/autograd.h"
#include "python/src/errors.h"

namespace lamella::python {
namespace {

// A context sets the bits of `which` to `value`. One object may be entered again while it is
// entered: each entry shifts the bits that it found into `found`.
struct PyMode {
  PyObject_HEAD uint32_t which;
  uint32_t value;
  uint64_t found;
  bool at_once;  // set_grad_enabled: the constructor sets the mode
};

constexpr uint32_t kInference =
    LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_INFERENCE | LAMELLA_MODE_NO_FORWARD;
static_assert(kInference < 8, "the bits that a context found are kept in 3 bits for each entry");

PyTypeObject ModeType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject NoGradType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject EnableGradType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject SetGradType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject InferenceType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyMode* as_mode(PyObject* object) { return reinterpret_cast<PyMode*>(object); }

#ifdef Py_GIL_DISABLED
PyMode* take_spare() { return nullptr; }
bool keep_spare(PyMode*) { return false; }
#else
constexpr int kSpares = 16;
PyMode* spares[kSpares];  // guarded by the GIL
int spare_count = 0;
PyMode* take_spare() { return spare_count > 0 ? spares[--spare_count] : nullptr; }
bool keep_spare(PyMode* object) {
  if (spare_count == kSpares) return false;
  spares[spare_count++] = object;
  return true;
}
#endif

bool is_plain(PyTypeObject* type) {
  return type == &NoGradType || type == &EnableGradType || type == &SetGradType ||
         type == &InferenceType;
}

PyMode* make_mode(PyTypeObject* type, uint32_t which, uint32_t value, bool at_once) {
  PyMode* self = is_plain(type) ? take_spare() : nullptr;
  if (self != nullptr) {
    (void)PyObject_Init(reinterpret_cast<PyObject*>(self), type);
  } else {
    self = as_mode(type->tp_alloc(type, 0));
    if (self == nullptr) return nullptr;
  }
  self->which = which;
  self->value = value;
  self->found = 0;
  self->at_once = at_once;
  if (at_once) self->found = lamella_set_modes(which, value) & which;
  return self;
}

void mode_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (is_plain(type) && keep_spare(as_mode(self))) return;
  type->tp_free(self);
}

PyObject* mode_enter(PyObject* object, PyObject*) {
  PyMode* self = as_mode(object);
  uint32_t before = lamella_set_modes(self->which, self->value);
  if (!self->at_once) self->found = self->found << 3 | (before & kInference);
  Py_RETURN_NONE;
}
PyObject* mode_exit(PyObject* object, PyObject* const*, Py_ssize_t) {
  PyMode* self = as_mode(object);
  lamella_set_modes(self->which, static_cast<uint32_t>(self->found & 7));
  if (!self->at_once) self->found >>= 3;
  Py_RETURN_NONE;
}
PyObject* mode_clone(PyObject* object, PyObject*) {
  PyMode* self = as_mode(object);
  return reinterpret_cast<PyObject*>(
      make_mode(Py_TYPE(object), self->which, self->value, self->at_once));
}

// The function, run in the mode whenever it is called.
PyObject* decorate(PyObject* mode, PyObject* function) {
  if (!PyCallable_Check(function)) {
    return PyErr_Format(PyExc_TypeError, "%s: expected a function to decorate, got %s",
                        Py_TYPE(mode)->tp_name, Py_TYPE(function)->tp_name);
  }
  // A decorator holds the mode only while the function runs.
  if (as_mode(mode)->at_once) {
    lamella_set_modes(as_mode(mode)->which, static_cast<uint32_t>(as_mode(mode)->found));
  }
  Ref module(PyImport_ImportModule("lamella.autograd._decorate"));
  if (!module) return nullptr;
  return PyObject_CallMethod(module.get(), "decorate", "OO", mode, function);
}

PyObject* mode_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* function;
  static const char* names[] = {"orig_func", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char**>(names), &function)) {
    return nullptr;
  }
  return decorate(self, function);
}

PyObject* mode_flag(PyObject* self, void*) {
  PyMode* mode = as_mode(self);
  bool inference = mode->which == kInference;
  return PyBool_FromLong((mode->value != 0) == inference);
}

// no_grad(), @no_grad
template <uint32_t Value>
PyObject* fixed_vectorcall(PyObject* type, PyObject* const* args, size_t nargsf,
                           PyObject* kwnames) {
  PyMode* self =
      make_mode(reinterpret_cast<PyTypeObject*>(type), LAMELLA_MODE_NO_GRAD, Value, false);
  Py_ssize_t given = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (given == 0 || self == nullptr) [[likely]]
    return reinterpret_cast<PyObject*>(self);
  Ref mode(reinterpret_cast<PyObject*>(self));
  if (given > 1 ||
      (kwnames != nullptr && PyTuple_GET_SIZE(kwnames) > 0 &&
       PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "orig_func") != 0)) {
    return PyErr_Format(PyExc_TypeError, "%s: expected nothing or a function to decorate",
                        reinterpret_cast<PyTypeObject*>(type)->tp_name);
  }
  if (args[0] == Py_None) return mode.release();
  return decorate(mode.get(), args[0]);
}

int read_flag(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames,
              PyObject** other) {
  Py_ssize_t given = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  *other = nullptr;
  bool named = kwnames != nullptr && PyTuple_GET_SIZE(kwnames) > 0 &&
               PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "mode") != 0;
  if (given != 1 || named) {
    PyErr_Format(PyExc_TypeError, "%s: expected one argument, 'mode'",
                 reinterpret_cast<PyTypeObject*>(type)->tp_name);
    return -1;
  }
  if (args[0] == Py_True) return 1;
  if (args[0] == Py_False) return 0;
  *other = args[0];
  return PyObject_IsTrue(args[0]);
}

// set_grad_enabled(mode)
PyObject* set_grad_vectorcall(PyObject* type, PyObject* const* args, size_t nargsf,
                              PyObject* kwnames) {
  PyObject* other;
  int flag = read_flag(type, args, nargsf, kwnames, &other);
  if (flag < 0) return nullptr;
  return reinterpret_cast<PyObject*>(make_mode(reinterpret_cast<PyTypeObject*>(type),
                                               LAMELLA_MODE_NO_GRAD,
                                               flag ? 0 : LAMELLA_MODE_NO_GRAD, true));
}

// inference_mode(mode=True), @inference_mode
PyObject* inference_vectorcall(PyObject* type, PyObject* const* args, size_t nargsf,
                               PyObject* kwnames) {
  PyObject* other = nullptr;
  int flag = 1;
  if (PyVectorcall_NARGS(nargsf) != 0 || kwnames != nullptr) {
    flag = read_flag(type, args, nargsf, kwnames, &other);
    if (flag < 0) return nullptr;
  }
  bool bare = other != nullptr && PyCallable_Check(other) != 0;
  PyMode* self = make_mode(reinterpret_cast<PyTypeObject*>(type), kInference,
                           flag != 0 || bare ? kInference : 0, false);
  if (self == nullptr || !bare) return reinterpret_cast<PyObject*>(self);
  Ref mode(reinterpret_cast<PyObject*>(self));
  return decorate(mode.get(), other);
}

// The same for subclasses, which are constructed through tp_new.
template <vectorcallfunc Call>
PyObject* mode_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (kwargs != nullptr && PyDict_GET_SIZE(kwargs) != 0) {
    return PyErr_Format(PyExc_TypeError, "%s: expected no keywords", type->tp_name);
  }
  return Call(reinterpret_cast<PyObject*>(type), &PyTuple_GET_ITEM(args, 0),
              static_cast<size_t>(PyTuple_GET_SIZE(args)), nullptr);
}
int mode_init(PyObject*, PyObject*, PyObject*) { return 0; }

PyMethodDef mode_methods[] = {
    {"__enter__", mode_enter, METH_NOARGS, nullptr},
    {"__exit__", method(mode_exit), METH_FASTCALL, nullptr},
    {"clone", mode_clone, METH_NOARGS, "Another context for the same mode."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef mode_getset[] = {{"mode", mode_flag, nullptr, "What the context sets.", nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};

int ready(PyObject* module, PyTypeObject* type, const char* name, vectorcallfunc call, newfunc make,
          const char* doc) {
  type->tp_name = name;
  type->tp_doc = doc;
  type->tp_base = &ModeType;
  type->tp_basicsize = sizeof(PyMode);
  type->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  type->tp_vectorcall = call;
  type->tp_new = make;
  type->tp_init = mode_init;
  type->tp_dealloc = mode_dealloc;
  if (PyType_Ready(type) != 0) return -1;
  Py_INCREF(type);
  return PyModule_AddObject(module, strrchr(name, '.') + 1, reinterpret_cast<PyObject*>(type));
}

PyObject* is_grad_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong((lamella_modes() & LAMELLA_MODE_NO_GRAD) == 0);
}
PyObject* is_inference_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong((lamella_modes() & LAMELLA_MODE_INFERENCE) != 0);
}
template <uint32_t Bit, bool WhenClear>
PyObject* set_bit(PyObject*, PyObject* flag) {
  int on = PyObject_IsTrue(flag);
  if (on < 0) return nullptr;
  bool value = (on != 0) != WhenClear;
  uint32_t before = lamella_set_modes(Bit, value ? Bit : 0);
  return PyBool_FromLong(((before & Bit) != 0) != WhenClear);
}

PyMethodDef functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "Whether operators on this thread record gradients."},
    {"is_inference_mode_enabled", is_inference_enabled, METH_NOARGS,
     "Whether tensors made on this thread take no part in autograd."},
    // Each sets a mode of the thread and returns what it was.
    {"_set_grad_enabled", set_bit<LAMELLA_MODE_NO_GRAD, true>, METH_O, nullptr},
    {"_set_fwd_grad_enabled", set_bit<LAMELLA_MODE_NO_FORWARD, true>, METH_O, nullptr},
    {"_set_anomaly_enabled", set_bit<LAMELLA_MODE_ANOMALY, false>, METH_O, nullptr},
    {"_set_nan_check", set_bit<LAMELLA_MODE_NO_NAN_CHECK, true>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_modes(PyObject* module) {
  ModeType.tp_name = "lamella.autograd.grad_mode._Mode";
  ModeType.tp_basicsize = sizeof(PyMode);
  ModeType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  ModeType.tp_methods = mode_methods;
  ModeType.tp_getset = mode_getset;
  ModeType.tp_call = mode_call;
  ModeType.tp_dealloc = mode_dealloc;
  if (PyType_Ready(&ModeType) != 0) return -1;
  if (ready(module, &NoGradType, "lamella.autograd.grad_mode.no_grad",
            fixed_vectorcall<LAMELLA_MODE_NO_GRAD>,
            mode_new<fixed_vectorcall<LAMELLA_MODE_NO_GRAD>>,
            "Gradients are not recorded in the block or in the decorated function.") != 0 ||
      ready(module, &EnableGradType, "lamella.autograd.grad_mode.enable_grad", fixed_vectorcall<0>,
            mode_new<fixed_vectorcall<0>>,
            "Gradients are recorded in the block or in the decorated function.") != 0 ||
      ready(module, &SetGradType, "lamella.autograd.grad_mode.set_grad_enabled",
            set_grad_vectorcall, mode_new<set_grad_vectorcall>,
            "set_grad_enabled(mode)\n\nWhether gradients are recorded: from now on, or in a block "
            "or a decorated function.") != 0 ||
      ready(module, &InferenceType, "lamella.autograd.grad_mode.inference_mode",
            inference_vectorcall, mode_new<inference_vectorcall>,
            "inference_mode(mode=True)\n\nTensors made in the block or in the decorated function "
            "take no part in autograd, ever.") != 0) {
    return -1;
  }
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
