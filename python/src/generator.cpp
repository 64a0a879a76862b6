// Generator: a source of random numbers.
#include <cstring>
#include <mutex>

#include "lamella/core/generator_impl.h"
#include "python/src/errors.h"

namespace lamella::python {

PyTypeObject GeneratorType = {PyVarObject_HEAD_INIT(nullptr, 0)};

namespace {

// Throws for a generator of a class of another library, which operators alone use.
GeneratorImpl& generator_of(PyObject* self) {
  return GeneratorImpl::of(Generator::borrow(reinterpret_cast<PyGenerator*>(self)->generator));
}
PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"device", nullptr};
  PyObject* object = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                   &object)) {
    return nullptr;
  }
  Device device(kCPU);
  if (object != nullptr && device_from_object(object, &device) <= 0) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_TypeError, "Generator: expected 'device' to be a device");
    }
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    Generator made = make_generator(device);
    PyObject* self = type->tp_alloc(type, 0);
    if (self != nullptr) reinterpret_cast<PyGenerator*>(self)->generator = made.unsafe_release();
    return self;
  });
}
void generator_dealloc(PyObject* self) {
  if (lamella_object* held = reinterpret_cast<PyGenerator*>(self)->generator) {
    Generator::adopt(held);
  }
  Py_TYPE(self)->tp_free(self);
}
PyObject* generator_manual_seed(PyObject* self, PyObject* seed) {
  Ref number(PyNumber_Index(seed));
  if (!number) return nullptr;
  // Negative seeds wrap, as in PyTorch.
  int over = 0;
  auto value = static_cast<uint64_t>(PyLong_AsLongLongAndOverflow(number.get(), &over));
  if (over > 0) value = PyLong_AsUnsignedLongLong(number.get());
  if (over < 0 || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return PyErr_Format(PyExc_ValueError,
                        "manual_seed: expected 'seed' from -2**63 to 2**64 - 1, got %R", seed);
  }
  return guarded([&]() -> PyObject* {
    std::lock_guard lock(generator_of(self).mutex);
    generator_of(self).set_current_seed(value);
    Py_INCREF(self);
    return self;
  });
}
PyObject* generator_seed(PyObject* self, PyObject*) {
  return guarded([&] {
    std::lock_guard lock(generator_of(self).mutex);
    return PyLong_FromUnsignedLongLong(generator_of(self).seed());
  });
}
PyObject* generator_initial_seed(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(generator_of(self).current_seed()); });
}
PyObject* generator_get_state(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    std::vector<uint8_t> bytes;
    {
      std::lock_guard lock(generator_of(self).mutex);
      bytes = generator_of(self).get_state();
    }
    auto size = static_cast<int64_t>(bytes.size());
    lamella_tensor* tensor = nullptr;
    detail::check(
        lamella_tensor_empty(1, &size, static_cast<uint8_t>(ScalarType::Byte), 0, -1, &tensor));
    if (!bytes.empty()) memcpy(tensor->data, bytes.data(), bytes.size());
    return wrap(tensor);
  });
}
PyObject* generator_set_state(PyObject* self, PyObject* state) {
  if (!is_tensor(state) ||
      tensor_of(state)->scalar_type != static_cast<uint8_t>(ScalarType::Byte) ||
      (tensor_of(state)->flags & LAMELLA_TENSOR_CONTIGUOUS) == 0 ||
      tensor_of(state)->device_type != 0) {
    PyErr_SetString(PyExc_TypeError,
                    "set_state: expected 'new_state' to be a contiguous uint8 tensor on cpu");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    std::lock_guard lock(generator_of(self).mutex);
    generator_of(self).set_state(static_cast<const uint8_t*>(tensor_of(state)->data),
                                 static_cast<size_t>(tensor_of(state)->numel));
    Py_INCREF(self);
    return self;
  });
}
PyObject* generator_clone(PyObject* self, PyObject*) {
  return guarded([&] {
    std::lock_guard lock(generator_of(self).mutex);
    return generator_object(generator_of(self).clone().unsafe_release());
  });
}
PyObject* generator_device(PyObject* self, void*) {
  return guarded([&] { return device_object(generator_of(self).device); });
}
PyObject* generator_repr(PyObject* self) {
  return guarded([&] {
    return PyUnicode_FromFormat("<lamella.Generator device=%s seed=%llu>",
                                generator_of(self).device.str().c_str(),
                                static_cast<unsigned long long>(generator_of(self).current_seed()));
  });
}
PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O, "Seeds the generator; returns it."},
    {"seed", generator_seed, METH_NOARGS, "Seeds from the system; returns the seed."},
    {"initial_seed", generator_initial_seed, METH_NOARGS, "The seed given last."},
    {"get_state", generator_get_state, METH_NOARGS, "The state as a uint8 tensor."},
    {"set_state", generator_set_state, METH_O, "Restores a state."},
    {"clone_state", generator_clone, METH_NOARGS, "Another generator in the same state."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef generator_getset[] = {{"device", generator_device, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyObject* default_generator(PyObject*, PyObject*) {
  return guarded(
      [&] { return generator_object(Generator(default_cpu_generator()).unsafe_release()); });
}
PyMethodDef functions[] = {{"_default_generator", default_generator, METH_NOARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* generator_object(lamella_object* owned) {
  auto* object = reinterpret_cast<PyGenerator*>(GeneratorType.tp_alloc(&GeneratorType, 0));
  if (object == nullptr) {
    Generator::adopt(owned);
    return nullptr;
  }
  object->generator = owned;
  return reinterpret_cast<PyObject*>(object);
}

int add_generator(PyObject* module) {
  GeneratorType.tp_new = generator_new;
  GeneratorType.tp_dealloc = generator_dealloc;
  GeneratorType.tp_methods = generator_methods;
  GeneratorType.tp_getset = generator_getset;
  GeneratorType.tp_repr = generator_repr;
  GeneratorType.tp_flags = Py_TPFLAGS_BASETYPE;
  GeneratorType.tp_doc =
      "Generator(device='cpu'): a source of random numbers with a seed of its own.";
  if (add_type(module, &GeneratorType, "lamella.Generator", sizeof(PyGenerator)) != 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
