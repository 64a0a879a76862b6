// Values: making, sharing and destroying their cells.
#include "lamella/graph/runtime/value.h"

#include <cstring>
#include <new>
#include <vector>

#include "lamella/core/allocator.h"
#include "lamella/core/error.h"
#include "lamella/core/tensor_base.h"

namespace lamella::hlo {

Value::Cell* Value::make(const Shape* shape, size_t behind) {
  size_t block = sizeof(Cell) + behind;
  auto* cell = new (cpu_allocate(block)) Cell;
  cell->block = block;
  cell->shape = shape;
  return cell;
}

void Value::release_tensor(void* tensor) {
  TensorBase::adopt(static_cast<lamella_tensor*>(tensor));
}

void Value::destroy(Cell* cell) noexcept {
  if (cell->element_count != 0) {
    Value held(cell);
    for (size_t i = 0; i < cell->element_count; ++i) held.elements()[i].~Value();
    held.cell_ = nullptr;
  }
  if (cell->release != nullptr) cell->release(cell->context);
  size_t block = cell->block;
  cell->~Cell();
  cpu_free(cell, block);
}

Value Value::uninitialized(const Shape* shape) {
  LAMELLA_INTERNAL_ASSERT(shape->is_array(), "hlo: expected an array, got ",
                          shape->to_string(false));
  return uninitialized(shape, static_cast<size_t>(shape->bytes()));
}

Value Value::uninitialized(const Shape* shape, size_t bytes) {
  Cell* cell = make(shape, bytes);
  cell->data = reinterpret_cast<std::byte*>(cell + 1);
  cell->bytes = bytes;
  cell->owns_data = true;
  return Value(cell);
}

Value Value::zeros(const Shape* shape) {
  Value value = uninitialized(shape);
  if (value.bytes() != 0) std::memset(value.data(), 0, value.bytes());
  return value;
}

Value Value::tuple(const Shape* shape, std::span<Value> elements) {
  Cell* cell = make(shape, elements.size() * (sizeof(void*) + sizeof(Value)));
  cell->data = reinterpret_cast<std::byte*>(cell + 1);
  cell->element_count = static_cast<uint32_t>(elements.size());
  Value value(cell);
  auto** table = reinterpret_cast<void**>(cell->data);
  for (size_t i = 0; i < elements.size(); ++i) {
    table[i] = elements[i].data();
    new (value.elements() + i) Value(std::move(elements[i]));
  }
  return value;
}

Value Value::token(const Shape* shape) { return Value(make(shape, 0)); }

Value Value::view(const Shape* shape, void* data, void (*release)(void*), void* context,
                  bool ours) {
  return view(shape, data, static_cast<size_t>(shape->bytes()), release, context, ours);
}

Value Value::view(const Shape* shape, void* data, size_t bytes, void (*release)(void*),
                  void* context, bool ours) {
  Cell* cell = make(shape, 0);
  cell->data = static_cast<std::byte*>(data);
  cell->bytes = bytes;
  cell->release = release;
  cell->context = context;
  cell->owns_data = ours;
  return Value(cell);
}

Value Value::of_literal(const Shape* shape, const Literal& literal) {
  if (shape->is_array()) return view(shape, const_cast<void*>(literal.data()), nullptr, nullptr);
  if (!shape->is_tuple()) return token(shape);
  std::vector<Value> elements;
  for (size_t i = 0; i < literal.elements().size(); ++i) {
    elements.push_back(of_literal(&shape->tuple_shapes()[i], literal.elements()[i]));
  }
  return tuple(shape, elements);
}

Value Value::reshaped(Value value, const Shape* shape) {
  LAMELLA_INTERNAL_ASSERT(static_cast<size_t>(shape->bytes()) == value.bytes(), "hlo: expected ",
                          value.bytes(), " bytes, got ", shape->bytes());
  if (value.unique()) {
    value.cell_->shape = shape;
    return value;
  }
  void (*const give_back)(void*) = [](void* cell) { drop(static_cast<Cell*>(cell)); };
  // A view of a view refers to the original cell, so that loops do not build chains of views.
  Cell* held = value.cell_;
  if (held->release == give_back) held = static_cast<Cell*>(held->context);
  held->references.fetch_add(1, std::memory_order_relaxed);
  return view(shape, value.cell_->data, give_back, held);
}

Value Value::writable(Value value) {
  if (value.unique()) return value;
  Value copy = uninitialized(value.shape_pointer());
  if (copy.bytes() != 0) std::memcpy(copy.data(), value.data(), value.bytes());
  return copy;
}

Literal Value::to_literal() const {
  if (shape().is_tuple()) {
    std::vector<Literal> parts;
    for (size_t i = 0; i < size(); ++i) parts.push_back(element(i).to_literal());
    return Literal::tuple(std::move(parts));
  }
  Literal literal(shape());
  if (bytes() != 0) std::memcpy(literal.data(), data(), bytes());
  return literal;
}

}  // namespace lamella::hlo
