// Orthogonal polynomials of one degree in vectors, compiled for each capability.
#include "lamella/kernels/families/special/over_blocks.h"

namespace lamella::special {
inline namespace CPU_CAPABILITY {
namespace {

using native::VecD;

// p[k + 1] from p[k] and p[k - 1].
template <Family kFamily>
LAMELLA_ALWAYS_INLINE VecD next_of(VecD x, double k, VecD now, VecD before) {
  switch (kFamily) {
    case Family::kHermite:
      return 2 * (x * now - k * before);
    case Family::kHermiteE:
      return x * now - k * before;
    case Family::kLaguerre:
      return ((2 * k + 1 - x) * now - k * before) / (k + 1);
    case Family::kLegendre:
      return ((2 * k + 1) * x * now - k * before) / (k + 1);
    default:
      return 2 * x * now - before;
  }
}
template <Family kFamily>
LAMELLA_ALWAYS_INLINE VecD first_of(VecD x) {
  switch (kFamily) {
    case Family::kChebyshevU:
    case Family::kHermite:
      return 2 * x;
    case Family::kChebyshevV:
      return 2 * x - 1;
    case Family::kChebyshevW:
      return 2 * x + 1;
    case Family::kLaguerre:
      return 1 - x;
    default:
      return x;
  }
}

template <Family kFamily>
void polynomial(const double* from, int64_t degree, double* to, int64_t count) {
  over_blocks(from, to, count, [degree](VecD x) {
    VecD before = x == x ? VecD{} + 1 : x;
    if (degree == 0) return before;
    VecD now = first_of<kFamily>(x);
    for (int64_t k = 1; k < degree; ++k) {
      VecD next = next_of<kFamily>(x, static_cast<double>(k), now, before);
      before = now;
      now = next;
    }
    return now;
  });
}

template <Family kFamily>
void set(Blocks* blocks) {
  blocks->polynomial[static_cast<int>(kFamily)] = &polynomial<kFamily>;
}

}  // namespace

void set_polynomials(Blocks* blocks) {
  set<Family::kChebyshevT>(blocks);
  set<Family::kChebyshevU>(blocks);
  set<Family::kChebyshevV>(blocks);
  set<Family::kChebyshevW>(blocks);
  set<Family::kHermite>(blocks);
  set<Family::kHermiteE>(blocks);
  set<Family::kLaguerre>(blocks);
  set<Family::kLegendre>(blocks);
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::special
