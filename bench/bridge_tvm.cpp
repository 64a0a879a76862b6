// A peer of bench/bridge.py: log(cosh(x)) as a function of tvm-ffi, which returns a new tensor of
// the caller's framework.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <cmath>

namespace {
namespace ffi = tvm::ffi;
ffi::Tensor logcosh(ffi::TensorView x) {
  const DLDataType type = x.dtype();
  if (type.code != kDLFloat || type.bits != 32 || !x.IsContiguous()) {
    TVM_FFI_THROW(TypeError) << "logcosh: expected 'x' to be contiguous and float32";
  }
  ffi::Tensor out = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), type, x.device());
  const auto* a = static_cast<const float*>(x.data_ptr());
  auto* to = static_cast<float*>(out.data_ptr());
  for (int64_t i = 0, n = out.numel(); i < n; ++i) {
    const float each = std::abs(a[i]);
    to[i] = each + std::log1p(std::exp(-2 * each)) - 0.6931471805599453f;
  }
  return out;
}
}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(logcosh, logcosh)
