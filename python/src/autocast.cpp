// Autocast's state of a thread, with PyTorch's names. lamella.amp has the regions.
#include "lamella/abi/autocast.h"

#include "lamella/dispatch/dispatch_key.h"
#include "python/src/errors.h"
#include "python/src/object.h"

namespace lamella::python {
namespace {

bool is_available(DeviceType type) { return backend_bit(type) != 0 && type != DeviceType::Meta; }

// A device type's text, such as "cpu"; false with a Python error set.
bool device_type_from(const char* function, PyObject* object, uint8_t* type) {
  Device device(DeviceType::CPU);
  if (!PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "%s: expected 'device_type' to be text such as 'cpu', got %s",
                 function, Py_TYPE(object)->tp_name);
    return false;
  }
  int found = device_from_object(object, &device);
  if (found <= 0) return false;
  if (!is_available(device.type())) {
    PyErr_Format(PyExc_RuntimeError,
                 "%s: expected 'device_type' to be one that autocast works for, such as cpu or "
                 "cuda, got '%U'",
                 function, object);
    return false;
  }
  *type = static_cast<uint8_t>(device.type());
  return true;
}

// Parses the arguments of a function into two objects, by place or by name; `format` says which may
// be left out.
bool two_objects(PyObject* args, PyObject* kwargs, const char* format, const char* first_name,
                 const char* second_name, PyObject** first, PyObject** second) {
  const char* names[] = {first_name, second_name, nullptr};
  return PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(names), first,
                                     second) != 0;
}

PyObject* get_enabled(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject* device = nullptr;
  if (!two_objects(args, kwargs, "|O:is_autocast_enabled", "device_type", nullptr, &device,
                   nullptr)) {
    return nullptr;
  }
  auto type = static_cast<uint8_t>(DeviceType::CUDA);
  if (device != nullptr && !device_type_from("is_autocast_enabled", device, &type)) return nullptr;
  return PyBool_FromLong(lamella_autocast_enabled(type));
}

// (device_type, enabled), or (enabled) for CUDA.
PyObject* set_enabled(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject *first = nullptr, *second = nullptr;
  if (!two_objects(args, kwargs, "|OO:set_autocast_enabled", "device_type", "enabled", &first,
                   &second)) {
    return nullptr;
  }
  if (first == nullptr) std::swap(first, second);
  if (first == nullptr) {
    PyErr_SetString(PyExc_TypeError, "set_autocast_enabled: expected 'enabled', got nothing");
    return nullptr;
  }
  auto type = static_cast<uint8_t>(DeviceType::CUDA);
  if (second != nullptr && !device_type_from("set_autocast_enabled", first, &type)) return nullptr;
  int on = PyObject_IsTrue(second != nullptr ? second : first);
  if (on < 0) return nullptr;
  lamella_autocast_set_enabled(type, on);
  Py_RETURN_NONE;
}

PyObject* get_dtype(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject* device;
  uint8_t type;
  if (!two_objects(args, kwargs, "O:get_autocast_dtype", "device_type", nullptr, &device,
                   nullptr) ||
      !device_type_from("get_autocast_dtype", device, &type)) {
    return nullptr;
  }
  return dtype_object(static_cast<ScalarType>(lamella_autocast_dtype(type)));
}

PyObject* dtype_set(const char* function, uint8_t type, PyObject* object) {
  ScalarType dtype;
  if (!dtype_from_object(object, &dtype)) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_Format(PyExc_TypeError, "%s: expected 'dtype' to be a dtype, got %s", function,
                   Py_TYPE(object)->tp_name);
    }
    return nullptr;
  }
  lamella_autocast_set_dtype(type, static_cast<uint8_t>(dtype));
  Py_RETURN_NONE;
}

PyObject* set_dtype(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject *device, *dtype;
  uint8_t type;
  if (!two_objects(args, kwargs, "OO:set_autocast_dtype", "device_type", "dtype", &device,
                   &dtype) ||
      !device_type_from("set_autocast_dtype", device, &type)) {
    return nullptr;
  }
  return dtype_set("set_autocast_dtype", type, dtype);
}

// The older names, for one device type each.
template <DeviceType kType>
PyObject* enabled_of(PyObject*, PyObject*) {
  return PyBool_FromLong(lamella_autocast_enabled(static_cast<uint8_t>(kType)));
}
template <DeviceType kType>
PyObject* set_enabled_of(PyObject*, PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  lamella_autocast_set_enabled(static_cast<uint8_t>(kType), on);
  Py_RETURN_NONE;
}
template <DeviceType kType>
PyObject* dtype_of(PyObject*, PyObject*) {
  return dtype_object(static_cast<ScalarType>(lamella_autocast_dtype(static_cast<uint8_t>(kType))));
}
template <DeviceType kType>
PyObject* set_dtype_of(PyObject*, PyObject* value) {
  return dtype_set("set_autocast_dtype", static_cast<uint8_t>(kType), value);
}

PyObject* available(PyObject*, PyObject* object) {
  Device device(DeviceType::CPU);
  int found = device_from_object(object, &device);
  if (found < 0) return nullptr;
  return PyBool_FromLong(found > 0 && is_available(device.type()));
}

// (device types that are on, dtypes by number of the device type, whether casts are kept): the
// whole state of this thread, to be restored when a function runs later.
PyObject* snapshot(PyObject*, PyObject*) {
  const uint64_t devices = lamella_autocast_exchange(0);
  lamella_autocast_exchange(devices);
  char dtypes[64];
  for (uint8_t i = 0; i < 64; ++i) dtypes[i] = static_cast<char>(lamella_autocast_dtype(i));
  return Py_BuildValue("Ky#N", static_cast<unsigned long long>(devices), dtypes,
                       static_cast<Py_ssize_t>(64),
                       PyBool_FromLong(lamella_autocast_cache_enabled()));
}
PyObject* restore(PyObject*, PyObject* args) {
  unsigned long long devices;
  const char* dtypes;
  Py_ssize_t count;
  int cache;
  if (!PyArg_ParseTuple(args, "Ky#p:_autocast_restore", &devices, &dtypes, &count, &cache)) {
    return nullptr;
  }
  for (Py_ssize_t i = 0; i < count && i < 64; ++i) {
    lamella_autocast_set_dtype(static_cast<uint8_t>(i), static_cast<uint8_t>(dtypes[i]));
  }
  lamella_autocast_set_cache_enabled(cache);
  lamella_autocast_exchange(devices);
  Py_RETURN_NONE;
}

// "AutocastCPU" for "cpu".
PyObject* autocast_key(PyObject*, PyObject* object) {
  uint8_t type;
  if (!device_type_from("register_autocast", object, &type)) return nullptr;
  const uint64_t keys = detail::functionality_bit(detail::Functionality::AutocastFunctionality) |
                        backend_bit(static_cast<DeviceType>(type));
  return PyUnicode_FromString(
      toString(DispatchKeySet::from_raw_repr(keys).highestPriorityTypeId()));
}

PyObject* cache_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(lamella_autocast_cache_enabled());
}
PyObject* set_cache_enabled(PyObject*, PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  lamella_autocast_set_cache_enabled(on);
  Py_RETURN_NONE;
}
PyObject* clear_cache(PyObject*, PyObject*) {
  lamella_autocast_clear_cache();
  Py_RETURN_NONE;
}
PyObject* increment_nesting(PyObject*, PyObject*) {
  return PyLong_FromLong(lamella_autocast_nesting(1));
}
PyObject* decrement_nesting(PyObject*, PyObject*) {
  return PyLong_FromLong(lamella_autocast_nesting(-1));
}

constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;

PyMethodDef functions[] = {
    {"is_autocast_enabled", method(get_enabled), METH_VARARGS | METH_KEYWORDS,
     "is_autocast_enabled(device_type='cuda'): whether autocast is on for it on this thread."},
    {"set_autocast_enabled", method(set_enabled), METH_VARARGS | METH_KEYWORDS,
     "set_autocast_enabled(device_type, enabled): turns autocast on or off on this thread."},
    {"get_autocast_dtype", method(get_dtype), METH_VARARGS | METH_KEYWORDS,
     "get_autocast_dtype(device_type): the dtype of lower precision on this thread."},
    {"set_autocast_dtype", method(set_dtype), METH_VARARGS | METH_KEYWORDS,
     "set_autocast_dtype(device_type, dtype): sets the dtype of lower precision on this thread."},
    {"is_autocast_cpu_enabled", enabled_of<kCPU>, METH_NOARGS,
     "Whether autocast is on for the CPU on this thread."},
    {"set_autocast_cpu_enabled", set_enabled_of<kCPU>, METH_O,
     "set_autocast_cpu_enabled(enabled): turns autocast on or off for the CPU on this thread."},
    {"get_autocast_cpu_dtype", dtype_of<kCPU>, METH_NOARGS,
     "The dtype of lower precision on the CPU, for this thread."},
    {"set_autocast_cpu_dtype", set_dtype_of<kCPU>, METH_O,
     "set_autocast_cpu_dtype(dtype): sets the dtype of lower precision on the CPU, for this "
     "thread."},
    {"get_autocast_gpu_dtype", dtype_of<kCUDA>, METH_NOARGS,
     "The dtype of lower precision on CUDA, for this thread."},
    {"set_autocast_gpu_dtype", set_dtype_of<kCUDA>, METH_O,
     "set_autocast_gpu_dtype(dtype): sets the dtype of lower precision on CUDA, for this thread."},
    {"_is_autocast_available", available, METH_O, nullptr},
    {"_autocast_snapshot", snapshot, METH_NOARGS, nullptr},
    {"_autocast_restore", restore, METH_VARARGS, nullptr},
    {"_autocast_key", autocast_key, METH_O, nullptr},
    {"is_autocast_cache_enabled", cache_enabled, METH_NOARGS,
     "Whether casts of weights are kept until the outermost region ends."},
    {"set_autocast_cache_enabled", set_cache_enabled, METH_O,
     "set_autocast_cache_enabled(enabled): whether casts of weights are kept until the outermost "
     "region ends."},
    {"clear_autocast_cache", clear_cache, METH_NOARGS, "Frees this thread's casts of weights."},
    {"autocast_increment_nesting", increment_nesting, METH_NOARGS,
     "Enters a region; returns the depth."},
    {"autocast_decrement_nesting", decrement_nesting, METH_NOARGS,
     "Leaves a region; returns the depth, and frees casts of weights at 0."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_autocast(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace lamella::python
