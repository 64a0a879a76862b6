// Vectorized of quantized elements: their integers, converted to floats and back.
#pragma once
#include <limits>

#include "lamella/core/quantized.h"
#include "lamella/kernels/cpu/vectorized_parts.h"

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
  using float_vec_return_type = VectorizedN<float, float_num_vecs()>;
  using int_vec_return_type = VectorizedN<int32_t, int_num_vecs()>;

  Vectorized() = default;
  Vectorized(const Q& value) : Integers(value.val_) {}          // NOLINT: implicit
  Vectorized(const Integers& integers) : Integers(integers) {}  // NOLINT
  static Vectorized loadu(const void* from, int64_t count = Integers::size()) {
    return Integers::loadu(from, count);
  }

  // (x - zero_point) * scale; the product of both with the sign changed is not needed.
  float_vec_return_type dequantize(Vectorized<float> scale, Vectorized<float> zero_point,
                                   Vectorized<float> = {}) const {
    return float_vec_return_type::lanewise(
        [&](int i) { return (static_cast<float>((*this)[i]) - zero_point[0]) * scale[0]; });
  }
  static Vectorized quantize(const float_vec_return_type& from, float, int32_t zero_point,
                             float inverse_scale) {
    return rounded<float>(from, inverse_scale, zero_point);
  }
  static Vectorized requantize_from_int(const int_vec_return_type& from, float multiplier,
                                        int32_t zero_point) {
    return rounded<double>(from, multiplier, zero_point);
  }
  int_vec_return_type widening_subtract(const Vectorized& other) const {
    return int_vec_return_type::lanewise(
        [&](int i) { return int32_t{(*this)[i]} - int32_t{other[i]}; });
  }
  Vectorized relu(const Vectorized& zero_point) const {
    return maximum<Integer>(*this, zero_point);
  }
  Vectorized relu6(const Vectorized& zero_point, const Vectorized& six) const {
    return clamp<Integer>(*this, zero_point, six);
  }

 private:
  template <class Sum, class From>
  static Vectorized rounded(const From& from, float factor, int32_t zero_point) {
    constexpr int64_t low = std::numeric_limits<Integer>::min();
    constexpr int64_t high = std::numeric_limits<Integer>::max();
    return Integers::lanewise([&](int i) {
      const float product = static_cast<float>(from.lane(i)) * factor;
      const auto whole =
          static_cast<int64_t>(static_cast<Sum>(zero_point) + std::nearbyint(product));
      return static_cast<Integer>(whole < low ? low : whole > high ? high : whole);
    });
  }
};

}  // namespace CPU_CAPABILITY
}  // namespace lamella::vec
