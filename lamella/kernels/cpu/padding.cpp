// Padding by reflection and replication, and the operators' backwards.
#include "lamella/core/checked_size.h"
#include "lamella/kernels/cpu/resample.h"

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
}  // namespace

// Defines an operator and its backward.
#define LAMELLA_PAD(name, spatial, reflects)                                                   \
  Tensor name(const Tensor& self, IntArrayRef padding) {                                       \
    return resample(#name, padded(#name, self, padding, spatial, reflects), self);             \
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
