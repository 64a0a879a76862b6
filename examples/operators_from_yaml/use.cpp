// Calls the library's operators from C++: as functions, as methods, and with an out argument.
#include <lamella/lamella.h>

#include <cmath>
#include <cstdio>

#include "geometry/functions.h"
#include "geometry/tensor.h"

int main() {
  float a_data[] = {0, 0, 3, 4};
  float b_data[] = {3, 4, 3, 4};
  lamella::Tensor a = lamella::from_blob(a_data, {2, 2}, lamella::kFloat);
  lamella::Tensor b = lamella::from_blob(b_data, {2, 2}, lamella::kFloat);

  lamella::Tensor distances = geometry::distance(a, b, /*scale=*/2.0);
  std::printf("distance: %g %g\n", distances.data_ptr<float>()[0], distances.data_ptr<float>()[1]);

  geometry::methods::Tensor points = b;
  lamella::Tensor unit = geometry::normalize(points);
  points.distance(unit);
  lamella::Tensor out = lamella::empty({0}, lamella::kFloat);
  geometry::distance_out(out, points, unit);
  std::printf("from the unit circle: %g %g\n", out.data_ptr<float>()[0], out.data_ptr<float>()[1]);
  lamella::Tensor middle = geometry::midpoint(a, b);
  std::printf("midpoint: %g %g\n", middle.data_ptr<float>()[0], middle.data_ptr<float>()[1]);
  return 0;
}
