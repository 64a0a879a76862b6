// The kernels of attention for the stand-in, and the tensor cores that they multiply with.
#include <iterator>

#include "tests/cuda/standin/fibres.h"

#include "lamella/cuda/kernels/attention.h"

namespace standin {
namespace {
// Lets every lane of the warp read what all of them give; f(values of lanes).
template <class T, class F>
void together(const T& given, const F& f, int line) {
  wait_for_warp(~0U, reinterpret_cast<uint64_t>(&given), 0, line, __FILE__);
  f([](unsigned lane) -> const T& { return *reinterpret_cast<const T*>(value_of_lane(lane)); });
  wait_for_warp(~0U, 0, 0, line, __FILE__);
}
uint16_t half_of(uint32_t pair, unsigned which) {
  return static_cast<uint16_t>(pair >> 16 * which);
}
}  // namespace

void load_matrices(uint32_t (&x)[4], const void* row, bool transposed) {
  const unsigned lane = running.number & 31;
  auto load = [&](auto of_lane) {
    for (unsigned m = 0; m < 4; ++m) {
      uint32_t pair[2];
      for (unsigned e = 0; e < 2; ++e) {
        const unsigned i = lane / 4, j = lane % 4 * 2 + e;
        const auto* from = static_cast<const uint16_t*>(of_lane(8 * m + (transposed ? j : i)));
        pair[e] = from[transposed ? i : j];
      }
      x[m] = pair[0] | pair[1] << 16;
    }
  };
  together(row, load, __LINE__);
}
void multiply_matrices(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                       float (*widen)(uint16_t)) {
  struct Given {
    uint32_t a[4], b[2];
  };
  const unsigned lane = running.number & 31;
  auto multiply = [&](auto of_lane) {
    for (unsigned e = 0; e < 4; ++e) {
      const unsigned column = lane % 4 * 2 + e % 2;
      for (unsigned k = 0; k < 16; ++k) {
        const Given &left = of_lane(lane / 4 * 4 + k % 8 / 2),
                    &right = of_lane(column * 4 + k % 8 / 2);
        c[e] += widen(half_of(left.a[e / 2 + k / 8 * 2], k % 2)) *
                widen(half_of(right.b[k / 8], k % 2));
      }
    }
  };
  together(Given{{a[0], a[1], a[2], a[3]}, {b0, b1}}, multiply, __LINE__);
}
}  // namespace standin

namespace {
using namespace lamella::cuda;

const standin::Kernel all[] = {LAMELLA_ATTENTION_KERNELS};
const standin::AddKernels attention_kernels(all, std::size(all));
}  // namespace
