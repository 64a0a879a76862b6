// Kernels of softmax, of normalisation by rows and by channels, and of their gradients. What they
// compute is said in lamella/kernels/device_lines.h.
//
// Note [Statistics in float64]
//   Means and sums of squares are added in float64, in which squares of float32 cannot overflow and
//   small variances beside a large mean stay accurate. All else is in the type of the computation.
#pragma once
#include <cmath>

#include "lamella/cuda/kernels/reduce.h"

namespace lamella::cuda {

struct SoftmaxParameters {
  int64_t slices, size, inner;
  uint64_t x, y, grad;  // `y` is the result of softmax; the backward writes x
  Kind kind;
  int32_t logarithm;
  int32_t pack;  // elements in 16 bytes, if slices are contiguous and aligned; else 1
};

struct NormParameters {
  int64_t rows, size, inner, groups;
  uint64_t x, y, grad, weight, bias, mean, rstd;  // 0: there is none
  Kind kind, grad_kind;                           // of x and y; of the gradients
  int32_t pack;                                   // as above
  double eps;
};

struct NormSumParameters {
  int64_t outer, channels, inner, per_outer, per_channels, part;
  uint64_t x, grad, mean, rstd, sums;  // sums[part][2][channel]
  Kind kind, grad_kind;
};

struct BatchParameters {
  int64_t channels, running_mean_step, running_var_step;
  uint64_t mean, var, invstd, running_mean, running_var;
  Kind running_kind;
  double eps, momentum, factor;
};

struct ChannelParameters {
  int64_t numel, channels, inner;
  uint64_t x, y, grad, mean, invstd, weight, bias, sums;  // 0: there is none
  Kind kind;
};

#ifdef LAMELLA_KERNEL_BODIES

// ---- Softmax ----

// Runs f(first element) for the slice of each team, whose elements are `inner` apart.
template <class F>
LAMELLA_DEVICE void each_slice(const SoftmaxParameters& p, const Team& team, const F& f) {
  team.each_line(p.slices, [&](int64_t slice) {
    const int64_t start =
        p.inner == 1 ? slice * p.size : slice / p.inner * p.size * p.inner + slice % p.inner;
    f(start, slice < p.slices ? p.size : 0);
  });
}
template <class T, int N>
LAMELLA_DEVICE void softmax_packs(const SoftmaxParameters& p) {
  const Team team(p.inner != 1);
  const int64_t step = int64_t{team.lanes} * N;
  each_slice(p, team, [&](int64_t start, int64_t size) {
    const Elements<T> x(p.x, p.kind, start), y(p.y, p.kind, start);
    ExpSum<T> sum = ExpSum<T>::identity();
    LAMELLA_UNROLL_4
    for (int64_t i = int64_t{team.lane} * N; i < size; i += step) {
      T run[N];
      x.load(i * p.inner, run);
      sum.add(run);
    }
    team.combine(sum, [](ExpSum<T>& a, const ExpSum<T>& b) { a.add(b); });
    // inf - inf is NaN.
    const T total = sum.sum + (sum.most - sum.most);
    const T rest = std::log(total), scale = 1 / total;
    LAMELLA_UNROLL_4
    for (int64_t i = int64_t{team.lane} * N; i < size; i += step) {
      T run[N];
      x.load(i * p.inner, run);
      for (T& value : run) {
        value -= sum.most;
        value = p.logarithm != 0 ? value - rest : std::exp(value) * scale;
      }
      y.store(i * p.inner, run);
    }
  });
}
template <class T, int N>
LAMELLA_DEVICE void softmax_backward_packs(const SoftmaxParameters& p) {
  const Team team(p.inner != 1);
  const int64_t step = int64_t{team.lanes} * N;
  each_slice(p, team, [&](int64_t start, int64_t size) {
    const Elements<T> grad(p.grad, p.kind, start), y(p.y, p.kind, start), x(p.x, p.kind, start);
    T sum = 0;
    LAMELLA_UNROLL_4
    for (int64_t i = int64_t{team.lane} * N; i < size; i += step) {
      T g[N], v[N];
      grad.load(i * p.inner, g);
      if (p.logarithm == 0) y.load(i * p.inner, v);
      for (int k = 0; k < N; ++k) sum += p.logarithm != 0 ? g[k] : g[k] * v[k];
    }
    team.combine(sum, [](T& a, const T& b) { a += b; });
    LAMELLA_UNROLL_4
    for (int64_t i = int64_t{team.lane} * N; i < size; i += step) {
      T g[N], v[N];
      grad.load(i * p.inner, g);
      y.load(i * p.inner, v);
      for (int k = 0; k < N; ++k) {
        v[k] = p.logarithm != 0 ? g[k] - std::exp(v[k]) * sum : v[k] * (g[k] - sum);
      }
      x.store(i * p.inner, v);
    }
  });
}
template <class T>
LAMELLA_DEVICE void softmax_lines(const SoftmaxParameters& p) {
  with_pack<T>(p.pack, [&](auto n) { softmax_packs<T, n>(p); });
}
template <class T>
LAMELLA_DEVICE void softmax_backward_lines(const SoftmaxParameters& p) {
  with_pack<T>(p.pack, [&](auto n) { softmax_backward_packs<T, n>(p); });
}

// ---- Rows ----

LAMELLA_DEVICE void add_doubles(double& a, const double& b) { a += b; }
struct Sums {
  double dot, all;
};
LAMELLA_DEVICE void add_sums(Sums& a, const Sums& b) {
  a.dot += b.dot;
  a.all += b.all;
}

// The weight or bias of a row's element.
template <class T>
LAMELLA_DEVICE T parameter_at(uint64_t parameter, const NormParameters& p, int64_t channel,
                              int64_t i, T otherwise) {
  if (parameter == 0) return otherwise;
  return device_pointer<const T>(parameter)[channel + (p.inner == 1 ? i : i / p.inner)];
}
// The parameters of N elements from i on.
template <class T, int N>
LAMELLA_DEVICE void load_parameters(uint64_t parameter, const NormParameters& p, int64_t channel,
                                    int64_t i, T otherwise, T (&to)[N]) {
  for (int k = 0; k < N; ++k) to[k] = parameter_at<T>(parameter, p, channel, i + k, otherwise);
}
template <class T, int N>
LAMELLA_DEVICE void norm_packs(const NormParameters& p) {
  const Team team(false);
  const auto count = static_cast<double>(p.size);
  const int64_t step = int64_t{team.lanes} * N;
  team.each_line(p.rows, [&](int64_t row) {
    const int64_t size = row < p.rows ? p.size : 0;
    const Elements<T> x(p.x, p.kind, row * p.size), y(p.y, p.kind, row * p.size);
    double mean = 0, squares = 0;
    T run[N], w[N], b[N];
    if (p.mean != 0) {
      LAMELLA_UNROLL_4
      for (int64_t i = int64_t{team.lane} * N; i < size; i += step) {
        x.load(i, run);
        for (T value : run) mean += static_cast<double>(value);
      }
      team.combine(mean, add_doubles);
      mean /= count;
    }
    LAMELLA_UNROLL_4
    for (int64_t i = int64_t{team.lane} * N; i < size; i += step) {
      x.load(i, run);
      for (T value : run) {
        const double apart = static_cast<double>(value) - mean;
        squares += apart * apart;
      }
    }
    team.combine(squares, add_doubles);
    const T center = static_cast<T>(mean);
    const T scale = static_cast<T>(1 / std::sqrt(squares / count + p.eps));
    if (size != 0 && team.lane == 0) {
      if (p.mean != 0) device_pointer<T>(p.mean)[row] = center;
      device_pointer<T>(p.rstd)[row] = scale;
    }
    const int64_t channel = p.groups == 1 ? 0 : row % p.groups * (p.size / p.inner);
    for (int64_t i = int64_t{team.lane} * N; i < size; i += step) {
      x.load(i, run);
      load_parameters(p.weight, p, channel, i, T(1), w);
      load_parameters(p.bias, p, channel, i, T(0), b);
      for (int k = 0; k < N; ++k) run[k] = (run[k] - center) * scale * w[k] + b[k];
      y.store(i, run);
    }
  });
}
// y receives the gradient of x.
template <class T, int N>
LAMELLA_DEVICE void norm_backward_packs(const NormParameters& p) {
  const Team team(false);
  const int64_t step = int64_t{team.lanes} * N;
  team.each_line(p.rows, [&](int64_t row) {
    const int64_t size = row < p.rows ? p.size : 0;
    const Elements<T> x(p.x, p.kind, row * p.size), grad(p.grad, p.grad_kind, row * p.size),
        dx(p.y, p.grad_kind, row * p.size);
    const T center = size != 0 && p.mean != 0 ? device_pointer<const T>(p.mean)[row] : T(0);
    const T scale = size != 0 ? device_pointer<const T>(p.rstd)[row] : T(0);
    const int64_t channel = p.groups == 1 ? 0 : row % p.groups * (p.size / p.inner);
    Sums sums{0, 0};
    T run[N], g[N], w[N];
    for (int64_t i = int64_t{team.lane} * N; i < size; i += step) {
      x.load(i, run);
      grad.load(i, g);
      load_parameters(p.weight, p, channel, i, T(1), w);
      for (int k = 0; k < N; ++k) {
        sums.all += static_cast<double>(g[k] * w[k]);
        sums.dot += static_cast<double>(g[k] * w[k] * ((run[k] - center) * scale));
      }
    }
    team.combine(sums, add_sums);
    const auto count = static_cast<double>(p.size);
    const T shift = p.mean != 0 ? static_cast<T>(sums.all / count) : T(0);
    const T slope = static_cast<T>(sums.dot / count);
    for (int64_t i = int64_t{team.lane} * N; i < size; i += step) {
      x.load(i, run);
      grad.load(i, g);
      load_parameters(p.weight, p, channel, i, T(1), w);
      for (int k = 0; k < N; ++k) {
        g[k] = scale * (g[k] * w[k] - shift - (run[k] - center) * scale * slope);
      }
      dx.store(i, g);
    }
  });
}
template <class T>
LAMELLA_DEVICE void norm_rows(const NormParameters& p) {
  with_pack<T>(p.pack, [&](auto n) { norm_packs<T, n>(p); });
}
template <class T>
LAMELLA_DEVICE void norm_backward_rows(const NormParameters& p) {
  with_pack<T>(p.pack, [&](auto n) { norm_backward_packs<T, n>(p); });
}

// ---- Channels ----

template <class T>
LAMELLA_DEVICE void norm_sum_channels(const NormSumParameters& p) {
  const Team team(p.inner == 1);
  const int64_t count = p.outer * p.inner, begin = int64_t{blockIdx.y} * p.part;
  const int64_t end = begin + p.part < count ? begin + p.part : count;
  const Elements<T> x(p.x, p.kind), grad(p.grad, p.grad_kind);
  team.each_line(p.channels, [&](int64_t channel) {
    const bool there = channel < p.channels;
    Sums sums{0, 0};
    for (int64_t e = begin + team.lane; there && e < end; e += team.lanes) {
      const int64_t o = p.inner == 1 ? e : e / p.inner;
      const int64_t at = (o * p.channels + channel) * p.inner + (e - o * p.inner);
      const int64_t row = o * p.per_outer + channel / p.per_channels;
      const T center = p.mean != 0 ? device_pointer<const T>(p.mean)[row] : T(0);
      const T g = grad[at], unit = (x[at] - center) * device_pointer<const T>(p.rstd)[row];
      sums.dot += static_cast<double>(g * unit);
      sums.all += static_cast<double>(g);
    }
    team.combine(sums, add_sums);
    if (!there || team.lane != 0) return;
    T* to = device_pointer<T>(p.sums) + int64_t{blockIdx.y} * 2 * p.channels + channel;
    to[0] = static_cast<T>(sums.dot);
    to[p.channels] = static_cast<T>(sums.all);
  });
}

template <class T>
LAMELLA_DEVICE void batch_statistics(const BatchParameters& p) {
  auto update = [&](uint64_t running, int64_t step, T now, int64_t c) {
    if (running == 0) return;
    const Elements<T> all(running, p.running_kind);
    const T former = all[c * step];
    all.set(c * step, static_cast<T>(1 - p.momentum) * former + static_cast<T>(p.momentum) * now);
  };
  each_element(p.channels, [&](int64_t c) {
    const T mean = device_pointer<const T>(p.mean)[c], var = device_pointer<const T>(p.var)[c];
    device_pointer<T>(p.invstd)[c] =
        static_cast<T>(1 / std::sqrt(static_cast<double>(var) + p.eps));
    update(p.running_mean, p.running_mean_step, mean, c);
    update(p.running_var, p.running_var_step, static_cast<T>(static_cast<double>(var) * p.factor),
           c);
  });
}

// With `grad`, y receives the gradient of x.
template <class T>
LAMELLA_DEVICE void norm_channels(const ChannelParameters& p) {
  const Elements<T> x(p.x, p.kind), y(p.y, p.kind), grad(p.grad, p.kind);
  const T count = static_cast<T>(static_cast<double>(p.numel / p.channels));
  each_element(p.numel, [&](int64_t i) {
    int64_t c = i;
    if (p.numel <= INT32_MAX) {
      const auto at = static_cast<uint32_t>(i), inner = static_cast<uint32_t>(p.inner);
      c = (inner == 1 ? at : at / inner) % static_cast<uint32_t>(p.channels);
    } else {
      c = i / p.inner % p.channels;
    }
    const T scale = device_pointer<const T>(p.invstd)[c];
    const T unit = (x[i] - device_pointer<const T>(p.mean)[c]) * scale;
    const T w = p.weight != 0 ? device_pointer<const T>(p.weight)[c] : T(1);
    if (p.grad == 0) {
      y.set(i, unit * w + (p.bias != 0 ? device_pointer<const T>(p.bias)[c] : T(0)));
      return;
    }
    T g = grad[i];
    if (p.sums != 0) {
      auto* sums = device_pointer<const T>(p.sums);
      g -= (sums[p.channels + c] + unit * sums[c]) / count;
    }
    y.set(i, scale * w * g);
  });
}

#endif

#define LAMELLA_NORM_KERNEL(f, name, threads, Parameters, body) \
  f(name##_f32, threads, Parameters, body<float>) f(name##_f64, threads, Parameters, body<double>)
#define LAMELLA_NORM_KERNELS(f)                                                                \
  LAMELLA_NORM_KERNEL(f, softmax, kTeamThreads, SoftmaxParameters, softmax_lines)              \
  LAMELLA_NORM_KERNEL(f, softmax_backward, kTeamThreads, SoftmaxParameters,                    \
                      softmax_backward_lines)                                                  \
  LAMELLA_NORM_KERNEL(f, norm_rows, kTeamThreads, NormParameters, norm_rows)                   \
  LAMELLA_NORM_KERNEL(f, norm_backward_rows, kTeamThreads, NormParameters, norm_backward_rows) \
  LAMELLA_NORM_KERNEL(f, norm_sums, kTeamThreads, NormSumParameters, norm_sum_channels)        \
  LAMELLA_NORM_KERNEL(f, batch_statistics, kElementThreads, BatchParameters, batch_statistics) \
  LAMELLA_NORM_KERNEL(f, norm_channels, kElementThreads, ChannelParameters, norm_channels)

}  // namespace lamella::cuda
