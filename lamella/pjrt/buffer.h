// Buffers: arrays that JAX holds, and the memory behind them.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "lamella/graph/runtime/value.h"
#include "lamella/pjrt/array_type.h"
#include "lamella/pjrt/client.h"
#include "lamella/pjrt/event.h"

namespace lamella::pjrt {

// Note [Cells]
//   The memory of a buffer is a cell: a value that is there once the cell is complete. A buffer, a
//   run that reads it, and copies that are under way each hold the cell, so deleting the buffer
//   frees the memory after the last of them. A run that was given the buffer for good takes the
//   value out of the cell, which it may do only as the last holder.
//   Values have row-major shapes of `type`; a cell keeps alive whatever owns their shape or memory.
struct Cell {
  Completion completion;
  hlo::Value value;
  ArrayTypePointer type;
  std::shared_ptr<const void> keeps;
  // Whether the memory is a caller's, which may write it after the buffer is gone.
  bool is_foreign = false;

  explicit Cell(ArrayTypePointer of) : type(std::move(of)) {}
  Cell(ArrayTypePointer of, hlo::Value holds)
      : completion(true), value(std::move(holds)), type(std::move(of)) {}
  void* data() const { return value ? value.data() : nullptr; }
};
using CellPointer = std::shared_ptr<Cell>;

struct Buffer {
  Memory* memory;
  ArrayTypePointer type;

  Buffer(Memory* in, ArrayTypePointer of, CellPointer holds)
      : memory(in), type(std::move(of)), cell_(std::move(holds)) {}
  // The cell, or null once deleted or donated.
  CellPointer cell() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return cell_;
  }
  // Throws if there is none.
  CellPointer live_cell() const;
  // The memory, once complete. Throws the error of what should have filled it.
  CellPointer complete_cell() const;
  // Takes the cell out; null if there is none. References from outside keep the memory alive.
  CellPointer remove();
  bool has_references() const { return references_.load(std::memory_order_relaxed) != 0; }
  void add_reference();
  void drop_reference();

 private:
  mutable std::mutex mutex_;
  CellPointer cell_;
  std::atomic<int64_t> references_ = 0;
  CellPointer referenced_;  // while there are references
};

// Copies a cell, once complete, into a new one.
CellPointer copied(const CellPointer& from);
// Calls f() when the cell is complete, on a worker if that is later; sets `to` to what f throws, or
// to the cell's own error. `to` may be null.
void when_complete(const CellPointer& cell, CompletionPointer to, std::function<void()> f);

}  // namespace lamella::pjrt
