// Padding and interpolation: preparation of the loops' operands, and the loop for operators that
// only copy.
#include "lamella/kernels/cpu/resample.h"

#include <cstring>

#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {
// The memory formats of the result and of the loops. Innermost channels are lanes.
struct Layout {
  MemoryFormat format, inner = MemoryFormat::Contiguous;
  int64_t lanes = 1;

  Layout(Resample& r, const Tensor& given) : format(given.suggest_memory_format()) {
    if (format == MemoryFormat::Contiguous || r.leading != 2) return;
    inner = format;
    lanes = r.shape[1];
    r.planes = r.shape[0];
  }
  Tensor made(IntArrayRef shape, ScalarType dtype) const {
    return new_strided(shape, strides_in_format(shape, inner), dtype, kCPU);
  }
  Tensor finished(const Tensor& t, ScalarType dtype) const {
    Tensor cast = t.scalar_type() == dtype ? t : t.to(dtype);
    return format == inner ? cast : cast.contiguous(format);
  }
};

ResampleLines lines_of(const Resample& r, int64_t lanes, const Tensor& from, const Tensor& to) {
  return {to.scalar_type(),
          lanes,
          {r.axes[0].table(), r.axes[1].table(), r.axes[2].table()},
          from.const_data_ptr(),
          to.data_ptr()};
}

// Consecutive outputs that read consecutive inputs.
struct Run {
  int64_t from, to, count;
};
std::vector<Run> runs_of(const std::vector<int64_t>& places) {
  std::vector<Run> runs;
  for (size_t o = 0; o < places.size(); ++o) {
    if (!runs.empty() && places[o] == runs.back().from + runs.back().count) {
      ++runs.back().count;
    } else {
      runs.push_back({places[o], static_cast<int64_t>(o), 1});
    }
  }
  return runs;
}

// Output lines [begin, end), of elements that are moved as T.
template <class T>
void copy_lines(const ResampleLines& p, int64_t begin, int64_t end) {
  const ResampleTable *a = p.axes, *b = p.axes + 1, *c = p.axes + 2;
  std::vector<Run> runs = runs_of(std::vector<int64_t>(c->first, c->first + c->out));
  bool by_element = p.lanes == 1 && static_cast<int64_t>(runs.size()) * 4 > c->out;
  int64_t size = c->out * p.lanes, before = -1;
  auto move = [](const T* from, T* to, int64_t n) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  };
  for (int64_t row = begin; row < end; ++row) {
    int64_t plane = row / (a->out * b->out);
    int64_t line =
        (plane * a->in + a->first[row / b->out % a->out]) * b->in + b->first[row % b->out];
    T* y = static_cast<T*>(p.to) + row * size;
    const T* x = static_cast<const T*>(p.from) + line * c->in * p.lanes;
    if (line == before) {
      move(y - size, y, size);
    } else if (by_element) {
      for (int64_t k = 0; k < c->out; ++k) y[k] = x[c->first[k]];
    } else {
      for (const Run& run : runs) {
        move(x + run.from * p.lanes, y + run.to * p.lanes, run.count * p.lanes);
      }
    }
    before = line;
  }
}
}  // namespace

Tensor resample(const char* op, Resample r, const Tensor& input) {
  ScalarType dtype = input.scalar_type();
  Layout layout(r, input);
  if (input.is_meta()) {
    return new_strided(r.shape, strides_in_format(r.shape, layout.format), dtype, kMeta);
  }
  ScalarType wide = dtype;
  if (r.mixes) {
    wide = visit_floating(dtype, op, [](auto tag) {
      return std::is_same_v<type_of<decltype(tag)>, double> ? kDouble : kFloat;
    });
  }
  Tensor x = (dtype == wide ? input : input.to(wide)).contiguous(layout.inner);
  Tensor out = layout.made(r.shape, wide);
  if (out.numel() == 0) return layout.finished(out, dtype);
  r.lay();
  ResampleLines lines = lines_of(r, layout.lanes, x, out);
  auto run = [&](resample_fn kernel) {
    int64_t size = r.axes[2].out * layout.lanes;
    parallel_for(0, r.planes * r.axes[0].out * r.axes[1].out, kGrainSize / 4 / (size + 1) + 1,
                 [&](int64_t begin, int64_t end) { kernel(lines, begin, end); });
  };
  if (r.mixes) {
    run(resample_on.get(kCPU));
  } else {
    visit_bytes(element_size(dtype), [&](auto tag) { run(&copy_lines<type_of<decltype(tag)>>); });
  }
  return layout.finished(out, dtype);
}

Tensor resample_backward(const char* op, Resample r, const Tensor& grad, IntArrayRef sizes) {
  LAMELLA_CHECK(grad.sizes().equals(r.shape), op, ": expected 'grad_output' to be of shape ",
                r.shape, ", got ", grad.sizes());
  ScalarType dtype = grad.scalar_type();
  Layout layout(r, grad);
  if (grad.is_meta()) {
    return new_strided(sizes, strides_in_format(sizes, layout.format), dtype, kMeta);
  }
  bool is_complex = dtype == kComplexFloat || dtype == kComplexDouble;
  ScalarType wide = dtype;
  if (!is_complex) {
    wide = visit_floating(dtype, op, [](auto tag) {
      return std::is_same_v<type_of<decltype(tag)>, double> ? kDouble : kFloat;
    });
  }
  Tensor g = (dtype == wide ? grad : grad.to(wide)).contiguous(layout.inner);
  Tensor out = layout.made(sizes, wide);
  out.zero_();
  if (g.numel() != 0) {
    r.lay();
    ResampleLines lines = lines_of(r, layout.lanes, g, out);
    if (is_complex) {  // two real lanes
      lines.lanes *= 2;
      lines.dtype = dtype == kComplexFloat ? kFloat : kDouble;
    }
    int64_t each = layout.lanes * (r.outputs() + r.inputs());
    parallel_for(0, r.planes, kGrainSize / 4 / (each + 1) + 1, [&](int64_t begin, int64_t end) {
      resample_backward_on(kCPU, lines, begin, end);
    });
  }
  return layout.finished(out, dtype);
}

}  // namespace lamella::native
