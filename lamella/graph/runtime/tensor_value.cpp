// Conversions between tensors and values.
#include "lamella/graph/runtime/tensor_value.h"

#include <algorithm>

#include "lamella/api/ops/contiguous.h"
#include "lamella/api/ops/resolve_conj.h"
#include "lamella/api/ops/resolve_neg.h"
#include "lamella/api/ops/to.h"
#include "lamella/api/tensor.h"
#include "lamella/graph/runtime/sized_value.h"

namespace lamella::hlo {
namespace {

constexpr uintptr_t kAlignment = 16;

// Truncates each byte to the bits of the element type; signed types are sign-extended.
Value cut_to_bits(const Shape* shape, const TensorBase& tensor) {
  Value value = Value::uninitialized(shape);
  int spare = 8 - element_bits(shape->element_type());
  bool is_signed = element_kind(shape->element_type()) == ElementKind::Signed;
  const auto* from = static_cast<const uint8_t*>(tensor.const_data_ptr());
  std::span<uint8_t> to = value.values<uint8_t>();
  for (size_t i = 0; i < to.size(); ++i) {
    auto high = static_cast<uint8_t>(from[i] << spare);
    to[i] = is_signed ? static_cast<uint8_t>(static_cast<int8_t>(high) >> spare)
                      : static_cast<uint8_t>(high >> spare);
  }
  return value;
}

void collect(Value value, std::vector<Value>* arrays) {
  if (!value.shape().is_tuple()) {
    if (value.shape().is_array()) arrays->push_back(std::move(value));
    return;
  }
  for (size_t i = 0; i < value.size(); ++i) collect(value.element(i), arrays);
}

TensorBase tensor_of_array(Value value) {
  const Shape& shape = value.shape();
  Value owner = value.unique() ? Value() : value;  // keeps a shape that the value owns
  // Shared memory is copied, because a tensor may be written.
  auto* held = new Value(Value::writable(std::move(value)));
  std::span<const int64_t> sizes = shape.dimensions();
  lamella_tensor* made = nullptr;
  detail::check(lamella_tensor_from_blob(
      held->data(), static_cast<int32_t>(sizes.size()), sizes.data(), nullptr,
      static_cast<uint8_t>(tensor_type_of(shape.element_type())), 0, -1,
      [](void* context) { delete static_cast<Value*>(context); }, held, &made));
  return TensorBase::adopt(made);
}

}  // namespace

ScalarType tensor_type_of(ElementType type) {
  if (std::optional<ScalarType> same = scalar_type_of(type)) return *same;
  return element_kind(type) == ElementKind::Signed ? ScalarType::Char : ScalarType::Byte;
}

Value value_of_tensor(const Shape* shape, const TensorBase& given) {
  ScalarType type = tensor_type_of(shape->element_type());
  std::span<const int64_t> sizes = shape->dimensions();
  std::span<const int64_t> have(given.sizes().data(), given.sizes().size());
  bool fits = given.scalar_type() == type && is_within(*shape, have);
  LAMELLA_CHECK(fits, "hlo: expected a tensor of ", type, " ",
                IntArrayRef(sizes.data(), sizes.size()), " for ", shape->to_string(false),
                ", got one of ", given.scalar_type(), " ", given.sizes());
  if (!std::ranges::equal(have, sizes)) {
    Shape exact = Shape::array(shape->element_type(), {have.begin(), have.end()});
    Value value = value_of_tensor(&exact, given);
    return with_own_shape(std::move(exact), std::move(value));
  }
  Tensor tensor(given);
  if (!tensor.is_cpu()) tensor = tensor.to(kCPU);
  if (tensor.is_conj()) tensor = tensor.resolve_conj();
  if (tensor.is_neg()) tensor = tensor.resolve_neg();
  if (!tensor.is_contiguous()) tensor = tensor.contiguous();
  if (element_bits(shape->element_type()) < 8) return cut_to_bits(shape, tensor);
  if (reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kAlignment != 0) {
    Value copy = Value::uninitialized(shape);
    if (copy.bytes() != 0) std::memcpy(copy.data(), tensor.const_data_ptr(), copy.bytes());
    return copy;
  }
  auto bytes = static_cast<size_t>(shape->bytes());
  return Value::of_tensor(shape, tensor.unsafe_release(), bytes);
}

std::vector<TensorBase> tensors_of_value(Value value) {
  std::vector<Value> arrays;
  collect(std::move(value), &arrays);
  std::vector<TensorBase> tensors;
  tensors.reserve(arrays.size());
  for (Value& array : arrays) tensors.push_back(tensor_of_array(std::move(array)));
  return tensors;
}

std::vector<const Shape*> array_leaves(const Shape& shape) {
  std::vector<const Shape*> leaves;
  auto walk = [&](auto& self, const Shape& one) -> void {
    if (one.is_array()) leaves.push_back(&one);
    for (const Shape& element : one.tuple_shapes()) self(self, element);
  };
  walk(walk, shape);
  return leaves;
}

Value value_of_leaves(const Shape* shape, std::span<Value> leaves, size_t* next) {
  if (shape->is_array()) return std::move(leaves[(*next)++]);
  if (!shape->is_tuple()) return Value::token(shape);
  std::vector<Value> elements;
  for (const Shape& element : shape->tuple_shapes()) {
    elements.push_back(value_of_leaves(&element, leaves, next));
  }
  return Value::tuple(shape, elements);
}

}  // namespace lamella::hlo
