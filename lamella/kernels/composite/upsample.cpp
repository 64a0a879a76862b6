// Interpolation by scale factors, and padding with a mode given by name.
#include <cmath>

#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {
using Factors = std::optional<ArrayRef<double>>;

struct Target {
  Dims size;
  std::optional<double> scale[3];

  Target(const char* op, const Tensor& input, OptionalIntArrayRef output_size,
         const Factors& factors, size_t spatial) {
    LAMELLA_CHECK(output_size.has_value() != factors.has_value(), op,
                  ": expected either 'output_size' or 'scale_factors'");
    LAMELLA_CHECK(input.sizes().size() == spatial + 2, op, ": expected 'input' to have ",
                  spatial + 2, " dimensions, got ", input.sizes());
    size_t count = output_size.has_value() ? output_size->size() : factors->size();
    LAMELLA_CHECK(count == spatial, op, ": expected '",
                  output_size.has_value() ? "output_size" : "scale_factors", "' to have ", spatial,
                  " entries, got ", count);
    for (size_t d = 0; d < spatial; ++d) {
      if (output_size.has_value()) {
        size.push_back((*output_size)[d]);
        continue;
      }
      scale[d] = (*factors)[d];
      double exact = std::floor(static_cast<double>(input.sizes()[d + 2]) * (*factors)[d]);
      LAMELLA_CHECK(exact > -9.2e18 && exact < 9.2e18, op,
                    ": expected 'scale_factors' that lead to sizes that fit int64, got ", *factors);
      size.push_back(static_cast<int64_t>(exact));
    }
  }
};
}  // namespace

// Defines the form of an operator with factors; the last arguments are those behind the sizes.
#define LAMELLA_NEAREST(name, spatial, ...)                                                  \
  Tensor name(const Tensor& input, OptionalIntArrayRef output_size, Factors scale_factors) { \
    Target to(#name, input, output_size, scale_factors, spatial);                            \
    return lamella::name(input, to.size, __VA_ARGS__);                                       \
  }
#define LAMELLA_LINEAR(name, spatial, ...)                                              \
  Tensor name(const Tensor& input, OptionalIntArrayRef output_size, bool align_corners, \
              Factors scale_factors) {                                                  \
    Target to(#name, input, output_size, scale_factors, spatial);                       \
    return lamella::name(input, to.size, align_corners, __VA_ARGS__);                   \
  }
LAMELLA_NEAREST(upsample_nearest1d, 1, to.scale[0])
LAMELLA_NEAREST(upsample_nearest2d, 2, to.scale[0], to.scale[1])
LAMELLA_NEAREST(upsample_nearest3d, 3, to.scale[0], to.scale[1], to.scale[2])
LAMELLA_NEAREST(_upsample_nearest_exact1d, 1, to.scale[0])
LAMELLA_NEAREST(_upsample_nearest_exact2d, 2, to.scale[0], to.scale[1])
LAMELLA_NEAREST(_upsample_nearest_exact3d, 3, to.scale[0], to.scale[1], to.scale[2])
LAMELLA_LINEAR(upsample_linear1d, 1, to.scale[0])
LAMELLA_LINEAR(upsample_bilinear2d, 2, to.scale[0], to.scale[1])
LAMELLA_LINEAR(upsample_trilinear3d, 3, to.scale[0], to.scale[1], to.scale[2])

}  // namespace lamella::native
