// The loops of padding and interpolation.
#include "lamella/kernels/cpu/resample.h"

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {
int64_t plane_grain(const Resample& r) {
  return kGrainSize / 4 / (r.outputs() + r.inputs() + 1) + 1;
}
bool mixes(const Resample& r) {
  return !r.axes[0].second.empty() || !r.axes[1].second.empty() || !r.axes[2].second.empty();
}

// f(output, input, weight) for each element that each output of a plane reads.
template <class C, class F>
void each_read(const Resample& r, F&& f) {
  const auto& [a, b, c] = r.axes;
  int64_t o = 0;
  auto taps = [](const ResampleAxis& axis, size_t at, int64_t(&place)[2], C(&weight)[2]) {
    place[0] = axis.first[at];
    weight[0] = C(1);
    if (axis.second.empty() || axis.share[at] == 0) return 1;
    place[1] = axis.second[at];
    weight[1] = static_cast<C>(axis.share[at]);
    weight[0] = C(1) - weight[1];
    return 2;
  };
  int64_t pa[2], pb[2], pc[2];
  C wa[2], wb[2], wc[2];
  for (size_t i = 0; i < a.first.size(); ++i) {
    int na = taps(a, i, pa, wa);
    for (size_t j = 0; j < b.first.size(); ++j) {
      int nb = taps(b, j, pb, wb);
      for (size_t k = 0; k < c.first.size(); ++k, ++o) {
        int nc = taps(c, k, pc, wc);
        for (int x = 0; x < na; ++x) {
          for (int y = 0; y < nb; ++y) {
            int64_t line = (pa[x] * b.in + pb[y]) * c.in;
            for (int z = 0; z < nc; ++z) f(o, line + pc[z], wa[x] * wb[y] * wc[z]);
          }
        }
      }
    }
  }
}
// f(output, input) where each output is one element.
template <class F>
void each_copy(const Resample& r, F&& f) {
  const auto& [a, b, c] = r.axes;
  int64_t o = 0;
  for (int64_t i : a.first) {
    for (int64_t j : b.first) {
      int64_t line = (i * b.in + j) * c.in;
      for (int64_t k : c.first) f(o++, line + k);
    }
  }
}

template <class T>
void read_planes(const Resample& r, const T* in, T* out, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const T* x = in + n * r.inputs();
    T* y = out + n * r.outputs();
    each_copy(r, [&](int64_t o, int64_t i) { y[o] = x[i]; });
  }
}
template <class T>
void mix_planes(const Resample& r, const T* in, T* out, int64_t begin, int64_t end) {
  using C = compute_type<T>;
  std::vector<C> sums(static_cast<size_t>(r.outputs()));
  for (int64_t n = begin; n < end; ++n) {
    const T* x = in + n * r.inputs();
    for (C& sum : sums) sum = C(0);
    each_read<C>(r, [&](int64_t o, int64_t i, C weight) {
      sums[static_cast<size_t>(o)] += weight * static_cast<C>(x[i]);
    });
    T* y = out + n * r.outputs();
    for (size_t o = 0; o < sums.size(); ++o) y[o] = static_cast<T>(sums[o]);
  }
}
template <class T>
void spread_planes(const Resample& r, const T* grad, T* out, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const T* g = grad + n * r.outputs();
    T* x = out + n * r.inputs();
    if (!mixes(r)) {
      each_copy(r, [&](int64_t o, int64_t i) { x[i] = x[i] + g[o]; });
    } else if constexpr (std::is_floating_point_v<T>) {
      each_read<T>(r, [&](int64_t o, int64_t i, T weight) { x[i] += weight * g[o]; });
    }
  }
}
MemoryFormat format_of(const Tensor& t) { return t.suggest_memory_format(); }
}  // namespace

Tensor resample(const char* op, Resample r, const Tensor& input) {
  ScalarType dtype = input.scalar_type();
  MemoryFormat format = format_of(input);
  if (input.is_meta()) {
    return new_strided(r.shape, strides_in_format(r.shape, format), dtype, kMeta);
  }
  Tensor x = input.contiguous(), out = new_tensor(r.shape, dtype, kCPU);
  if (out.numel() == 0) return out;
  r.lay();
  auto run = [&](auto f) { parallel_for(0, r.planes, plane_grain(r), f); };
  if (mixes(r)) {
    visit_floating(dtype, op, [&](auto tag) {
      using T = type_of<decltype(tag)>;
      run([&](int64_t begin, int64_t end) {
        mix_planes<T>(r, static_cast<const T*>(x.const_data_ptr()), static_cast<T*>(out.data_ptr()),
                      begin, end);
      });
    });
  } else {
    visit_bytes(element_size(dtype), [&](auto tag) {
      using T = type_of<decltype(tag)>;
      run([&](int64_t begin, int64_t end) {
        read_planes<T>(r, static_cast<const T*>(x.const_data_ptr()),
                       static_cast<T*>(out.data_ptr()), begin, end);
      });
    });
  }
  return format == MemoryFormat::Contiguous ? out : out.contiguous(format);
}

Tensor resample_backward(const char* op, Resample r, const Tensor& grad, IntArrayRef sizes) {
  LAMELLA_CHECK(grad.sizes().equals(r.shape), op, ": expected 'grad_output' to be of shape ",
                r.shape, ", got ", grad.sizes());
  ScalarType dtype = grad.scalar_type();
  MemoryFormat format = format_of(grad);
  if (grad.is_meta()) return new_strided(sizes, strides_in_format(sizes, format), dtype, kMeta);
  bool small = dtype == kHalf || dtype == kBFloat16;
  Tensor g = (small ? grad.to(kFloat) : grad).contiguous();
  Tensor out = new_tensor(sizes, g.scalar_type(), kCPU);
  out.zero_();
  if (g.numel() != 0) r.lay();
  auto run = [&](auto tag) {
    using T = type_of<decltype(tag)>;
    parallel_for(0, r.planes, plane_grain(r), [&](int64_t begin, int64_t end) {
      spread_planes<T>(r, static_cast<const T*>(g.const_data_ptr()),
                       static_cast<T*>(out.data_ptr()), begin, end);
    });
  };
  switch (g.scalar_type()) {
    case kFloat:
      run(TypeTag<float>());
      break;
    case kDouble:
      run(TypeTag<double>());
      break;
    case kComplexFloat:
      run(TypeTag<complex<float>>());
      break;
    case kComplexDouble:
      run(TypeTag<complex<double>>());
      break;
    default:
      lamella::detail::throw_dtype(op, dtype);
  }
  if (small) out = out.to(dtype);
  return format == MemoryFormat::Contiguous ? out : out.contiguous(format);
}

}  // namespace lamella::native
