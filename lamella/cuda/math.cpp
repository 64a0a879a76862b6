// Registers the operators whose CPU kernels call the device's matrix products, convolutions,
// transforms and factorisations.
#include "lamella/cuda/math.h"

#include "lamella/cuda/backend.h"
#include "lamella/cuda/families.h"

namespace lamella::cuda {
namespace {

constexpr native::DeviceMath kMath{
    &multiply,  &convolve_forward, &convolve_backward_data, &convolve_backward_weight,
    &transform, &factorize};
constexpr const char* kOperators =
    "mm mm.out bmm bmm.out addmm addmm.out addmm_ _addmm_activation _addmm_activation.out baddbmm "
    "baddbmm.out baddbmm_ addmv addmv.out addmv_ dot vdot addbmm addbmm.out linear "
    "linear_backward _int_mm _int_mm.out convolution convolution_backward linalg_cholesky_ex "
    "linalg_lu_factor_ex linalg_lu lu_unpack _linalg_solve_ex linalg_inv_ex linalg_lu_solve "
    "_linalg_det _linalg_slogdet linalg_solve_triangular linalg_qr _linalg_svd _linalg_eigh "
    "_fft_c2c _fft_r2c _fft_c2r ";

// The CPU's kernels see no devices in what they hand over, so tensors of several devices are left
// to the fallback, which words the error.
lamella_status run_on_one_device(const lamella_kernel* kernel, const lamella_operator* op,
                                 uint64_t key_set, const lamella_value* arguments,
                                 lamella_value* returns) noexcept {
  const lamella_tensor* first = nullptr;
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    if (arguments[i].tag != LAMELLA_TENSOR || arguments[i].as.tensor == nullptr) continue;
    const lamella_tensor* tensor = arguments[i].as.tensor;
    if (first == nullptr) first = tensor;
    if (tensor->device_type != first->device_type || tensor->device_index != first->device_index) {
      return counting_fallback(kernel, op, key_set, arguments, returns);
    }
  }
  return run_structured(kernel, op, key_set, arguments, returns);
}

}  // namespace

const native::DeviceMath* register_math(Library& aten) {
  each_word(kOperators, [&](const std::string& name) {
    aten.impl(name.c_str(), CppFunction::makeFromBoxedKernel(&run_on_one_device));
  });
  return &kMath;
}

}  // namespace lamella::cuda
