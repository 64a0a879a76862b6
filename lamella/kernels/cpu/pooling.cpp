// Pooling over windows: the tables, and the loops of maximum and average.
#include "lamella/kernels/cpu/pooling.h"

#include <limits>

#include "lamella/core/checked_size.h"
#include "lamella/core/interrupt.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {
// Planes, input sizes and the lead of the output's shape.
Pooling pooling_of(const char* op, const Tensor& input, int spatial) {
  int64_t rank = input.dim();
  LAMELLA_CHECK(rank == spatial + 1 || rank == spatial + 2, op, ": expected 'self' to have ",
                spatial + 1, " or ", spatial + 2, " dimensions, got ", input.sizes());
  Pooling p;
  size_t lead = static_cast<size_t>(rank - spatial);
  for (size_t d = 0; d < lead; ++d) {
    p.planes *= input.sizes()[d];
    p.shape.push_back(input.sizes()[d]);
  }
  for (int d = 0; d < spatial; ++d) {
    int64_t size = input.sizes()[lead + static_cast<size_t>(d)];
    LAMELLA_CHECK(size > 0, op, ": expected 'self' to have elements in its last ", spatial,
                  " dimensions, got ", input.sizes());
    p.in[3 - spatial + d] = size;
  }
  p.format = input.suggest_memory_format();
  return p;
}
int64_t entry(const char* op, const char* name, IntArrayRef list, int spatial, int d) {
  LAMELLA_CHECK(list.size() == 1 || list.size() == static_cast<size_t>(spatial), op, ": expected '",
                name, "' to have 1 or ", spatial, " entries, got ", list);
  return list[list.size() == 1 ? 0 : static_cast<size_t>(d)];
}
}  // namespace

void Pooling::lay() {
  for (int d = 0; d < 3; ++d) {
    if (layer[d]) {
      layer[d](ranges[d]);
    } else {
      ranges[d].push_back({0, 1, 1, 1});
    }
  }
}

Pooling fixed_pooling(const char* op, const Tensor& input, int spatial, const PoolWindow& window) {
  Pooling p = pooling_of(op, input, spatial);
  static constexpr int64_t one[1] = {1};
  IntArrayRef stride = window.stride.empty() ? window.kernel : window.stride;
  IntArrayRef dilation = window.dilation.empty() ? IntArrayRef(one) : window.dilation;
  CheckedSize positions(1, op);  // in a window
  for (int d = 0; d < spatial; ++d) {
    int64_t k = entry(op, "kernel_size", window.kernel, spatial, d);
    int64_t s = entry(op, "stride", stride, spatial, d);
    int64_t pad = entry(op, "padding", window.padding, spatial, d);
    int64_t step = entry(op, "dilation", dilation, spatial, d);
    LAMELLA_CHECK(k > 0, op, ": expected 'kernel_size' to be greater than 0, got ", window.kernel);
    LAMELLA_CHECK(s > 0, op, ": expected 'stride' to be greater than 0, got ", stride);
    LAMELLA_CHECK(step > 0, op, ": expected 'dilation' to be greater than 0, got ", dilation);
    int64_t reach = (CheckedSize(k - 1, op) * step + 1).value();
    LAMELLA_CHECK(pad >= 0 && pad <= reach / 2, op, ": expected 'padding' to be at most half of ",
                  "the window of ", reach, ", got ", window.padding);
    int at = 3 - spatial + d;
    int64_t size = p.in[at], padded = (CheckedSize(pad, op) + size).value();
    int64_t room = (CheckedSize(padded, op) + pad - reach).value();
    int64_t count = room < 0 ? 0 : room / s + 1;
    // One more window may begin inside the input or its left padding, but not behind.
    if (window.ceil_mode && room > -s && room % s != 0 && (padded - 1) / s >= count) ++count;
    LAMELLA_CHECK(count > 0, op, ": expected an output of at least one element, got 'self' ",
                  input.sizes(), " with a window of ", reach);
    p.out[at] = count;
    p.shape.push_back(count);
    positions *= reach;
    p.layer[at] = [=, count_padding = window.count_padding](std::vector<PoolRange>& ranges) {
      for (int64_t o = 0; o < count; ++o) {
        int64_t begin = o * s - pad;
        int64_t covered = reach < padded - begin ? reach : padded - begin;
        int64_t end = begin + covered;
        if (end > size) end = size;
        if (begin < 0) begin += (-begin - 1) / step * step + step;
        // A step beyond the input is one past its end.
        ranges.push_back(
            {begin, end, step < size ? step : size, count_padding ? covered : end - begin});
      }
    };
  }
  return p;
}

Pooling adaptive_pooling(const char* op, const Tensor& input, int spatial,
                         IntArrayRef output_size) {
  LAMELLA_CHECK(output_size.size() == static_cast<size_t>(spatial), op,
                ": expected 'output_size' to have ", spatial, " entries, got ", output_size);
  Pooling p = pooling_of(op, input, spatial);
  for (int d = 0; d < spatial; ++d) {
    int64_t count = output_size[static_cast<size_t>(d)];
    LAMELLA_CHECK(count >= 0, op, ": expected 'output_size' not to be negative, got ", output_size);
    int at = 3 - spatial + d;
    int64_t size = p.in[at];
    p.out[at] = count;
    p.shape.push_back(count);
    p.layer[at] = [=](std::vector<PoolRange>& ranges) {
      for (int64_t o = 0; o < count; ++o) {
        int64_t begin = o * size / count, end = ((o + 1) * size + count - 1) / count;
        ranges.push_back({begin, end, 1, end - begin});
      }
    };
  }
  return p;
}

namespace {
int64_t plane_grain(const Pooling& p) {
  return kGrainSize / 4 / (p.outputs() + p.inputs() + 1) + 1;
}
Tensor in_format(const Pooling& p, const Tensor& tensor) {
  return p.format == MemoryFormat::Contiguous ? tensor : tensor.contiguous(p.format);
}
Tensor on_meta(const Pooling& p, IntArrayRef shape, ScalarType dtype) {
  return new_strided(shape, strides_in_format(shape, p.format), dtype, kMeta);
}

// f(ranges of the three dimensions, output position) for every output position of a plane.
template <class F>
void each_output(const Pooling& p, F&& f) {
  int64_t o = 0;
  for (const PoolRange& a : p.ranges[0]) {
    for (const PoolRange& b : p.ranges[1]) {
      for (const PoolRange& c : p.ranges[2]) {
        // A window counts by its lines.
        count_steps((a.end - a.begin) * (b.end - b.begin));
        f(a, b, c, o++);
      }
    }
  }
}

template <class T>
void max_planes(const Pooling& p, const T* in, T* out, int64_t* indices, int64_t begin,
                int64_t end) {
  using C = compute_type<T>;
  for (int64_t n = begin; n < end; ++n) {
    const T* x = in + n * p.inputs();
    T* y = out + n * p.outputs();
    int64_t* at = indices + n * p.outputs();
    each_output(p, [&](const PoolRange& a, const PoolRange& b, const PoolRange& c, int64_t o) {
      int64_t best_at = (a.begin * p.in[1] + b.begin) * p.in[2] + c.begin;
      C best = std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                    : std::numeric_limits<C>::lowest();
      for (int64_t i = a.begin; i < a.end; i += a.step) {
        for (int64_t j = b.begin; j < b.end; j += b.step) {
          int64_t line = (i * p.in[1] + j) * p.in[2];
          for (int64_t k = c.begin; k < c.end; k += c.step) {
            C value = static_cast<C>(x[line + k]);
            bool better = value > best || value != value;
            best = better ? value : best;
            best_at = better ? line + k : best_at;
          }
        }
      }
      y[o] = static_cast<T>(best);
      at[o] = best_at;
    });
  }
}

// The quotient of the least integer and -1 wraps.
template <class C>
C mean_of(C sum, int64_t count) {
  if constexpr (std::is_integral_v<C>) {
    if (count == -1) return static_cast<C>(0 - static_cast<uint64_t>(sum));
  }
  return sum / static_cast<C>(count);
}

template <class T>
void average_planes(const Pooling& p, const T* in, T* out, int64_t begin, int64_t end) {
  using C = compute_type<T>;
  for (int64_t n = begin; n < end; ++n) {
    const T* x = in + n * p.inputs();
    T* y = out + n * p.outputs();
    each_output(p, [&](const PoolRange& a, const PoolRange& b, const PoolRange& c, int64_t o) {
      C sum = 0;
      for (int64_t i = a.begin; i < a.end; ++i) {
        for (int64_t j = b.begin; j < b.end; ++j) {
          const T* line = x + (i * p.in[1] + j) * p.in[2];
          for (int64_t k = c.begin; k < c.end; ++k) sum += static_cast<C>(line[k]);
        }
      }
      int64_t count = p.divisor != 0 ? p.divisor : a.count * b.count * c.count;
      y[o] = static_cast<T>(mean_of(sum, count));
    });
  }
}
template <class T>
void average_planes_backward(const Pooling& p, const T* grad, T* out, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    const T* g = grad + n * p.outputs();
    T* x = out + n * p.inputs();
    each_output(p, [&](const PoolRange& a, const PoolRange& b, const PoolRange& c, int64_t o) {
      int64_t count = p.divisor != 0 ? p.divisor : a.count * b.count * c.count;
      T share = g[o] / static_cast<T>(count);
      for (int64_t i = a.begin; i < a.end; ++i) {
        for (int64_t j = b.begin; j < b.end; ++j) {
          T* line = x + (i * p.in[1] + j) * p.in[2];
          for (int64_t k = c.begin; k < c.end; ++k) line[k] += share;
        }
      }
    });
  }
}

// Gradients are summed in float32 or float64.
struct Summed {
  Tensor grad, out;
  ScalarType dtype;

  Summed(const char* op, Pooling& p, const Tensor& given, const Tensor& input)
      : dtype(given.scalar_type()) {
    LAMELLA_CHECK(given.sizes().equals(p.shape), op, ": expected 'grad_output' to be of shape ",
                  p.shape, ", got ", given.sizes());
    LAMELLA_CHECK_NOT_IMPLEMENTED(given.is_floating_point(), op,
                                  ": expected 'grad_output' to be floating point, got ", dtype);
    ScalarType wide = dtype == kDouble ? kDouble : kFloat;
    if (given.is_meta()) {
      out = on_meta(p, input.sizes(), dtype);
      return;
    }
    grad = given.to(wide).contiguous();
    out = new_tensor(input.sizes(), wide, kCPU);
    out.zero_();
    if (grad.numel() != 0) p.lay();
  }
  template <class F>
  Tensor run(const Pooling& p, F&& f) {
    if (grad.defined()) {
      parallel_for(0, p.planes, plane_grain(p), [&](int64_t begin, int64_t end) {
        if (grad.scalar_type() == kDouble) {
          f(static_cast<const double*>(grad.const_data_ptr()), static_cast<double*>(out.data_ptr()),
            begin, end);
        } else {
          f(static_cast<const float*>(grad.const_data_ptr()), static_cast<float*>(out.data_ptr()),
            begin, end);
        }
      });
      out = in_format(p, out.scalar_type() == dtype ? out : out.to(dtype));
    }
    return out;
  }
};
}  // namespace

std::tuple<Tensor, Tensor> max_pooling(const char* op, Pooling p, const Tensor& input) {
  ScalarType dtype = input.scalar_type();
  if (input.is_meta()) return {on_meta(p, p.shape, dtype), on_meta(p, p.shape, kLong)};
  Tensor x = input.contiguous();
  Tensor out = new_tensor(p.shape, dtype, kCPU), indices = new_tensor(p.shape, kLong, kCPU);
  if (out.numel() != 0) p.lay();
  visit_real(dtype, op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    parallel_for(0, p.planes, plane_grain(p), [&](int64_t begin, int64_t end) {
      max_planes<T>(p, static_cast<const T*>(x.const_data_ptr()), static_cast<T*>(out.data_ptr()),
                    static_cast<int64_t*>(indices.data_ptr()), begin, end);
    });
  });
  return {in_format(p, out), in_format(p, indices)};
}

Tensor max_pooling_backward(const char* op, Pooling p, const Tensor& grad, const Tensor& input,
                            const Tensor& indices) {
  LAMELLA_CHECK(indices.sizes().equals(p.shape), op, ": expected 'indices' to be of shape ",
                p.shape, ", got ", indices.sizes());
  LAMELLA_CHECK(indices.scalar_type() == kLong, op, ": expected 'indices' to be int64, got ",
                indices.scalar_type());
  Summed summed(op, p, grad, input);
  if (grad.is_meta()) return summed.out;
  Tensor at = indices.contiguous();
  auto* places = static_cast<const int64_t*>(at.const_data_ptr());
  int64_t inputs = p.inputs(), outputs = p.outputs();
  return summed.run(p, [&](const auto* g, auto* x, int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t o = n * outputs; o < (n + 1) * outputs; ++o) {
        LAMELLA_CHECK_INDEX(places[o] >= 0 && places[o] < inputs, op,
                            ": expected the elements of 'indices' to be in [0, ", inputs, "), got ",
                            places[o]);
        x[n * inputs + places[o]] += g[o];
      }
    }
  });
}

Tensor average_pooling(const char* op, Pooling p, const Tensor& input) {
  ScalarType dtype = input.scalar_type();
  LAMELLA_CHECK_NOT_IMPLEMENTED(input.is_floating_point() || dtype == kLong, op,
                                ": expected 'self' to be floating point or int64, got ", dtype);
  if (input.is_meta()) return on_meta(p, p.shape, dtype);
  Tensor x = input.contiguous(), out = new_tensor(p.shape, dtype, kCPU);
  if (out.numel() != 0) p.lay();
  auto run = [&](auto tag) {
    using T = type_of<decltype(tag)>;
    parallel_for(0, p.planes, plane_grain(p), [&](int64_t begin, int64_t end) {
      average_planes<T>(p, static_cast<const T*>(x.const_data_ptr()),
                        static_cast<T*>(out.data_ptr()), begin, end);
    });
  };
  if (dtype == kLong) {
    run(TypeTag<int64_t>());
  } else {
    visit_floating(dtype, op, run);
  }
  return in_format(p, out);
}
Tensor average_pooling_backward(const char* op, Pooling p, const Tensor& grad,
                                const Tensor& input) {
  return Summed(op, p, grad, input).run(p, [&](const auto* g, auto* x, int64_t begin, int64_t end) {
    average_planes_backward(p, g, x, begin, end);
  });
}

}  // namespace lamella::native
