// Shared by batch and group normalisation: parallel calls of the kernels over channels.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/simd/channels.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

// The dtype that elements of `dtype` are computed in.
inline ScalarType wide_type(ScalarType dtype) { return dtype == kDouble ? kDouble : kFloat; }

// Calls f(TypeTag<float>()) or f(TypeTag<double>()).
template <class F>
void visit_wide(ScalarType wide, F&& f) {
  if (wide == kDouble) {
    f(TypeTag<double>());
  } else {
    f(TypeTag<float>());
  }
}

inline int64_t grain_of(int64_t elements_each) { return kGrainSize / 2 / (elements_each + 1) + 1; }

inline void channel_moments(const Planes& p, const Tensor& x, const Tensor& mean,
                            const Tensor& var) {
  parallel_for(0, p.channels, grain_of(p.outer * p.inner), [&](int64_t begin, int64_t end) {
    channel_moments_on(kCPU, p, x.const_data_ptr(), mean.data_ptr(), var.data_ptr(), begin, end);
  });
}
inline void channel_sums(const Planes& p, const Tensor& dy, const Tensor& x, const Tensor& mean,
                         const Tensor& sum, const Tensor& dot) {
  parallel_for(0, p.channels, grain_of(p.outer * p.inner), [&](int64_t begin, int64_t end) {
    channel_sums_on(kCPU, p, dy.const_data_ptr(), x.const_data_ptr(), mean.const_data_ptr(),
                    sum.data_ptr(), dot.data_ptr(), begin, end);
  });
}
inline void channel_affine(const Planes& p, const ChannelAffine& f) {
  parallel_for(0, p.outer * p.channels, grain_of(p.inner),
               [&](int64_t begin, int64_t end) { channel_affine_on(kCPU, p, f, begin, end); });
}

// Whether a variance left the range of its type, or is lost in it beside a tiny eps.
inline bool is_out_of_range(const Tensor& var, double eps) {
  bool found = false;
  visit_wide(var.scalar_type(), [&](auto tag) {
    using T = type_of<decltype(tag)>;
    constexpr double kSmall = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
    auto* v = static_cast<const T*>(var.const_data_ptr());
    const bool checks_small = eps * std::numeric_limits<T>::epsilon() < kSmall;
    for (int64_t i = 0; i < var.numel(); ++i) {
      found |= !(v[i] <= std::numeric_limits<T>::max()) || (checks_small && v[i] < kSmall);
    }
  });
  return found;
}
// The same numbers with another scale, for which squares are in the range of the type: in float64,
// or times a power of two. `eps` is that of the scaled numbers. Undefined if there is none.
struct Rescaled {
  Tensor numbers;
  double scale = 1, eps = 0;

  Rescaled(const Tensor& input, double given_eps) : eps(given_eps) {
    if (input.scalar_type() != kDouble) {
      numbers = input.to(kDouble);
      return;
    }
    double top = input.numel() == 0 ? 0 : input.abs().max().item().toDouble();
    if (!std::isfinite(top) || top == 0 || std::ilogb(top) == 0) return;
    scale = std::ldexp(1.0, -std::max(std::ilogb(top), std::numeric_limits<double>::min_exponent));
    numbers = input.mul(scale);
    eps = given_eps * scale * scale;
    if (given_eps > 0) eps = std::max(eps, std::numeric_limits<double>::min());
  }
};
// Whether the cube of a number, which a backward multiplies with, leaves the range of float32.
inline bool has_extremes(const Tensor& inverse) {
  bool found = false;
  if (inverse.scalar_type() != kFloat) return found;
  const auto* r = inverse.const_data_ptr<float>();
  for (int64_t i = 0; i < inverse.numel(); ++i) found |= r[i] < 1e-10f || r[i] > 1e10f;
  return found;
}
inline std::optional<Tensor> in_double(const std::optional<Tensor>& tensor) {
  return tensor.has_value() && tensor->defined() ? std::optional<Tensor>(tensor->to(kDouble))
                                                 : std::nullopt;
}
inline Tensor narrowed(const Tensor& tensor, ScalarType dtype) {
  return tensor.defined() && tensor.scalar_type() != dtype ? tensor.to(dtype) : tensor;
}

// A vector of one number per channel in the wide type.
class PerChannel {
 public:
  PerChannel(int64_t channels, ScalarType dtype) : tensor_(new_tensor({channels}, dtype, kCPU)) {}
  // A copy of a parameter, or `missing` everywhere.
  PerChannel(const std::optional<Tensor>& parameter, int64_t channels, ScalarType dtype,
             double missing) {
    if (parameter.has_value() && parameter->defined()) {
      tensor_ = parameter->to(dtype).contiguous();
    } else {
      tensor_ = lamella::full({channels}, missing, TensorOptions(dtype));
    }
  }
  const Tensor& tensor() const { return tensor_; }
  void* data() const { return tensor_.data_ptr(); }
  template <class T>
  T* as() const {
    return static_cast<T*>(tensor_.data_ptr());
  }

 private:
  Tensor tensor_;
};

}  // namespace lamella::native
