// Operands of LAPACK's complex routines, copied into memory with one spare column at the end.
//
// Note [A column to spare]
//   cgemv and zgemv of OpenBLAS read, without using it, one element past the end of the vector
//   operand. If the vector is a row of a column-major matrix, that element lies one column further.
//   So complex operands are copied into memory with one more column, and so is work space.
#pragma once
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace lamella {

// A column-major matrix, or null. For complex types it is a copy with one spare column.
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
