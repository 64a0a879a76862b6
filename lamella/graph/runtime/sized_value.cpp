// Values with fewer elements than the bounds of their shape's dynamic dimensions state.
#include "lamella/graph/runtime/sized_value.h"

#include <cstring>
#include <memory>
#include <vector>

#include "lamella/graph/hlo/native_type.h"

namespace lamella::hlo {
namespace {

// Copies the elements at all indices below `sizes` between two dense arrays.
void copy_block(const Value& from, const Value& to, std::span<const int64_t> sizes) {
  auto element = static_cast<size_t>(element_bytes(from.shape().element_type()));
  const auto* source = static_cast<const std::byte*>(from.data());
  auto* target = static_cast<std::byte*>(to.data());
  auto copy = [&](auto& self, size_t d, size_t source_at, size_t target_at) -> void {
    if (d == sizes.size()) {
      std::memcpy(target + target_at * element, source + source_at * element, element);
      return;
    }
    auto size = static_cast<size_t>(sizes[d]);
    source_at *= static_cast<size_t>(from.shape().dimensions()[d]);
    target_at *= static_cast<size_t>(to.shape().dimensions()[d]);
    if (d + 1 == sizes.size()) {
      if (size != 0) {
        std::memcpy(target + target_at * element, source + source_at * element, size * element);
      }
      return;
    }
    for (size_t n = 0; n < size; ++n) self(self, d + 1, source_at + n, target_at + n);
  };
  copy(copy, 0, 0, 0);
}

}  // namespace

bool has_dynamic_sizes(const Module& module) {
  for (const Computation* computation : module.computations) {
    for (const Instruction* i : computation->instructions) {
      if (!i->shape->is_static() || i->opcode == Opcode::SetDimensionSize ||
          i->opcode == Opcode::DynamicReshape) {
        return true;
      }
    }
  }
  return false;
}

bool is_within(const Shape& bound, std::span<const int64_t> sizes) {
  if (!bound.is_array() || bound.rank() != static_cast<int64_t>(sizes.size())) return false;
  for (int64_t d = 0; d < bound.rank(); ++d) {
    int64_t size = sizes[static_cast<size_t>(d)], most = bound.dimension(d);
    if (size != most && !(bound.is_dynamic(d) && size >= 0 && size < most)) return false;
  }
  return true;
}

bool is_sized(const Value& value) {
  return value.shape().is_array() && value.bytes() > static_cast<size_t>(value.shape().bytes());
}
bool has_sizes(const Value& value) {
  if (value.shape().is_array()) return is_sized(value);
  for (size_t e = 0; e < value.size(); ++e) {
    if (has_sizes(value.element(e))) return true;
  }
  return false;
}
std::vector<int64_t> sizes_of(const Value& value) {
  std::span<const int64_t> bounds = value.shape().dimensions();
  std::vector<int64_t> sizes(bounds.begin(), bounds.end());
  if (is_sized(value)) {
    std::memcpy(sizes.data(),
                static_cast<std::byte*>(value.data()) + static_cast<size_t>(value.shape().bytes()),
                sizes.size() * sizeof(int64_t));
  }
  return sizes;
}
Value without_sizes(const Value& value) {
  if (!is_sized(value)) return value;
  void* data = value.data();
  const Shape* shape = value.shape_pointer();
  return Value::view(shape, data, Value::drop, Value(value).unsafe_release());
}
Value with_sizes(const Shape* bound, const Value& whole, std::span<const int64_t> sizes) {
  auto bytes = static_cast<size_t>(bound->bytes());
  Value value = Value::uninitialized(bound, bytes + sizes.size() * sizeof(int64_t));
  if (bytes != 0) std::memcpy(value.data(), whole.data(), bytes);
  std::memcpy(static_cast<std::byte*>(value.data()) + bytes, sizes.data(),
              sizes.size() * sizeof(int64_t));
  return value;
}

Value with_own_shape(Shape shape, Value value) {
  struct Held {
    Shape shape;
    Value value;
  };
  auto held = std::make_unique<Held>(Held{std::move(shape), std::move(value)});
  bool ours = held->value.unique();
  void* data = held->value.data();
  const Shape* own = &held->shape;
  return Value::view(
      own, data, [](void* context) { delete static_cast<Held*>(context); }, held.release(), ours);
}
Value cut_to(const Value& value, std::span<const int64_t> sizes) {
  Shape shape = Shape::array(value.shape().element_type(), {sizes.begin(), sizes.end()});
  Value cut = Value::uninitialized(&shape);
  copy_block(value, cut, sizes);
  return with_own_shape(std::move(shape), std::move(cut));
}
Value grown_to(const Shape* bound, const Value& value) {
  Value grown = Value::zeros(bound);
  copy_block(value, grown, value.shape().dimensions());
  return grown;
}

Value packed(const Value& value) {
  if (value.shape().is_array()) return is_sized(value) ? cut_to(value, sizes_of(value)) : value;
  if (!value.shape().is_tuple()) return value;
  std::vector<Value> parts;
  for (size_t e = 0; e < value.size(); ++e) parts.push_back(packed(value.element(e)));
  return Value::tuple(value.shape_pointer(), parts);
}
Value unpacked(const Shape* bound, const Value& argument) {
  if (bound->is_tuple()) {
    std::vector<Value> parts;
    for (size_t e = 0; e < argument.size(); ++e) {
      parts.push_back(unpacked(&bound->tuple_shapes()[e], argument.element(e)));
    }
    return Value::tuple(bound, parts);
  }
  if (!bound->is_array() || bound->same_dimensions(argument.shape())) return argument;
  return with_sizes(bound, grown_to(bound, argument), argument.shape().dimensions());
}

}  // namespace lamella::hlo
