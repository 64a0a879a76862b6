// torch::stable::empty_like, torch::stable::transpose, ….
#pragma once
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Layout.h>
#include <torch/headeronly/core/MemoryFormat.h>

namespace torch::stable {
// Makes Lamella's functions visible; operators that are only methods follow.
using namespace lamella;
using at::get_num_threads;
using at::parallel_for;

using OptionalType = std::optional<lamella::ScalarType>;
using OptionalLayout = std::optional<lamella::Layout>;
using OptionalDevice = std::optional<lamella::Device>;

inline Tensor empty(lamella::IntArrayRef size, OptionalType dtype = {}, OptionalLayout layout = {},
                    OptionalDevice device = {}, std::optional<bool> pin_memory = {},
                    std::optional<lamella::MemoryFormat> format = {}) {
  return lamella::empty(size, dtype, layout, device, pin_memory, format);
}
inline Tensor full(lamella::IntArrayRef size, double value, OptionalType dtype = {},
                   OptionalLayout layout = {}, OptionalDevice device = {},
                   std::optional<bool> pin_memory = {}) {
  return lamella::full(size, value, dtype, layout, device, pin_memory);
}
inline Tensor new_empty(const lamella::Tensor& self, lamella::IntArrayRef size,
                        OptionalType dtype = {}, OptionalLayout layout = {},
                        OptionalDevice device = {}, std::optional<bool> pin_memory = {}) {
  return self.new_empty(size, dtype, layout, device, pin_memory);
}
inline Tensor new_zeros(const lamella::Tensor& self, lamella::IntArrayRef size,
                        OptionalType dtype = {}, OptionalLayout layout = {},
                        OptionalDevice device = {}, std::optional<bool> pin_memory = {}) {
  return self.new_zeros(size, dtype, layout, device, pin_memory);
}
#define LAMELLA_METHOD(name)                                     \
  template <class... A>                                          \
  Tensor name(const lamella::Tensor& self, const A&... others) { \
    return self.name(others...);                                 \
  }
LAMELLA_METHOD(fill_)
LAMELLA_METHOD(zero_)
LAMELLA_METHOD(copy_)
LAMELLA_METHOD(contiguous)
#undef LAMELLA_METHOD
inline Tensor to(const lamella::Tensor& self, OptionalType dtype = {}, OptionalLayout layout = {},
                 OptionalDevice device = {}, std::optional<bool> pin_memory = {},
                 bool non_blocking = false, bool copy = false,
                 std::optional<lamella::MemoryFormat> format = {}) {
  return self.to(dtype, layout, device, pin_memory, non_blocking, copy, format);
}
inline Tensor to(const lamella::Tensor& self, lamella::Device device, bool non_blocking = false,
                 bool copy = false) {
  return self.to(device, self.scalar_type(), non_blocking, copy);
}
// Reduces one dimension or a list of them; {} means dimension 0.
inline Tensor amax(const lamella::Tensor& self, lamella::IntArrayRef dims, bool keepdim = false) {
  return lamella::amax(self, dims, keepdim);
}
inline Tensor amax(const lamella::Tensor& self, int64_t dim, bool keepdim = false) {
  return lamella::amax(self, lamella::IntArrayRef(&dim, 1), keepdim);
}
inline Tensor view(const lamella::Tensor& self, lamella::IntArrayRef size) {
  return self.view(size);
}
inline Tensor pad(const lamella::Tensor& self, lamella::IntArrayRef pad,
                  const std::string& mode = "constant", double value = 0.0) {
  return lamella::pad(self, pad, mode, value);
}
}  // namespace torch::stable
