// Tables of pointwise loops: for each element type one loop over contiguous memory. The driver
// (pointwise.h) handles strides, broadcasting, conversion and threads.
//
// Note [One loop for each type]
//   A loop sees only contiguous runs. If an operand is strided, broadcast or of another type, the
//   driver copies a chunk of it into a small buffer that stays in the first-level cache, and runs
//   the loop on the buffer. So an operator needs one function for each element type, and mixed
//   types need no temporary tensor. float16 and bfloat16 run the float loop, unless the table has a
//   loop that converts while it computes (small_loops.h).
#pragma once
#include <cstdint>

#include "lamella/core/scalar.h"
#include "lamella/core/scalar_type.h"
#include "lamella/kernels/pointwise_loop.h"

namespace lamella {

namespace native {

// Positions in the tables. Loops exist for the first kLoopTypes; conversions for all.
inline constexpr int kLoopTypes = 13;
inline constexpr int kConvertTypes = 15;
inline constexpr ScalarType kLoopOrder[kConvertTypes] = {
    kByte,          kChar, kShort,  kInt,    kLong,   kFloat, kDouble,  kComplexFloat,
    kComplexDouble, kBool, kUInt16, kUInt32, kUInt64, kHalf,  kBFloat16};
namespace detail {
struct LoopIndex {
  int8_t of[64];
};
inline constexpr LoopIndex make_loop_index() {
  LoopIndex index{};
  for (int8_t& i : index.of) i = -1;
  for (int i = 0; i < kConvertTypes; ++i) {
    index.of[static_cast<int>(kLoopOrder[i])] = static_cast<int8_t>(i);
  }
  return index;
}
inline constexpr LoopIndex kLoopIndex = make_loop_index();
}  // namespace detail
// -1 for types without kernels.
inline constexpr int loop_index(ScalarType type) {
  return detail::kLoopIndex.of[static_cast<int>(type) & 63];
}
// The type a loop computes in.
inline constexpr ScalarType loop_type(ScalarType type) {
  return type == kHalf || type == kBFloat16 ? kFloat : type;
}

// data[0] is the output, data[1...] the inputs; `params` holds the operator's numbers in the
// loop's type, each in a slot of kParamBytes.
using LoopFn = void (*)(char* const* data, int64_t n, const void* params);
// The same, but if `number` is not negative, that operand is a single number for all elements. If
// data is float16 or bfloat16 (an output may be bool), the number and params are floats.
using NumberLoopFn = void (*)(char* const* data, int64_t n, const void* params, int number);
inline constexpr int kParamBytes = 16;
inline constexpr int kMaxParams = 4;

enum class LoopOut : uint8_t { kSame, kBool, kReal, kComplex };

struct LoopTable {
  const char* name;  // of the operator, for messages
  uint8_t inputs;
  uint8_t params;
  bool first_is_bool;  // the first input is a condition
  LoopOut out;
  LoopFn loops[kLoopTypes];
  const LoopFn* others;    // used where `loops` has no entry; may be null
  NumberLoopFn small[2];   // of float16 and bfloat16; where null, the float loop serves
  NumberLoopFn number[2];  // of float and double; where null, the number is repeated in memory
};

// Loops that gain nothing from wider vectors are compiled once, for every capability. The table of
// `op` refers to them as op_others.
#define LAMELLA_OTHER_LOOPS(op) extern const LoopFn op##_others[kLoopTypes]

// Runs the table's loop over all elements of the iterator. Throws if the type has no loop.
void run_pointwise(TensorIteratorBase& iter, const LoopTable& table, const Scalar* scalars);

// ---- Building tables ----

template <class... T>
struct Types {};
using BoolType = Types<bool>;
using IntTypes = Types<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using UnsignedTypes = Types<uint16_t, uint32_t, uint64_t>;
using FloatTypes = Types<float, double>;
using ComplexTypes = Types<complex<float>, complex<double>>;
template <class... L>
struct Join;
template <class... A>
struct Join<Types<A...>> {
  using type = Types<A...>;
};
template <class... A, class... B, class... Rest>
struct Join<Types<A...>, Types<B...>, Rest...> : Join<Types<A..., B...>, Rest...> {};
template <class... L>
using JoinTypes = typename Join<L...>::type;
using RealTypes = JoinTypes<IntTypes, FloatTypes>;
using NumberTypes = JoinTypes<RealTypes, ComplexTypes>;
using RealBoolTypes = JoinTypes<RealTypes, BoolType>;
using AllTypes = JoinTypes<NumberTypes, BoolType>;
using FloatComplexTypes = JoinTypes<FloatTypes, ComplexTypes>;

template <class T>
inline T param(const void* params, int i) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(params) + i * kParamBytes);
}

// The type in which an operator's result is stored: bool and real parts of complex numbers keep
// their type; an int from the promotion of a smaller integer type is converted back.
template <class T, class R>
struct StoredAs {
  using type = T;
  static constexpr LoopOut kind = LoopOut::kSame;
};
template <class T>
struct StoredAs<T, bool> {
  using type = bool;
  static constexpr LoopOut kind = LoopOut::kBool;
};
template <>
struct StoredAs<bool, bool> {
  using type = bool;
  static constexpr LoopOut kind = LoopOut::kBool;
};
template <class T>
struct StoredAs<complex<T>, T> {
  using type = T;
  static constexpr LoopOut kind = LoopOut::kReal;
};
template <class T>
struct StoredAs<T, complex<T>> {
  using type = complex<T>;
  static constexpr LoopOut kind = LoopOut::kComplex;
};

}  // namespace native
}  // namespace lamella
