// Chooses the algorithm and the threads of a transform, and caches the plans of recent lengths.
#include "lamella/kernels/families/fft/transform.h"

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "lamella/core/fork.h"
#include "lamella/kernels/families/fft/lines.h"
#include "lamella/kernels/machine_code.h"

namespace lamella::fft {
namespace {

constexpr size_t kPlansKept = 16;
constexpr int64_t kGrainPoints = 1 << 14;  // fewest points for which another thread pays
// Lines shorter than kShortLine are transformed side by side in lanes if there are enough of them.
// So are lines shorter than kLongLine, of which a group fits the cache, if a single line does not
// fill whole vectors.
constexpr int64_t kShortLine = 64;
constexpr int64_t kLongLine = 2048;

fork::Held<std::mutex> plans_lock{fork::Level::kCore};

// A cache of the most recently used plans, the latest first.
template <class P>
class PlanCache {
 public:
  template <class Make>
  std::shared_ptr<const P> get(int64_t n, Make make) {
    {
      std::lock_guard lock(plans_lock);
      for (auto at = kept_.begin(); at != kept_.end(); ++at) {
        if (at->first != n) continue;
        kept_.splice(kept_.begin(), kept_, at);
        return kept_.front().second;
      }
    }
    std::shared_ptr<const P> made = make();
    std::lock_guard lock(plans_lock);
    kept_.emplace_front(n, made);
    if (kept_.size() > kPlansKept) kept_.pop_back();
    return made;
  }

 private:
  std::list<std::pair<int64_t, std::shared_ptr<const P>>> kept_;
};

template <class T>
std::shared_ptr<const Plan<T>> plan_of(int64_t n) {
  static auto* cache = new PlanCache<Plan<T>>;
  return cache->get(n, [n] { return std::make_shared<const Plan<T>>(n); });
}
template <class T>
std::shared_ptr<const LinePlan<T>> line_plan_of(int64_t n) {
  static auto* cache = new PlanCache<LinePlan<T>>;
  return cache->get(n, [n] { return std::make_shared<const LinePlan<T>>(n, functions<T>().wide); });
}
template <class T>
std::shared_ptr<const std::vector<T>> roots_of(int64_t n) {
  static auto* cache = new PlanCache<std::vector<T>>;
  return cache->get(n, [n] {
    auto made = std::make_shared<std::vector<T>>();
    const Roots<T> roots(n);
    for (int64_t k = 0; k <= n / 4; ++k) {
      made->push_back(roots(k).re);
      made->push_back(roots(k).im);
    }
    return std::shared_ptr<const std::vector<T>>(std::move(made));
  });
}

// Calls f(begin, end) on the kernels' threads; each item of the range has `points` points.
template <class F>
void in_parallel(int64_t count, int64_t points, const F& f) {
  void* buffers[] = {const_cast<void*>(static_cast<const void*>(&f))};
  native::code_parallel([](void* const* b, int64_t begin,
                           int64_t end) { (*static_cast<const F*>(b[0]))(begin, end); },
                        buffers, count, std::max<int64_t>(1, kGrainPoints / points));
}

// Interleaved lines without a simple transform are copied to contiguous memory and back.
template <class T>
void transform_apart(const LinePlan<T>& plan, const Shape& shape, const T* in, T* out, bool forward,
                     T scale) {
  in_parallel(shape.outer * shape.inner, shape.n, [&](int64_t begin, int64_t end) {
    std::vector<T> line(static_cast<size_t>(2 * shape.n));
    for (int64_t l = begin; l < end; ++l) {
      const int64_t first = l / shape.inner * shape.n * shape.inner + l % shape.inner;
      for (int64_t i = 0; i < shape.n; ++i) {
        std::copy_n(in + 2 * (first + i * shape.inner), 2, &line[static_cast<size_t>(2 * i)]);
      }
      const Lines<T> one{line.data(), line.data(), shape.n, 1, forward, scale};
      functions<T>().complex_lines(plan, one, 0, 1);
      for (int64_t i = 0; i < shape.n; ++i) {
        std::copy_n(&line[static_cast<size_t>(2 * i)], 2, out + 2 * (first + i * shape.inner));
      }
    }
  });
}

}  // namespace

template <class T>
void complex_transform(const Shape& shape, const T* in, T* out, bool forward, double scale) {
  const Functions<T>& with = functions<T>();
  const bool simple = has_small_factors(shape.n);
  const Lines<T> lines{in, out, shape.n, shape.inner, forward, static_cast<T>(scale)};
  if (shape.inner == 1) {
    const auto plan = line_plan_of<T>(shape.n);
    const bool whole_vectors = plan->lanes == with.wide;
    if (!simple || shape.outer < with.wide || shape.n >= (whole_vectors ? kShortLine : kLongLine)) {
      in_parallel(shape.outer, shape.n, [&](int64_t begin, int64_t end) {
        with.complex_lines(*plan, lines, begin, end);
      });
      return;
    }
  } else if (!simple) {
    const auto plan = line_plan_of<T>(shape.n);
    return transform_apart(*plan, shape, in, out, forward, static_cast<T>(scale));
  }
  const auto plan = plan_of<T>(shape.n);
  const int64_t neighbours = shape.inner == 1 ? shape.outer : shape.inner;
  const int64_t groups = (neighbours + with.wide - 1) / with.wide;
  in_parallel(shape.inner == 1 ? groups : shape.outer * groups, shape.n * with.wide,
              [&](int64_t begin, int64_t end) {
                with.complex_columns(*plan, lines, shape.outer, begin, end);
              });
}

template <class T>
void real_transform(const Shape& shape, const T* in, T* out, bool forward, double scale) {
  const bool even = shape.n % 2 == 0;
  const auto plan = line_plan_of<T>(even ? shape.n / 2 : shape.n);
  const auto roots = even ? roots_of<T>(shape.n) : nullptr;
  const Lines<T> lines{in, out, shape.n, 1, forward, static_cast<T>(scale)};
  in_parallel(shape.outer, shape.n, [&](int64_t begin, int64_t end) {
    functions<T>().real_lines(*plan, even ? roots->data() : nullptr, lines, begin, end);
  });
}

template <class T>
void transform_to_real(const Shape& shape, const T* in, T* out, bool forward, double scale) {
  const bool even = shape.n % 2 == 0;
  const auto plan = line_plan_of<T>(even ? shape.n / 2 : shape.n);
  const auto roots = even ? roots_of<T>(shape.n) : nullptr;
  const Lines<T> lines{in, out, shape.n, 1, forward, static_cast<T>(scale)};
  in_parallel(shape.outer, shape.n, [&](int64_t begin, int64_t end) {
    functions<T>().lines_to_real(*plan, even ? roots->data() : nullptr, lines, begin, end);
  });
}

template void complex_transform(const Shape&, const float*, float*, bool, double);
template void complex_transform(const Shape&, const double*, double*, bool, double);
template void real_transform(const Shape&, const float*, float*, bool, double);
template void real_transform(const Shape&, const double*, double*, bool, double);
template void transform_to_real(const Shape&, const float*, float*, bool, double);
template void transform_to_real(const Shape&, const double*, double*, bool, double);

}  // namespace lamella::fft
