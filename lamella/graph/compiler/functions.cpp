// Functions of vectors as inline LLVM instructions, so that loops keep their constants in registers
// and the calculations of several vectors overlap.
//
// Note [Functions in instructions]
//   The formulas, coefficients and tables are those of the kernels (lamella/kernels/cpu/simd/),
//   which say where they come from; results have the same bits as the kernels'. Arguments for which
//   a kernel has a separate rare path, such as huge arguments of sin, call the kernel for the whole
//   vector. Only processors with fused multiply-add use these; on others the kernels are called.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include <cmath>

#include "lamella/graph/compiler/emitter.h"
#include "lamella/graph/compiler/vector_functions.h"
#include "lamella/kernels/cpu/simd/coefficients.h"
#include "lamella/kernels/cpu/simd/double_pieces.h"
#include "lamella/kernels/cpu/simd/float_pieces.h"

namespace lamella::hlo::compiler {
namespace {

using llvm::Value;
using native::Coefficients;
using native::Pieces;
using native::Piecewise;

// An LLVM value with C++ operators: floating-point ones if its elements are floats, else integer
// ones.
struct Vector {
  llvm::IRBuilder<>* b;
  Value* v;

  bool is_floating() const { return v->getType()->isFPOrFPVectorTy(); }
  Vector like(double number) const { return {b, llvm::ConstantFP::get(v->getType(), number)}; }
  Vector whole(int64_t number) const {
    return {b, llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(number), true)};
  }
  Vector number(double n) const { return is_floating() ? like(n) : whole(static_cast<int64_t>(n)); }
};
Vector operator+(Vector x, Vector y) {
  return {x.b, x.is_floating() ? x.b->CreateFAdd(x.v, y.v) : x.b->CreateAdd(x.v, y.v)};
}
Vector operator-(Vector x, Vector y) {
  return {x.b, x.is_floating() ? x.b->CreateFSub(x.v, y.v) : x.b->CreateSub(x.v, y.v)};
}
Vector operator*(Vector x, Vector y) { return {x.b, x.b->CreateFMul(x.v, y.v)}; }
Vector operator/(Vector x, Vector y) { return {x.b, x.b->CreateFDiv(x.v, y.v)}; }
Vector operator+(Vector x, double y) { return x + x.number(y); }
Vector operator-(Vector x, double y) { return x - x.number(y); }
Vector operator*(Vector x, double y) { return x * x.number(y); }
Vector operator+(double x, Vector y) { return y.number(x) + y; }
Vector operator-(double x, Vector y) { return y.number(x) - y; }
Vector operator*(double x, Vector y) { return y.number(x) * y; }
Vector operator/(double x, Vector y) { return y.number(x) / y; }
Vector operator&(Vector x, int64_t y) { return {x.b, x.b->CreateAnd(x.v, x.whole(y).v)}; }
Vector operator|(Vector x, Vector y) { return {x.b, x.b->CreateOr(x.v, y.v)}; }
Vector operator<<(Vector x, int y) { return {x.b, x.b->CreateShl(x.v, x.whole(y).v)}; }
Vector operator-(Vector x) { return {x.b, x.b->CreateFNeg(x.v)}; }
Vector operator<(Vector x, Vector y) { return {x.b, x.b->CreateFCmpOLT(x.v, y.v)}; }
Vector operator<(Vector x, double y) { return x < x.number(y); }
Vector operator>(Vector x, double y) { return x.number(y) < x; }
Vector operator==(Vector x, double y) { return {x.b, x.b->CreateFCmpOEQ(x.v, x.number(y).v)}; }
// x where the condition holds, y elsewhere.
Vector choose(Vector condition, Vector x, Vector y) {
  return {x.b, x.b->CreateSelect(condition.v, x.v, y.v)};
}
// Both keep NaN.
Vector at_most(Vector x, double bound) { return choose(x.number(bound) < x, x.number(bound), x); }
Vector at_least(Vector x, double bound) { return choose(x < x.number(bound), x.number(bound), x); }

// The functions of one precision. T is float or double.
template <class T>
class Functions {
 public:
  Functions(Emitter& emitter, int64_t vector_bytes)
      : e_(emitter),
        lanes_(static_cast<unsigned>(vector_bytes / static_cast<int64_t>(sizeof(T)))),
        is_avx512_(vector_bytes == 64) {}

  Value* apply(Opcode opcode, Value* argument) {
    Vector x{&e_.b, argument};
    switch (opcode) {
      case Opcode::Cos:
        return sine(x, true).v;
      case Opcode::Erf:
        return erf(x).v;
      case Opcode::Exp:
        return exp(x).v;
      case Opcode::Expm1:
        return expm1(x).v;
      case Opcode::Log:
        return log(x).v;
      case Opcode::Log1p:
        return log1p(x).v;
      case Opcode::Logistic:
        return sigmoid(x).v;
      case Opcode::Sin:
        return sine(x, false).v;
      case Opcode::Tanh:
        return tanh(x).v;
      default:
        return nullptr;
    }
  }

 private:
  static constexpr bool kFloat = sizeof(T) == 4;
  static constexpr int kMantissa = kFloat ? 23 : 52, kBias = kFloat ? 127 : 1023;
  static constexpr int64_t kSign = kFloat ? int64_t{INT32_MIN} : INT64_MIN;
  static constexpr double kRounder = kFloat ? 12582912.0 : 6755399441055744.0;
  static constexpr double kLog2E = T(1.44269504088896340736);
  static constexpr double kLog2Upper = kFloat ? 0x1.62e4p-1 : 0x1.62e42fefa3p-1;
  static constexpr double kLog2Lower =
      kFloat ? double(float(0x1.7f7d1cf79abcap-20)) : 0x1.3de6af278ece6p-42;

  // ---- Pieces ----

  Vector fma(Vector x, Vector y, Vector z) {
    return {&e_.b, e_.b.CreateIntrinsic(llvm::Intrinsic::fma, {x.v->getType()}, {x.v, y.v, z.v})};
  }
  Vector fma(Vector x, double y, Vector z) { return fma(x, x.number(y), z); }
  Vector fma(Vector x, Vector y, double z) { return fma(x, y, x.number(z)); }
  Vector fma(Vector x, double y, double z) { return fma(x, x.number(y), x.number(z)); }
  llvm::Type* vector_of(llvm::Type* type) { return llvm::FixedVectorType::get(type, lanes_); }
  Vector bits(Vector x) {
    return {&e_.b, e_.b.CreateBitCast(x.v, vector_of(e_.b.getIntNTy(sizeof(T) * 8)))};
  }
  Vector from_bits(Vector x) {
    return {&e_.b,
            e_.b.CreateBitCast(x.v, vector_of(kFloat ? e_.b.getFloatTy() : e_.b.getDoubleTy()))};
  }
  Vector shifted_right(Vector x, int by) { return {&e_.b, e_.b.CreateLShr(x.v, x.whole(by).v)}; }
  Vector abs(Vector x) {
    return {&e_.b, e_.b.CreateIntrinsic(llvm::Intrinsic::fabs, {x.v->getType()}, {x.v})};
  }
  Vector copysign(Vector size, Vector sign) {
    return {&e_.b,
            e_.b.CreateIntrinsic(llvm::Intrinsic::copysign, {size.v->getType()}, {size.v, sign.v})};
  }
  int64_t bits_of(double number) {
    if (!kFloat) return llvm::bit_cast<int64_t>(number);
    return llvm::bit_cast<int32_t>(static_cast<float>(number));
  }
  template <size_t N>
  Vector polynomial(Vector x, const T (&c)[N]) {
    Vector sum = x.like(c[N - 1]);
    for (size_t n = N - 1; n-- > 0;) sum = fma(sum, x, c[n]);
    return sum;
  }
  // Emits an AVX-512 instruction on whole vectors with no lane masked.
  Vector avx512(llvm::Intrinsic::ID single, llvm::Intrinsic::ID twice,
                std::vector<Value*> arguments, Value* instead) {
    arguments.push_back(instead);
    arguments.push_back(llvm::Constant::getAllOnesValue(e_.b.getIntNTy(lanes_)));
    arguments.push_back(e_.b.getInt32(4));  // the processor's current rounding mode
    return {&e_.b, e_.b.CreateIntrinsic(kFloat ? single : twice, {}, arguments)};
  }
  // table[index[l] - first] for each lane; tables have 32 floats or 16 doubles.
  Vector lookup(const T* table, Vector index, int first) {
    constexpr int kEntries = 128 / sizeof(T);
    std::vector<T> entries(kEntries);
    if (is_avx512_) {
      // The instruction uses the low bits of an index, so the table is rotated instead of the
      // index.
      for (int n = 0; n < kEntries; ++n) entries[size_t((n + first) % kEntries)] = table[n];
      auto half = [&](int begin) {
        return llvm::ConstantDataVector::get(
            e_.context, llvm::ArrayRef<T>(entries).slice(size_t(begin), kEntries / 2));
      };
      llvm::Intrinsic::ID id = kFloat ? llvm::Intrinsic::x86_avx512_vpermi2var_ps_512
                                      : llvm::Intrinsic::x86_avx512_vpermi2var_pd_512;
      return {&e_.b, e_.b.CreateIntrinsic(id, {}, {half(0), index.v, half(kEntries / 2)})};
    }
    auto* whole = llvm::ConstantDataArray::get(e_.context, llvm::ArrayRef<T>(table, kEntries));
    llvm::Type* one = kFloat ? e_.b.getFloatTy() : e_.b.getDoubleTy();
    Value* addresses = e_.b.CreateGEP(one, e_.shared_constant(whole), (index - first).v);
    return {&e_.b, e_.b.CreateMaskedGather(vector_of(one), addresses, llvm::Align(sizeof(T)))};
  }
  // x must be within the range of the pieces, or NaN.
  template <int N, bool R>
  Vector piecewise(Vector x, const Piecewise<T, N, R>& p) {
    auto bound = [&](llvm::Intrinsic::ID id, Vector at, int64_t by) {
      return Vector{&e_.b, e_.b.CreateBinaryIntrinsic(id, at.v, at.whole(by).v)};
    };
    const int first = p.first - 1;
    Vector at = bound(llvm::Intrinsic::smax, shifted_right(bits(x), p.shift), first);
    // The bits of NaN index beyond the table; AVX-512 lookups ignore the high bits.
    if (!is_avx512_) at = bound(llvm::Intrinsic::smin, at, first + p.kEntries - 1);
    auto entry = [&](const T* table) { return lookup(table, at, first); };
    Vector t = x - entry(p.center);
    Vector sum = entry(p.c[N - 1]);
    for (int n = N - 1; n-- > 1;) sum = fma(sum, t, entry(p.c[n]));
    if constexpr (R) {
      return entry(p.c[0]) + fma(sum, t, entry(p.rest));
    } else {
      return fma(sum, t, entry(p.c[0]));
    }
  }

  // ---- Exponentials ----

  struct Rounded {
    Vector value, whole;
  };
  Rounded whole_of_shifted(Vector shifted) {
    return {shifted - kRounder, bits(shifted) - bits(shifted.like(kRounder))};
  }
  Vector power_of_two(Vector n) { return from_bits((n + kBias) << kMantissa); }
  Vector ldexp(Vector x, Rounded n) {
    if (is_avx512_) {
      return avx512(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
                    llvm::Intrinsic::x86_avx512_mask_scalef_pd_512, {x.v, n.value.v}, x.v);
    }
    constexpr int kFar = 1 << 14;
    Vector half = shifted_right(n.whole + kFar, 1) - kFar / 2;
    return x * power_of_two(half) * power_of_two(n.whole - half);
  }
  struct Exponent {
    Rounded n;
    Vector minus_one;
  };
  Exponent exp_parts(Vector x) {
    Rounded n = whole_of_shifted(fma(x, kLog2E, kRounder));
    Vector r = fma(n.value, -kLog2Upper, x);
    r = fma(n.value, -kLog2Lower, r);
    return {n, fma(r * r, polynomial(r, Coefficients<T>::exp), r)};
  }
  Vector exp(Vector x) {
    Exponent e = exp_parts(at_most(at_least(x, kFloat ? -105 : -746), kFloat ? 90 : 710));
    return ldexp(1 + e.minus_one, e.n);
  }
  Vector expm1(Vector x) {
    Exponent e = exp_parts(at_most(at_least(x, kFloat ? -20 : -40), kFloat ? 89 : 709.9));
    Vector half = power_of_two(e.n.whole - 1);
    return copysign(2 * fma(half, e.minus_one, half - 0.5), x);
  }
  // 1 / (1 + exp(-x)) with exp(-x) = s (1 + m): the divisor is (1 + s m) + s, in which only the
  // sums are rounded. It is scaled by 2^-64, as exp(-x) may overflow where the result does not
  // underflow. The error is at most 2 units in the last place.
  Vector sigmoid(Vector x) {
    constexpr double kScale = 0x1p-64;
    Exponent e = exp_parts(at_most(at_least(-x, -40), kFloat ? 105 : 746));
    Vector s = is_avx512_ ? ldexp(x.like(kScale), e.n) : power_of_two(e.n.whole - 64);
    return kScale / (fma(s, e.minus_one, kScale) + s);
  }
  Vector tanh(Vector x) {
    if constexpr (kFloat) {
      return copysign(piecewise(at_most(abs(x), T(9.2f)), Pieces<float>::tanh), x);
    } else {
      Vector size = abs(x);
      Exponent e = exp_parts(at_least(size * -2, -40));
      Vector scale = power_of_two(e.n.whole);
      Vector minus = fma(scale, e.minus_one, scale - 1);
      Vector large = size > 0.55;
      Vector divisor = minus + 2, rest = minus - (divisor - 2);
      Vector quotient = choose(large, 2 * fma(scale, e.minus_one, scale), minus) / divisor;
      quotient = fma(quotient * rest, -0.62, quotient);
      return copysign(choose(large, 1 - quotient, quotient), x);
    }
  }
  Vector erf(Vector x) {
    Vector size = at_most(abs(x), kFloat ? 4 : 6);
    return copysign(choose(size < 1, size, size.like(0)) + piecewise(size, Pieces<T>::erf), x);
  }

  // ---- Logarithms ----

  struct Parts {
    Vector mantissa, exponent;
  };
  Parts frexp_of_log(Vector x) {
    if (is_avx512_) {
      using namespace llvm::Intrinsic;
      // Mantissas from 3/4 to 3/2; NaN for negative numbers.
      Vector m = avx512(x86_avx512_mask_getmant_ps_512, x86_avx512_mask_getmant_pd_512,
                        {x.v, e_.b.getInt32(11)}, x.v);
      auto exponent = [&](Vector y) {
        return avx512(x86_avx512_mask_getexp_ps_512, x86_avx512_mask_getexp_pd_512, {y.v}, y.v);
      };
      return {m, exponent(x) - exponent(m)};
    }
    constexpr double kUp = kFloat ? 0x1p24 : 0x1p54, kUnit = kFloat ? 0x1p23 : 0x1p52;
    const double infinity = HUGE_VAL;
    Vector tiny = x < (kFloat ? 0x1p-126 : 0x1p-1022);
    Vector scaled = choose(tiny, x * kUp, x);
    Vector base = bits(x.like(0.75)), bias = bits(x.like(1));
    Vector n = shifted_right(bits(scaled) - base + bias, kMantissa);
    Vector m = from_bits(bits(scaled) - (n << kMantissa) + bias);
    Vector exponent = from_bits(n | bits(x.like(kUnit))) - (kUnit + kBias);
    exponent = choose(tiny, exponent - (kFloat ? 24 : 54), exponent);
    m = choose(x > 0, m, x.like(NAN));
    m = choose(x == 0, x.like(1), choose(x == infinity, x.like(1), m));
    exponent = choose(x == 0, x.like(-infinity), choose(x == infinity, x, exponent));
    return {m, exponent};
  }
  Vector log_rest(Vector f) {
    if constexpr (kFloat) {
      return f * f * fma(f, polynomial(f, Coefficients<float>::log), -0.5);
    } else {
      Vector s = f / (2 + f), z = s * s, h = 0.5 * f * f;
      return fma(s, fma(z, polynomial(z, Coefficients<double>::log_odd), h), -h);
    }
  }
  Vector log_of(Vector f, Vector n) {
    Vector rest = fma(n, kLog2Lower, log_rest(f));
    return fma(n, kLog2Upper, f + rest);
  }
  Vector log(Vector x) {
    Parts parts = frexp_of_log(x);
    return log_of(parts.mantissa - 1, parts.exponent);
  }
  Vector log1p(Vector x) {
    Parts parts = frexp_of_log(1 + x);
    Vector scale = parts.exponent;
    if (is_avx512_) {
      scale = ldexp(x.like(1), {-parts.exponent, parts.exponent});
    } else {
      scale = power_of_two(whole_of_shifted(kRounder - parts.exponent).whole);
    }
    Vector f = fma(x, scale, scale - 1);
    // If 1 + x is special or huge, its mantissa and exponent are exact enough.
    Vector near = abs(parts.exponent) < 100;
    return copysign(log_of(choose(near, f, parts.mantissa - 1), parts.exponent), x);
  }

  // ---- Sine and cosine ----

  Vector sine(Vector x, bool is_cosine) {
    constexpr double kHalfPi[] = {
        kFloat ? double(0x1.921cp+0f) : 0x1.921fb54400000p+0,
        kFloat ? double(0x1.daa0p-15f) : 0x1.0b4611a600000p-34,
        kFloat ? double(0x1.10b4p-30f) : 0x1.3198a2e000000p-69,
        kFloat ? double(float(0x1.8469898cc5170p-48)) : 0x1.b839a252049c1p-104};
    Rounded n =
        whole_of_shifted(fma(x, kFloat ? double(0.63661977f) : 0.63661977236758134308, kRounder));
    Vector r = fma(n.value, -kHalfPi[0], x);
    r = fma(n.value, -kHalfPi[1], r);
    Vector third = n.value * kHalfPi[2], s = r - third;
    Vector rest = fma(n.value, -kHalfPi[3], (r - s) - third);
    Vector z = s * s;
    Vector cubic = fma(z * s, polynomial(z, Coefficients<T>::sin), rest);
    Vector half = z * 0.5, most = 1 - half, lost = (1 - most) - half;
    Vector quartic = fma(z * z, polynomial(z, Coefficients<T>::cos), lost);
    quartic = fma(-s, rest, quartic);
    Vector quadrant = is_cosine ? n.whole + 1 : n.whole;
    Vector odd{&e_.b, e_.b.CreateICmpNE((quadrant & 1).v, quadrant.whole(0).v)};
    Vector size = choose(odd, most + quartic, s + cubic);
    Vector sign = (quadrant & 2) << static_cast<int>(sizeof(T) * 8 - 2);
    Vector result = from_bits({&e_.b, e_.b.CreateXor(bits(size).v, sign.v)});
    if (!is_cosine) result = choose(x == 0, x, result);
    // NaN, and arguments too large for a reduction with three parts of pi / 2.
    Value* large = e_.b.CreateFCmpUGT(abs(x).v, x.like(kFloat ? 400 : 1e6).v);
    Value* any = e_.b.CreateOrReduce(large);
    llvm::Function* function = e_.b.GetInsertBlock()->getParent();
    llvm::BasicBlock* before = e_.b.GetInsertBlock();
    auto* far = llvm::BasicBlock::Create(e_.context, "far", function);
    auto* after = llvm::BasicBlock::Create(e_.context, "near", function);
    llvm::MDBuilder weights(e_.context);
    e_.b.CreateCondBr(any, far, after, weights.createBranchWeights(1, 1000));
    e_.b.SetInsertPoint(far);
    Value* whole = e_.call_kernel(is_cosine ? "cos" : "sin", {x.v});
    e_.b.CreateBr(after);
    e_.b.SetInsertPoint(after);
    llvm::PHINode* chosen = e_.b.CreatePHI(x.v->getType(), 2);
    chosen->addIncoming(result.v, before);
    chosen->addIncoming(whole, far);
    return {&e_.b, chosen};
  }

  Emitter& e_;
  const unsigned lanes_;
  const bool is_avx512_;
};

}  // namespace

llvm::Value* Emitter::instructions_of(Opcode opcode, llvm::Value* x) {
  if (vector_bytes < 32) return nullptr;
  if (x->getType()->getScalarType()->isFloatTy()) {
    return Functions<float>(*this, vector_bytes).apply(opcode, x);
  }
  return Functions<double>(*this, vector_bytes).apply(opcode, x);
}

}  // namespace lamella::hlo::compiler
