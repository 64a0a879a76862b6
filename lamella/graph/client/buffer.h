// ShapedBuffer: a value between runs of programs (names are XLA's).
#pragma once
#include <memory>

#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

class ShapedBuffer {
 public:
  ShapedBuffer() = default;
  // A copy of the literal.
  explicit ShapedBuffer(const Literal& literal);
  // What a program gave. Parts that somebody else can see are copied, so that the buffer holds on
  // to nothing but its memory and the program's shapes, which `shapes` keeps.
  ShapedBuffer(Value value, const Shape* shape, std::shared_ptr<const void> shapes);

  const Shape& on_host_shape() const { return value_.shape(); }
  const Shape& on_device_shape() const { return value_.shape(); }
  int device_ordinal() const { return 0; }
  const Value& value() const { return value_; }
  // The buffer of a part of nested tuples, which shares its memory.
  ShapedBuffer SubShapedBuffer(std::span<const int64_t> index) const;
  Literal to_literal() const { return value_.to_literal(); }

 private:
  std::shared_ptr<const void> shapes_;  // goes after the value, whose shape it holds
  Value value_;
};

// Memory goes with the last buffer of it in any case.
using ScopedShapedBuffer = ShapedBuffer;

}  // namespace lamella::hlo
