// Transforms of lines, included by one file for each precision: Note [Fourier transforms].
#pragma once
#include "lamella/kernels/families/fft/lines.h"

#include "lamella/core/allocator.h"
#include "lamella/kernels/families/fft/passes.h"

namespace lamella::fft {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
constexpr int kWide =
#if defined(CPU_CAPABILITY_AVX512)
    8;
#elif defined(CPU_CAPABILITY_AVX2)
    sizeof(T) == 4 ? 8 : 4;
#else
    4;
#endif

template <class P>
P* aligned(P* p) {
  return reinterpret_cast<P*>((reinterpret_cast<uintptr_t>(p) + 63) & ~uintptr_t{63});
}
// Scratch memory for numbers of type T, aligned to 64 bytes.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count) : bytes_(static_cast<size_t>(count) * sizeof(T) + 64) {
    memory_ = cpu_allocate(bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { cpu_free(memory_, bytes_); }
  T* begin() const { return aligned(static_cast<T*>(memory_)); }

 private:
  size_t bytes_;
  void* memory_;
};

// ---- One line of complex numbers ----

template <class T, int kLanes>
void line_of_lanes(const LinePlan<T>& plan, const T* in, T* out, T* scratch, bool forward,
                   T scale) {
  using V = Vector<T, kLanes>;
  const int64_t rows = plan.n / kLanes;
  auto* a = reinterpret_cast<Pair<V>*>(scratch);
  auto points = [=](int64_t row) {
    return turned_if(!forward, load<T, kLanes>(in + 2 * row * kLanes));
  };
  const Pair<V>* z;
  if constexpr (kLanes == 8) {
    z = run_passes(*plan.columns, points, a, a + rows);
  } else {  // copies the points first, so that all passes read memory, which needs less code
    for (int64_t row = 0; row < rows; ++row) a[rows + row] = points(row);
    z = run_passes(*plan.columns, InMemory<V>{a + rows}, a, a + rows);
  }
  if constexpr (kLanes == 1) {
    for (int64_t k = 0; k < rows; ++k) {
      store<T, 1>(out + 2 * k, turned_if(!forward, Pair<V>{z[k].re * scale, z[k].im * scale}));
    }
  } else {
    const T* twiddles = plan.twiddles.data();
    for (int64_t k = 0; k < rows; k += kLanes) {
      V re[kLanes], im[kLanes];
      for (int row = 0; row < kLanes; ++row) {
        const int64_t at = k + row < rows ? k + row : rows - 1;
        Pair<V> w;
        std::memcpy(&w, twiddles + 2 * at * kLanes, sizeof w);
        const Pair<V> turned = times(z[at], w);
        re[row] = turned.re;
        im[row] = turned.im;
      }
      transpose<kLanes>(re);
      transpose<kLanes>(im);
      Pair<V> across[kLanes];
      for (int i = 0; i < kLanes; ++i) across[i] = {re[i], im[i]};
      Butterfly<T, kLanes>::run(across);
      for (int d = 0; d < kLanes; ++d) {
        const Pair<V> result =
            turned_if(!forward, Pair<V>{across[d].re * scale, across[d].im * scale});
        T* to = out + 2 * (d * rows + k);
        if (k + kLanes <= rows) {
          store<T, kLanes>(to, result);
        } else {
          T rest[2 * kLanes];
          store<T, kLanes>(rest, result);
          std::memcpy(to, rest, static_cast<size_t>(2 * (rows - k)) * sizeof(T));
        }
      }
    }
  }
}

// Bluestein's algorithm: multiplies by the chirp, convolves with the kernel (by transforms of
// padded->n points), and multiplies by the chirp again.
template <class T>
void line_by_chirp(const LinePlan<T>& plan, const T* in, T* out, T* scratch, bool forward, T scale);

template <class T>
void one_line(const LinePlan<T>& plan, const T* in, T* out, T* scratch, bool forward, T scale) {
  scratch = aligned(scratch);
  if (plan.padded != nullptr) return line_by_chirp(plan, in, out, scratch, forward, scale);
  if (plan.lanes == 8) return line_of_lanes<T, 8>(plan, in, out, scratch, forward, scale);
  if (plan.lanes == 4) return line_of_lanes<T, 4>(plan, in, out, scratch, forward, scale);
  line_of_lanes<T, 1>(plan, in, out, scratch, forward, scale);
}

template <class T>
void line_by_chirp(const LinePlan<T>& plan, const T* in, T* out, T* scratch, bool forward,
                   T scale) {
  const int64_t size = plan.padded->n;
  auto* z = reinterpret_cast<Pair<T>*>(scratch);
  auto* chirp = reinterpret_cast<const Pair<T>*>(plan.chirp.data());
  auto* kernel = reinterpret_cast<const Pair<T>*>(plan.kernel.data());
  for (int64_t j = 0; j < plan.n; ++j) {
    z[j] = times(turned_if(!forward, Pair<T>{in[2 * j], in[2 * j + 1]}), chirp[j]);
  }
  for (int64_t j = plan.n; j < size; ++j) z[j] = {T(0), T(0)};
  T* rest = scratch + 2 * size;
  one_line(*plan.padded, scratch, scratch, rest, true, T(1));
  for (int64_t j = 0; j < size; ++j) z[j] = times(z[j], kernel[j]);
  one_line(*plan.padded, scratch, scratch, rest, false, T(1));
  for (int64_t k = 0; k < plan.n; ++k) {
    const Pair<T> result = turned_if(!forward, times(z[k], chirp[k]));
    out[2 * k] = result.re * scale;
    out[2 * k + 1] = result.im * scale;
  }
}

template <class T>
void complex_lines(const LinePlan<T>& plan, const Lines<T>& lines, int64_t begin, int64_t end) {
  const Scratch<T> scratch(plan.scratch());
  for (int64_t l = begin; l < end; ++l) {
    const int64_t at = 2 * l * lines.n;
    one_line(plan, lines.in + at, lines.out + at, scratch.begin(), lines.forward, lines.scale);
  }
}

// ---- Several lines at once, one in each lane ----

template <class T>
void complex_columns(const Plan<T>& plan, const Lines<T>& lines, int64_t count, int64_t begin,
                     int64_t end) {
  constexpr int kLanes = kWide<T>;
  using V = Vector<T, kLanes>;
  const int64_t n = lines.n;
  const Scratch<T> scratch(4 * n * kLanes + 2 * kLanes);
  auto* a = reinterpret_cast<Pair<V>*>(scratch.begin());
  // The number of lines that are adjacent in memory, and of the groups of lanes that they fill.
  const bool apart = lines.inner == 1;
  const int64_t neighbours = apart ? count : lines.inner;
  const int64_t groups = (neighbours + kLanes - 1) / kLanes;
  const int64_t point = apart ? 2 : 2 * lines.inner, lane = apart ? 2 * n : 2;
  const bool turn = !lines.forward;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t first = unit % groups * kLanes;
    const int64_t at = unit / groups * 2 * n * neighbours + first * lane;
    const int64_t here = neighbours - first < kLanes ? neighbours - first : kLanes;
    const T* in = lines.in + at;
    T* out = lines.out + at;
    if (here == kLanes && !apart) {
      const Pair<V>* z = run_passes(
          plan, [=](int64_t i) { return turned_if(turn, load<T, kLanes>(in + i * point)); }, a,
          a + n);
      for (int64_t i = 0; i < n; ++i) {
        store<T, kLanes>(out + i * point,
                         turned_if(turn, Pair<V>{z[i].re * lines.scale, z[i].im * lines.scale}));
      }
      continue;
    }
    // The lanes are first gathered into memory that the first pass does not write, and the results
    // are scattered in the end.
    Pair<V>* together = a + n;
    const int64_t blocks = here == kLanes ? n / kLanes * kLanes : 0;
    for (int64_t i = 0; i < blocks; i += kLanes) {
      V re[kLanes], im[kLanes];
      for (int l = 0; l < kLanes; ++l) {
        const Pair<V> points = turned_if(turn, load<T, kLanes>(in + l * lane + 2 * i));
        re[l] = points.re;
        im[l] = points.im;
      }
      transpose<kLanes>(re);
      transpose<kLanes>(im);
      for (int k = 0; k < kLanes; ++k) together[i + k] = {re[k], im[k]};
    }
    for (int64_t i = blocks; i < n; ++i) {
      Pair<V> gathered = {V{}, V{}};
      for (int64_t l = 0; l < here; ++l) {
        gathered.re[l] = in[i * point + l * lane];
        gathered.im[l] = in[i * point + l * lane + 1];
      }
      together[i] = turned_if(turn, gathered);
    }
    const Pair<V>* z = run_passes(plan, InMemory<V>{together}, a, together);
    for (int64_t i = 0; i < blocks; i += kLanes) {
      V re[kLanes], im[kLanes];
      for (int k = 0; k < kLanes; ++k) {
        re[k] = z[i + k].re * lines.scale;
        im[k] = z[i + k].im * lines.scale;
      }
      transpose<kLanes>(re);
      transpose<kLanes>(im);
      for (int l = 0; l < kLanes; ++l) {
        store<T, kLanes>(out + l * lane + 2 * i, turned_if(turn, Pair<V>{re[l], im[l]}));
      }
    }
    for (int64_t i = blocks; i < n; ++i) {
      const Pair<V> result = turned_if(turn, Pair<V>{z[i].re * lines.scale, z[i].im * lines.scale});
      for (int64_t l = 0; l < here; ++l) {
        out[i * point + l * lane] = result.re[l];
        out[i * point + l * lane + 1] = result.im[l];
      }
    }
  }
}

// ---- Real lines ----
//
// The even points of a real line of n points are the real parts, and the odd ones the imaginary
// parts, of h = n / 2 complex points with the transform Z. With
// E = (Z[k] + conj Z[h - k]) / 2, O = (Z[k] - conj Z[h - k]) / 2i and w = exp(-2 pi i / n),
// the transform of the line is X[k] = E + w^k O and X[h - k] = conj(E - w^k O).

template <class T, int kLanes>
LAMELLA_ALWAYS_INLINE void mix(const Pair<Vector<T, kLanes>>& a, const Pair<Vector<T, kLanes>>& b,
                               const Pair<Vector<T, kLanes>>& w, T half,
                               Pair<Vector<T, kLanes>>* low, Pair<Vector<T, kLanes>>* high) {
  using V = Vector<T, kLanes>;
  const Pair<V> even = {half * (a.re + b.re), half * (a.im - b.im)};
  const Pair<V> odd = times(Pair<V>{half * (a.im + b.im), half * (b.re - a.re)}, w);
  *low = even + odd;
  *high = {even.re - odd.re, odd.im - even.im};
}
template <class T, int kLanes>
LAMELLA_ALWAYS_INLINE Pair<Vector<T, kLanes>> reversed_pair(const Pair<Vector<T, kLanes>>& z) {
  using Index = std::make_index_sequence<kLanes>;
  return {reversed(z.re, Index()), reversed(z.im, Index())};
}

// Converts `z` of h points to the h + 1 points of a real line in place; or back, if the roots'
// imaginary parts are negated. The caller handles the middle point and the ends.
template <class T>
void mix_all(T* z, int64_t h, const T* roots, T half, bool back) {
  constexpr int kLanes = kWide<T>;
  using V = Vector<T, kLanes>;
  int64_t k = 1;
  for (; k + kLanes <= (h + 1) / 2; k += kLanes) {
    Pair<V> w = load<T, kLanes>(roots + 2 * k), low, high;
    if (back) w = {-w.re, w.im};
    T* other = z + 2 * (h - k - kLanes + 1);
    const Pair<V> b = reversed_pair<T, kLanes>(load<T, kLanes>(other));
    mix<T, kLanes>(load<T, kLanes>(z + 2 * k), b, w, half, &low, &high);
    store<T, kLanes>(z + 2 * k, low);
    store<T, kLanes>(other, reversed_pair<T, kLanes>(high));
  }
  for (; 2 * k < h; ++k) {
    Pair<T> w = {roots[2 * k], roots[2 * k + 1]}, low, high;
    if (back) w.re = -w.re;
    mix<T, 1>({z[2 * k], z[2 * k + 1]}, {z[2 * (h - k)], z[2 * (h - k) + 1]}, w, half, &low, &high);
    store<T, 1>(z + 2 * k, low);
    store<T, 1>(z + 2 * (h - k), high);
  }
}

template <class T>
void real_lines(const LinePlan<T>& plan, const T* roots, const Lines<T>& lines, int64_t begin,
                int64_t end) {
  const int64_t n = lines.n, points = n / 2 + 1;
  const Scratch<T> scratch(plan.scratch() + 2 * n);
  for (int64_t l = begin; l < end; ++l) {
    const T* in = lines.in + l * n;
    T* out = lines.out + 2 * l * points;
    if (n % 2 != 0) {
      T* z = scratch.begin() + plan.scratch();
      for (int64_t j = 0; j < n; ++j) {
        z[2 * j] = in[j];
        z[2 * j + 1] = 0;
      }
      one_line(plan, z, z, scratch.begin(), true, lines.scale);
      std::memcpy(out, z, static_cast<size_t>(2 * points) * sizeof(T));
      out[1] = 0;
      for (int64_t k = 0; !lines.forward && k < points; ++k) out[2 * k + 1] = -out[2 * k + 1];
      continue;
    }
    const int64_t h = n / 2;
    one_line(plan, in, out, scratch.begin(), true, lines.scale);
    const T re = out[0], im = out[1];
    out[0] = re + im;
    out[1] = 0;
    out[2 * h] = re - im;
    out[2 * h + 1] = 0;
    mix_all(out, h, roots, T(0.5), false);
    if (h % 2 == 0) out[h + 1] = -out[h + 1];
    for (int64_t k = 0; !lines.forward && k < points; ++k) out[2 * k + 1] = -out[2 * k + 1];
  }
}

template <class T>
void lines_to_real(const LinePlan<T>& plan, const T* roots, const Lines<T>& lines, int64_t begin,
                   int64_t end) {
  const int64_t n = lines.n, points = n / 2 + 1;
  const Scratch<T> scratch(plan.scratch() + 2 * n + 2);
  T* z = scratch.begin() + plan.scratch();
  for (int64_t l = begin; l < end; ++l) {
    const T* in = lines.in + 2 * l * points;
    T* out = lines.out + l * n;
    std::memcpy(z, in, static_cast<size_t>(2 * points) * sizeof(T));
    for (int64_t k = 0; lines.forward && k < points; ++k) z[2 * k + 1] = -z[2 * k + 1];
    // The imaginary parts of points that are their own conjugates are ignored.
    z[1] = 0;
    if (n % 2 != 0) {
      for (int64_t k = 1; k < points; ++k) {
        z[2 * (n - k)] = z[2 * k];
        z[2 * (n - k) + 1] = -z[2 * k + 1];
      }
      one_line(plan, z, z, scratch.begin(), false, lines.scale);
      for (int64_t j = 0; j < n; ++j) out[j] = z[2 * j];
      continue;
    }
    const int64_t h = n / 2;
    const T first = z[0], last = z[2 * h];
    z[0] = first + last;
    z[1] = first - last;
    mix_all(z, h, roots, T(1), true);
    if (h % 2 == 0) {
      z[h] *= 2;
      z[h + 1] *= -2;
    }
    one_line(plan, z, out, scratch.begin(), false, lines.scale);
  }
}

template <class T>
constexpr Functions<T> kFunctions = {kWide<T>,          &one_line<T>,
                                     &complex_lines<T>, &complex_columns<T>,
                                     &real_lines<T>,    &lines_to_real<T>};

}  // namespace
}  // namespace CPU_CAPABILITY
}  // namespace lamella::fft
