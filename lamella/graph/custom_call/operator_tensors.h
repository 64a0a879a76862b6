// Conversions between values and tensors, over the same memory where possible.
#pragma once
#include "lamella/core/tensor_base.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// A contiguous CPU tensor over the value's memory, which it keeps alive. Throws a TypeError unless
// the value is an array of an element type that tensors have. Callers that write the tensor must
// make the value writable first.
TensorBase tensor_of(Value value);

// The tensor's elements as a value of `shape`, whose sizes and element type must be the tensor's.
// The value views the tensor's memory if the tensor is contiguous, otherwise a copy. It may be
// written if no other reference to the memory exists. Throws an Error for tensors that are not on
// the CPU.
Value value_of(TensorBase tensor, const Shape* shape);

// The same for callers that know the scalar type. begins_storage: the tensor's first element is the
// first one of its storage, as operators with a `storage_offset` count.
TensorBase tensor_of(Value value, ScalarType type, bool begins_storage = false);

// The shape of an array in a form that makes repeated comparisons with tensors fast.
class KnownShape {
 public:
  explicit KnownShape(const Shape& shape);
  // True if the tensor has this type and these sizes, and is contiguous and on the CPU.
  bool fits(const lamella_tensor* tensor) const {
    constexpr uint32_t lazy = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG;
    if (tensor->scalar_type != type_ || tensor->ndim != ndim_ ||
        tensor->device_type != static_cast<uint8_t>(DeviceType::CPU) ||
        (tensor->flags & (LAMELLA_TENSOR_CONTIGUOUS | lazy)) != LAMELLA_TENSOR_CONTIGUOUS) {
      return false;
    }
    for (int32_t d = 0; d < ndim_; ++d) {
      if (tensor->sizes[d] != sizes_[d]) return false;
    }
    return true;
  }
  bool has_type(const lamella_tensor* tensor) const { return tensor->scalar_type == type_; }
  // The value of a tensor that fits; takes over the reference.
  Value take(const Shape* shape, lamella_tensor* tensor) const;

 private:
  uint8_t type_;  // an invalid number if tensors lack the element type
  int32_t ndim_;
  const int64_t* sizes_;
  size_t bytes_;
};

// True if the tensor has the array's sizes and element type.
bool has_shape(const TensorBase& tensor, const Shape& shape);
// "f32[2,3]", or with the tensor's own type name if modules lack the type: "complex32[2,3]".
std::string shape_text(const TensorBase& tensor);

}  // namespace lamella::hlo
