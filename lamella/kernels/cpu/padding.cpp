// Padding by reflection and replication, and the operators' backwards.
#include <algorithm>

#include "lamella/core/checked_size.h"
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/cpu/resample.h"
#include "lamella/kernels/parallel.h"

namespace lamella::native {

namespace {
Resample padded(const char* op, const Tensor& input, IntArrayRef padding, int spatial,
                bool reflects) {
  int64_t rank = input.dim();
  LAMELLA_CHECK(padding.size() == static_cast<size_t>(2 * spatial), op,
                ": expected 'padding' to have ", 2 * spatial, " entries, got ", padding);
  LAMELLA_CHECK(rank == spatial + 1 || rank == spatial + 2, op, ": expected 'self' to have ",
                spatial + 1, " or ", spatial + 2, " dimensions, got ", input.sizes());
  Resample r;
  size_t lead = static_cast<size_t>(rank - spatial);
  r.shape = Dims(input.sizes().slice(0, lead));
  r.planes = product(r.shape);
  r.leading = lead;
  for (int d = 0; d < 3; ++d) {
    ResampleAxis& axis = r.axes[d];
    if (d < 3 - spatial) continue;
    // The last dimension's padding comes first.
    auto entry = static_cast<size_t>(2 * (2 - d));
    int64_t before = padding[entry], after = padding[entry + 1];
    axis.in = input.sizes()[lead + static_cast<size_t>(d - (3 - spatial))];
    LAMELLA_CHECK(axis.in > 0, op, ": expected 'self' to have elements to repeat, got ",
                  input.sizes());
    LAMELLA_CHECK(!reflects || (before < axis.in && after < axis.in), op,
                  ": expected 'padding' to be smaller than the dimension, got ", padding, " for ",
                  input.sizes());
    axis.out = (CheckedSize(before, op) + after + axis.in).value();
    LAMELLA_CHECK(axis.out > 0, op, ": expected an output of at least one element, got 'padding' ",
                  padding, " for ", input.sizes());
    // Negative padding that removes everything is limited, so that the last element is read.
    if (!reflects && before < -axis.in) before = -axis.in;
    axis.lay = [before, reflects](ResampleAxis& laid) {
      for (int64_t o = 0; o < laid.out; ++o) {
        int64_t at = o - before, last = laid.in - 1;
        if (at < 0) at = reflects ? -at : 0;
        if (at > last) at = reflects ? 2 * last - at : last;
        laid.first.push_back(at);
      }
    };
    r.shape.push_back(axis.out);
  }
  return r;
}

// Lines whose ends are padded: without the tables of a resampling, which are longer than a line.
Tensor padded_lines(const Resample& r, const Tensor& input, int64_t before, bool reflects) {
  const int64_t in = r.axes[2].in, out = r.axes[2].out, after = out - in - before;
  const Tensor x = input.contiguous(), result = new_tensor(r.shape, x.scalar_type(), kCPU);
  visit_bytes(x.itemsize(), [&](auto tag) {
    using T = type_of<decltype(tag)>;
    const T* lines = static_cast<const T*>(x.const_data_ptr());
    T* padded_to = static_cast<T*>(result.data_ptr());
    parallel_for(0, r.planes, kGrainSize / (out + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t l = begin; l < end; ++l) {
        const T *from = lines + l * in, *last = from + in - 1;
        T* to = padded_to + l * out;
        for (int64_t i = 0; i < before; ++i) to[i] = from[reflects ? before - i : 0];
        std::copy(from, from + in, to + before);
        to += before + in;
        for (int64_t i = 0; i < after; ++i) to[i] = last[reflects ? -1 - i : 0];
      }
    });
  });
  return result;
}
Tensor pad(const char* op, const Tensor& self, IntArrayRef padding, int spatial, bool reflects) {
  Resample r = padded(op, self, padding, spatial, reflects);
  if (spatial == 1 && self.is_cpu() && padding[0] >= 0 && padding[1] >= 0) {
    return padded_lines(r, self, padding[0], reflects);
  }
  return resample(op, std::move(r), self);
}
}  // namespace

// Defines an operator and its backward.
#define LAMELLA_PAD(name, spatial, reflects)                                                   \
  Tensor name(const Tensor& self, IntArrayRef padding) {                                       \
    return pad(#name, self, padding, spatial, reflects);                                       \
  }                                                                                            \
  Tensor name##_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef padding) { \
    const char* op = #name "_backward";                                                        \
    return resample_backward(op, padded(op, self, padding, spatial, reflects), grad_output,    \
                             self.sizes());                                                    \
  }
LAMELLA_PAD(reflection_pad1d, 1, true)
LAMELLA_PAD(reflection_pad2d, 2, true)
LAMELLA_PAD(reflection_pad3d, 3, true)
LAMELLA_PAD(replication_pad1d, 1, false)
LAMELLA_PAD(replication_pad2d, 2, false)
LAMELLA_PAD(replication_pad3d, 3, false)

}  // namespace lamella::native
