// at::native::cpu_kernel, cpu_kernel_vec and similar functions.
#pragma once
#include <ATen/TensorIterator.h>
#include <ATen/cpu/vec/vec.h>

#include "lamella/kernels/cpu/element_kernel.h"

namespace at::native {
template <class F>
void cpu_kernel(TensorIteratorBase& iter, F&& f, int64_t grain = 32768) {
  lamella::element_kernel(iter, f, grain);
}
template <bool = true, class F, class V>
void cpu_kernel_vec(TensorIteratorBase& iter, F&& f, V&& vectors, int64_t grain = 32768) {
  lamella::element_kernel_vec(iter, f, vectors, grain);
}
template <class F>
void cpu_kernel_multiple_outputs(TensorIteratorBase& iter, F&& f, int64_t grain = 32768) {
  lamella::element_kernel_multiple_outputs(iter, f, grain);
}
template <class F>
void cpu_serial_kernel(TensorIteratorBase& iter, F&& f) {
  lamella::element_kernel(iter, f, INT64_MAX);
}
template <class F, class V>
void cpu_serial_kernel_vec(TensorIteratorBase& iter, F&& f, V&& vectors) {
  lamella::element_kernel_vec(iter, f, vectors, INT64_MAX);
}
}  // namespace at::native
