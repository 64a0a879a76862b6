// Selection by masks and by indices over contiguous memory.
//
// Note [Selection without branches]
//   Flags in real data are unpredictable, so that a branch on each flag costs more than the move it
//   saves. Every element is written to the output, whose position advances only if the flag is
//   true. With AVX-512 a whole register is compressed at once.
#include "lamella/kernels/cpu/selecting.h"

#include "lamella/kernels/cpu/movement.h"
#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

#if defined(CPU_CAPABILITY_AVX512)
inline uint64_t flags_of_64(const uint8_t* p) {
  __m512i bytes = _mm512_loadu_si512(p);
  return _mm512_test_epi8_mask(bytes, bytes);
}
#endif

int64_t count(const uint8_t* flags, int64_t n) {
  int64_t i = 0, total = 0;
#if defined(CPU_CAPABILITY_AVX512)
  for (; i + 64 <= n; i += 64) total += __builtin_popcountll(flags_of_64(flags + i));
#endif
  // The count of a part fits 16 bits, and a register holds more 16-bit than 64-bit counters.
  constexpr int64_t kPart = 32768;
  while (i < n) {
    int64_t last = n - i < kPart ? n : i + kPart;
    uint16_t part = 0;
    for (; i < last; ++i) part = static_cast<uint16_t>(part + (flags[i] != 0));
    total += part;
  }
  return total;
}

int64_t positions(const uint8_t* flags, int64_t n, int64_t* out, const int64_t* end) {
  int64_t* to = out;
  int64_t i = 0;
#if defined(CPU_CAPABILITY_AVX512)
  const __m512i first = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  for (; i + 64 <= n && end - to >= 64; i += 64) {
    uint64_t set = flags_of_64(flags + i);
    if (set == 0) continue;
    __m512i place = _mm512_add_epi64(first, _mm512_set1_epi64(i));
    for (int group = 0; group < 8; ++group, set >>= 8) {
      auto mask = static_cast<__mmask8>(set);
      _mm512_storeu_si512(to, _mm512_maskz_compress_epi64(mask, place));
      to += __builtin_popcount(mask);
      place = _mm512_add_epi64(place, _mm512_set1_epi64(8));
    }
  }
#endif
  for (; i < n && to != end; ++i) {
    *to = i;
    to += flags[i] != 0;
  }
  return to - out;
}

int check(const int64_t* index, int64_t n, int64_t low, int64_t high) {
  // One comparison of unsigned numbers checks both ends of the range.
  const auto range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  int64_t negative = 0, outside = 0;
  for (int64_t i = 0; i < n; ++i) {
    negative |= index[i];
    outside |= static_cast<uint64_t>(index[i]) - static_cast<uint64_t>(low) >= range ? -1 : 0;
  }
  return (outside != 0 ? Selecting::kOutside : 0) | (negative < 0 ? Selecting::kNegative : 0);
}

template <bool kFirst>
void offsets_of(const int64_t* index, int64_t n, int64_t size, int64_t scale, int64_t* out) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = (index[i] + (index[i] < 0 ? size : 0)) * scale;
    out[i] = kFirst ? at : out[i] + at;
  }
}
void offsets(const int64_t* index, int64_t n, int64_t size, int64_t scale, bool first,
             int64_t* out) {
  if (first) return offsets_of<true>(index, n, size, scale, out);
  offsets_of<false>(index, n, size, scale, out);
}

const Selecting& selecting() {
  static constexpr Selecting table = {&count, &positions, &check, &offsets};
  return table;
}

// ---- Elements ----

// a if `first`, else b, by masking bits: for a condition, the compiler would emit a branch.
template <class T>
inline T chosen(bool first, T a, T b) {
  if constexpr (sizeof(T) == 16) {
    return {{chosen(first, a.word[0], b.word[0]), chosen(first, a.word[1], b.word[1])}};
  } else {
    const T mask = static_cast<T>(-static_cast<int64_t>(first));
    return static_cast<T>((a & mask) | (b & ~mask));
  }
}

template <class T>
int64_t select(const char* src, int64_t stride, const uint8_t* flags, int64_t n, char* out,
               const char* end) {
  T* to = reinterpret_cast<T*>(out);
  const T* last = reinterpret_cast<const T*>(end);
  int64_t i = 0;
#if defined(CPU_CAPABILITY_AVX512)
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    constexpr int64_t kEach = 64 / sizeof(T);
    if (stride == sizeof(T)) {
      for (; i + 64 <= n && last - to >= 64; i += 64) {
        uint64_t set = flags_of_64(flags + i);
        if (set == 0) continue;
        const char* from = src + i * stride;
        for (int64_t k = 0; k < 64; k += kEach, set >>= kEach % 64, from += 64) {
          __m512i all = _mm512_loadu_si512(from);
          if constexpr (sizeof(T) == 4) {
            _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(static_cast<__mmask16>(set), all));
            to += __builtin_popcount(static_cast<uint16_t>(set));
          } else {
            _mm512_storeu_si512(to, _mm512_maskz_compress_epi64(static_cast<__mmask8>(set), all));
            to += __builtin_popcount(static_cast<uint8_t>(set));
          }
        }
      }
    }
  }
#endif
  for (; i < n && to != last; ++i) {
    *to = *reinterpret_cast<const T*>(src + i * stride);
    to += flags[i] != 0;
  }
  return to - reinterpret_cast<T*>(out);
}

template <class T>
int64_t spread(char* dst, int64_t stride, const uint8_t* flags, int64_t n, const char* src,
               const char* end) {
  const T* from = reinterpret_cast<const T*>(src);
  const T* last = reinterpret_cast<const T*>(end);
  int64_t i = 0;
#if defined(CPU_CAPABILITY_AVX512)
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    constexpr int64_t kEach = 64 / sizeof(T);
    if (stride == sizeof(T)) {
      for (; i + 64 <= n && last - from >= 64; i += 64) {
        uint64_t set = flags_of_64(flags + i);
        char* to = dst + i * stride;
        for (int64_t k = 0; k < 64; k += kEach, set >>= kEach % 64, to += 64) {
          __m512i before = _mm512_loadu_si512(to), next = _mm512_loadu_si512(from);
          if constexpr (sizeof(T) == 4) {
            auto mask = static_cast<__mmask16>(set);
            _mm512_storeu_si512(to, _mm512_mask_expand_epi32(before, mask, next));
            from += __builtin_popcount(mask);
          } else {
            auto mask = static_cast<__mmask8>(set);
            _mm512_storeu_si512(to, _mm512_mask_expand_epi64(before, mask, next));
            from += __builtin_popcount(mask);
          }
        }
      }
    }
  }
#endif
  for (; i < n && from != last; ++i) {
    T& to = *reinterpret_cast<T*>(dst + i * stride);
    to = chosen(flags[i] != 0, *from, to);
    from += flags[i] != 0;
  }
  return from - reinterpret_cast<const T*>(src);
}

template <class T>
void fill_where(char* dst, int64_t stride, const uint8_t* flags, int64_t flag_stride, int64_t n,
                const char* value) {
  T fill;
  std::memcpy(&fill, value, sizeof(T));
  if constexpr (sizeof(T) <= 8) {
    if (stride == sizeof(T) && flag_stride == 1) {
      T* to = reinterpret_cast<T*>(dst);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = flags[i] != 0 ? fill : to[i];
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    T& to = *reinterpret_cast<T*>(dst + i * stride);
    to = chosen(flags[i * flag_stride] != 0, fill, to);
  }
}

template <class T>
constexpr SelectingElements kElements = {&select<T>, &spread<T>, &fill_where<T>};

const SelectingElements& selecting_elements(int64_t bytes) {
  switch (bytes) {
    case 1:
      return kElements<uint8_t>;
    case 2:
      return kElements<uint16_t>;
    case 4:
      return kElements<uint32_t>;
    case 8:
      return kElements<uint64_t>;
    default:
      return kElements<Bytes16>;
  }
}

template <class T>
void add_run(void* to, const void* from, int64_t n) {
  auto* out = static_cast<T*>(to);
  auto* in = static_cast<const T*>(from);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(out[i] + in[i]);
}

AddRun add_run_of(ScalarType dtype) {
  switch (dtype) {
    case kFloat:
      return &add_run<float>;
    case kDouble:
      return &add_run<double>;
    case kComplexFloat:
      return [](void* to, const void* from, int64_t n) { add_run<float>(to, from, 2 * n); };
    case kComplexDouble:
      return [](void* to, const void* from, int64_t n) { add_run<double>(to, from, 2 * n); };
    case kHalf:
      return &add_run<Half>;
    case kBFloat16:
      return &add_run<BFloat16>;
    case kInt:
      return &add_run<uint32_t>;
    case kLong:
      return &add_run<uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(selecting_on, &selecting);
LAMELLA_REGISTER_KERNEL(selecting_elements_on, &selecting_elements);
LAMELLA_REGISTER_KERNEL(add_run_on, &add_run_of);

}  // namespace lamella::native
