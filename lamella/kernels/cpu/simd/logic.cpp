// Comparisons, logical operators and bitwise operators.
#include "lamella/kernels/cpu/loops.h"
#include "lamella/kernels/cpu/simd/vec.h"
#include "lamella/kernels/cpu/wide_types.h"

namespace lamella::native {
inline namespace CPU_CAPABILITY {
namespace {

LAMELLA_OP2(Eq, a == b)
LAMELLA_OP2(Ne, !(a == b))
LAMELLA_OP2(Lt, a < b)
LAMELLA_OP2(Le, a <= b)
LAMELLA_OP2(Gt, a > b)
LAMELLA_OP2(Ge, a >= b)

template <class T>
inline bool truth(const T& a) {
  return static_cast<bool>(a);
}
LAMELLA_OP2(LogicalAnd, static_cast<bool>(truth(a) & truth(b)))
LAMELLA_OP2(LogicalOr, static_cast<bool>(truth(a) | truth(b)))
LAMELLA_OP2(LogicalXor, truth(a) != truth(b))
LAMELLA_OP1(LogicalNot, !truth(a))

LAMELLA_OP2(BitAnd, static_cast<T>(a& b))
LAMELLA_OP2(BitOr, static_cast<T>(a | b))
LAMELLA_OP2(BitXor, static_cast<T>(a ^ b))
template <class T>
struct BitNot {
  explicit BitNot(const void*) {}
  T operator()(T a) const {
    if constexpr (std::is_same_v<T, bool>) {
      return !a;
    } else {
      return static_cast<T>(~a);
    }
  }
};

// A shift by at least the type's bits, or by a negative number, shifts everything out.
template <class T>
struct ShiftLeft {
  explicit ShiftLeft(const void*) {}
  T operator()(T a, T b) const {
    constexpr T bits = sizeof(T) * 8;
    bool out = b < 0 || b >= bits;
    using U = std::make_unsigned_t<T>;
    return out ? T(0) : static_cast<T>(static_cast<U>(a) << (out ? T(0) : b));
  }
};
template <class T>
struct ShiftRight {
  explicit ShiftRight(const void*) {}
  T operator()(T a, T b) const {
    // The sign bit is shifted in.
    constexpr T most = sizeof(T) * 8 - (std::is_signed_v<T> ? 1 : 0);
    bool out = b < 0 || b >= most;
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> (out ? most : b));
    } else {
      return out ? T(0) : static_cast<T>(a >> (out ? T(0) : b));
    }
  }
};

}  // namespace
}  // namespace CPU_CAPABILITY

using EqTypes = JoinTypes<AllTypes, UnsignedTypes>;
using OrderTypes = JoinTypes<RealBoolTypes, UnsignedTypes>;
using BitTypes = JoinTypes<IntTypes, UnsignedTypes, BoolType>;
LAMELLA_PLAIN2(eq, Eq, EqTypes);
LAMELLA_PLAIN2(ne, Ne, EqTypes);
LAMELLA_PLAIN2(lt, Lt, OrderTypes);
LAMELLA_PLAIN2(le, Le, OrderTypes);
LAMELLA_PLAIN2(gt, Gt, OrderTypes);
LAMELLA_PLAIN2(ge, Ge, OrderTypes);
LAMELLA_PLAIN2(logical_and, LogicalAnd, WideAllTypes);
LAMELLA_PLAIN2(logical_or, LogicalOr, WideAllTypes);
LAMELLA_PLAIN2(logical_xor, LogicalXor, WideAllTypes);
LAMELLA_PLAIN1(logical_not, LogicalNot, WideAllTypes);
LAMELLA_PLAIN2(bitwise_and, BitAnd, BitTypes);
LAMELLA_PLAIN2(bitwise_or, BitOr, BitTypes);
LAMELLA_PLAIN2(bitwise_xor, BitXor, BitTypes);
LAMELLA_PLAIN1(bitwise_not, BitNot, BitTypes);
LAMELLA_PLAIN2(bitwise_left_shift, ShiftLeft, WideIntTypes);
LAMELLA_PLAIN2(bitwise_right_shift, ShiftRight, WideIntTypes);

}  // namespace lamella::native
