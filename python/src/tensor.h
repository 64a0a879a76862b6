// Shared declarations of the parts of the Tensor type.
#pragma once
#include "python/src/packet.h"

namespace lamella::python {

// An operator behind a slot of the type, looked up at its first use.
struct SlotOperator {
  const char* qualified;
  // The name that __torch_function__ sees, if not the name after "aten::".
  const char* asked_as = nullptr;
  std::atomic<PyPacket*> packet{nullptr};
  // NULL without an error if there is no such operator.
  const ProgramTable* table();
};

// Fill in their part of TensorType before it is made ready.
void fill_number_slots(PyTypeObject* type);
void fill_buffer_slots(PyTypeObject* type);
extern PyMethodDef tensor_methods[];
extern PyGetSetDef tensor_getset[];

// tensor[key] and tensor[key] = value.
PyObject* tensor_subscript(PyObject* self, PyObject* key);
int tensor_assign(PyObject* self, PyObject* key, PyObject* value);

// The elements as nested lists; a number for a tensor without dimensions.
PyObject* tensor_to_list(PyObject* self);
// The one element as a Python number.
PyObject* tensor_item(lamella_tensor* tensor);
// Itself, or a copy, so that its elements can be read from memory: on the CPU, nothing lazy.
TensorBase readable(lamella_tensor* tensor);
// A tensor of Python data: numbers, nested sequences, arrays, tensors. dtype Undefined: inferred.
TensorBase tensor_from_data(PyObject* data, ScalarType dtype, bool copy);
// A tensor over the memory of an object with the buffer protocol; undefined without an error if it
// has none. Read-only memory is copied, unless the tensor is `only_read`, and so are unaligned
// elements; `copied`, if given, is set to the reason, or to NULL.
TensorBase tensor_from_buffer(PyObject* object, bool only_read, const char** copied = nullptr);
// Opens a writable buffer of `kind` (PyBUF_*), else a read-only one. 0: there is none; -1: a Python
// error is set.
int open_buffer(PyObject* object, int kind, Py_buffer* view, bool* read_only);
// Whether elements may be read and written there.
bool is_aligned(const void* data, ScalarType type);
// Releases and deletes a Py_buffer made by `new`, with or without the GIL held.
void release_view(void* view);

}  // namespace lamella::python
