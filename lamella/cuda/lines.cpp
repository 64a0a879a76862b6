// Registers operators along lines, and launches their kernels. The operators check their arguments
// and make their results as on the CPU: lamella/kernels/device_lines.h.
#include "lamella/cuda/families.h"

#include <algorithm>
#include <string>

#include "lamella/cuda/line_launch.h"

namespace lamella::cuda {

int line_kind(ScalarType dtype) {
  const int kind = kind_of(dtype);
  return kind <= kBF16 ? kind : -1;
}

bool launch_lines(const TensorBase& on, const char* name, const char* suffix,
                  const void* parameters, const Shape& shape) {
  const int device = on.device().index();
  ContextGuard guard(device);
  return launch_named(device, name, suffix, parameters, shape);
}

Shape team_shape(bool across, int64_t lines, int64_t length) {
  constexpr int64_t kThreads = 256, kColumns = 32, kMostBlocks = 0x7fffffff;
  Shape shape;
  int64_t x = kColumns, y = 1;
  if (across) {
    y = std::min<int64_t>(kTeamThreads / kColumns, power_of_two((length + 7) / 8));
  } else {
    x = length <= 1024 ? std::min<int64_t>(32, power_of_two(length))
                       : std::min<int64_t>(kTeamThreads, power_of_two(length / 16));
    y = std::max<int64_t>(1, std::min(kThreads / x, power_of_two(lines)));
  }
  // A warp has 32 threads, whatever the teams.
  if (x * y < 32) y = 32 / x;
  const int64_t in_block = across ? x : y;
  shape.block[0] = static_cast<unsigned>(x);
  shape.block[1] = static_cast<unsigned>(y);
  shape.grid[0] =
      static_cast<unsigned>(std::clamp<int64_t>((lines + in_block - 1) / in_block, 1, kMostBlocks));
  return shape;
}
int64_t busy_blocks(const TensorBase& on, const Shape& shape) {
  const DeviceFacts& facts = Driver::facts(on.device().index());
  const auto threads = static_cast<int64_t>(shape.block[0] * shape.block[1]);
  return int64_t{facts.multiprocessors} * facts.threads_of_multiprocessor / threads;
}
Shape element_shape(const TensorBase& on, int64_t numel) {
  Shape shape;
  shape.block[0] = kElementThreads;
  const int64_t blocks = (numel + kElementThreads - 1) / kElementThreads;
  shape.grid[0] = static_cast<unsigned>(std::clamp<int64_t>(2 * busy_blocks(on, shape), 1, blocks));
  return shape;
}

namespace {
native::DeviceLines make_lines() {
  native::DeviceLines lines{};
  lines.reduce = &reduce;
  lines.scan = &scan;
  lines.cum_extreme = &cum_extreme;
  set_norms(lines);
  set_losses(lines);
  return lines;
}

// Operators of the CPU whose loops the functions above stand in for.
constexpr const char* kOperators =
    "sum.dim_IntList sum.IntList_out nansum nansum.out mean.dim mean.out prod.dim_int prod.int_out "
    "amax amax.out amin amin.out aminmax aminmax.out max.dim max.dim_max min.dim min.dim_min "
    "argmax argmax.out argmin argmin.out all.dims all.dims_out any.dims any.dims_out "
    "count_nonzero.dim_IntList count_nonzero.dim_IntList_out linalg_vector_norm "
    "linalg_vector_norm.out var.correction var.correction_out std.correction std.correction_out "
    "cumsum cumsum_ cumsum.out cumprod cumprod_ cumprod.out logcumsumexp logcumsumexp.out cummax "
    "cummin _softmax _softmax.out _log_softmax _log_softmax.out _softmax_backward_data "
    "_softmax_backward_data.out _log_softmax_backward_data _log_softmax_backward_data.out "
    "native_layer_norm native_layer_norm_backward _fused_rms_norm _fused_rms_norm_backward "
    "native_group_norm native_group_norm_backward native_batch_norm _native_batch_norm_legit "
    "_native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training "
    "native_batch_norm_backward nll_loss_forward nll_loss_backward nll_loss2d_forward "
    "nll_loss2d_backward mse_loss mse_loss_backward smooth_l1_loss smooth_l1_loss_backward "
    "huber_loss huber_loss_backward soft_margin_loss soft_margin_loss_backward "
    "binary_cross_entropy binary_cross_entropy_backward ";
}  // namespace

const native::DeviceLines* register_lines(Library& aten) {
  static const native::DeviceLines lines = make_lines();
  each_word(kOperators, [&](const std::string& name) {
    aten.impl(name.c_str(), CppFunction::makeFromBoxedKernel(&run_structured));
  });
  return &lines;
}

}  // namespace lamella::cuda
