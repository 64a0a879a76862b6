// Building blocks of matrix product kernels: tiles of sums that stay in registers, products of rows
// with rows, and the packing of panels.
// K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3),
// 2008.
#pragma once
#include <cstring>
#include <type_traits>
#include <utility>

#include "lamella/kernels/cpu/simd/gemm.h"
#include "lamella/kernels/cpu/simd/vector_size.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace lamella::native {
inline namespace CPU_CAPABILITY {

// The size of tiles, whose sums and factors fill the registers. Tiles of at most kWideRows rows
// over an unpacked b have twice the columns, so that more of each row of b is read at once.
#if defined(CPU_CAPABILITY_AVX512) || defined(__aarch64__)
inline constexpr int kTileRows = 8, kTileVectors = 3, kWideRows = 4;
#elif defined(CPU_CAPABILITY_AVX2)
inline constexpr int kTileRows = 4, kTileVectors = 3, kWideRows = 1;
#else
inline constexpr int kTileRows = 4, kTileVectors = 2, kWideRows = 1;
#endif

template <class T>
struct LanesOf {
  typedef T type __attribute__((vector_size(kVecBytes)));
  typedef T memory __attribute__((vector_size(kVecBytes), aligned(1), may_alias));
};
template <class T>
using Lanes = typename LanesOf<T>::type;
template <class T>
inline constexpr int kLanes = kVecBytes / static_cast<int>(sizeof(T));

template <class T>
inline Lanes<T> load(const void* p) {
  return *static_cast<const typename LanesOf<T>::memory*>(p);
}
template <class T>
inline void store(void* p, Lanes<T> x) {
  *static_cast<typename LanesOf<T>::memory*>(p) = x;
}
template <class T>
inline Lanes<T> broadcast(T x) {
  return x - Lanes<T>{};  // a sum would lose the sign of -0
}

#if defined(CPU_CAPABILITY_AVX2) && !defined(CPU_CAPABILITY_AVX512)
template <class T>
inline __m256i mask_of(int64_t count) {
  if constexpr (sizeof(T) == 4) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  } else {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
  }
}
#endif

// Loads the first `count` lanes; the others are zero.
template <class T>
inline Lanes<T> load_part(const void* p, int64_t count) {
#if defined(CPU_CAPABILITY_AVX512)
  auto mask = (1u << count) - 1;
  if constexpr (sizeof(T) == 4) {
    return (Lanes<T>)_mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), p);
  } else {
    return (Lanes<T>)_mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask), p);
  }
#elif defined(CPU_CAPABILITY_AVX2)
  if constexpr (sizeof(T) == 4) {
    return (Lanes<T>)_mm256_maskload_epi32(static_cast<const int*>(p), mask_of<T>(count));
  } else {
    return (Lanes<T>)_mm256_maskload_epi64(static_cast<const long long*>(p), mask_of<T>(count));
  }
#else
  Lanes<T> x = {};
  std::memcpy(&x, p, static_cast<size_t>(count) * sizeof(T));
  return x;
#endif
}
template <class T>
inline void store_part(void* p, Lanes<T> x, int64_t count) {
#if defined(CPU_CAPABILITY_AVX512)
  auto mask = (1u << count) - 1;
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_epi32(p, static_cast<__mmask16>(mask), (__m512i)x);
  } else {
    _mm512_mask_storeu_epi64(p, static_cast<__mmask8>(mask), (__m512i)x);
  }
#elif defined(CPU_CAPABILITY_AVX2)
  if constexpr (sizeof(T) == 4) {
    _mm256_maskstore_epi32(static_cast<int*>(p), mask_of<T>(count), (__m256i)x);
  } else {
    _mm256_maskstore_epi64(static_cast<long long*>(p), mask_of<T>(count), (__m256i)x);
  }
#else
  std::memcpy(p, &x, static_cast<size_t>(count) * sizeof(T));
#endif
}

// Elements that are multiplied and summed in their own type.
template <class T>
struct SameType {
  using Element = T;
  using Sum = T;
  static constexpr bool kFetches = std::is_floating_point_v<T>;  // has tiles that prefetch b
  static Lanes<T> multiply_add(Lanes<T> a, Lanes<T> b, Lanes<T> c) {
    if constexpr (std::is_same_v<T, float>) {
#if defined(CPU_CAPABILITY_AVX512)
      return (Lanes<T>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(CPU_CAPABILITY_AVX2)
      return (Lanes<T>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
      return (Lanes<T>)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#endif
    } else if constexpr (std::is_same_v<T, double>) {
#if defined(CPU_CAPABILITY_AVX512)
      return (Lanes<T>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(CPU_CAPABILITY_AVX2)
      return (Lanes<T>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__aarch64__)
      return (Lanes<T>)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#endif
    }
    return a * b + c;
  }
};

// ---- Tiles ----

// True if a partial vector is read as fast as a whole one.
#if defined(CPU_CAPABILITY_AVX512) || defined(CPU_CAPABILITY_AVX2)
inline constexpr bool kReadsParts = true;
#else
inline constexpr bool kReadsParts = false;
#endif

// The variants of a tile.
enum class Tile {
  kPlain,
  kReadsParts,  // b has one vector in a row, which ends where its columns end
  kFetches  // prefetches what a later tile reads at `next` in each row of b: one vector, or all of
            // them if too few rows are left for other tiles to do so
};

// The number of tiles of a panel that prefetch the next panel.
inline int64_t fetching_tiles(int64_t rows) {
  return rows <= (kTileVectors - 1) * kTileRows ? 1 : kTileVectors;
}

// Computes a tile of R rows of V vectors, the last of which has `last` columns.
template <class P, int R, int V, Tile KIND>
void tile(const GemmBlock& g, const char* a, const char* b, int64_t b_row, char* c, const char* d,
          int64_t last, const char* next) {
  using E = typename P::Element;
  using S = typename P::Sum;
  constexpr int64_t kLast = (V - 1) * kVecBytes;
  const int64_t a_row = g.a_row, a_step = g.a_step;
  // Prefetches the memory of the result while the sums are computed.
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) __builtin_prefetch(c + r * g.c_row + v * kVecBytes, 1);
  }
  const int fetched = fetching_tiles(g.m) == 1 ? V : 1;
  Lanes<S> sum[R][V] = {};
  for (int64_t l = 0; l < g.k; ++l) {
    if constexpr (KIND == Tile::kFetches) {
      __builtin_prefetch(next, 0, 2);
      for (int v = 1; v < fetched; ++v) __builtin_prefetch(next + v * kVecBytes, 0, 2);
      next += b_row;
    }
    Lanes<E> factor[V];
    for (int v = 0; v < V; ++v) {
      factor[v] = KIND == Tile::kReadsParts ? load_part<E>(b, last) : load<E>(b + v * kVecBytes);
    }
    for (int r = 0; r < R; ++r) {
      E one;
      std::memcpy(&one, a + r * a_row, sizeof(E));
      Lanes<E> all = broadcast(one);
      for (int v = 0; v < V; ++v) sum[r][v] = P::multiply_add(all, factor[v], sum[r][v]);
    }
    a += a_step;
    b += b_row;
  }
  S alpha;
  std::memcpy(&alpha, g.alpha, sizeof(S));
  if (alpha != 1) {
    for (auto& row : sum) {
      for (auto& x : row) x *= broadcast(alpha);
    }
  }
  bool is_whole = last == kLanes<S>;
  for (int r = 0; r < R; ++r, c += g.c_row) {
    if (d != nullptr) {
      for (int v = 0; v + 1 < V; ++v) sum[r][v] += load<S>(d + v * kVecBytes);
      sum[r][V - 1] += is_whole ? load<S>(d + kLast) : load_part<S>(d + kLast, last);
      d += g.d_row;
    }
    for (int v = 0; v + 1 < V; ++v) store<S>(c + v * kVecBytes, sum[r][v]);
    if (is_whole) {
      store<S>(c + kLast, sum[r][V - 1]);
    } else {
      store_part<S>(c + kLast, sum[r][V - 1], last);
    }
  }
}

template <class P>
using TileFn = void (*)(const GemmBlock&, const char*, const char*, int64_t, char*, const char*,
                        int64_t, const char*);
template <class P, int V, Tile KIND = Tile::kPlain, int... R>
TileFn<P> tile_of(int64_t rows, std::integer_sequence<int, R...>) {
  static constexpr TileFn<P> table[] = {&tile<P, R + 1, V, KIND>...};
  return table[rows - 1];
}
template <class P>
TileFn<P> tile_of(int64_t rows, int64_t vectors) {
  constexpr auto kAll = std::make_integer_sequence<int, kTileRows>();
  if (vectors == kTileVectors) return tile_of<P, kTileVectors>(rows, kAll);
  if (vectors == 1) return tile_of<P, 1>(rows, kAll);
  if (vectors == 2) return tile_of<P, 2>(rows, kAll);
  return tile_of<P, 2 * kTileVectors>(rows, std::make_integer_sequence<int, kWideRows>());
}

// True if b is large and not packed: the hardware prefetcher does not follow the order in which its
// rows are read.
template <class P>
bool fetches_b(const GemmBlock& g) {
  return P::kFetches && g.b_is_far;
}
template <class P>
TileFn<P> fetching_tile_of(int64_t rows, bool is_wide) {
  constexpr Tile kKind = P::kFetches ? Tile::kFetches : Tile::kPlain;
  constexpr auto kAll = std::make_integer_sequence<int, kTileRows>();
  constexpr auto kWide = std::make_integer_sequence<int, kWideRows>();
  return is_wide ? tile_of<P, 2 * kTileVectors, kKind>(rows, kWide)
                 : tile_of<P, kTileVectors, kKind>(rows, kAll);
}

template <class P>
void block(const GemmBlock& g) {
  using S = typename P::Sum;
  constexpr int64_t kColumns = kTileVectors * kLanes<S>, kBytes = sizeof(S);
  // Rows are distributed evenly, so that no tile has far fewer rows than the others.
  int64_t tiles = (g.m + kTileRows - 1) / kTileRows;
  int64_t rows = g.m / tiles, higher = g.m % tiles;
  bool is_wide = g.m <= kWideRows && g.b_panel == kColumns * kBytes;
  for (int64_t j = 0; j < g.n;) {
    int64_t width = g.n - j < kColumns ? g.n - j : kColumns;
    if (is_wide && g.n - j >= 2 * kColumns) width = 2 * kColumns;
    int64_t vectors = (width + kLanes<S> - 1) / kLanes<S>;
    int64_t last = width - (vectors - 1) * kLanes<S>;
    bool is_tail = width < kColumns;
    const char* b = is_tail ? g.tail : g.b + j / kColumns * g.b_panel;
    int64_t b_row = is_tail ? g.tail_row : g.b_row;
    const char* a = g.a;
    char* c = g.c + j * kBytes;
    const char* d = g.d != nullptr && !g.d_repeats ? g.d + j * kBytes : g.d;
    const char* next = g.n - j >= width + kColumns ? b + width / kColumns * g.b_panel : g.after;
    bool fetches = fetches_b<P>(g) && width >= kColumns && next != nullptr;
    TileFn<P> run = tile_of<P>(higher != 0 ? rows + 1 : rows, vectors);
    for (int64_t i = 0; i < tiles; ++i) {
      if (i == higher && i != 0) run = tile_of<P>(rows, vectors);
      int64_t count = i < higher ? rows + 1 : rows;
      if (fetches && i < fetching_tiles(g.m)) {
        fetching_tile_of<P>(count, width > kColumns)(g, a, b, b_row, c, d, last,
                                                     next + i * kVecBytes);
      } else {
        run(g, a, b, b_row, c, d, last, nullptr);
      }
      a += count * g.a_row;
      c += count * g.c_row;
      if (d != nullptr) d += count * g.d_row;
    }
    j += width;
  }
}

template <class P>
void small(const GemmSmall& s) {
  using S = typename P::Sum;
  constexpr auto kAll = std::make_integer_sequence<int, kTileRows>();
  GemmBlock g = s.first;
  int64_t tiles = (g.m + kTileRows - 1) / kTileRows;
  int64_t rows = g.m / tiles, higher = g.m % tiles;
  auto tile_of_rows = [&](int64_t count) {
    return g.n == kLanes<S> ? tile_of<P, 1>(count, kAll)
                            : tile_of<P, 1, Tile::kReadsParts>(count, kAll);
  };
  TileFn<P> run_higher = tile_of_rows(rows + (higher != 0 ? 1 : 0)), run = tile_of_rows(rows);
  for (int64_t l = 0; l < s.count; ++l) {
    const char* a = g.a;
    char* c = g.c;
    const char* d = g.d;
    for (int64_t i = 0; i < tiles; ++i) {
      (i < higher ? run_higher : run)(g, a, g.b, g.b_row, c, d, g.n, nullptr);
      int64_t count = i < higher ? rows + 1 : rows;
      a += count * g.a_row;
      c += count * g.c_row;
      if (d != nullptr) d += count * g.d_row;
    }
    g.a += s.a_next;
    g.b += s.b_next;
    g.c += s.c_next;
    if (d != nullptr) g.d += s.d_next;
  }
}

// ---- Products of rows with rows ----

// Adds adjacent blocks of s lanes. In each group of 2 s lanes, the result has the sum of the blocks
// of x, followed by that of the blocks of y.
template <class T, int... I>
inline Lanes<T> halves_added(Lanes<T> x, Lanes<T> y, int s, std::integer_sequence<int, I...>) {
  constexpr int N = sizeof...(I);
  // The blocks with even numbers of x and y, plus those with odd numbers.
  switch (s) {
#define LAMELLA_HALVES(S)                                                \
  case S:                                                                \
    if constexpr (S < N) {                                               \
      return __builtin_shufflevector(x, y, (I & S ? N + I - S : I)...) + \
             __builtin_shufflevector(x, y, (I & S ? N + I : I + S)...);  \
    }                                                                    \
    break;
    LAMELLA_HALVES(1)
    LAMELLA_HALVES(2)
    LAMELLA_HALVES(4)
    LAMELLA_HALVES(8)
#undef LAMELLA_HALVES
  }
  return x;
}
// Lane i of the result is the sum of the lanes of x[i].
template <class T>
inline Lanes<T> sums_of_lanes(Lanes<T> (&x)[kLanes<T>]) {
  constexpr int N = kLanes<T>;
#pragma GCC unroll 4
  for (int s = N / 2; s >= 1; s /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < s; ++i) {
      x[i] = halves_added<T>(x[i], x[i + s], s, std::make_integer_sequence<int, N>());
    }
  }
  return x[0];
}

// Products of R rows of a with as many rows of b as a vector has lanes. The last row is read in
// place of rows past `m` and `n`.
template <class P, int R, bool FETCHES>
void dots_tile(const GemmDots& g, const char* a, const char* b, int64_t m, int64_t n, char* c,
               const char* d) {
  using E = typename P::Element;
  using S = typename P::Sum;
  constexpr int N = kLanes<S>, C = N / R;
  // Few columns are read at a time: one after the other in memory, they are nearly one stream.
  constexpr int G = R == 1 && C > 4 ? 4 : C;
  const char* rows[R];
  for (int r = 0; r < R; ++r) rows[r] = a + (r < m ? r : m - 1) * g.a_row;
  Lanes<S> sum[N] = {};
  // The hardware keeps ahead of long rows too late where it is to follow several.
  constexpr int64_t kAhead = 512;
  const int64_t ahead = g.b_is_short ? G * g.b_row : kAhead;
#pragma GCC unroll 4
  for (int first = 0; first < C; first += G) {
    const char* columns[G];
    for (int j = 0; j < G; ++j) columns[j] = b + (first + j < n ? first + j : n - 1) * g.b_row;
    Lanes<S> own[R * G] = {};
    int64_t l = 0;
    for (; l + N <= g.k; l += N) {
      Lanes<E> x[R];
      for (int r = 0; r < R; ++r) x[r] = load<E>(rows[r] + l * sizeof(E));
      for (int j = 0; j < G; ++j) {
        if (FETCHES) __builtin_prefetch(columns[j] + l * sizeof(E) + ahead, 0, 3);
        Lanes<E> y = load<E>(columns[j] + l * sizeof(E));
        for (int r = 0; r < R; ++r) own[r * G + j] = P::multiply_add(x[r], y, own[r * G + j]);
      }
    }
    if (l < g.k) {
      Lanes<E> x[R];
      for (int r = 0; r < R; ++r) x[r] = load_part<E>(rows[r] + l * sizeof(E), g.k - l);
      for (int j = 0; j < G; ++j) {
        Lanes<E> y = load_part<E>(columns[j] + l * sizeof(E), g.k - l);
        for (int r = 0; r < R; ++r) own[r * G + j] = P::multiply_add(x[r], y, own[r * G + j]);
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int j = 0; j < G; ++j) sum[r * C + first + j] = own[r * G + j];
    }
  }
  S alpha;
  std::memcpy(&alpha, g.alpha, sizeof(S));
  S results[N];
  store<S>(results, sums_of_lanes<S>(sum) * broadcast(alpha));
  constexpr auto kBytes = static_cast<int64_t>(sizeof(S));
  if (m >= R && n >= C && g.c_column == kBytes && (d == nullptr || g.d_column == kBytes)) {
    typedef S Row __attribute__((vector_size(C * sizeof(S)), aligned(1), may_alias));
    for (int r = 0; r < R; ++r) {
      Row row = *reinterpret_cast<const Row*>(results + r * C);
      if (d != nullptr) row += *reinterpret_cast<const Row*>(d + r * g.d_row);
      *reinterpret_cast<Row*>(c + r * g.c_row) = row;
    }
    return;
  }
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      S value = results[r * C + j];
      if (d != nullptr) {
        S added;
        std::memcpy(&added, d + r * g.d_row + j * g.d_column, sizeof(S));
        value += added;
      }
      std::memcpy(c + r * g.c_row + j * g.c_column, &value, sizeof(S));
    }
  }
}

template <class P>
void dots(const GemmDots& g) {
  using S = typename P::Sum;
  constexpr int N = kLanes<S>;
  auto run = [&]<int R>(std::integral_constant<int, R>) {
    constexpr int C = N / R;
    for (int64_t j = 0; j < g.n; j += C) {
      for (int64_t i = 0; i < g.m; i += R) {
        // The tile of the first rows of a prefetches b.
        auto run_tile = g.b_is_far && i == 0 && g.n - j >= 2 * C ? &dots_tile<P, R, true>
                                                                 : &dots_tile<P, R, false>;
        run_tile(g, g.a + i * g.a_row, g.b + j * g.b_row, g.m - i < R ? g.m - i : R,
                 g.n - j < C ? g.n - j : C, g.c + i * g.c_row + j * g.c_column,
                 g.d != nullptr ? g.d + i * g.d_row + j * g.d_column : nullptr);
      }
    }
  };
  if (g.m == 1) return run(std::integral_constant<int, 1>());
  if constexpr (N >= 4) {
    if (g.m > 2) return run(std::integral_constant<int, (N >= 8 ? 4 : 2)>());
  }
  run(std::integral_constant<int, 2>());
}

// ---- Packing ----

// Exchanges blocks of S lanes of two rows, a step of a transpose.
template <class E, int S, int... I>
inline void exchange(Lanes<E>& x, Lanes<E>& y, std::integer_sequence<int, I...>) {
  constexpr int N = sizeof...(I);
  Lanes<E> first = __builtin_shufflevector(x, y, (I & S ? N + I - S : I)...);
  y = __builtin_shufflevector(x, y, (I & S ? N + I : I + S)...);
  x = first;
}
template <class E, int S = 1>
inline void transpose(Lanes<E> (&x)[kLanes<E>]) {
  constexpr int N = kLanes<E>;
  if constexpr (S < N) {
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      if ((i & S) == 0) exchange<E, S>(x[i], x[i + S], std::make_integer_sequence<int, N>());
    }
    transpose<E, 2 * S>(x);
  }
}

// Packs `width` columns of b, padded to `padded` columns.
template <class E>
void pack_panel(const GemmPacking& p, const char* b, char* to, int64_t to_row, int64_t width,
                int64_t padded) {
  constexpr int64_t N = kLanes<E>, kBytes = sizeof(E);
  if (p.column == kBytes || p.n == 1) {
    for (int64_t l = 0; l < p.k; ++l, b += p.row, to += to_row) {
      for (int64_t j = 0; j < padded; j += N) {
        Lanes<E> x =
            width - j >= N ? load<E>(b + j * kBytes) : load_part<E>(b + j * kBytes, width - j);
        store<E>(to + j * kBytes, x);
      }
    }
    return;
  }
  for (int64_t j = 0; j < padded; j += N) {
    int64_t count = width - j < N ? width - j : N;
    const char* from = b + j * p.column;
    char* out = to + j * kBytes;
    for (int64_t l = 0; l < p.k; l += N) {
      int64_t depth = p.k - l < N ? p.k - l : N;
      Lanes<E> x[N];
      for (int64_t i = 0; i < N; ++i) {
        if (i >= count) {
          x[i] = Lanes<E>{};
        } else {
          const char* at = from + i * p.column + l * kBytes;
          x[i] = depth == N ? load<E>(at) : load_part<E>(at, depth);
        }
      }
      transpose<E>(x);
      for (int64_t i = 0; i < depth; ++i) store<E>(out + (l + i) * to_row, x[i]);
    }
  }
}

template <class E>
void pack(const GemmPacking& p) {
  constexpr int64_t kColumns = kTileVectors * kLanes<E>, kBytes = sizeof(E);
  char* to = p.to;
  for (int64_t j = 0; j < p.n; j += kColumns) {
    int64_t width = p.n - j < kColumns ? p.n - j : kColumns;
    int64_t padded = (width + kLanes<E> - 1) / kLanes<E> * kLanes<E>;
    bool is_panel = p.to_row == 0;
    pack_panel<E>(p, p.b + j * p.column, to, is_panel ? padded * kBytes : p.to_row, width, padded);
    to += padded * kBytes * (is_panel ? p.k : 1);
  }
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::native
