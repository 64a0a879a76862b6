// Vectorized of quantized elements: their integers, converted to floats and back.
#pragma once
#include <array>
#include <limits>

#include "lamella/core/quantized.h"
#include "lamella/kernels/cpu/vectorized.h"

namespace lamella::vec {
inline namespace CPU_CAPABILITY {

template <class Q>
  requires requires { typename Q::underlying; }
class Vectorized<Q> : public Vectorized<typename Q::underlying> {
 public:
  using Integer = typename Q::underlying;
  using Integers = Vectorized<Integer>;
  static constexpr int float_num_vecs() { return Integers::size() / Vectorized<float>::size(); }
  static constexpr int int_num_vecs() { return float_num_vecs(); }
  using float_vec_return_type = std::array<Vectorized<float>, float_num_vecs()>;
  using int_vec_return_type = std::array<Vectorized<qint32>, int_num_vecs()>;

  Vectorized() = default;
  Vectorized(const Q& value) : Integers(value.val_) {}          // NOLINT: implicit
  Vectorized(const Integers& integers) : Integers(integers) {}  // NOLINT: implicit
  static Vectorized loadu(const void* from, int64_t count = Integers::size()) {
    return Integers::loadu(from, count);
  }

  // (x - zero_point) * scale; the product of both with the sign changed is not needed.
  float_vec_return_type dequantize(Vectorized<float> scale, Vectorized<float> zero_point,
                                   Vectorized<float> = {}) const {
    return parts<float>(
        [&](int k) { return (static_cast<float>((*this)[k]) - zero_point[0]) * scale[0]; });
  }
  static Vectorized quantize(const float_vec_return_type& from, float, int32_t zero_point,
                             float inverse_scale) {
    return rounded(from, inverse_scale, zero_point);
  }
  static Vectorized requantize_from_int(const int_vec_return_type& from, float multiplier,
                                        int32_t zero_point) {
    return rounded(from, multiplier, zero_point);
  }
  int_vec_return_type widening_subtract(const Vectorized& other) const {
    return parts<qint32>([&](int k) { return int32_t{(*this)[k]} - int32_t{other[k]}; });
  }
  Vectorized relu(const Vectorized& zero_point) const {
    return maximum<Integer>(*this, zero_point);
  }
  Vectorized relu6(const Vectorized& zero_point, const Vectorized& six) const {
    return clamp<Integer>(*this, zero_point, six);
  }

 private:
  // f(k) for each lane, in vectors of T.
  template <class T, class F>
  static std::array<Vectorized<T>, float_num_vecs()> parts(F&& f) {
    std::array<Vectorized<T>, float_num_vecs()> result;
    for (int k = 0; k < Integers::size(); ++k) {
      result[k / Vectorized<float>::size()][k % Vectorized<float>::size()] = f(k);
    }
    return result;
  }
  // Sums of floats are floats, those of integers doubles.
  template <class T>
  static Vectorized rounded(const std::array<Vectorized<T>, float_num_vecs()>& from, float factor,
                            int32_t zero_point) {
    using Sum = std::conditional_t<std::is_same_v<T, float>, float, double>;
    constexpr int64_t low = std::numeric_limits<Integer>::min();
    constexpr int64_t high = std::numeric_limits<Integer>::max();
    return Integers::lanewise([&](int k) {
      const auto x = from[k / Vectorized<float>::size()][k % Vectorized<float>::size()];
      const Sum sum = static_cast<Sum>(zero_point) + std::nearbyint(static_cast<float>(x) * factor);
      const auto whole = static_cast<int64_t>(sum);
      return static_cast<Integer>(whole < low ? low : whole > high ? high : whole);
    });
  }
};

}  // namespace CPU_CAPABILITY
}  // namespace lamella::vec
