// Operations along lines of a backend's tensors: reductions, scans, softmax, norms, losses. A
// function returns false where it does not serve the operands, before anything is written.
// Internal.
#pragma once
#include <tuple>

#include "lamella/api/functions.h"

namespace lamella::native {

inline constexpr int kLineParamBytes = 16;  // from one parameter of a reduction to the next

struct DeviceLines {
  // reduce_tensor() of kernels/cpu/reduce.h, by the name of the table.
  bool (*reduce)(const char* name, ScalarType type, const TensorBase& in, uint64_t mask,
                 const TensorBase& out, const void* params, const TensorBase& values);
  // scan() of kernels/cpu/scan.h, by the number of the kind.
  bool (*scan)(int kind, const TensorBase& in, int64_t dim, const TensorBase& out);
  bool (*cum_extreme)(bool largest, const TensorBase& in, int64_t dim, const TensorBase& values,
                      const TensorBase& indices);
  // Slices as those of softmax_on() in kernels/cpu/simd/rows.h. All operands are contiguous.
  bool (*softmax)(const Tensor& x, const Tensor& y, int64_t size, int64_t inner, bool logarithm);
  bool (*softmax_backward)(const Tensor& grad, const Tensor& y, const Tensor& x, int64_t size,
                           int64_t inner, bool logarithm);
  // Rows of `size` elements, each of `groups` channels in turn: channel c of a row has `inner`
  // elements and the weight of index (row % groups) * (size / inner) + c. x, y and dy are
  // contiguous; statistics and parameters are of the type that is computed in, and may be
  // undefined: `mean` for an RMS norm.
  bool (*norm)(const Tensor& x, const Tensor& y, const Tensor& weight, const Tensor& bias,
               const Tensor& mean, const Tensor& rstd, int64_t size, int64_t inner, int64_t groups,
               double eps);
  bool (*norm_backward)(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, const Tensor& dx, int64_t size, int64_t inner,
                        int64_t groups);
  // Sums over elements [outer][channels][inner] of dy * (x - mean) * rstd, and of dy, for each
  // channel, as a tensor [2, channels]. The statistics of an element are those of the index
  // outer * per_outer + channel / per_channels.
  Tensor (*norm_sums)(const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                      int64_t outer, int64_t channels, int64_t inner, int64_t per_outer,
                      int64_t per_channels);
  // invstd = 1 / sqrt(var + eps); if defined, running = (1 - momentum) * running + momentum * now,
  // where `now` is the mean, and the variance times `factor`.
  bool (*batch_statistics)(const Tensor& mean, const Tensor& var, const Tensor& invstd,
                           const Tensor& running_mean, const Tensor& running_var, double eps,
                           double momentum, double factor);
  // y = (x - mean) * invstd * weight + bias by channels, in x's order of memory.
  bool (*channel_norm)(const Tensor& x, const Tensor& y, const Tensor& mean, const Tensor& invstd,
                       const Tensor& weight, const Tensor& bias, int64_t inner);
  // The gradient of x: with `sums` of norm_sums() if the statistics are those of the batch.
  bool (*channel_norm_backward)(const Tensor& dy, const Tensor& x, const Tensor& mean,
                                const Tensor& invstd, const Tensor& weight, const Tensor& sums,
                                const Tensor& dx, int64_t inner);
  // out[0][i] and out[1][i] are the loss of element i and its weight.
  bool (*nll)(const Tensor& x, const Tensor& target, const Tensor& weight, const Tensor& out,
              int64_t classes, int64_t inner, int64_t ignored);
  // Writes the elements of dx that are not 0. `total` is undefined unless the loss is a mean.
  bool (*nll_backward)(const Tensor& grad, const Tensor& target, const Tensor& weight,
                       const Tensor& total, const Tensor& dx, int64_t classes, int64_t inner,
                       int64_t ignored);
  // loss_on() and loss_backward_on() of kernels/cpu/simd/loss.h, by the number of the loss.
  bool (*loss)(int loss, const Tensor& x, const Tensor& t, const Tensor& out, double beta);
  bool (*loss_backward)(int loss, const Tensor& x, const Tensor& t, const Tensor& grad,
                        const Tensor& out, double beta, double scale);
};

// The functions of a device type other than the CPU. Throws NotImplementedError if it has none.
const DeviceLines& device_lines(const char* op, DeviceType type);
// Throws NotImplementedError, at which the operator runs on the CPU.
void require_on_device(bool done, const char* op, const TensorBase& on);

}  // namespace lamella::native
