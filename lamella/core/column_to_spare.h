// Operands of LAPACK's complex routines, in memory with room behind them.
//
// Note [A column to spare]
//   cgemv and zgemv of OpenBLAS read, and do not use, one element behind the vector that a matrix
//   is multiplied with. Where that vector is a row of a matrix, the element is a column further. So
//   complex operands stand in memory with one more column, and work space has as much room.
#pragma once
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace lamella {

// A matrix, column by column, or null. That of a complex type is a copy with a column to spare.
template <class T>
class Spacious {
 public:
  Spacious(void* data, std::size_t rows, std::size_t columns)
      : target_(static_cast<T*>(data)), count_(data == nullptr ? 0 : rows * columns) {
    if (std::is_floating_point_v<T> || count_ == 0) return;
    room_.resize(count_ + rows + 1);
    std::copy_n(target_, count_, room_.data());
  }
  T* data() { return room_.empty() ? target_ : room_.data(); }
  void copy_back() const {
    if (!room_.empty()) std::copy_n(room_.data(), count_, target_);
  }

 private:
  T* target_;
  std::size_t count_;
  std::vector<T> room_;
};

}  // namespace lamella
