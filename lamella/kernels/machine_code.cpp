// Functions that generated machine code calls: the kernels' threads, products and convolutions.
#include "lamella/kernels/machine_code.h"

#include <algorithm>
#include <vector>

#include "lamella/kernels/cpu/convolution.h"
#include "lamella/kernels/cpu/copy.h"
#include "lamella/kernels/cpu/gemm.h"
#include "lamella/kernels/cpu/simd/gemm.h"
#include "lamella/kernels/dispatch_stub.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

int code_capability() { return static_cast<int>(get_cpu_capability()); }

void code_product(const CodeProduct& p, const void* a, const void* b, void* c,
                  lamella_storage* storage, const void* d) {
  Gemm problem{static_cast<ScalarType>(p.dtype),
               p.batch,
               p.m,
               p.n,
               p.k,
               {a, p.a_row, p.a_column, p.a_batch},
               {b, p.b_row, p.b_column, p.b_batch, p.batch == 1 ? storage : nullptr},
               {c, p.n, 1, p.m * p.n},
               1,
               d != nullptr ? 1 : 0,
               {d, 0, p.d_column, 0}};
  if (p.result != p.dtype) problem.result = static_cast<ScalarType>(p.result);
  gemm("dot", problem);
}

bool code_multiplies(int64_t a, int64_t b, int64_t sums, int64_t k) {
  auto left = static_cast<ScalarType>(a), right = static_cast<ScalarType>(b);
  auto result = static_cast<ScalarType>(sums);
  if (left == kBFloat16 && right == left && result == kFloat) return has_gemm(left) && k % 2 == 0;
  if ((left != kChar && left != kByte) || right != kChar || result != kInt) return false;
  const GemmKernels* kernels = byte_gemm_kernels_on(kCPU, left);
  return kernels != nullptr && k > 0 && k % kernels->group == 0;
}

void code_copy(int64_t bytes, int64_t ndim, const int64_t* sizes, const int64_t* strides,
               const void* from, void* to) {
  ScalarType dtype = bytes == 1   ? ScalarType::Byte
                     : bytes == 2 ? ScalarType::Short
                     : bytes == 4 ? ScalarType::Int
                                  : ScalarType::Long;
  std::vector<int64_t> dense(static_cast<size_t>(ndim));
  int64_t stride = 1;
  for (size_t d = dense.size(); d-- > 0; stride *= sizes[d]) dense[d] = stride;
  copy_strided(sizes, ndim, {to, dense.data(), dtype}, {const_cast<void*>(from), strides, dtype});
}

void code_convolution(const CodeConvolution& p, void* src, void* weights, void* dst,
                      lamella_storage* storage, const void* bias) {
  lamella_convolution c{};
  c.kind = static_cast<uint8_t>(p.kind);
  c.ndim = static_cast<uint8_t>(p.ndim);
  c.batch = p.batch;
  c.groups = p.groups;
  c.in_channels = p.in_channels;
  c.out_channels = p.out_channels;
  std::ranges::copy(p.in, c.in);
  std::ranges::copy(p.out, c.out);
  std::ranges::copy(p.kernel, c.kernel);
  std::ranges::copy(p.stride, c.stride);
  std::ranges::copy(p.padding, c.padding);
  std::ranges::copy(p.padding_end, c.padding_end);
  std::ranges::copy(p.dilation, c.dilation);
  std::ranges::copy(p.src_strides, c.src_strides);
  std::ranges::copy(p.weights_strides, c.weights_strides);
  std::ranges::copy(p.dst_strides, c.dst_strides);
  c.src = src;
  c.weights = weights;
  c.bias = bias;
  c.dst = dst;
  convolution_in_place("convolution", c, storage);
}

void code_parallel(void (*function)(void* const* buffers, int64_t begin, int64_t end),
                   void* const* buffers, int64_t count, int64_t grain) {
  parallel_for(0, count, grain, [&](int64_t begin, int64_t end) { function(buffers, begin, end); });
}

}  // namespace lamella::native
