// The stand-in for cuFFT.
#include <cmath>
#include <map>
#include <mutex>
#include <vector>

#include "tests/cuda/standin/library.h"

namespace standin {
namespace {

constexpr size_t kWork = 512;

struct Plan {
  std::vector<int64_t> n;
  int64_t batch = 0;
  int type = 0;
  bool automatic = true;
  void *stream = nullptr, *work = nullptr;
};
std::mutex mutex;
std::map<int, Plan> plans;  // guarded by `mutex`

Plan& plan_at(int number) {
  auto at = plans.find(number);
  EXPECT(at != plans.end());
  return at->second;
}

using Number = std::complex<double>;

// Transforms an array of complex numbers along a dimension.
void along(std::vector<Number>& x, const std::vector<int64_t>& n, size_t dim, int direction) {
  int64_t inner = 1;
  for (size_t d = dim + 1; d < n.size(); ++d) inner *= n[d];
  const int64_t count = n[dim], lines = static_cast<int64_t>(x.size()) / count;
  std::vector<Number> line(static_cast<size_t>(count));
  for (int64_t i = 0; i < lines; ++i) {
    const int64_t first = i / inner * inner * count + i % inner;
    for (int64_t j = 0; j < count; ++j) {
      Number sum = 0;
      for (int64_t l = 0; l < count; ++l) {
        const double turn =
            direction * 2 * M_PI * static_cast<double>(j * l % count) / static_cast<double>(count);
        sum += x[static_cast<size_t>(first + l * inner)] * std::polar(1.0, turn);
      }
      line[static_cast<size_t>(j)] = sum;
    }
    for (int64_t j = 0; j < count; ++j) {
      x[static_cast<size_t>(first + j * inner)] = line[static_cast<size_t>(j)];
    }
  }
}

template <class T>
void execute(const Plan& p, void* from, void* to, int direction) {
  const int kind = p.type & ~0x40;
  int64_t all = 1;
  for (int64_t n : p.n) all *= n;
  const int64_t last = p.n.back(), half = last / 2 + 1, rows = all / last;
  std::vector<Number> x(static_cast<size_t>(all));
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t i = 0; i < all; ++i) {
      Number& value = x[static_cast<size_t>(i)];
      const int64_t column = i % last, row = i / last;
      if (kind == 0x2a) {
        value = seen<T>(from)[b * all + i];
      } else if (kind == 0x29) {
        value = Number(seen<std::complex<T>>(from)[b * all + i]);
      } else {
        const auto* line = seen<std::complex<T>>(from) + (b * rows + row) * half;
        value = column < half ? Number(line[column]) : std::conj(Number(line[last - column]));
        if (column == 0 || 2 * column == last) value = value.real();
      }
    }
    for (size_t d = 0; d < p.n.size(); ++d) along(x, p.n, d, direction);
    for (int64_t i = 0; i < all; ++i) {
      const Number value = x[static_cast<size_t>(i)];
      const int64_t column = i % last, row = i / last;
      if (kind == 0x2c) {
        seen<T>(to)[b * all + i] = static_cast<T>(value.real());
      } else if (kind == 0x29) {
        seen<std::complex<T>>(to)[b * all + i] = std::complex<T>(value);
      } else if (column < half) {
        seen<std::complex<T>>(to)[(b * rows + row) * half + column] = std::complex<T>(value);
      }
    }
  }
  // A transform to real numbers overwrites what it reads.
  if (kind == 0x2c) {
    for (int64_t i = 0; i < p.batch * rows * half; ++i) seen<std::complex<T>>(from)[i] = 7;
  }
}

}  // namespace
}  // namespace standin

using namespace standin;

int cufftCreate(int* plan) {
  std::lock_guard lock(mutex);
  static int made = 0;
  plans[*plan = ++made];
  return 0;
}
int cufftDestroy(int plan) {
  std::lock_guard lock(mutex);
  EXPECT(plans.erase(plan) == 1);
  return 0;
}
int cufftSetAutoAllocation(int plan, int automatic) {
  std::lock_guard lock(mutex);
  EXPECT(plan_at(plan).n.empty());
  plan_at(plan).automatic = automatic != 0;
  return 0;
}
int cufftMakePlanMany64(int plan, int rank, long long* n, long long* from_sizes,
                        long long from_stride, long long from_distance, long long* to_sizes,
                        long long to_stride, long long to_distance, int type, long long batch,
                        size_t* bytes) {
  std::lock_guard lock(mutex);
  EXPECT(rank >= 1 && rank <= 3 && batch > 0 && from_sizes == nullptr && to_sizes == nullptr);
  const int kind = type & ~0x40;
  EXPECT(kind == 0x29 || kind == 0x2a || kind == 0x2c);
  Plan& p = plan_at(plan);
  p.n.assign(n, n + rank);
  for (int64_t size : p.n) EXPECT(size > 0);
  p.batch = batch;
  p.type = type;
  *bytes = kWork;
  return 0;
}
int cufftSetStream(int plan, void* stream) {
  std::lock_guard lock(mutex);
  plan_at(plan).stream = stream;
  return 0;
}
int cufftSetWorkArea(int plan, void* work) {
  std::lock_guard lock(mutex);
  EXPECT(standin_holds(work, kWork) && is_aligned(work, 256));
  plan_at(plan).work = work;
  return 0;
}
int cufftXtExec(int plan, void* from, void* to, int direction) {
  std::lock_guard lock(mutex);
  const Plan p = plan_at(plan);
  EXPECT(!p.n.empty() && (p.automatic || p.work != nullptr));
  EXPECT(direction == ((p.type & ~0x40) == 0x2c ? 1 : (p.type & ~0x40) == 0x2a ? -1 : direction));
  EXPECT(direction == 1 || direction == -1);
  const size_t real = (p.type & 0x40) != 0 ? 8 : 4;
  size_t points = static_cast<size_t>(p.batch);
  for (int64_t n : p.n) points *= static_cast<size_t>(n);
  const size_t half =
      points / static_cast<size_t>(p.n.back()) * static_cast<size_t>(p.n.back() / 2 + 1);
  const int kind = p.type & ~0x40;
  EXPECT(standin_holds(from, kind == 0x29   ? 2 * points * real
                             : kind == 0x2a ? points * real
                                            : 2 * half * real));
  EXPECT(standin_holds(to, kind == 0x29   ? 2 * points * real
                           : kind == 0x2c ? points * real
                                          : 2 * half * real));
  EXPECT(is_aligned(from, kind == 0x2a ? real : 2 * real) &&
         is_aligned(to, kind == 0x2c ? real : 2 * real));
  plan_at(plan).work = nullptr;
  return standin_enqueue(__func__, p.stream, [=] {
    if (real == 8) {
      execute<double>(p, from, to, direction);
    } else {
      execute<float>(p, from, to, direction);
    }
    return 0;
  });
}
