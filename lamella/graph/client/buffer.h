// ShapedBuffer: a value that is kept between runs of programs (names are XLA's).
#pragma once
#include <memory>

#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

class ShapedBuffer {
 public:
  ShapedBuffer() = default;
  // Copies the literal.
  explicit ShapedBuffer(const Literal& literal);
  // The result of a program. Shared parts are copied, so that the buffer keeps alive only its own
  // memory and the program's shapes, through `shapes`.
  ShapedBuffer(Value value, const Shape* shape, std::shared_ptr<const void> shapes);

  const Shape& on_host_shape() const { return value_.shape(); }
  const Shape& on_device_shape() const { return value_.shape(); }
  int device_ordinal() const { return 0; }
  const Value& value() const { return value_; }
  // The buffer of an element of nested tuples. It shares the memory of this buffer.
  ShapedBuffer SubShapedBuffer(std::span<const int64_t> index) const;
  Literal to_literal() const { return value_.to_literal(); }

 private:
  std::shared_ptr<const void> shapes_;  // owns the value's shape, so it must be destroyed later
  Value value_;
};

// All buffers are reference counted, so a scoped buffer is the same type.
using ScopedShapedBuffer = ShapedBuffer;

}  // namespace lamella::hlo
