// Arrays of Python's packages as tensors of Lamella over the same memory, and back, by DLPack: by
// its C functions where their type has them (DLPack 1.3), else by capsules.
#pragma once
#include "lamella/abi/python.h"
#include "lamella/bridge/chain.h"
#include "lamella/bridge/python.h"
#include "lamella/core/dlpack_structs.h"

namespace lamella::bridge {

// DLPack's table of C functions.
struct ExchangeTable {
  uint32_t major_version, minor_version;
  const ExchangeTable* earlier;
  void* allocate;
  int (*from_object)(void* object, DLManagedTensorVersioned** out);
  int (*to_object)(DLManagedTensorVersioned* tensor, void** out);
  int (*borrow)(void* object, DLTensor* out);
  void* stream;
};

// How the arrays of one type are exchanged.
struct ArrayKind {
  enum class How : uint8_t { kNone, kLamella, kExchange, kCapsule };
  PyObject* type = nullptr;  // kept
  How how = How::kNone;
  bool is_torch = false;
  const ExchangeTable* table = nullptr;
  PyObject* make = nullptr;  // kCapsule: an array of an object with __dlpack__
};
// NULL: the object is no array.
const ArrayKind* array_kind(PyObject* object);
// with_gradients: a tensor of PyTorch may require a gradient.
OwnedTensor tensor_of(const ArrayKind& kind, PyObject* array, bool* is_read_only,
                      bool with_gradients = false);
// A new array over the tensor's memory.
Ref array_of(const ArrayKind& kind, OwnedTensor tensor, bool is_read_only);

// The table of lamella._C, NULL where the package has none.
const lamella_python_table* lamella_module();
// In torch_autograd.cpp, where PyTorch has what they need. The tensor in an object of PyTorch that
// DLPack could give as it is, borrowed; NULL: it could not, or it is not known.
void* plain_torch_handle(PyObject* object, bool with_gradients);
// The object of a tensor of PyTorch, whose handle it takes over; false: no such function.
bool can_wrap_torch();
Ref wrap_torch(void* handle);

// Set while this thread holds the GIL for sure.
inline thread_local bool has_gil = false;
struct HasGil {
  bool before = std::exchange(has_gil, true);
  ~HasGil() { has_gil = before; }
};

}  // namespace lamella::bridge
