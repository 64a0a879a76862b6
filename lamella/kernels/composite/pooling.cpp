// Pooling made of the operators with indices or with more dimensions.
#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
// Converts a list of one entry, for 1 dimension, to one for 2 dimensions that begins with `first`.
Dims second(const char* op, const char* name, IntArrayRef list, int64_t first) {
  LAMELLA_CHECK(list.size() == 1, op, ": expected '", name, "' to have 1 entry, got ", list);
  Dims both;
  both.push_back(first);
  both.push_back(list[0]);
  return both;
}
void check_rank(const char* op, const Tensor& self, int64_t least, int64_t most) {
  LAMELLA_CHECK(self.dim() >= least && self.dim() <= most, op, ": expected 'self' to have ", least,
                " or ", most, " dimensions, got ", self.sizes());
}
}  // namespace

std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& self, IntArrayRef kernel_size,
                                                   IntArrayRef stride, IntArrayRef padding,
                                                   IntArrayRef dilation, bool ceil_mode) {
  const char* op = "max_pool1d";
  check_rank(op, self, 2, 3);
  IntArrayRef steps = stride.empty() ? kernel_size : stride;
  auto [out, indices] = lamella::max_pool2d_with_indices(
      self.unsqueeze(-2), second(op, "kernel_size", kernel_size, 1), second(op, "stride", steps, 1),
      second(op, "padding", padding, 0), second(op, "dilation", dilation, 1), ceil_mode);
  return {out.squeeze(-2), indices.squeeze(-2)};
}
Tensor max_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                  IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  const char* op = "max_pool1d";
  check_rank(op, self, 2, 3);
  IntArrayRef steps = stride.empty() ? kernel_size : stride;
  return lamella::max_pool2d(self.unsqueeze(-2), second(op, "kernel_size", kernel_size, 1),
                             second(op, "stride", steps, 1), second(op, "padding", padding, 0),
                             second(op, "dilation", dilation, 1), ceil_mode)
      .squeeze(-2);
}
Tensor avg_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                  IntArrayRef padding, bool ceil_mode, bool count_include_pad) {
  const char* op = "avg_pool1d";
  check_rank(op, self, 2, 3);
  IntArrayRef steps = stride.empty() ? kernel_size : stride;
  return lamella::avg_pool2d(self.unsqueeze(-2), second(op, "kernel_size", kernel_size, 1),
                             second(op, "stride", steps, 1), second(op, "padding", padding, 0),
                             ceil_mode, count_include_pad)
      .squeeze(-2);
}
Tensor adaptive_avg_pool1d(const Tensor& self, IntArrayRef output_size) {
  const char* op = "adaptive_avg_pool1d";
  check_rank(op, self, 2, 3);
  return lamella::adaptive_avg_pool2d(self.unsqueeze(-2), second(op, "output_size", output_size, 1))
      .squeeze(-2);
}
std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& self, IntArrayRef output_size) {
  const char* op = "adaptive_max_pool1d";
  check_rank(op, self, 2, 3);
  auto [out, indices] =
      lamella::adaptive_max_pool2d(self.unsqueeze(-2), second(op, "output_size", output_size, 1));
  return {out.squeeze(-2), indices.squeeze(-2)};
}
Tensor adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size) {
  return lamella::_adaptive_avg_pool2d(self, output_size);
}
Tensor adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size) {
  return lamella::_adaptive_avg_pool3d(self, output_size);
}

}  // namespace lamella::native
