// Value: an array, a tuple of values or a token while a module runs.
//
// Note [Values]
//   A value is one reference to a cell, and an array's elements lie behind the cell in the same
//   block: making one is one allocation. Arrays lie row-major and dense, whatever the layout of
//   their shape says; elements below a byte take one byte each (element_bytes). A tuple's data is
//   the table of its elements' data, nested tables for nested tuples: what the host convention of
//   custom calls takes. Values are never written once they are shared; whoever holds the only
//   reference (`unique`) may write.
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

  // An array whose elements are not set. Throws OutOfMemoryError.
  static Value uninitialized(const Shape* shape);
  // The same for who knows shape->bytes() already.
  static Value uninitialized(const Shape* shape, size_t bytes);
  static Value zeros(const Shape* shape);
  // Takes the elements, whose shapes are those of the tuple.
  static Value tuple(const Shape* shape, std::span<Value> elements);
  static Value token(const Shape* shape);
  // Over memory of somebody else: shape->bytes() row-major elements. `release(context)` is called
  // when the last reference goes; may be absent. Written only if `ours`: nobody else sees it then.
  static Value view(const Shape* shape, void* data, void (*release)(void*), void* context,
                    bool ours = false);
  // For who knows the bytes of the shape.
  static Value view(const Shape* shape, void* data, size_t bytes, void (*release)(void*),
                    void* context, bool ours);
  // Over a contiguous tensor's memory, whose reference it takes.
  static Value of_tensor(const Shape* shape, lamella_tensor* tensor, size_t bytes,
                         bool ours = false) {
    return view(shape, tensor->data, bytes, release_tensor, tensor, ours);
  }
  // A view of the literal, which must outlive the value and what is made of it.
  static Value of_literal(const Shape* shape, const Literal& literal);

  explicit operator bool() const { return cell_ != nullptr; }
  const Shape& shape() const { return *cell_->shape; }
  const Shape* shape_pointer() const { return cell_->shape; }
  // Elements of an array; of a tuple, the table of its elements' data; of a token NULL.
  void* data() const { return cell_->data; }
  size_t bytes() const { return cell_->bytes; }
  template <class T>
  std::span<T> values() const {
    return {reinterpret_cast<T*>(cell_->data), cell_->bytes / sizeof(T)};
  }
  // How many elements a tuple has.
  size_t size() const { return cell_->element_count; }
  const Value& element(size_t i) const { return elements()[i]; }
  // True if nobody else can see this array, so that it may be written.
  bool unique() const {
    return cell_->references.load(std::memory_order_acquire) == 1 && cell_->owns_data;
  }
  // The tensor that this is a view of; null for others, and for an array that may be written
  // without being counted.
  lamella_tensor* tensor() const {
    bool has = cell_->release == release_tensor && !cell_->owns_data;
    return has ? static_cast<lamella_tensor*>(cell_->context) : nullptr;
  }
  // That tensor's storage, with which other forms of the elements may be kept.
  lamella_storage* storage() const {
    const lamella_tensor* of = tensor();
    return of != nullptr ? of->storage : nullptr;
  }
  // The same elements under another shape of as many elements of the same size. Takes the value
  // where it is unique, otherwise shares its memory.
  static Value reshaped(Value value, const Shape* shape);
  // The memory of a unique array of as many bytes, under another shape; the elements are not set.
  static Value reused(Value value, const Shape* shape) {
    value.cell_->shape = shape;
    return value;
  }
  // Into a value that is empty.
  void take(Value& from) { cell_ = std::exchange(from.cell_, nullptr); }
  void share(const Value& from) {
    cell_ = from.cell_;
    if (cell_ != nullptr) cell_->references.fetch_add(1, std::memory_order_relaxed);
  }
  // A unique value with the same contents: this one where it is unique already.
  static Value writable(Value value);
  Literal to_literal() const;
  // The reference as a pointer, for contexts; drop() takes one back. The value becomes empty.
  void* unsafe_release() { return std::exchange(cell_, nullptr); }
  static void drop(void* reference) noexcept { drop(static_cast<Cell*>(reference)); }

 private:
  struct alignas(64) Cell {
    std::atomic<uint32_t> references{1};
    uint32_t element_count = 0;
    const Shape* shape = nullptr;
    std::byte* data = nullptr;
    size_t bytes = 0;
    size_t block = 0;  // bytes of the cell with what stands behind it
    void (*release)(void*) = nullptr;
    void* context = nullptr;
    bool owns_data = false;
  };
  static Cell* make(const Shape* shape, size_t behind);
  static void release_tensor(void* tensor);
  static void drop(Cell* cell) noexcept {
    // The holder of the only reference needs no locked operation to let it go.
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
