// Pooling over windows: fills the tables of ranges and prepares the operands of the loops.
#include "lamella/kernels/cpu/pooling.h"

#include <algorithm>
#include <limits>

#include "lamella/core/checked_size.h"
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
  // Innermost channels are lanes.
  if (rank == spatial + 2 && p.format != MemoryFormat::Contiguous) {
    p.inner = p.format;
    p.planes = input.sizes()[0];
    p.lanes = input.sizes()[1];
  }
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
  // A window that covers the whole plane is a single line.
  bool whole = lanes == 1 && out[1] == 1 && out[2] == 1;
  for (int d = 1; d < 3; ++d) {
    const PoolRange& range = ranges[d].front();
    whole = whole && range.begin == 0 && range.end == in[d] && range.step == 1;
  }
  if (whole) {
    in[2] *= in[1];
    ranges[2].front().end = in[2];
    in[1] = ranges[1].front().end = 1;
  }
}

Pooling fixed_pooling(const char* op, const Tensor& input, int spatial, const PoolWindow& window) {
  Pooling p = pooling_of(op, input, spatial);
  const bool batched = input.dim() == spatial + 2;
  LAMELLA_CHECK(input.sizes()[batched ? 1 : 0] > 0, op, ": expected 'self' to have channels, got ",
                input.sizes());
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
    // One more window is allowed if it begins inside the input or its left padding.
    if (window.ceil_mode && room > -s && room % s != 0 && (padded - 1) / s >= count) ++count;
    LAMELLA_CHECK(count > 0, op, ": expected an output of at least one element, got 'self' ",
                  input.sizes(), " with a window of ", reach);
    p.out[at] = count;
    p.shape.push_back(count);
    positions *= reach;
    auto range_of = [=, count_padding = window.count_padding](int64_t o) -> PoolRange {
      int64_t begin = o * s - pad;
      int64_t covered = reach < padded - begin ? reach : padded - begin;
      int64_t end = begin + covered;
      if (end > size) end = size;
      if (begin < 0) begin += (-begin - 1) / step * step + step;
      // A larger step is never taken; it is limited so that sums with it do not overflow.
      return {begin, end, step < size ? step : size, count_padding ? covered : end - begin};
    };
    p.layer[at] = [=](std::vector<PoolRange>& ranges) {
      ranges.reserve(static_cast<size_t>(count));
      for (int64_t o = 0; o < count; ++o) ranges.push_back(range_of(o));
    };
    // Windows that cross no edge are all of one size.
    p.segments = [=] {
      std::vector<PoolSegment> found;
      for (int64_t o = 0; o < count; o += found.back().count) {
        const bool inside = o * s >= pad && o * s - pad + reach <= size;
        const int64_t equal = inside ? std::min(count - o, (size - reach + pad) / s + 1 - o) : 1;
        found.push_back({o, equal, s, range_of(o)});
      }
      return found;
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
Tensor in_format(const Pooling& p, const Tensor& tensor) {
  return p.format == p.inner ? tensor : tensor.contiguous(p.format);
}
Tensor made(const Pooling& p, IntArrayRef shape, ScalarType dtype) {
  return new_strided(shape, strides_in_format(shape, p.inner), dtype, kCPU);
}
Tensor on_meta(const Pooling& p, IntArrayRef shape, ScalarType dtype) {
  return new_strided(shape, strides_in_format(shape, p.format), dtype, kMeta);
}
Tensor finished(const Pooling& p, const Tensor& tensor, ScalarType dtype) {
  return in_format(p, tensor.scalar_type() == dtype ? tensor : tensor.to(dtype));
}

PoolRows rows_of(const Pooling& p, const Tensor& from, const Tensor& to) {
  PoolRows rows{to.scalar_type(),      p.planes,      p.lanes, {}, {}, {}, p.divisor,
                from.const_data_ptr(), to.data_ptr(), nullptr};
  for (int d = 0; d < 3; ++d) {
    rows.in[d] = p.in[d];
    rows.out[d] = p.out[d];
    rows.ranges[d] = p.ranges[d].data();
  }
  return rows;
}
void run_rows(const Pooling& p, const PoolRows& rows, pool_rows_fn kernel) {
  int64_t count = p.planes * p.out[0] * p.out[1];
  int64_t each = (p.planes * p.lanes * (p.inputs() + p.outputs())) / (count + 1);
  parallel_for(0, count, kGrainSize / 4 / (each + 1) + 1,
               [&](int64_t begin, int64_t end) { kernel(rows, begin, end); });
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
    grad = given.to(wide).contiguous(p.inner);
    out = made(p, input.sizes(), wide);
    out.zero_();
    if (grad.numel() != 0) p.lay();
  }
  // Calls f(begin, end) for ranges of lanes, counted over all planes. One call sums all of a lane.
  template <class F>
  Tensor run(const Pooling& p, F&& f) {
    if (!grad.defined()) return out;
    if (grad.numel() != 0) {
      parallel_for(0, p.planes * p.lanes, kGrainSize / 4 / (p.outputs() + p.inputs() + 1) + 1, f);
    }
    return finished(p, out, dtype);
  }
};

template <class T>
void spread_maxima(const char* op, const Pooling& p, const T* grad, const int64_t* places, T* out,
                   int64_t begin, int64_t end) {
  int64_t inputs = p.inputs(), outputs = p.outputs();
  while (begin < end) {
    int64_t plane = begin / p.lanes, first = begin % p.lanes;
    int64_t count = std::min(p.lanes - first, end - begin);
    T* x = out + plane * inputs * p.lanes + first;
    for (int64_t o = plane * outputs; o < (plane + 1) * outputs; ++o) {
      const T* g = grad + o * p.lanes + first;
      const int64_t* at = places + o * p.lanes + first;
      for (int64_t c = 0; c < count; ++c) {
        LAMELLA_CHECK_INDEX(at[c] >= 0 && at[c] < inputs, op,
                            ": expected the elements of 'indices' to be in [0, ", inputs, "), got ",
                            at[c]);
        x[at[c] * p.lanes + c] += g[c];
      }
    }
    begin += count;
  }
}
}  // namespace

bool has_max_values(const Pooling& p, const Tensor& input) {
  constexpr int64_t kFew = 32;  // windows in a row that are faster together with those of others
  return p.lanes == 1 && p.out[2] > kFew &&
         (input.scalar_type() == kFloat || input.scalar_type() == kDouble);
}
std::tuple<Tensor, Tensor> max_pooling(const char* op, Pooling p, const Tensor& input,
                                       bool values_alone) {
  ScalarType dtype = input.scalar_type();
  if (input.is_meta()) return {on_meta(p, p.shape, dtype), on_meta(p, p.shape, kLong)};
  // There are loops for int32, int64, float32 and float64. Indices have the width of the elements,
  // so planes of more than 2^31 elements are computed in a 64-bit type.
  ScalarType wide = visit_real(dtype, op, [&](auto tag) {
    using T = type_of<decltype(tag)>;
    bool large = sizeof(T) > 4 || p.inputs() > std::numeric_limits<int32_t>::max();
    bool whole = std::is_integral_v<T>;
    return whole ? (large ? kLong : kInt) : (large ? kDouble : kFloat);
  });
  Tensor x = (dtype == wide ? input : input.to(wide)).contiguous(p.inner);
  Tensor out = made(p, p.shape, wide), indices;
  if (!values_alone) indices = made(p, p.shape, kLong);
  if (out.numel() != 0) {
    std::vector<PoolSegment> segments;
    if (values_alone) {
      segments = std::exchange(p.segments, nullptr)();
      p.layer[2] = nullptr;
    }
    p.lay();
    PoolRows rows = rows_of(p, x, out);
    rows.segments = segments.data();
    rows.segment_count = segments.size();
    if (!values_alone) rows.indices = indices.mutable_data_ptr<int64_t>();
    run_rows(p, rows, max_pool_on.get(kCPU));
  }
  return {finished(p, out, dtype), values_alone ? indices : in_format(p, indices)};
}

Tensor max_pooling_backward(const char* op, Pooling p, const Tensor& grad, const Tensor& input,
                            const Tensor& indices) {
  LAMELLA_CHECK(indices.sizes().equals(p.shape), op, ": expected 'indices' to be of shape ",
                p.shape, ", got ", indices.sizes());
  LAMELLA_CHECK(indices.scalar_type() == kLong, op, ": expected 'indices' to be int64, got ",
                indices.scalar_type());
  Summed summed(op, p, grad, input);
  if (grad.is_meta()) return summed.out;
  Tensor at = indices.contiguous(p.inner);
  auto* places = at.const_data_ptr<int64_t>();
  return summed.run(p, [&](int64_t begin, int64_t end) {
    visit_floating(summed.out.scalar_type(), op, [&](auto tag) {
      using T = type_of<decltype(tag)>;
      spread_maxima(op, p, static_cast<const T*>(summed.grad.const_data_ptr()), places,
                    static_cast<T*>(summed.out.data_ptr()), begin, end);
    });
  });
}

Tensor average_pooling(const char* op, Pooling p, const Tensor& input) {
  ScalarType dtype = input.scalar_type();
  LAMELLA_CHECK_NOT_IMPLEMENTED(input.is_floating_point() || dtype == kLong, op,
                                ": expected 'self' to be floating point or int64, got ", dtype);
  if (input.is_meta()) return on_meta(p, p.shape, dtype);
  ScalarType wide = dtype;
  if (dtype != kLong) {
    wide = visit_floating(dtype, op, [](auto tag) {
      return std::is_same_v<type_of<decltype(tag)>, double> ? kDouble : kFloat;
    });
  }
  Tensor x = (dtype == wide ? input : input.to(wide)).contiguous(p.inner);
  Tensor out = made(p, p.shape, wide);
  if (out.numel() != 0) {
    p.lay();
    run_rows(p, rows_of(p, x, out), average_pool_on.get(kCPU));
  }
  return finished(p, out, dtype);
}
Tensor average_pooling_backward(const char* op, Pooling p, const Tensor& grad,
                                const Tensor& input) {
  Summed summed(op, p, grad, input);
  if (grad.is_meta()) return summed.out;
  PoolRows rows = rows_of(p, summed.grad, summed.out);
  return summed.run(
      p, [&](int64_t begin, int64_t end) { average_pool_backward_on(kCPU, rows, begin, end); });
}

}  // namespace lamella::native
