// The kernels that geometry.yaml names. Points are the rows of float32 matrices of shape [n, d].
#include <lamella/lamella.h>

#include <cmath>

#include "geometry/functions.h"
#include "geometry/native_functions.h"
#include "geometry/structured_kernels.h"

using lamella::Tensor;

namespace {

void check_points(const char* op, const char* name, const Tensor& points) {
  LAMELLA_CHECK(points.dim() == 2, op, ": expected '", name,
                "' to have 2 dimensions, points and coordinates, got ", points.sizes());
  LAMELLA_CHECK(points.dtype() == lamella::kFloat, op, ": expected '", name,
                "' to have dtype float32, got ", points.dtype());
}

}  // namespace

namespace geometry {

namespace meta {

LAMELLA_META_FUNC(distance)(const Tensor& self, const Tensor& other, double) {
  check_points("distance", "self", self);
  check_points("distance", "other", other);
  LAMELLA_CHECK(self.sizes() == other.sizes(), "distance: expected 'other' to have the shape ",
                self.sizes(), ", got ", other.sizes());
  set_output_raw_strided(0, {self.size(0)}, {}, self.options());
}

}  // namespace meta

namespace native {

LAMELLA_IMPL_FUNC(distance_cpu)
(const Tensor& self, const Tensor& other, double scale, const Tensor& out) {
  auto a = self.accessor<float, 2>();
  auto b = other.accessor<float, 2>();
  auto result = out.accessor<float, 1>();
  for (int64_t i = 0; i < a.size(0); ++i) {
    double sum = 0;
    for (int64_t k = 0; k < a.size(1); ++k) {
      double difference = static_cast<double>(a[i][k]) - b[i][k];
      sum += difference * difference;
    }
    result[i] = static_cast<float>(scale * std::sqrt(sum));
  }
}

Tensor& normalize_cpu_(Tensor& self, double eps) {
  check_points("normalize_", "self", self);
  auto points = self.accessor<float, 2>();
  for (int64_t i = 0; i < points.size(0); ++i) {
    double sum = 0;
    for (int64_t k = 0; k < points.size(1); ++k) {
      sum += static_cast<double>(points[i][k]) * points[i][k];
    }
    auto factor = static_cast<float>(1.0 / std::fmax(std::sqrt(sum), eps));
    for (int64_t k = 0; k < points.size(1); ++k) points[i][k] *= factor;
  }
  return self;
}

Tensor midpoint(const Tensor& self, const Tensor& other) { return (self + other) * 0.5; }

}  // namespace native
}  // namespace geometry
