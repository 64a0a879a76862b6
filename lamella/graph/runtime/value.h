// Value: an array, a tuple of values, or a token of a running module.
//
// Note [Values]
//   A value is a counted reference to a cell. The elements of an array follow the cell in the same
//   block, so an array is one allocation. Arrays are dense and row-major, whatever layout their
//   shape has; elements narrower than a byte take one byte each (element_bytes). A tuple's data is
//   a table of its elements' data, with nested tables for nested tuples, as the host convention of
//   custom calls expects. A shared value is never written; the holder of the only reference
//   (`unique`) may write.
//   A shape belongs to a module, which must outlive the value.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "lamella/abi/abi.h"
#include "lamella/graph/hlo/literal.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

class Value {
 public:
  Value() = default;
  Value(const Value& other) : cell_(other.cell_) {
    if (cell_ != nullptr) cell_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Value(Value&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  Value& operator=(Value other) noexcept {
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~Value() {
    if (cell_ != nullptr) drop(cell_);
  }

  // An array with uninitialized elements. Throws OutOfMemoryError.
  static Value uninitialized(const Shape* shape);
  // The same for callers that have computed shape->bytes() already.
  static Value uninitialized(const Shape* shape, size_t bytes);
  static Value zeros(const Shape* shape);
  // Moves the elements into a tuple; they must have its shapes.
  static Value tuple(const Shape* shape, std::span<Value> elements);
  static Value token(const Shape* shape);
  // An array over external memory of shape->bytes() bytes, row-major. `release`, if not null, is
  // called with `context` when the last reference is dropped. The memory may be written only if
  // `ours`, which says that no other code reads it.
  static Value view(const Shape* shape, void* data, void (*release)(void*), void* context,
                    bool ours = false);
  // The same for callers that have computed shape->bytes() already.
  static Value view(const Shape* shape, void* data, size_t bytes, void (*release)(void*),
                    void* context, bool ours);
  // An array over a contiguous tensor's memory; takes over the reference to the tensor.
  static Value of_tensor(const Shape* shape, lamella_tensor* tensor, size_t bytes,
                         bool ours = false) {
    return view(shape, tensor->data, bytes, release_tensor, tensor, ours);
  }
  // A view of the literal, which must outlive the value and all values that share its memory.
  static Value of_literal(const Shape* shape, const Literal& literal);

  explicit operator bool() const { return cell_ != nullptr; }
  const Shape& shape() const { return *cell_->shape; }
  const Shape* shape_pointer() const { return cell_->shape; }
  // The elements of an array, the table of its elements' data for a tuple, or NULL for a token.
  void* data() const { return cell_->data; }
  size_t bytes() const { return cell_->bytes; }
  template <class T>
  std::span<T> values() const {
    return {reinterpret_cast<T*>(cell_->data), cell_->bytes / sizeof(T)};
  }
  // The number of elements of a tuple.
  size_t size() const { return cell_->element_count; }
  const Value& element(size_t i) const { return elements()[i]; }
  // True if this is the only reference to the array's memory, so that it may be written.
  bool unique() const {
    return cell_->references.load(std::memory_order_acquire) == 1 && cell_->owns_data;
  }
  // The tensor that this is a read-only view of; otherwise null.
  lamella_tensor* tensor() const {
    bool has = cell_->release == release_tensor && !cell_->owns_data;
    return has ? static_cast<lamella_tensor*>(cell_->context) : nullptr;
  }
  // The storage of tensor(), which may cache other forms of the elements, such as packed weights.
  lamella_storage* storage() const {
    const lamella_tensor* of = tensor();
    return of != nullptr ? of->storage : nullptr;
  }
  // The same elements with another shape of equal bytes. Reuses the value if it is unique,
  // otherwise shares its memory.
  static Value reshaped(Value value, const Shape* shape);
  // Reuses the memory of a unique array for a shape of equal bytes, with uninitialized elements.
  static Value reused(Value value, const Shape* shape) {
    value.cell_->shape = shape;
    return value;
  }
  // Moves or copies the reference into this value, which must be empty.
  void take(Value& from) { cell_ = std::exchange(from.cell_, nullptr); }
  void share(const Value& from) {
    cell_ = from.cell_;
    if (cell_ != nullptr) cell_->references.fetch_add(1, std::memory_order_relaxed);
  }
  // The value itself if it is unique, otherwise a copy.
  static Value writable(Value value);
  Literal to_literal() const;
  // Releases the reference as a pointer, for C callbacks; pass it to drop() later.
  void* unsafe_release() { return std::exchange(cell_, nullptr); }
  static void drop(void* reference) noexcept { drop(static_cast<Cell*>(reference)); }

 private:
  struct alignas(64) Cell {
    std::atomic<uint32_t> references{1};
    uint32_t element_count = 0;
    const Shape* shape = nullptr;
    std::byte* data = nullptr;
    size_t bytes = 0;
    size_t block = 0;  // bytes of the cell and the data that follows it
    void (*release)(void*) = nullptr;
    void* context = nullptr;
    bool owns_data = false;
  };
  static Cell* make(const Shape* shape, size_t behind);
  static void release_tensor(void* tensor);
  static void drop(Cell* cell) noexcept {
    // The only reference can be dropped without an atomic read-modify-write.
    if (cell->references.load(std::memory_order_acquire) == 1 ||
        cell->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy(cell);
    }
  }
  static void destroy(Cell* cell) noexcept;
  Value* elements() const {
    return reinterpret_cast<Value*>(cell_->data + cell_->element_count * sizeof(void*));
  }
  explicit Value(Cell* cell) : cell_(cell) {}

  Cell* cell_ = nullptr;
};

}  // namespace lamella::hlo
