// qint8, quint8, qint32: elements of quantized tensors as types of C++. Tensors of them are not
// supported; kernels compute on their integers.
#pragma once
#include <cstdint>

namespace lamella {

#define LAMELLA_QUANTIZED(name, Integer)                    \
  struct alignas(Integer) name {                            \
    using underlying = Integer;                             \
    Integer val_;                                           \
    name() = default;                                       \
    explicit constexpr name(Integer value) : val_(value) {} \
    constexpr bool operator==(const name&) const = default; \
  };
LAMELLA_QUANTIZED(qint8, int8_t)
LAMELLA_QUANTIZED(quint8, uint8_t)
LAMELLA_QUANTIZED(qint32, int32_t)
#undef LAMELLA_QUANTIZED

}  // namespace lamella
