// Loops on the threads of Lamella's own kernels, for kernels outside of it. Public, inline over
// lamella/abi/threads.h.
#pragma once
#include <cstdint>
#include <exception>
#include <type_traits>
#include <vector>

#include "lamella/abi/threads.h"
#include "lamella/core/error.h"

namespace lamella {

namespace detail {
// A function that the loop calls, and what it threw first.
template <class F>
struct LoopBody {
  F* function;
  std::exception_ptr error;
  int failed = 0;

  static void call(void* context, int64_t first, int64_t last) {
    auto* body = static_cast<LoopBody*>(context);
    if (__atomic_load_n(&body->failed, __ATOMIC_RELAXED) != 0) return;
    try {
      (*body->function)(first, last);
    } catch (...) {
      if (__atomic_exchange_n(&body->failed, 1, __ATOMIC_ACQ_REL) == 0) {
        body->error = std::current_exception();
      }
    }
  }
};
}  // namespace detail

// f(first, last) for disjoint ranges that cover [begin, end), each at least `grain` long where
// there is more than one. An exception in one of them is thrown on.
template <class F>
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  if (begin >= end) return;
  if (end - begin <= grain) {
    f(begin, end);
    return;
  }
  detail::LoopBody<const F> body{&f, nullptr};
  detail::check(lamella_parallel_for(begin, end, grain, &detail::LoopBody<const F>::call, &body));
  if (body.failed != 0) std::rethrow_exception(body.error);
}

// join(...) of f(first, last, start) over as many equal ranges as `grain` makes, 256 at most, that
// cover [begin, end), joined in order: the ranges do not depend on the number of threads, and so
// neither does the result.
template <class T, class F, class Join>
inline T parallel_reduce(int64_t begin, int64_t end, int64_t grain, const T& start, const F& f,
                         const Join& join) {
  constexpr int64_t kMostRanges = 256;
  if (begin >= end) return start;
  int64_t total = end - begin;
  int64_t wanted = (total - 1) / (grain > 1 ? grain : 1) + 1;
  if (wanted > kMostRanges) wanted = kMostRanges;
  int64_t size = (total - 1) / wanted + 1;
  int64_t count = (total - 1) / size + 1;
  if (count == 1) return f(begin, end, start);
  // Values of their own: threads must not share the bits of a std::vector<bool>.
  struct Part {
    T value;
  };
  std::vector<Part> parts(static_cast<size_t>(count), Part{start});
  parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      int64_t from = begin + i * size;
      parts[static_cast<size_t>(i)].value = f(from, end - from < size ? end : from + size, start);
    }
  });
  T result = start;
  for (const Part& part : parts) result = join(result, part.value);
  return result;
}

}  // namespace lamella
