// The extension's own objects: tensors, dtypes, devices, layouts, memory formats and generators as
// Python sees them.
//
// Note [Ownership of tensors and their objects]
//   A Tensor object holds one strong reference to its lamella_tensor; the tensor's `python_object`
//   points back without owning, and is cleared when the object dies. So an operator that returns
//   one of its arguments returns the very object, and a tensor that only C++ still holds gets a
//   new object the next time it is seen. Objects of the exact type are recycled per thread.
//   An instance of a class with a __torch_dispatch__, or with attributes of its own, cannot be
//   recreated from its tensor: when Python's last reference goes while C++ holds the tensor, the
//   tensor owns the object (`kept`) until Python sees it again.
#pragma once
#include "lamella/core/device.h"
#include "lamella/core/generator.h"
#include "lamella/core/layout.h"
#include "lamella/core/memory_format.h"
#include "lamella/core/scalar_type.h"
#include "lamella/core/tensor_base.h"
#include "python/src/kit.h"

namespace lamella::python {

struct PyTensor {
  PyObject_HEAD lamella_tensor* tensor;
  PyObject* weak_references;
  PyObject* dict;  // attributes that a program set; NULL before the first one
  bool tracked;    // by the collector
  bool kept;       // owned by its tensor, to which it then holds no reference
};
extern PyTypeObject TensorType;

struct PyDtype {
  PyObject_HEAD ScalarType type;
};
extern PyTypeObject DtypeType;

struct PyDevice {
  PyObject_HEAD Device device;
};
extern PyTypeObject DeviceType_;

struct PyLayout {
  PyObject_HEAD Layout layout;
};
extern PyTypeObject LayoutType;

struct PyMemoryFormat {
  PyObject_HEAD MemoryFormat format;
};
extern PyTypeObject MemoryFormatType;

struct PyGenerator {
  PyObject_HEAD lamella_object* generator;
};
extern PyTypeObject GeneratorType;

extern PyTypeObject SizeType;  // a tuple of int

// ---- The GIL (gil.cpp) ----

// Whether some thread runs without the GIL: it may change the reference counts of tensors.
bool others_may_run();

inline bool is_exact_tensor(PyObject* object) { return Py_TYPE(object) == &TensorType; }
inline bool is_tensor(PyObject* object) {
  return is_exact_tensor(object) || PyType_IsSubtype(Py_TYPE(object), &TensorType);
}
// Borrowed.
inline lamella_tensor* tensor_of(PyObject* object) {
  return reinterpret_cast<PyTensor*>(object)->tensor;
}
inline TensorBase tensor_ref(PyObject* object) { return TensorBase::borrow(tensor_of(object)); }

// The object of a tensor. Takes over one reference; an undefined tensor is None.
PyObject* wrap(lamella_tensor* owned);
inline PyObject* wrap(TensorBase tensor) { return wrap(tensor.unsafe_release()); }
// An object of `type`, Tensor or a subclass, for a tensor that has no object yet (else for an alias
// of it).
PyObject* wrap_as(PyTypeObject* type, lamella_tensor* owned);

// New references; dtype, layout and memory_format objects exist once.
PyObject* dtype_object(ScalarType type);
// The prefix of values in texts: "lamella", or "torch" after lamella.compat.install().
const char* package_name();
PyObject* device_object(Device device);
PyObject* layout_object(Layout layout);
PyObject* memory_format_object(MemoryFormat format);
// Takes over one reference.
PyObject* generator_object(lamella_object* owned);
PyObject* size_object(const int64_t* sizes, Py_ssize_t count);

// Reads a `dtype=`: a dtype, bool, int, float, complex, or NumPy's dtypes and scalar types.
bool dtype_from_object(PyObject* object, ScalarType* type);
// Reads a `device=`: a device, its text, or an index (of CUDA, as in PyTorch). 1: done; 0: the
// object is something else; -1: a Python error is set.
int device_from_object(PyObject* object, Device* device);

// The dtype of floating-point factories.
ScalarType default_dtype();
void change_default_dtype(ScalarType type);

// Readies a static type and puts it into the module under its name, "lamella.NAME"; -1 with a
// Python error set if that fails. In values.cpp.
int add_type(PyObject* module, PyTypeObject* type, const char* name, size_t size);

// Whether a class has a __torch_dispatch__ that handles the calls of its instances.
bool has_dispatch(PyTypeObject* type);
// Puts the kernel of the key Python in place, once; false with a Python error set if that fails.
bool ensure_python_key();

}  // namespace lamella::python
