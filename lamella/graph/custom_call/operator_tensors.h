// Values as tensors and tensors as values, over the same memory where that can be.
#pragma once
#include "lamella/core/tensor_base.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// A row-major tensor on the CPU over the value's memory, which it keeps. The value must be an array
// of an element type that tensors have; TypeError otherwise. Who writes the tensor must have made
// the value writable.
TensorBase tensor_of(Value value);

// The tensor's elements as a value of `shape`, whose sizes and element type must be the tensor's.
// Over the tensor's memory if it lies on the CPU row by row, else over a copy. Where nobody else
// can reach that memory the value may be written. Throws an Error for tensors that are not on the
// CPU.
Value value_of(TensorBase tensor, const Shape* shape);

// The same for values whose tensors' type is known.
TensorBase tensor_of(Value value, ScalarType type);

// The shape of an array that tensors are compared with again and again.
class KnownShape {
 public:
  explicit KnownShape(const Shape& shape);
  // Whether the tensor has this type and these sizes and lies on the CPU row by row.
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
  // The value of a tensor that fits, whose reference it takes.
  Value take(const Shape* shape, lamella_tensor* tensor) const;

 private:
  uint8_t type_;  // none that a tensor has, if tensors have none
  int32_t ndim_;
  const int64_t* sizes_;
  size_t bytes_;
};

// Whether a tensor has the array's sizes and element type.
bool has_shape(const TensorBase& tensor, const Shape& shape);
// "f32[2,3]"; of an element type that modules have not, the tensor's own: "complex32[2,3]".
std::string shape_text(const TensorBase& tensor);

}  // namespace lamella::hlo
