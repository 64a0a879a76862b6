// Devices of backends: names, the current device, streams, events and generators, for
// lamella/_device.py.
#include "lamella/abi/backend.h"
#include "lamella/core/cuda_loading.h"
#include "lamella/core/generator_impl.h"
#include "lamella/dispatch/registry.h"
#include "python/src/errors.h"
#include "python/src/object.h"

namespace lamella::python {
namespace {

// Reads a device object or an argument of device().
bool plain_device_argument(PyObject* object, Device* device) {
  int found = guarded([&] { return device_from_object(object, device); }, -1);
  if (found == 0) {
    PyErr_Format(PyExc_TypeError, "expected a device, got %s", Py_TYPE(object)->tp_name);
  }
  return found == 1;
}
// The same; without an index, it is the current device.
bool device_argument(PyObject* object, Device* device) {
  if (!plain_device_argument(object, device)) return false;
  if (!device->has_index()) {
    device->set_index(lamella_device_current(static_cast<uint8_t>(device->type())));
  }
  return true;
}
uint8_t number(Device device) { return static_cast<uint8_t>(device.type()); }
PyObject* none_or_error(lamella_status status) {
  if (status != LAMELLA_OK) return raise_status(status);
  Py_RETURN_NONE;
}
// A call that may wait for a device.
template <class F>
lamella_status waiting(F&& call) {
  lamella_status status;
  Py_BEGIN_ALLOW_THREADS status = call();
  Py_END_ALLOW_THREADS return status;
}

// ---- Devices ----

PyObject* rename_device_type(PyObject*, PyObject* args) {
  PyObject* object;
  const char* name;
  Device device(kCPU);
  if (!PyArg_ParseTuple(args, "Os", &object, &name) || !device_argument(object, &device)) {
    return nullptr;
  }
  return none_or_error(lamella_rename_device_type(number(device), name));
}
PyObject* has_backend(PyObject*, PyObject* object) {
  Device device(kCPU);
  if (!plain_device_argument(object, &device)) return nullptr;
  return PyBool_FromLong(lamella_has_backend(number(device)));
}
PyObject* backend_names(PyObject*, PyObject*) {
  Ref names(PyList_New(0));
  for (int type = 0; names && type < kDeviceTypes; ++type) {
    if (lamella_has_backend(static_cast<uint8_t>(type)) == 0) continue;
    Ref name(PyUnicode_FromString(lamella_device_type_name(static_cast<uint8_t>(type), 1)));
    if (!name || PyList_Append(names.get(), name.get()) != 0) return nullptr;
  }
  return names.release();
}
// Names of the operators that the CPU runs and a device does not, in order of definition.
PyObject* operators_without_kernel(PyObject*, PyObject* object) {
  Device device(kCPU);
  if (!device_argument(object, &device)) return nullptr;
  return guarded([&]() -> PyObject* {
    auto key_of = [](DeviceType type) {
      return DispatchKeySet::from_raw_repr(default_key_set(type, true)).highestPriorityTypeId();
    };
    Registry& registry = Registry::get();
    Ref names(PyList_New(0));
    for (OperatorEntry* entry : registry.entries()) {
      if (!names) break;
      if (!entry->is_published()) continue;
      bool here = registry.slot(entry, key_of(kCPU)).origin != SlotOrigin::kMissing;
      if (!here || registry.slot(entry, key_of(device.type())).origin != SlotOrigin::kMissing) {
        continue;
      }
      Ref name(PyUnicode_FromString(entry->full_name().c_str()));
      if (!name || PyList_Append(names.get(), name.get()) != 0) return nullptr;
    }
    return names.release();
  });
}
PyObject* device_count(PyObject*, PyObject* object) {
  Device device(kCPU);
  if (!device_argument(object, &device)) return nullptr;
  return PyLong_FromLong(lamella_device_count(number(device)));
}
PyObject* current_device(PyObject*, PyObject* object) {
  Device device(kCPU);
  if (!device_argument(object, &device)) return nullptr;
  return PyLong_FromLong(lamella_device_current(number(device)));
}
PyObject* exchange_device(PyObject*, PyObject* object) {
  Device device(kCPU);
  if (!device_argument(object, &device)) return nullptr;
  int8_t former = 0;
  lamella_status status = lamella_device_exchange(number(device), device.index(), &former);
  return status == LAMELLA_OK ? PyLong_FromLong(former) : raise_status(status);
}
PyObject* synchronize_device(PyObject*, PyObject* object) {
  Device device(kCPU);
  if (!device_argument(object, &device)) return nullptr;
  return none_or_error(
      waiting([&] { return lamella_device_synchronize(number(device), device.index()); }));
}
PyObject* device_generator(PyObject*, PyObject* object) {
  Device device(kCPU);
  if (!device_argument(object, &device)) return nullptr;
  return guarded([&] { return generator_object(default_generator(device).unsafe_release()); });
}

// ---- Streams: (device, number) ----

struct StreamArguments {
  Device device{kCPU};
  long long stream = 0;
  bool parse(PyObject* args) {
    PyObject* object;
    return PyArg_ParseTuple(args, "OL", &object, &stream) && device_argument(object, &device);
  }
  uint8_t type() const { return number(device); }
};
PyObject* current_stream(PyObject*, PyObject* object) {
  Device device(kCPU);
  if (!device_argument(object, &device)) return nullptr;
  return PyLong_FromLongLong(lamella_stream_current(number(device), device.index()));
}
PyObject* exchange_stream(PyObject*, PyObject* args) {
  StreamArguments a;
  if (!a.parse(args)) return nullptr;
  int64_t former = 0;
  lamella_status status = lamella_stream_exchange(a.type(), a.device.index(), a.stream, &former);
  return status == LAMELLA_OK ? PyLong_FromLongLong(former) : raise_status(status);
}
PyObject* make_stream(PyObject*, PyObject* args) {
  StreamArguments a;  // the number is the priority
  if (!a.parse(args)) return nullptr;
  int64_t stream = 0;
  lamella_status status =
      lamella_stream_make(a.type(), a.device.index(), static_cast<int32_t>(a.stream), &stream);
  return status == LAMELLA_OK ? PyLong_FromLongLong(stream) : raise_status(status);
}
PyObject* query_stream(PyObject*, PyObject* args) {
  StreamArguments a;
  if (!a.parse(args)) return nullptr;
  int32_t idle = 0;
  lamella_status status = lamella_stream_query(a.type(), a.device.index(), a.stream, &idle);
  return status == LAMELLA_OK ? PyBool_FromLong(idle) : raise_status(status);
}
PyObject* synchronize_stream(PyObject*, PyObject* args) {
  StreamArguments a;
  if (!a.parse(args)) return nullptr;
  return none_or_error(
      waiting([&] { return lamella_stream_synchronize(a.type(), a.device.index(), a.stream); }));
}

// ---- Events: capsules ----

constexpr const char* kEvent = "lamella.event";

struct HeldEvent {
  uint8_t type;
  void* event;
};
void end_event(PyObject* capsule) {
  auto* held = static_cast<HeldEvent*>(PyCapsule_GetPointer(capsule, kEvent));
  if (held == nullptr) return;
  lamella_event_free(held->type, held->event);
  delete held;
}
HeldEvent* event_of(PyObject* capsule) {
  return static_cast<HeldEvent*>(PyCapsule_GetPointer(capsule, kEvent));
}
PyObject* make_event(PyObject*, PyObject* args) {
  StreamArguments a;  // a number other than 0 asks for a time
  if (!a.parse(args)) return nullptr;
  void* event = nullptr;
  lamella_status status =
      lamella_event_make(a.type(), a.device.index(), a.stream != 0 ? 1 : 0, &event);
  if (status != LAMELLA_OK) return raise_status(status);
  return PyCapsule_New(new HeldEvent{a.type(), event}, kEvent, &end_event);
}
PyObject* on_stream(PyObject* args, lamella_status (*call)(uint8_t, void*, int8_t, int64_t)) {
  PyObject *capsule, *object;
  Device device(kCPU);
  long long stream;
  if (!PyArg_ParseTuple(args, "OOL", &capsule, &object, &stream) ||
      !device_argument(object, &device)) {
    return nullptr;
  }
  HeldEvent* held = event_of(capsule);
  if (held == nullptr) return nullptr;
  if (held->type != number(device)) {
    return PyErr_Format(PyExc_RuntimeError, "Event: expected a stream of %s, got one of %s",
                        lamella_device_type_name(held->type, 1), device_type_name(device.type()));
  }
  return none_or_error(call(held->type, held->event, device.index(), stream));
}
PyObject* record_event(PyObject*, PyObject* args) { return on_stream(args, &lamella_event_record); }
PyObject* wait_event(PyObject*, PyObject* args) { return on_stream(args, &lamella_event_wait); }
PyObject* query_event(PyObject*, PyObject* capsule) {
  HeldEvent* held = event_of(capsule);
  if (held == nullptr) return nullptr;
  int32_t done = 0;
  lamella_status status = lamella_event_query(held->type, held->event, &done);
  return status == LAMELLA_OK ? PyBool_FromLong(done) : raise_status(status);
}
PyObject* synchronize_event(PyObject*, PyObject* capsule) {
  HeldEvent* held = event_of(capsule);
  if (held == nullptr) return nullptr;
  return none_or_error(waiting([&] { return lamella_event_synchronize(held->type, held->event); }));
}
PyObject* elapsed_time(PyObject*, PyObject* args) {
  PyObject *first, *second;
  if (!PyArg_ParseTuple(args, "OO", &first, &second)) return nullptr;
  HeldEvent *start = event_of(first), *end = event_of(second);
  if (start == nullptr || end == nullptr) return nullptr;
  double milliseconds = 0;
  lamella_status status =
      lamella_event_elapsed(start->type, start->event, end->event, &milliseconds);
  return status == LAMELLA_OK ? PyFloat_FromDouble(milliseconds) : raise_status(status);
}

PyMethodDef functions[] = {{"_rename_device_type", rename_device_type, METH_VARARGS, nullptr},
                           {"_backend_names", backend_names, METH_NOARGS, nullptr},
                           {"_operators_without_kernel", operators_without_kernel, METH_O, nullptr},
                           {"_has_backend", has_backend, METH_O, nullptr},
                           {"_device_count", device_count, METH_O, nullptr},
                           {"_current_device", current_device, METH_O, nullptr},
                           {"_exchange_device", exchange_device, METH_O, nullptr},
                           {"_synchronize_device", synchronize_device, METH_O, nullptr},
                           {"_device_generator", device_generator, METH_O, nullptr},
                           {"_current_stream", current_stream, METH_O, nullptr},
                           {"_exchange_stream", exchange_stream, METH_VARARGS, nullptr},
                           {"_make_stream", make_stream, METH_VARARGS, nullptr},
                           {"_query_stream", query_stream, METH_VARARGS, nullptr},
                           {"_synchronize_stream", synchronize_stream, METH_VARARGS, nullptr},
                           {"_make_event", make_event, METH_VARARGS, nullptr},
                           {"_record_event", record_event, METH_VARARGS, nullptr},
                           {"_wait_event", wait_event, METH_VARARGS, nullptr},
                           {"_query_event", query_event, METH_O, nullptr},
                           {"_synchronize_event", synchronize_event, METH_O, nullptr},
                           {"_elapsed_time", elapsed_time, METH_VARARGS, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_backend(PyObject* module) {
  // Where NVIDIA's Python packages may be.
  std::string folders;
  PyObject* path = PySys_GetObject("path");
  for (Py_ssize_t i = 0; path != nullptr && PyList_Check(path) && i < PyList_GET_SIZE(path); ++i) {
    PyObject* folder = PyList_GET_ITEM(path, i);
    const char* text = PyUnicode_Check(folder) ? PyUnicode_AsUTF8(folder) : nullptr;
    if (text != nullptr) folders += std::string(folders.empty() ? "" : ":") + text;
    PyErr_Clear();
  }
  set_package_folders(folders);
  return PyModule_AddFunctions(module, functions);
}

}  // namespace lamella::python
