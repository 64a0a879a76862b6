// The operators with kernels for the devices, and the fallback for all others. A kernel here
// handles dense float tensors of equal shapes, launches its loop and returns at once; it passes
// other calls to the fallback.
#include "backend.h"

#include <cmath>

namespace sim {

using lamella::Scalar;
using lamella::Tensor;

namespace {

Backend& of(const Tensor& tensor) { return backend_of(tensor.device().type()); }

bool plain(const Tensor& t) {
  return t.scalar_type() == lamella::kFloat && t.is_contiguous() && !t.is_conj() && !t.is_neg();
}
bool alike(const Tensor& a, const Tensor& b) {
  return plain(a) && plain(b) && a.device() == b.device() && a.sizes() == b.sizes();
}

// Computes out[i] = f(x[i]) on the current stream. The tensors' memory outlives the work, because
// it is freed on the same stream afterwards.
template <class F>
Tensor map(const Tensor& x, F f) {
  Tensor out = lamella::empty_like(x);
  Backend& backend = of(x);
  lamella::DeviceGuard guard(x.device());
  backend.launch(x.device().index(), [f, n = x.numel(), from = backend.elements<const float>(x),
                                      to = backend.elements<float>(out)] {
    for (int64_t i = 0; i < n; ++i) to[i] = f(from[i]);
  });
  return out;
}
template <class F>
Tensor map(const Tensor& x, const Tensor& y, F f) {
  Tensor out = lamella::empty_like(x);
  Backend& backend = of(x);
  lamella::DeviceGuard guard(x.device());
  backend.launch(x.device().index(),
                 [f, n = x.numel(), a = backend.elements<const float>(x),
                  b = backend.elements<const float>(y), to = backend.elements<float>(out)] {
                   for (int64_t i = 0; i < n; ++i) to[i] = f(a[i], b[i]);
                 });
  return out;
}

Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (!alike(self, other)) {
    return lamella::call_cpu_fallback<lamella::ops::add_Tensor>(self, other, alpha);
  }
  return map(self, other, [a = alpha.to<float>()](float x, float y) { return x + a * y; });
}
Tensor mul(const Tensor& self, const Tensor& other) {
  if (!alike(self, other)) {
    return lamella::call_cpu_fallback<lamella::ops::mul_Tensor>(self, other);
  }
  return map(self, other, [](float x, float y) { return x * y; });
}
Tensor neg(const Tensor& self) {
  if (!plain(self)) return lamella::call_cpu_fallback<lamella::ops::neg>(self);
  return map(self, [](float x) { return -x; });
}
Tensor relu(const Tensor& self) {
  if (!plain(self)) return lamella::call_cpu_fallback<lamella::ops::relu>(self);
  return map(self, [](float x) { return std::isnan(x) || x > 0 ? x : 0; });
}

Tensor& fill(Tensor& self, const Scalar& value) {
  if (!plain(self) || value.isComplex()) {
    return lamella::call_cpu_fallback<lamella::ops::fill__Scalar>(self, value);
  }
  Backend& backend = of(self);
  lamella::DeviceGuard guard(self.device());
  backend.launch(self.device().index(),
                 [n = self.numel(), v = value.to<float>(), to = backend.elements<float>(self)] {
                   for (int64_t i = 0; i < n; ++i) to[i] = v;
                 });
  lamella_tensor_bump_version(self.impl());
  return self;
}

Tensor mm(const Tensor& self, const Tensor& mat2) {
  bool fits = plain(self) && plain(mat2) && self.device() == mat2.device() && self.dim() == 2 &&
              mat2.dim() == 2 && self.size(1) == mat2.size(0);
  if (!fits) return lamella::call_cpu_fallback<lamella::ops::mm>(self, mat2);
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(1);
  Tensor out = lamella::empty({m, n}, self.options());
  Backend& backend = of(self);
  lamella::DeviceGuard guard(self.device());
  backend.launch(self.device().index(), [m, k, n, a = backend.elements<const float>(self),
                                         b = backend.elements<const float>(mat2),
                                         c = backend.elements<float>(out)] {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += static_cast<double>(a[i * k + l]) * static_cast<double>(b[l * n + j]);
        }
        c[i * n + j] = static_cast<float>(sum);
      }
    }
  });
  return out;
}

}  // namespace

void register_kernels(lamella::DispatchKey key, std::vector<lamella::Library>& libraries) {
  using lamella::CppFunction;
  using lamella::Library;
  Library& everything = libraries.emplace_back(Library::IMPL, "_", key, __FILE__, __LINE__);
  everything.fallback(CppFunction::makeFromBoxedFunction<&lamella::cpu_fallback>());
  Library& aten = libraries.emplace_back(Library::IMPL, "aten", key, __FILE__, __LINE__);
  aten.impl("add.Tensor", LAMELLA_FN(&add));
  aten.impl("mul.Tensor", LAMELLA_FN(&mul));
  aten.impl("neg", LAMELLA_FN(&neg));
  aten.impl("relu", LAMELLA_FN(&relu));
  aten.impl("fill_.Scalar", LAMELLA_FN(&fill));
  aten.impl("mm", LAMELLA_FN(&mm));
}

}  // namespace sim
