// Distances between rows: Note [Distances by panels].
#include "lamella/kernels/cpu/simd/distances.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "lamella/core/interrupt.h"
#include "lamella/kernels/cpu/simd/special.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
inline constexpr int64_t kWidth = sizeof(Vec<T>) / sizeof(T);
// Elements of a row that are summed before their sum is added to the others.
constexpr int64_t kTogether = 512;

// ---- Orders ----
//
// add: adds a difference to a sum; join: joins two sums; finish: the distance of a sum. weight: the
// factor of a distance's gradient g; part: the contribution of a difference to the gradient.

template <class V>
V with_sign_of(V x, V difference) {
  return difference == 0 ? V{} : v_flip(x, v_sign(difference));
}

template <class T>
struct Count {
  using V = Vec<T>;
  static constexpr bool kIsCostly = false;
  explicit Count(double) {}
  V add(V sum, V d) const { return sum + (v_is_nan(d) ? d : d == 0 ? V{} : V{} + 1); }
  V join(V a, V b) const { return a + b; }
  V finish(V sum) const { return sum; }
  V weight(V, V) const { return V{}; }
  V part(V, V, V) const { return V{}; }
};
template <class T>
struct Taxicab {
  using V = Vec<T>;
  static constexpr bool kIsCostly = false;
  explicit Taxicab(double) {}
  V add(V sum, V d) const { return sum + v_abs(d); }
  V join(V a, V b) const { return a + b; }
  V finish(V sum) const { return sum; }
  V weight(V g, V) const { return g; }
  V part(V d, V weight, V) const { return with_sign_of(weight, d); }
};
template <class T>
struct Euclidean {
  using V = Vec<T>;
  static constexpr bool kIsCostly = false;
  explicit Euclidean(double) {}
  V add(V sum, V d) const { return v_fma(d, d, sum); }
  V join(V a, V b) const { return a + b; }
  V finish(V sum) const { return v_sqrt(sum); }
  V weight(V g, V distance) const { return distance == 0 ? V{} : g / distance; }
  V part(V d, V weight, V) const { return d * weight; }
};
template <class T>
struct Greatest {
  using V = Vec<T>;
  static constexpr bool kIsCostly = false;
  explicit Greatest(double) {}
  V add(V most, V d) const { return join(most, v_abs(d)); }
  V join(V a, V b) const { return b > a || v_is_nan(b) ? b : a; }
  V finish(V most) const { return most; }
  V weight(V g, V) const { return g; }
  V part(V d, V weight, V distance) const {
    return v_abs(d) == distance ? with_sign_of(weight, d) : V{};
  }
};
template <class T>
struct Power {
  using V = Vec<T>;
  static constexpr bool kIsCostly = true;
  T p;
  explicit Power(double order) : p(static_cast<T>(order)) {}
  V add(V sum, V d) const { return sum + v_pow(v_abs(d), V{} + p); }
  V join(V a, V b) const { return a + b; }
  V finish(V sum) const { return v_pow(sum, V{} + 1 / p); }
  V weight(V g, V distance) const {
    return distance == 0 ? V{} : g / v_pow(distance, V{} + (p - 1));
  }
  V part(V d, V weight, V) const {
    return with_sign_of(v_pow(v_abs(d), V{} + (p - 1)) * weight, d);
  }
};

// Calls f(panel, its first row, its width in memory) for the panels.
template <class T, class F>
void each_panel(const Distances& p, F&& f) {
  for (int64_t first = 0; first < p.others; first += p.panel) {
    int64_t left = (p.others - first + kWidth<T> - 1) / kWidth<T> * kWidth<T>;
    f(static_cast<const T*>(p.panels) + first * p.columns, first, std::min(p.panel, left));
  }
}

// The distances of R rows from the rows in V vectors of the second matrix.
template <class T, class Order, int R, int V>
void tile(const Distances& p, const Order& order, const T* rows, int64_t row, const T* others,
          int64_t width, T* out, int64_t n) {
  Vec<T> sums[R][V] = {};
  for (int64_t first = 0; first < p.columns; first += kTogether) {
    int64_t last = std::min(first + kTogether, p.columns);
    Vec<T> some[R][V] = {};
    for (int64_t k = first; k < last; ++k) {
      Vec<T> y[V];
      for (int v = 0; v < V; ++v) y[v] = v_load(others + k * width + v * kWidth<T>);
      for (int r = 0; r < R; ++r) {
        Vec<T> x = v_set<T>(rows[r * row + k]);
        for (int v = 0; v < V; ++v) some[r][v] = order.add(some[r][v], x - y[v]);
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < V; ++v) sums[r][v] = order.join(sums[r][v], some[r][v]);
    }
  }
  for (int r = 0; r < R; ++r, out += p.others) {
    for (int v = 0; v < V; ++v) {
      T parts[kWidth<T>];
      v_store(parts, order.finish(sums[r][v]));
      int64_t left = std::clamp<int64_t>(n - v * kWidth<T>, 0, kWidth<T>);
      std::memcpy(out + v * kWidth<T>, parts, static_cast<size_t>(left) * sizeof(T));
    }
  }
}

template <class T, class Order, int R>
void rows_of(const Distances& p, const Order& order, const T* rows, T* out) {
  each_panel<T>(p, [&](const T* panel, int64_t first, int64_t width) {
    for (int64_t j = 0; j < width;) {
      T* to = out + first + j;
      int64_t n = p.others - first - j, vectors = (width - j) / kWidth<T>;
      if (!Order::kIsCostly && vectors >= 3) {
        tile<T, Order, R, 3>(p, order, rows, p.columns, panel + j, width, to, n);
        j += 3 * kWidth<T>;
      } else if (!Order::kIsCostly && vectors == 2) {
        tile<T, Order, R, 2>(p, order, rows, p.columns, panel + j, width, to, n);
        j += 2 * kWidth<T>;
      } else {
        tile<T, Order, R, 1>(p, order, rows, p.columns, panel + j, width, to, n);
        j += kWidth<T>;
      }
    }
  });
}

template <class T, class Order>
void forward_rows(const Distances& p, int64_t begin, int64_t end) {
  const Order order(p.p);
  constexpr int R = Order::kIsCostly ? 1 : 4;
  auto rows = [&](int64_t i) { return static_cast<const T*>(p.rows) + i * p.columns; };
  auto out = [&](int64_t i) { return static_cast<T*>(p.out) + i * p.others; };
  int64_t i = begin;
  for (; i + R <= end; i += R) {
    count_steps(R * p.columns * p.others / 16);
    rows_of<T, Order, R>(p, order, rows(i), out(i));
  }
  for (; i < end; ++i) rows_of<T, Order, 1>(p, order, rows(i), out(i));
}

template <class T, class Order>
void backward_rows(const Distances& p, int64_t begin, int64_t end) {
  constexpr int64_t kSums = Order::kIsCostly ? 1 : 8;
  const Order order(p.p);
  int64_t whole = (p.others + kWidth<T> - 1) / kWidth<T> * kWidth<T>;
  auto bytes = static_cast<size_t>(p.others) * sizeof(T);
  std::vector<T> weights(static_cast<size_t>(whole)), distances(static_cast<size_t>(whole));
  for (int64_t i = begin; i < end; ++i) {
    count_steps(p.columns * p.others / 8);
    std::memcpy(weights.data(), static_cast<const T*>(p.grad) + i * p.others, bytes);
    std::memcpy(distances.data(), static_cast<const T*>(p.distances) + i * p.others, bytes);
    // Gradients and distances are 0 past the last row.
    for (int64_t j = 0; j < whole; j += kWidth<T>) {
      T* at = weights.data() + j;
      v_store(at, order.weight(v_load(at), v_load(distances.data() + j)));
    }
    const T* x = static_cast<const T*>(p.rows) + i * p.columns;
    T* out = static_cast<T*>(p.out) + i * p.columns;
    auto sum_up = [&]<int K>(std::integral_constant<int, K>, int64_t first) {
      Vec<T> sums[K] = {}, from[K];
      for (int k = 0; k < K; ++k) from[k] = v_set<T>(x[first + k]);
      each_panel<T>(p, [&](const T* panel, int64_t row, int64_t width) {
        for (int64_t j = 0; j < width; j += kWidth<T>) {
          Vec<T> weight = v_load(weights.data() + row + j);
          Vec<T> distance = v_load(distances.data() + row + j);
          for (int k = 0; k < K; ++k) {
            Vec<T> d = from[k] - v_load(panel + (first + k) * width + j);
            sums[k] += order.part(d, weight, distance);
          }
        }
      });
      for (int k = 0; k < K; ++k) {
        T parts[kWidth<T>], sum = 0;
        v_store(parts, sums[k]);
        for (T part : parts) sum += part;
        out[first + k] = sum;
      }
    };
    int64_t k = 0;
    for (; k + kSums <= p.columns; k += kSums) sum_up(std::integral_constant<int, kSums>(), k);
    for (; k < p.columns; ++k) sum_up(std::integral_constant<int, 1>(), k);
  }
}

// Calls f(std::type_identity of the class for order p).
template <class T, class F>
void with_order(double p, F&& f) {
  if (p == 0) return f(std::type_identity<Count<T>>());
  if (p == 1) return f(std::type_identity<Taxicab<T>>());
  if (p == 2) return f(std::type_identity<Euclidean<T>>());
  if (p == __builtin_huge_val()) return f(std::type_identity<Greatest<T>>());
  f(std::type_identity<Power<T>>());
}

void forward_kernel(const Distances& p, int64_t begin, int64_t end) {
  auto run = [&]<class T>(std::type_identity<T>) {
    with_order<T>(p.p, [&]<class Order>(std::type_identity<Order>) {
      forward_rows<T, Order>(p, begin, end);
    });
  };
  p.dtype == kFloat ? run(std::type_identity<float>()) : run(std::type_identity<double>());
}
void backward_kernel(const Distances& p, int64_t begin, int64_t end) {
  auto run = [&]<class T>(std::type_identity<T>) {
    with_order<T>(p.p, [&]<class Order>(std::type_identity<Order>) {
      backward_rows<T, Order>(p, begin, end);
    });
  };
  p.dtype == kFloat ? run(std::type_identity<float>()) : run(std::type_identity<double>());
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(distances_on, &forward_kernel);
LAMELLA_REGISTER_KERNEL(distances_backward_on, &backward_kernel);

}  // namespace lamella::native
