// Sums of bags. Rounds as the operators do that the gradients are made of.
#include "lamella/kernels/families/networks/bags.h"

#include "lamella/kernels/cpu/simd/vector_size.h"

namespace lamella::networks {
inline namespace CPU_CAPABILITY {
namespace {

// Adds columns of a bag: kVectors vectors of kEach columns from `column` on, but the last one from
// `last` on.
template <int64_t kEach, int kVectors, class T>
void sum_columns(const Bags<T>& of, int64_t bag, int64_t column, int64_t last) {
  typedef T Vector __attribute__((vector_size(kEach * sizeof(T))));
  typedef T Memory __attribute__((vector_size(kEach * sizeof(T)), aligned(sizeof(T)), may_alias));
  auto at = [&](int k) { return k + 1 < kVectors ? column + k * kEach : last; };
  Vector sum[kVectors] = {};
  for (int64_t i = of.bounds[bag]; i < of.bounds[bag + 1]; ++i) {
    if (of.index[i] == of.skipped) continue;
    const T* row = of.table + of.index[i] * of.width;
    for (int k = 0; k < kVectors; ++k) {
      auto* x = reinterpret_cast<const Memory*>(row + at(k));
      sum[k] += of.weight != nullptr ? *x * of.weight[i] : *x;
    }
  }
  for (int k = 0; k < kVectors; ++k) {
    *reinterpret_cast<Memory*>(of.out + bag * of.width + at(k)) = sum[k];
  }
}

// Adds rows that are shorter than a vector, the columns from `column` on.
template <int64_t kColumns, class T>
void sum_short(const Bags<T>& of, int64_t bag, int64_t column) {
  if (column + kColumns <= of.width) {
    sum_columns<kColumns, 1>(of, bag, column, column);
    column += kColumns;
  }
  if constexpr (kColumns > 1) sum_short<kColumns / 2>(of, bag, column);
}

}  // namespace

template <class T>
void sum_bags(const Bags<T>& of, int64_t begin, int64_t end) {
  constexpr int64_t kEach = native::kVecBytes / sizeof(T);
  for (int64_t bag = begin; bag < end; ++bag) {
    if (of.width < kEach) {
      sum_short<kEach / 2>(of, bag, 0);
      continue;
    }
    // The last vector ends where the row ends, and may begin in the one before.
    for (int64_t column = 0; column < of.width; column += 4 * kEach) {
      const int64_t vectors = (of.width - column + kEach - 1) / kEach, end_at = of.width - kEach;
      if (vectors == 1) {
        sum_columns<kEach, 1>(of, bag, column, end_at);
      } else if (vectors == 2) {
        sum_columns<kEach, 2>(of, bag, column, end_at);
      } else if (vectors == 3) {
        sum_columns<kEach, 3>(of, bag, column, end_at);
      } else {
        sum_columns<kEach, 4>(of, bag, column, vectors == 4 ? end_at : column + 3 * kEach);
      }
    }
  }
}
template void sum_bags(const Bags<float>&, int64_t, int64_t);
template void sum_bags(const Bags<double>&, int64_t, int64_t);

}  // namespace CPU_CAPABILITY
}  // namespace lamella::networks
