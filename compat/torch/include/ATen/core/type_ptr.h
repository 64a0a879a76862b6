// c10::SingletonOrSharedTypePtr: a pointer that may share its object.
#pragma once
#include <torch/standard_headers.h>

namespace c10 {
template <class T>
struct SingletonOrSharedTypePtr : std::shared_ptr<T> {
  using std::shared_ptr<T>::shared_ptr;
  SingletonOrSharedTypePtr(std::shared_ptr<T> shared)  // NOLINT: implicit
      : std::shared_ptr<T>(std::move(shared)) {}
};
}  // namespace c10
