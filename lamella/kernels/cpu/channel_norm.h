// Shared by batch and group normalisation: parallel calls of the kernels over channels.
#pragma once
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
    channel_moments_stub(kCPU, p, x.const_data_ptr(), mean.data_ptr(), var.data_ptr(), begin, end);
  });
}
inline void channel_sums(const Planes& p, const Tensor& dy, const Tensor& x, const Tensor& mean,
                         const Tensor& sum, const Tensor& dot) {
  parallel_for(0, p.channels, grain_of(p.outer * p.inner), [&](int64_t begin, int64_t end) {
    channel_sums_stub(kCPU, p, dy.const_data_ptr(), x.const_data_ptr(), mean.const_data_ptr(),
                      sum.data_ptr(), dot.data_ptr(), begin, end);
  });
}
inline void channel_affine(const Planes& p, const ChannelAffine& f) {
  parallel_for(0, p.outer * p.channels, grain_of(p.inner),
               [&](int64_t begin, int64_t end) { channel_affine_stub(kCPU, p, f, begin, end); });
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
