// The Tensor type: its life, and how C++ tensors get their objects.
#include "python/src/tensor.h"

#include <structmember.h>

#include <mutex>

#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/guards.h"
#include "lamella/layers/python_key/python_key.h"
#include "python/src/autograd.h"
#include "python/src/errors.h"
#include "python/src/trace.h"

namespace lamella::python {

PyTypeObject TensorType = {PyVarObject_HEAD_INIT(nullptr, 0)};

namespace {

KnownOperator alias_op{"aten::alias", ""};

PyTensor* as_tensor(PyObject* object) { return reinterpret_cast<PyTensor*>(object); }

// Note [Methods in Python 3.11]
//   That version caches a method at the code that calls it only if the object has a dictionary of
//   attributes, or can never have one. There, tensors without attributes share an empty dictionary,
//   to which they hold no reference. Code that may write attributes first replaces it by NULL
//   (KeepingNone).
#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
PyObject* no_attributes = nullptr;  // made with the type; never freed
int make_no_attributes() {
  no_attributes = PyDict_New();
  return no_attributes != nullptr ? 0 : -1;
}
#else
constexpr PyObject* no_attributes = nullptr;
int make_no_attributes() { return 0; }
#endif
inline bool has_attributes(const PyTensor* object) {
  return object->dict != no_attributes && object->dict != nullptr;
}
// For its lifetime, a tensor without attributes has no dictionary, and may be given one.
class KeepingNone {
 public:
  explicit KeepingNone(PyObject* self)
      : object_(as_tensor(self)), shared_(object_->dict == no_attributes) {
    if (shared_) object_->dict = nullptr;
  }
  ~KeepingNone() {
    if (shared_ && object_->dict == nullptr) object_->dict = no_attributes;
  }
  KeepingNone(const KeepingNone&) = delete;
  KeepingNone& operator=(const KeepingNone&) = delete;

 private:
  PyTensor* object_;
  bool shared_;
};

#ifdef Py_GIL_DISABLED
// Another thread may be destroying an object while this one wraps its tensor.
std::mutex identity_mutex;
PyTensor* take_spare() { return nullptr; }
bool keep_spare(PyTensor*) { return false; }
#else
constexpr int kSpares = 64;
PyTensor* spares[kSpares];  // guarded by the GIL
int spare_count = 0;
inline PyTensor* take_spare() { return spare_count > 0 ? spares[--spare_count] : nullptr; }
inline bool keep_spare(PyTensor* object) {
  if (spare_count == kSpares) return false;
  spares[spare_count++] = object;
  return true;
}
#endif

// The word before an object is the collector's; its lowest bit says that the finalizer has run,
// which would prevent a second run.
void forget_finalized(PyObject* self) {
#ifdef Py_GIL_DISABLED
  self->ob_gc_bits &= static_cast<uint8_t>(~2);
#else
  if (PyObject_GC_IsFinalized(self)) reinterpret_cast<uintptr_t*>(self)[-1] &= ~uintptr_t{1};
#endif
}

void tensor_dealloc(PyObject* self) {
  PyTensor* object = as_tensor(self);
  // For subclasses the finalizer has run already: this is their base's destructor.
  if ((has_attributes(object) || object->weak_references != nullptr) &&
      Py_TYPE(self) == &TensorType) [[unlikely]] {
    forget_finalized(self);  // set by an earlier use of a recycled object
    if (PyObject_CallFinalizerFromDealloc(self) != 0) return;
  }
  if (object->tracked) [[unlikely]]
    PyObject_GC_UnTrack(self);
  if (object->weak_references != nullptr) [[unlikely]]
    PyObject_ClearWeakRefs(self);
  if (has_attributes(object)) [[unlikely]]
    Py_CLEAR(object->dict);
  if (lamella_tensor* tensor = object->tensor) {
    {
#ifdef Py_GIL_DISABLED
      std::lock_guard lock(identity_mutex);
#endif
      if (tensor->python_object == self) tensor->python_object = nullptr;
    }
    detail::release(tensor);
  }
  if (Py_TYPE(self) == &TensorType && keep_spare(object)) [[likely]]
    return;
  Py_TYPE(self)->tp_free(self);
}

bool has_handler(const lamella_tensor* tensor) { return (tensor->key_set & python_key::kBit) != 0; }

// Runs before an instance of a subclass, or an object with attributes or weak references, is
// destroyed: Note [Ownership of tensors and their objects].
void tensor_finalize(PyObject* self) {
  PyTensor* object = as_tensor(self);
  lamella_tensor* tensor = object->tensor;
  if (tensor == nullptr || object->kept)
    return;  // the tensor, which kept the object, has been destroyed
  // Whether another object for the tensor would lack something: its class, attributes, or what
  // refers to it weakly.
  const bool more = Py_TYPE(self) != &TensorType || has_handler(tensor) ||
                    object->weak_references != nullptr ||
                    (has_attributes(object) && PyDict_GET_SIZE(object->dict) > 0);
  if (!more || tensor->python_object != self ||
      __atomic_load_n(&tensor->references, __ATOMIC_ACQUIRE) == 1) {
    return;
  }
  object->kept = true;
  Py_INCREF(self);
  detail::release(tensor);
}
// Called when a tensor that keeps its object is destroyed.
void end_kept(lamella_tensor* tensor) {
  auto* object = static_cast<PyTensor*>(tensor->python_object);
  if (!object->kept) return;
  object->tensor = nullptr;
  object->kept = false;
  release_object(object);
}

// Note [What the collector sees]: only tensors with a history or with attributes are tracked, since
// others hold no Python object.
int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  if (has_attributes(as_tensor(self))) Py_VISIT(as_tensor(self)->dict);
  lamella_tensor* tensor = tensor_of(self);
  if (tensor == nullptr || tensor->autograd == nullptr || as_tensor(self)->kept) return 0;
  return visit_tensor(tensor, visit, arg);
}

int tensor_clear(PyObject* self) {
  if (has_attributes(as_tensor(self))) Py_CLEAR(as_tensor(self)->dict);
  return 0;
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  static PyObject* class_name = PyUnicode_InternFromString("__class__");
  // Objects of Tensor itself are kept as spares, which those of other classes must not become.
  auto* own = reinterpret_cast<PyObject*>(&TensorType);
  if (name == class_name && (Py_TYPE(self) == &TensorType || value == own)) [[unlikely]] {
    PyErr_SetString(PyExc_TypeError,
                    "__class__ assignment only supported for objects of subclasses of Tensor");
    return -1;
  }
  KeepingNone kept(self);
  if (PyObject_GenericSetAttr(self, name, value) != 0) return -1;
  if (as_tensor(self)->dict != nullptr) [[unlikely]]
    track(self);
  return 0;
}
PyObject* get_dict(PyObject* self, void* context) {
  KeepingNone kept(self);
  track(self);
  return PyObject_GenericGetDict(self, context);
}
int set_dict(PyObject* self, PyObject* dict, void* context) {
  KeepingNone kept(self);
  if (PyObject_GenericSetDict(self, dict, context) != 0) return -1;
  track(self);
  return 0;
}
PyGetSetDef own_getset[] = {
    {"__dict__", get_dict, set_dict, "Attributes that a program set.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

[[gnu::noinline]] PyObject* object_of(lamella_tensor* owned) {
#ifdef Py_GIL_DISABLED
  std::lock_guard lock(identity_mutex);
  auto* known = static_cast<PyObject*>(owned->python_object);
  if (known == nullptr || !PyUnstable_TryIncRef(known)) return nullptr;
#else
  auto* known = static_cast<PyObject*>(owned->python_object);
  if (as_tensor(known)->kept) [[unlikely]] {
    // The caller gets the tensor's reference to the object, and the object ours to the tensor.
    as_tensor(known)->kept = false;
    forget_finalized(known);
    return known;
  }
  Py_INCREF(known);
#endif
  if (owned->autograd != nullptr) track(known);
  detail::release(owned);
  return known;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"data", nullptr};
  PyObject* data = nullptr;
  // Tensor(2, 3) and Tensor(x.shape): uninitialised, of that shape.
  PyObject* items = args;
  if (PyTuple_GET_SIZE(args) == 1 && Py_IS_TYPE(PyTuple_GET_ITEM(args, 0), &SizeType)) {
    items = PyTuple_GET_ITEM(args, 0);
  }
  Py_ssize_t count = PyTuple_GET_SIZE(items);
  return guarded([&]() -> PyObject* {
    bool sizes = count > 0 || items != args;
    for (Py_ssize_t i = 0; i < count; ++i) {
      sizes = sizes && PyLong_Check(PyTuple_GET_ITEM(items, i));
    }
    TensorBase tensor;
    if (sizes || (count == 0 && (kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0))) {
      std::vector<int64_t> shape;
      for (Py_ssize_t i = 0; i < count; ++i) {
        shape.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(items, i)));
        if (PyErr_Occurred() != nullptr) return nullptr;
      }
      if (!sizes) shape.push_back(0);
      lamella_tensor* made = nullptr;
      detail::check(lamella_tensor_empty(static_cast<int32_t>(shape.size()), shape.data(),
                                         static_cast<uint8_t>(default_dtype()), 0, -1, &made));
      tensor = TensorBase::adopt(made);
    } else {
      if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Tensor", const_cast<char**>(names),
                                       &data)) {
        return nullptr;
      }
      if (is_tensor(data)) {
        // An alias: one object cannot be of two types.
        tensor = call_known(alias_op, {tensor_value(tensor_of(data))});
        if (!tensor.defined()) return nullptr;
      } else {
        tensor = tensor_from_data(data, default_dtype(), true);
        if (!tensor.defined()) return nullptr;
      }
    }
    return wrap_as(type, tensor.unsafe_release());
  });
}

Py_hash_t tensor_hash(PyObject* self) {
  auto address = reinterpret_cast<size_t>(self);
  return static_cast<Py_hash_t>((address >> 4) | (address << (8 * sizeof(address) - 4)));
}

PyObject* tensor_repr(PyObject* self) {
  Ref module(PyImport_ImportModule("lamella._tensor_str"));
  if (!module) return nullptr;
  tracing::Pause not_traced;
  return PyObject_CallMethod(module.get(), "tensor_repr", "O", self);
}

// _add_to_tensor({name: function}): methods written in Python.
PyObject* add_to_tensor(PyObject*, PyObject* members) {
  if (PyDict_Update(TensorType.tp_dict, members) != 0) return nullptr;
  PyType_Modified(&TensorType);
  Py_RETURN_NONE;
}

// _add_to_device({name: function}): the same for devices.
PyObject* add_to_device(PyObject*, PyObject* members) {
  if (PyDict_Update(DeviceType_.tp_dict, members) != 0) return nullptr;
  PyType_Modified(&DeviceType_);
  Py_RETURN_NONE;
}

// _as_subclass(tensor, type): an alias of the tensor as an object of a subclass.
PyObject* as_subclass(PyObject*, PyObject* args) {
  PyObject *self, *type;
  if (!PyArg_ParseTuple(args, "O!O!:as_subclass", &TensorType, &self, &PyType_Type, &type)) {
    return nullptr;
  }
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), &TensorType)) {
    return PyErr_Format(PyExc_TypeError,
                        "as_subclass: expected 'cls' to be a subclass of Tensor, "
                        "got %R",
                        type);
  }
  TensorBase alias = call_known(alias_op, {tensor_value(tensor_of(self))});
  if (!alias.defined()) return nullptr;
  return wrap_as(reinterpret_cast<PyTypeObject*>(type), alias.unsafe_release());
}

// _make_subclass(cls, data, require_grad=False): the same memory as a leaf of a subclass.
PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"cls", "data", "require_grad", nullptr};
  PyObject *type, *data;
  int require_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|p:_make_subclass", const_cast<char**>(names),
                                   &PyType_Type, &type, &TensorType, &data, &require_grad)) {
    return nullptr;
  }
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), &TensorType)) {
    return PyErr_Format(PyExc_TypeError,
                        "_make_subclass: expected 'cls' to be a subclass of Tensor, got %R", type);
  }
  constexpr uint64_t python_bit = detail::functionality_bit(detail::Functionality::Python);
  if ((tensor_of(data)->key_set & python_bit) != 0 &&
      !has_memory(tensor_of(data), "_make_subclass")) {
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    // Uses the memory itself, without the handlers of the class of `data`.
    ExcludeDispatchKeyGuard without{DispatchKey::Python};
    TensorBase made = make_detached(tensor_ref(data));
    if (require_grad != 0) detail::check(lamella_tensor_set_requires_grad(made.impl(), 1));
    return wrap_as(reinterpret_cast<PyTypeObject*>(type), made.unsafe_release());
  });
}

PyMethodDef functions[] = {
    {"_add_to_tensor", add_to_tensor, METH_O, nullptr},
    {"_add_to_device", add_to_device, METH_O, nullptr},
    {"_as_subclass", as_subclass, METH_VARARGS, nullptr},
    {"_make_subclass", method(make_subclass), METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* wrap(lamella_tensor* owned) {
  if (owned == nullptr) [[unlikely]]
    Py_RETURN_NONE;
  if (owned->python_object != nullptr) {
    if (PyObject* known = object_of(owned)) return known;
  }
  PyTensor* object = take_spare();
  if (object != nullptr) [[likely]] {
    (void)PyObject_Init(reinterpret_cast<PyObject*>(object), &TensorType);
  } else {
    object = PyObject_GC_New(PyTensor, &TensorType);
    if (object == nullptr) {
      detail::release(owned);
      return nullptr;
    }
  }
  object->tensor = owned;
  object->weak_references = nullptr;
  object->dict = no_attributes;
  object->tracked = false;
  object->kept = false;
  owned->python_object = object;
  if (owned->autograd != nullptr) [[unlikely]]
    track(reinterpret_cast<PyObject*>(object));
#ifdef Py_GIL_DISABLED
  PyUnstable_EnableTryIncRef(reinterpret_cast<PyObject*>(object));
#endif
  return reinterpret_cast<PyObject*>(object);
}

PyObject* wrap_as(PyTypeObject* type, lamella_tensor* owned) {
  if (type == &TensorType) return wrap(owned);
  if (has_dispatch(type)) {
    if (!ensure_python_key()) {
      detail::release(owned);
      return nullptr;
    }
    owned->key_set |= python_key::kBit;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) {
    detail::release(owned);
    return nullptr;
  }
  as_tensor(self)->tensor = owned;
  as_tensor(self)->weak_references = nullptr;
  as_tensor(self)->dict = nullptr;
  as_tensor(self)->tracked = true;  // by tp_alloc
  as_tensor(self)->kept = false;
  owned->python_object = self;
  return self;
}

void track(PyObject* tensor) {
  PyTensor* object = as_tensor(tensor);
  if (object->tracked) return;
  object->tracked = true;
  PyObject_GC_Track(tensor);
}

const ProgramTable* SlotOperator::table() {
  PyPacket* known = packet.load(std::memory_order_acquire);
  if (known != nullptr) [[likely]]
    return table_of(known);
  try {
    const ProgramTable* table = make_table(qualified);
    if (table == nullptr) return nullptr;
  } catch (...) {
    raise_current_exception();
    return nullptr;
  }
  PyPacket* made = make_packet(&FunctionType_, qualified, strstr(qualified, "::") + 2, "lamella");
  if (made == nullptr) return nullptr;
  PyPacket* expected = nullptr;
  if (!packet.compare_exchange_strong(expected, made)) {
    Py_DECREF(made);
    made = expected;
  }
  return table_of(made);
}

int add_tensor(PyObject* module) {
  PyTypeObject* type = &TensorType;
  type->tp_name = "lamella.Tensor";
  type->tp_doc = "A multi-dimensional array of elements of one dtype.";
  type->tp_basicsize = sizeof(PyTensor);
  type->tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  type->tp_traverse = tensor_traverse;
  type->tp_clear = tensor_clear;
  type->tp_setattro = set_attribute;
  type->tp_dictoffset = offsetof(PyTensor, dict);
  type->tp_weaklistoffset = offsetof(PyTensor, weak_references);
  type->tp_dealloc = tensor_dealloc;
  type->tp_finalize = tensor_finalize;
  type->tp_new = tensor_new;
  type->tp_hash = tensor_hash;
  type->tp_repr = tensor_repr;
  type->tp_methods = tensor_methods;
  type->tp_getset = tensor_getset;
  fill_number_slots(type);
  fill_buffer_slots(type);
  if (PyType_Ready(type) != 0 || make_no_attributes() != 0) return -1;
#ifdef Py_TPFLAGS_IMMUTABLETYPE
  // Programs add methods to the class, and replace some.
  type->tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE;
#endif
  Ref dict(PyDescr_NewGetSet(type, own_getset));
  if (!dict || PyDict_SetItemString(type->tp_dict, "__dict__", dict.get()) != 0) return -1;
  set_tensor_hooks({nullptr, end_kept});
  Py_INCREF(type);
  if (PyModule_AddObject(module, "Tensor", reinterpret_cast<PyObject*>(type)) != 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
