// Helpers of the core's tests.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lamella/core/tensor_impl.h"

// The exact text of the exception that `f` throws; its type is checked.
template <class E = lamella::Error, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another type of exception: ") + e.what();
  }
  return "no exception";
}

using Ints = std::vector<int64_t>;

inline Ints sizes_of(const lamella::TensorBase& t) { return t.sizes().vec(); }
inline Ints strides_of(const lamella::TensorBase& t) { return t.strides().vec(); }

inline lamella::TensorBase floats(const Ints& sizes) {
  return lamella::make_empty(sizes, lamella::kFloat, lamella::kCPU);
}
