// gpuAtomicAdd and its siblings: atomic updates of an element of any dtype. Each returns the former
// value.
#pragma once
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace lamella::on_device {

template <int bytes>
struct AtomicWord;
template <>
struct AtomicWord<4> {
  using type = unsigned int;
};
template <>
struct AtomicWord<8> {
  using type = unsigned long long;
};

// Repeats `combine` on the word that holds the element until no other thread was in between.
template <class T, class Combine>
__device__ inline T atomic_update(T* address, Combine combine) {
  if constexpr (sizeof(T) >= 4) {
    using Word = typename AtomicWord<sizeof(T)>::type;
    auto* word = reinterpret_cast<Word*>(address);
    Word seen = *word, expected;
    do {
      expected = seen;
      const T value = combine(__builtin_bit_cast(T, expected));
      seen = atomicCAS(word, expected, __builtin_bit_cast(Word, value));
    } while (seen != expected);
    return __builtin_bit_cast(T, seen);
  } else {
    using Part = std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>;
    const auto offset = reinterpret_cast<uintptr_t>(address) & 3;
    auto* word = reinterpret_cast<unsigned*>(reinterpret_cast<uintptr_t>(address) - offset);
    const unsigned shift = 8 * static_cast<unsigned>(offset);
    const unsigned mask = ((1u << (8 * sizeof(T))) - 1) << shift;
    unsigned seen = *word, expected;
    do {
      expected = seen;
      const T value = combine(__builtin_bit_cast(T, static_cast<Part>(expected >> shift)));
      const unsigned part = static_cast<unsigned>(__builtin_bit_cast(Part, value)) << shift;
      seen = atomicCAS(word, expected, (expected & ~mask) | part);
    } while (seen != expected);
    return __builtin_bit_cast(T, static_cast<Part>(seen >> shift));
  }
}
template <class T>
inline constexpr bool has_atomic_add =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t>;

template <class T>
__device__ inline bool is_nan(T value) {
  return value != value;
}

}  // namespace lamella::on_device

template <class T>
__device__ inline T gpuAtomicAdd(T* address, T value) {
  if constexpr (lamella::on_device::has_atomic_add<T>) {
    return atomicAdd(address, value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return lamella::on_device::atomic_update(address, [=](bool x) { return x || value; });
  } else {
    return lamella::on_device::atomic_update(address,
                                             [=](T x) { return static_cast<T>(x + value); });
  }
}
// The parts of a complex number are added one after the other.
template <class T>
__device__ inline void gpuAtomicAdd(c10::complex<T>* address, c10::complex<T> value) {
  atomicAdd(reinterpret_cast<T*>(address), value.real());
  atomicAdd(reinterpret_cast<T*>(address) + 1, value.imag());
}
template <class T>
__device__ inline void gpuAtomicAddNoReturn(T* address, T value) {
  gpuAtomicAdd(address, value);
}
template <class T>
__device__ inline T gpuAtomicMul(T* address, T value) {
  return lamella::on_device::atomic_update(address, [=](T x) { return static_cast<T>(x * value); });
}
// A NaN of either side is the result.
template <class T>
__device__ inline T gpuAtomicMax(T* address, T value) {
  return lamella::on_device::atomic_update(address, [=](T x) {
    return lamella::on_device::is_nan(x) || (!lamella::on_device::is_nan(value) && !(x < value))
               ? x
               : value;
  });
}
template <class T>
__device__ inline T gpuAtomicMin(T* address, T value) {
  return lamella::on_device::atomic_update(address, [=](T x) {
    return lamella::on_device::is_nan(x) || (!lamella::on_device::is_nan(value) && !(value < x))
               ? x
               : value;
  });
}
