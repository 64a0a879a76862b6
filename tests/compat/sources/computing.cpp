// Kernels over vectors and iterators, chosen by a stub, as operators of PyTorch's are written.
#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/cpu/Loops.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

namespace {
using namespace at::vec;

// gelu by the logistic function, of numbers and of vectors.
void swish_kernel(at::TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.dtype(), "swish", [&] {
    using Vec = Vectorized<scalar_t>;
    const Vec one(1);
    at::native::cpu_kernel_vec(
        iter, [](scalar_t x) -> scalar_t { return x / (1 + std::exp(-x)); },
        [one](Vec x) -> Vec { return x / (one + x.neg().exp()); });
  });
}
using swish_fn = void (*)(at::TensorIteratorBase&);
}  // namespace

namespace at::native {
DECLARE_DISPATCH(swish_fn, swish_stub)
DEFINE_DISPATCH(swish_stub);
REGISTER_ALL_CPU_DISPATCH(swish_stub, &swish_kernel)
}  // namespace at::native

namespace {

at::Tensor swish(const at::Tensor& x) {
  at::Tensor out;
  auto iter = at::TensorIterator::unary_op(out, x);
#if __has_include(<lamella/lamella.h>)
  at::native::swish_stub(iter.device_type(), iter);
#else  // PyTorch does not export what its stubs call
  swish_kernel(iter);
#endif
  return iter.output();
}
at::Tensor& swish_out(const at::Tensor& x, at::Tensor& out) {
  auto iter = at::TensorIteratorConfig().add_output(out).add_const_input(x).build();
  swish_kernel(iter);
  return out;
}
at::Tensor scaled_difference(const at::Tensor& a, const at::Tensor& b, double scale) {
  at::Tensor out;
  auto iter = at::TensorIterator::binary_op(out, a, b);
  AT_DISPATCH_ALL_TYPES(iter.common_dtype(), "scaled_difference", [&] {
    scalar_t factor = static_cast<scalar_t>(scale);
    at::native::cpu_kernel(
        iter, [factor](scalar_t x, scalar_t y) -> scalar_t { return (x - y) * factor; });
  });
  return iter.output();
}
at::Tensor within(const at::Tensor& a, const at::Tensor& b, double far) {
  at::Tensor out = at::empty({0}, a.options().dtype(at::kBool));
  auto iter = at::TensorIteratorConfig()
                  .check_all_same_dtype(false)
                  .add_output(out)
                  .add_const_input(a)
                  .add_const_input(b)
                  .build();
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "within", [&] {
    at::native::cpu_kernel(
        iter, [far](scalar_t x, scalar_t y) -> bool { return std::abs(x - y) <= far; });
  });
  return out;
}
std::tuple<at::Tensor, at::Tensor> polar(const at::Tensor& x, const at::Tensor& y) {
  at::Tensor r = at::empty_like(x), angle = at::empty_like(x);
  auto iter = at::TensorIteratorConfig()
                  .add_output(r)
                  .add_output(angle)
                  .add_const_input(x)
                  .add_const_input(y)
                  .build();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "polar", [&] {
    at::native::cpu_kernel_multiple_outputs(
        iter, [](scalar_t a, scalar_t b) -> std::tuple<scalar_t, scalar_t> {
          return {std::sqrt(a * a + b * b), std::atan2(b, a)};
        });
  });
  return {r, angle};
}
// A walk by strides, with a loop of one's own.
double dot(const at::Tensor& a, const at::Tensor& b) {
  double sum = 0;
  auto iter = at::TensorIteratorConfig()
                  .add_const_input(a)
                  .add_const_input(b)
                  .resize_outputs(false)
                  .build();
  iter.for_each(
      [&](char** data, const int64_t* strides, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          sum += *reinterpret_cast<double*>(data[0] + i * strides[0]) *
                 *reinterpret_cast<double*>(data[1] + i * strides[1]);
        }
      },
      at::internal::GRAIN_SIZE * 1000);
  return sum;
}

std::vector<double> vectors(const at::Tensor& given) {
  TORCH_CHECK(given.is_contiguous() && given.scalar_type() == at::kFloat)
  const float* x = given.const_data_ptr<float>();
  int64_t size = given.numel();
  using Vec = Vectorized<float>;
  std::vector<float> y(size);
  at::vec::map<float>([](Vec v) { return v.abs().sqrt() + Vec(1); }, y.data(), x, size);
  at::vec::map2<float>([](Vec a, Vec b) { return maximum(a, b) * Vec(2); }, y.data(), y.data(), x,
                       size);
  float sum = at::vec::reduce_all<float>([](Vec& a, Vec& b) { return a + b; }, y.data(), size);
  float most = at::vec::map_reduce_all<float>([](Vec v) { return v * v; },
                                              [](Vec a, Vec b) { return maximum(a, b); }, x, size);
  Vec head = Vec::loadu(x, 3);
  Vec mask = head > Vec(0.f);
  float kept[Vec::size()];
  Vec::blendv(Vec(-1.f), head, mask).store(kept);
  Vectorized<double> d = Vectorized<double>(2.0).pow(Vectorized<double>(0.5));
  Vectorized<int64_t> bits = Vectorized<int64_t>(6) & Vectorized<int64_t>(3);
  return {sum,
          most,
          kept[0],
          kept[1],
          kept[2],
          kept[Vec::size() - 1],
          d[0],
          static_cast<double>(bits[0]),
          clamp(head, Vec(0.f), Vec(1.f))[0],
          static_cast<double>(head.eq(head)[1]),
          fmadd(head, head, head)[1]};
}

}  // namespace

TORCH_LIBRARY(compat_computing, m) {
  m.def("swish", &swish);
  m.def("swish.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", &swish_out);
  m.def("scaled_difference", &scaled_difference);
  m.def("within", &within);
  m.def("polar", &polar);
  m.def("dot", &dot);
  m.def("vectors", &vectors);
}
