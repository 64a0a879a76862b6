// Conversions between values and tensors that share memory.
#include "lamella/graph/custom_call/operator_tensors.h"

#include <algorithm>

#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/core/tensor_impl.h"

namespace lamella::hlo {
namespace {

// True if this is the only reference to the tensor and to its memory, which may be written and came
// from an allocator.
bool alone(const lamella_tensor* tensor) {
  auto* pair = reinterpret_cast<const lamella::detail::reference_pair*>(tensor);
  if (__atomic_load_n(pair, __ATOMIC_ACQUIRE) != lamella::detail::kSoleReference) return false;
  const Storage* storage = tensor->storage;
  return static_cast<const TensorImpl*>(tensor)->base == nullptr && tensor->storage_offset == 0 &&
         (storage->flags & (kStorageReadOnly | kStorageForeign)) == 0 &&
         __atomic_load_n(&storage->references, __ATOMIC_ACQUIRE) == 1;
}

}  // namespace

TensorBase tensor_of(Value value) {
  const Shape& shape = value.shape();
  std::optional<ScalarType> type = scalar_type_of(shape.element_type());
  LAMELLA_CHECK_TYPE(shape.is_array() && type.has_value(),
                     "hlo: expected an array of an element type that tensors have, got ",
                     shape.to_string(false));
  return tensor_of(std::move(value), *type);
}

TensorBase tensor_of(Value value, ScalarType type, bool begins_storage) {
  std::span<const int64_t> sizes = value.shape().dimensions();
  void* data = value.data();
  lamella_tensor* given = value.tensor();
  if (given != nullptr && given->data == data && !(begins_storage && given->storage_offset != 0)) {
    // An alias shares the data cached with the storage, such as the packed form of a weight.
    TensorBase tensor = TensorBase::borrow(given);
    if (tensor.scalar_type() == type && std::ranges::equal(sizes, tensor.sizes())) {
      return make_detached(tensor);
    }
  }
  lamella_tensor* made = nullptr;
  lamella::detail::check(lamella_tensor_from_blob(
      data, static_cast<int32_t>(sizes.size()), sizes.data(), nullptr, static_cast<uint8_t>(type),
      static_cast<uint8_t>(DeviceType::CPU), -1, [](void* held) { Value::drop(held); },
      value.unsafe_release(), &made));
  return TensorBase::adopt(made);
}

KnownShape::KnownShape(const Shape& shape)
    : type_(static_cast<uint8_t>(
          scalar_type_of(shape.element_type()).value_or(ScalarType::Undefined))),
      ndim_(static_cast<int32_t>(shape.rank())),
      sizes_(shape.dimensions().data()),
      bytes_(static_cast<size_t>(shape.bytes())) {}

Value KnownShape::take(const Shape* shape, lamella_tensor* tensor) const {
  return Value::of_tensor(shape, tensor, bytes_, alone(tensor));
}

Value value_of(TensorBase tensor, const Shape* shape) {
  LAMELLA_CHECK(tensor.is_cpu(), "hlo: expected a tensor on the CPU, got one on ",
                tensor.device().str());
  constexpr uint32_t lazy = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG;
  if ((tensor.impl()->flags & lazy) != 0) {
    tensor = Tensor(std::move(tensor)).resolve_conj().resolve_neg();
  }
  if (!tensor.is_contiguous()) tensor = Tensor(std::move(tensor)).contiguous();
  LAMELLA_INTERNAL_ASSERT(has_shape(tensor, *shape), "hlo: expected ", shape->to_string(false),
                          ", got ", shape_text(tensor));
  bool ours = alone(tensor.impl());
  auto bytes = static_cast<size_t>(shape->bytes());
  return Value::of_tensor(shape, tensor.unsafe_release(), bytes, ours);
}

bool has_shape(const TensorBase& tensor, const Shape& shape) {
  if (!shape.is_array() || scalar_type_of(shape.element_type()) != tensor.scalar_type()) {
    return false;
  }
  IntArrayRef sizes = tensor.sizes();
  return std::ranges::equal(shape.dimensions(), std::span(sizes.data(), sizes.size()));
}

std::string shape_text(const TensorBase& tensor) {
  ElementType type = element_type_of(tensor.scalar_type());
  std::string text = type != ElementType::Invalid ? std::string(element_name(type))
                                                  : std::string(dtype_name(tensor.scalar_type()));
  text += '[';
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (d != 0) text += ',';
    text += std::to_string(tensor.size(d));
  }
  return text + ']';
}

}  // namespace lamella::hlo
