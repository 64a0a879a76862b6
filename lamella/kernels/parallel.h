// Threads for kernels: one pool, ranges split by grain size, no std::function.
#pragma once
#include <cstdint>
#include <type_traits>

#include "lamella/core/macros.h"

namespace lamella {

// Threads that kernels may use, including the caller's. The default is the number of cores.
LAMELLA_PRIVATE_API int get_num_threads();
// Throws ValueError for numbers below 1.
LAMELLA_PRIVATE_API void set_num_threads(int threads);
// True if the caller runs inside a parallel_for, in which case a nested one runs serially.
bool in_parallel_region();

namespace native {

// Below this many elements a second thread costs more than it saves.
inline constexpr int64_t kGrainSize = 32768;

namespace detail {
using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);
void parallel_for_erased(int64_t begin, int64_t end, int64_t grain, RangeFunction function,
                         void* context);
}  // namespace detail

// f(begin, end) for disjoint ranges that cover [begin, end), each at least `grain` long where there
// is more than one. An exception in one of them is rethrown to the caller.
template <class F>
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (begin >= end) return;
  if (end - begin <= grain) {
    f(begin, end);
    return;
  }
  using Function = std::remove_reference_t<F>;
  detail::parallel_for_erased(
      begin, end, grain,
      [](void* context, int64_t b, int64_t e) { (*static_cast<Function*>(context))(b, e); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace native
}  // namespace lamella
