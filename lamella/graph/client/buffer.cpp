// Buffers that hold values between runs.
#include "lamella/graph/client/buffer.h"

#include <vector>

#include "lamella/core/error.h"

namespace lamella::hlo {
namespace {

// The value with the given shape object, in memory that no other value shares.
Value own(Value value, const Shape* shape) {
  if (shape->is_tuple()) {
    std::vector<Value> parts;
    for (size_t i = 0; i < value.size(); ++i) parts.push_back(value.element(i));
    value = Value();
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i] = own(std::move(parts[i]), &shape->tuple_shapes()[i]);
    }
    return Value::tuple(shape, parts);
  }
  if (!shape->is_array()) return Value::token(shape);
  return Value::reshaped(Value::writable(std::move(value)), shape);
}

}  // namespace

ShapedBuffer::ShapedBuffer(const Literal& literal) {
  auto kept = std::make_shared<Literal>(literal.clone());
  value_ = Value::of_literal(&kept->shape(), *kept);
  shapes_ = std::move(kept);
}
ShapedBuffer::ShapedBuffer(Value value, const Shape* shape, std::shared_ptr<const void> shapes)
    : shapes_(std::move(shapes)), value_(own(std::move(value), shape)) {}

ShapedBuffer ShapedBuffer::SubShapedBuffer(std::span<const int64_t> index) const {
  ShapedBuffer part;
  part.shapes_ = shapes_;
  part.value_ = value_;
  for (int64_t n : index) {
    bool good =
        part.value_.shape().is_tuple() && n >= 0 && static_cast<size_t>(n) < part.value_.size();
    LAMELLA_CHECK(good, "SubShapedBuffer: expected a part of ", on_host_shape().to_string(false),
                  ", got ", braced(index));
    part.value_ = Value(part.value_.element(static_cast<size_t>(n)));
  }
  return part;
}

}  // namespace lamella::hlo
