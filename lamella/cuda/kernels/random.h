// Kernels of random numbers and dropout, in C++ that nvcc compiles for a GPU and g++ for the
// stand-in of tests/cuda.
//
// Note [Streams of numbers on a device]
//   Streams are PyTorch's on CUDA for a seed and an offset. Each of the threads of a launch, as
//   many as fit the device at once, has the subsequence of its number; its n-th draw is the counter
//   offset / 4 + n. A draw gives four floats or words of 32 bits, or two doubles or words of 64
//   bits, for elements that are one launch's threads apart. Floats are made as cuRAND documents:
//   (word + 1/2) 2^-32, and normal ones by the Box-Muller transform with the device's fast sine and
//   cosine, so that only a GPU has their last bits.
#pragma once
#include <cmath>

#include "lamella/core/philox.h"
#include "lamella/cuda/kernels/pointwise.h"
#include "lamella/cuda/kernels/random_parameters.h"

namespace lamella::cuda {

// The device's fast functions, as PyTorch's kernels have them.
LAMELLA_DEVICE float fast_log(float x) {
#ifdef __CUDACC__
  return __logf(x);
#else
  return std::log(x);
#endif
}
LAMELLA_DEVICE float fast_exp(float x) {
#ifdef __CUDACC__
  return __expf(x);
#else
  return std::exp(x);
#endif
}
LAMELLA_DEVICE float fast_tan(float x) {
#ifdef __CUDACC__
  return __tanf(x);
#else
  return std::tan(x);
#endif
}
LAMELLA_DEVICE double fast_log(double x) { return std::log(x); }
LAMELLA_DEVICE double fast_exp(double x) { return std::exp(x); }
LAMELLA_DEVICE double fast_tan(double x) { return std::tan(x); }

// In (0, 1].
LAMELLA_DEVICE float unit_of(uint32_t word) {
  return static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
}
LAMELLA_DEVICE double unit_of(uint32_t low, uint32_t high) {
  const uint64_t word = static_cast<uint64_t>(low) ^ (static_cast<uint64_t>(high) << 21);
  return static_cast<double>(word) * 0x1p-53 + 0x1p-54;
}
LAMELLA_DEVICE void normal_pair(uint32_t x, uint32_t y, float* to) {
  const float radius = std::sqrt(-2.0f * std::log(unit_of(x)));
  constexpr float kStep = 2.3283064e-10f * 6.2831855f;
  const float angle = std::fma(static_cast<float>(y), kStep, kStep / 2);
  float sine, cosine;
#ifdef __CUDACC__
  __sincosf(angle, &sine, &cosine);
#else
  sine = std::sin(angle);
  cosine = std::cos(angle);
#endif
  to[0] = sine * radius;
  to[1] = cosine * radius;
}
LAMELLA_DEVICE void normal_pair(const PhiloxWords& w, double* to) {
  const double radius = std::sqrt(-2.0 * std::log(unit_of(w.word[0], w.word[1])));
  const uint64_t word = static_cast<uint64_t>(w.word[2]) ^ (static_cast<uint64_t>(w.word[3]) << 21);
  const double turn = std::fma(static_cast<double>(word), 0x1p-52, 0x1p-53);
  double sine, cosine;
#ifdef __CUDACC__
  sincospi(turn, &sine, &cosine);
#else
  sine = std::sin(3.14159265358979323846 * turn);
  cosine = std::cos(3.14159265358979323846 * turn);
#endif
  to[0] = sine * radius;
  to[1] = cosine * radius;
}

// A number as the dtype `kind` rounds it.
template <class T>
LAMELLA_DEVICE T rounded_to(Kind kind, T value) {
  if (kind == kF16) return converted<T>(stored_as<StoredHalf>(value));
  if (kind == kBF16) return converted<T>(stored_as<StoredBFloat16>(value));
  return value;
}

template <class T>
LAMELLA_DEVICE T distributed(const RandomParameters& p, T unit, T normal) {
  constexpr T kPrecision = sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52);
  const T a = static_cast<T>(p.a), b = static_cast<T>(p.b);
  switch (p.what) {
    case kUniform: {
      // A number that rounds to the end becomes the beginning.
      const T value = rounded_to(p.kind, std::fma(unit, rounded_to(p.kind, b - a), a));
      return value == b ? a : value;
    }
    case kNormal:
      return std::fma(normal, b, a);
    case kLogNormal:
      return fast_exp(std::fma(normal, b, a));
    case kExponential: {
      const T log = unit >= T(1) - kPrecision / 2 ? -kPrecision / 2 : fast_log(unit);
      return T(-1) / a * log;
    }
    case kBernoulli:
      return unit < a ? T(1) : T(0);
    case kCauchy: {
      T inner = unit;
      if constexpr (sizeof(T) == 4) {
        inner = inner > 1 - kPrecision ? 1 - kPrecision : inner < kPrecision ? kPrecision : inner;
      }
      return std::fma(b, fast_tan(T(3.14159265358979323846) * (inner - T(0.5))), a);
    }
    default:
      return std::ceil(fast_log(unit) / std::log1p(-a));
  }
}

// The seed and the offset that a launch begins with.
struct Origin {
  uint64_t seed, offset;
};
LAMELLA_DEVICE Origin origin_of(const Drawing& p) {
  if (p.state == 0) return {p.seed, p.offset};
  const Origin replayed = *reinterpret_cast<const Origin*>(memory_at(p.state));
  return {replayed.seed, replayed.offset + p.offset};
}

// Floats of T: four in a draw, or two doubles.
template <class T>
LAMELLA_DEVICE void random_floats(const RandomParameters& p, int64_t thread, int64_t threads) {
  constexpr int kEach = sizeof(T) == 4 ? 4 : 2;
  char* out = device_pointer<char>(p.out);
  const bool normal = p.what == kNormal || p.what == kLogNormal;
  const int64_t bytes = bytes_of(p.kind);
  const Origin origin = origin_of(p);
  uint64_t index = origin.offset / 4;
  const int64_t numel = static_cast<int64_t>(p.numel);
  for (int64_t first = thread; first < numel; first += threads * kEach, ++index) {
    const PhiloxWords w = philox(origin.seed, static_cast<uint64_t>(thread), index);
    T units[kEach], normals[kEach];
    if constexpr (kEach == 4) {
      for (int k = 0; k < 4; ++k) units[k] = unit_of(w.word[k]);
      if (normal) {
        normal_pair(w.word[0], w.word[1], normals);
        normal_pair(w.word[2], w.word[3], normals + 2);
      }
    } else {
      for (int k = 0; k < 2; ++k) units[k] = unit_of(w.word[2 * k], w.word[2 * k + 1]);
      if (normal) normal_pair(w, normals);
    }
    LAMELLA_UNROLL
    for (int k = 0; k < kEach; ++k) {
      const int64_t at = first + threads * k;
      if (at < numel) {
        write_as(out + at * bytes, p.kind, distributed(p, units[k], normal ? normals[k] : T(0)));
      }
    }
  }
}
// Words of 32 bits, four in a draw, or of 64 bits, two in a draw.
template <class W>
LAMELLA_DEVICE void random_integers(const RandomParameters& p, int64_t thread, int64_t threads) {
  constexpr int kEach = sizeof(W) == 4 ? 4 : 2;
  char* out = device_pointer<char>(p.out);
  const int64_t bytes = bytes_of(p.kind);
  const Origin origin = origin_of(p);
  uint64_t index = origin.offset / 4;
  const int64_t numel = static_cast<int64_t>(p.numel);
  for (int64_t first = thread; first < numel; first += threads * kEach, ++index) {
    const PhiloxWords w = philox(origin.seed, static_cast<uint64_t>(thread), index);
    LAMELLA_UNROLL
    for (int k = 0; k < kEach; ++k) {
      uint64_t word;
      if constexpr (kEach == 4) {
        word = w.word[k];
      } else {
        word = static_cast<uint64_t>(w.word[2 * k]) << 32 | w.word[2 * k + 1];
      }
      const int64_t at = first + threads * k;
      if (at >= numel) continue;
      const uint64_t value = p.range == 0 ? word : word % p.range + static_cast<uint64_t>(p.base);
      write_as(out + at * bytes, p.kind, static_cast<int64_t>(value));
    }
  }
}
// A draw for each four neighbours, by the chances of the elements.
template <class T>
LAMELLA_DEVICE void random_chances(const RandomParameters& p, int64_t thread, int64_t threads) {
  char* out = device_pointer<char>(p.out);
  const T* chances = reinterpret_cast<const T*>(memory_at(p.chances));
  const int64_t bytes = bytes_of(p.kind);
  const int64_t numel = static_cast<int64_t>(p.numel);
  const Origin origin = origin_of(p);
  for (int64_t piece = thread; piece * 4 < numel; piece += threads) {
    const PhiloxWords w = philox(origin.seed, static_cast<uint64_t>(piece), origin.offset / 4);
    for (int k = 0; k < 4 && piece * 4 + k < numel; ++k) {
      const int64_t at = piece * 4 + k;
      write_as(out + at * bytes, p.kind, unit_of(w.word[k]) <= chances[at] ? T(1) : T(0));
    }
  }
}

template <class T>
LAMELLA_DEVICE void dropout(const DropoutParameters& p, int64_t thread, int64_t threads) {
  const char* in = memory_at(p.in);
  char* out = device_pointer<char>(p.out);
  char* mask = device_pointer<char>(p.mask);
  const int64_t bytes = bytes_of(p.kind);
  const T kept = static_cast<T>(p.kept), scale = static_cast<T>(1.0 / kept);
  const int64_t numel = static_cast<int64_t>(p.numel);
  const int64_t side = p.neighbours, step = side == 1 ? threads : 1;
  const Origin origin = origin_of(p);
  uint64_t index = origin.offset / 4;
  for (int64_t first = thread * side; first < numel;
       first += threads * (side == 1 ? 4 : side), ++index) {
    const PhiloxWords w = philox(origin.seed, static_cast<uint64_t>(thread), index);
    LAMELLA_UNROLL
    for (int k = 0; k < 4; ++k) {
      const int64_t at = first + step * k;
      if (at >= numel || (side != 1 && k >= side)) break;
      const T stays = unit_of(w.word[k]) < kept ? T(1) : T(0);
      write(out + at * bytes, p.kind, read<T>(in + at * bytes, p.kind) * stays * scale);
      mask[at] = stays != T(0) ? 1 : 0;
    }
  }
}

// f(name, Parameters, body)
#define LAMELLA_RANDOM_KERNELS(f)                                              \
  f(random_f32, RandomParameters, random_floats<float>)                        \
      f(random_f64, RandomParameters, random_floats<double>)                   \
          f(random_u32, RandomParameters, random_integers<uint32_t>)           \
              f(random_u64, RandomParameters, random_integers<uint64_t>)       \
                  f(chances_f32, RandomParameters, random_chances<float>)      \
                      f(chances_f64, RandomParameters, random_chances<double>) \
                          f(dropout_f32, DropoutParameters, dropout<float>)    \
                              f(dropout_f64, DropoutParameters, dropout<double>)

}  // namespace lamella::cuda
