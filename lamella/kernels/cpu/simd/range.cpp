// Ranges of numbers.
#include "lamella/kernels/cpu/range.h"

#include "lamella/kernels/cpu/simd/vec.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

template <class T>
void whole_range(void* to, int64_t begin, int64_t n, const RangeStart& start) {
  T* out = static_cast<T*>(to);
  // The product may wrap, but the sum fits.
  T value = static_cast<T>(start.first_whole + start.step_whole * static_cast<uint64_t>(begin));
  const T step = static_cast<T>(start.step_whole);
  for (int64_t i = 0; i < n; ++i, value = static_cast<T>(value + step)) out[i] = value;
}

template <class T>
void real_range(void* to, int64_t begin, int64_t n, const RangeStart& start) {
  T* out = static_cast<T*>(to);
  // Indices in a part fit 32 bits, which every capability can convert in vectors.
  constexpr int64_t kPart = 1 << 20;
  for (int64_t from = 0; from < n; from += kPart) {
    const int part = static_cast<int>(n - from < kPart ? n - from : kPart);
    const auto before = static_cast<double>(begin + from);
    T* at = out + from;
    for (int i = 0; i < part; ++i) {
      at[i] = static_cast<T>(start.first + start.step * (before + i));
    }
  }
}

RangeFn range_of(ScalarType dtype) {
  switch (dtype) {
    case kByte:
    case kChar:
      return &whole_range<uint8_t>;
    case kShort:
      return &whole_range<uint16_t>;
    case kInt:
      return &whole_range<uint32_t>;
    case kLong:
      return &whole_range<uint64_t>;
    case kFloat:
      return &real_range<float>;
    case kDouble:
      return &real_range<double>;
    case kHalf:
      return &real_range<Half>;
    case kBFloat16:
      return &real_range<BFloat16>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace CPU_CAPABILITY

LAMELLA_REGISTER_KERNEL(range_on, &range_of);

}  // namespace lamella::native
