// What the devices "cuda" solve of kernels/device_math.h: each function returns false, before
// anything is written, for a problem that no library or kernel solves.
#pragma once
#include "lamella/kernels/device_math.h"

namespace lamella::cuda {

bool multiply(const char* op, const native::Gemm& problem);
bool convolve_forward(const char* op, const native::Convolution& c, const Tensor& src,
                      const Tensor& weight, const Tensor& bias, const Tensor& dst);
bool convolve_backward_data(const char* op, const native::Convolution& c, const Tensor& dst,
                            const Tensor& weight, const Tensor& src);
bool convolve_backward_weight(const char* op, const native::Convolution& c, const Tensor& src,
                              const Tensor& dst, const Tensor& weight);
bool transform(const char* op, const native::DeviceFourier& call);
bool factorize(const char* op, const native::DeviceFactor& call);

}  // namespace lamella::cuda
