// The table of functions of lamella._C for extension modules outside of the package:
// lamella/abi/python.h.
#include "lamella/abi/python.h"

#include <cstring>

#include "python/src/errors.h"

namespace lamella::python {
namespace {

PyObject* wrap_tensor(lamella_tensor* owned) { return wrap(owned); }
int read_tensor(PyObject* object, lamella_tensor** tensor) {
  if (!is_tensor(object)) return 0;
  *tensor = tensor_of(object);
  return 1;
}
PyObject* wrap_dtype(uint8_t type) { return dtype_object(static_cast<ScalarType>(type)); }
int read_dtype(PyObject* object, uint8_t* type) {
  if (!PyObject_TypeCheck(object, &DtypeType)) return 0;
  *type = static_cast<uint8_t>(reinterpret_cast<PyDtype*>(object)->type);
  return 1;
}
PyObject* wrap_device(uint8_t type, int8_t index) {
  return device_object(Device(static_cast<DeviceType>(type), index));
}
int read_device(PyObject* object, uint8_t* type, int8_t* index) {
  Device device(kCPU);
  int found = device_from_object(object, &device);
  if (found < 0) PyErr_Clear();
  if (found <= 0) return 0;
  *type = static_cast<uint8_t>(device.type());
  *index = device.index();
  return 1;
}
PyObject* wrap_layout(uint8_t layout) { return layout_object(static_cast<Layout>(layout)); }
int read_layout(PyObject* object, uint8_t* layout) {
  if (!PyObject_TypeCheck(object, &LayoutType)) return 0;
  *layout = static_cast<uint8_t>(reinterpret_cast<PyLayout*>(object)->layout);
  return 1;
}
PyObject* wrap_memory_format(uint8_t format) {
  return memory_format_object(static_cast<MemoryFormat>(format));
}
int read_memory_format(PyObject* object, uint8_t* format) {
  if (!PyObject_TypeCheck(object, &MemoryFormatType)) return 0;
  *format = static_cast<uint8_t>(reinterpret_cast<PyMemoryFormat*>(object)->format);
  return 1;
}
PyObject* wrap_generator(lamella_object* owned) { return generator_object(owned); }
int read_generator(PyObject* object, lamella_object** generator) {
  if (!PyObject_TypeCheck(object, &GeneratorType)) return 0;
  *generator = reinterpret_cast<PyGenerator*>(object)->generator;
  return 1;
}
PyObject* raise(lamella_status status, const char* text) {
  lamella_fail(status, text, std::strlen(text));
  return raise_status(status);
}

lamella_python_table table = {.size = sizeof(lamella_python_table),
                              .wrap_tensor = wrap_tensor,
                              .read_tensor = read_tensor,
                              .wrap_dtype = wrap_dtype,
                              .read_dtype = read_dtype,
                              .wrap_device = wrap_device,
                              .read_device = read_device,
                              .wrap_layout = wrap_layout,
                              .read_layout = read_layout,
                              .wrap_memory_format = wrap_memory_format,
                              .read_memory_format = read_memory_format,
                              .wrap_generator = wrap_generator,
                              .read_generator = read_generator,
                              .raise = raise};

}  // namespace

int add_extension_table(PyObject* module) {
  PyObject* capsule = PyCapsule_New(&table, LAMELLA_PYTHON_TABLE_NAME, nullptr);
  return capsule == nullptr ? -1 : PyModule_AddObject(module, "_extension_table", capsule);
}

}  // namespace lamella::python
