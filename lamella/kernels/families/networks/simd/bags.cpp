// Sums of bags. Rounds as the operators do that the gradients are made of.
#include "lamella/kernels/families/networks/bags.h"

namespace lamella::networks {
inline namespace CPU_CAPABILITY {
namespace {

#if defined(CPU_CAPABILITY_AVX512)
constexpr int kBytes = 64;
#elif defined(CPU_CAPABILITY_AVX2)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

// Adds the columns of a bag that `kVectors` vectors have.
template <int kVectors, class V, class T>
void sum_columns(const Bags<T>& of, int64_t bag, int64_t column) {
  typedef V Memory __attribute__((aligned(sizeof(T)), may_alias));
  V sum[kVectors] = {};
  for (int64_t i = of.bounds[bag]; i < of.bounds[bag + 1]; ++i) {
    if (of.index[i] == of.skipped) continue;
    auto* row = reinterpret_cast<const Memory*>(of.table + of.index[i] * of.width + column);
    for (int k = 0; k < kVectors; ++k) {
      sum[k] += of.weight != nullptr ? row[k] * of.weight[i] : row[k];
    }
  }
  auto* to = reinterpret_cast<Memory*>(of.out + bag * of.width + column);
  for (int k = 0; k < kVectors; ++k) to[k] = sum[k];
}

}  // namespace

template <class T>
void sum_bags(const Bags<T>& of, int64_t begin, int64_t end) {
  typedef T Lanes __attribute__((vector_size(kBytes)));
  constexpr int64_t kLanes = kBytes / sizeof(T), kMost = 64 / kBytes * kLanes;
  for (int64_t bag = begin; bag < end; ++bag) {
    int64_t column = 0;
    for (; column + kMost <= of.width; column += kMost) {
      sum_columns<kMost / kLanes, Lanes>(of, bag, column);
    }
    for (; column + kLanes <= of.width; column += kLanes) sum_columns<1, Lanes>(of, bag, column);
    for (; column < of.width; ++column) sum_columns<1, T>(of, bag, column);
  }
}
template void sum_bags(const Bags<float>&, int64_t, int64_t);
template void sum_bags(const Bags<double>&, int64_t, int64_t);

}  // namespace CPU_CAPABILITY
}  // namespace lamella::networks
