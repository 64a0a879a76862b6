// Helpers of the autograd tests: tensors from numbers and back, expected errors, a counter of live
// objects.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "lamella/lamella.h"

namespace lamella {

using Numbers = std::vector<double>;

// A float64 tensor of these sizes (one dimension by default), which is a leaf.
inline Tensor make(const Numbers& numbers, std::vector<int64_t> sizes = {}) {
  if (sizes.empty()) sizes = {static_cast<int64_t>(numbers.size())};
  Tensor tensor = empty(sizes, ScalarType::Double);
  for (size_t i = 0; i < numbers.size(); ++i) tensor.data_ptr<double>()[i] = numbers[i];
  return tensor;
}
inline Tensor leaf(const Numbers& numbers, std::vector<int64_t> sizes = {}) {
  return make(numbers, std::move(sizes)).requires_grad_();
}
// Products and sums.
inline Tensor scalar(double number) {
  Tensor tensor = empty({}, ScalarType::Double);
  *tensor.data_ptr<double>() = number;
  return tensor;
}
inline Tensor times(const Tensor& tensor, double number) { return tensor * scalar(number); }
inline void backward_of_sum(const Tensor& tensor) {
  tensor.backward(ones(tensor.sizes(), tensor.options()));
}
inline Numbers numbers(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  Tensor flat = tensor.detach().to(ScalarType::Double).contiguous();
  const double* data = flat.data_ptr<double>();
  return Numbers(data, data + flat.numel());
}

template <class E = Error, class F>
void expect_error(F&& f, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "expected an error: " << text;
  } catch (const E& error) {
    EXPECT_EQ(std::string(error.what()), text);
  } catch (const std::exception& error) {
    ADD_FAILURE() << "expected another kind of error than of: " << error.what();
  }
}

// Counts how many of it live.
struct Counted {
  static inline std::atomic<int> alive = 0;
  Counted() { ++alive; }
  Counted(const Counted&) { ++alive; }
  ~Counted() { --alive; }
};

}  // namespace lamella
