// EmittedValue: a vector of the machine code under construction. Its operations emit instructions.
//
// Note [Functions in instructions]
//   EmittedValue is one of the kinds of vectors that the kernels' functions are written for (see
//   Note [Kinds of vectors] in lamella/kernels/cpu/simd/vector_kinds.h), so that the code of a
//   function comes from the kernel's own source and its results have the kernel's bits. For the
//   lanes that a function leaves to a rarer way, such as huge arguments of sin, the kernel is
//   called for the whole vector. Only processors with fused multiply-add use this; on others the
//   kernels are called.
#pragma once
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <concepts>
#include <type_traits>

#include "lamella/graph/compiler/emitter.h"
#include "lamella/kernels/cpu/simd/vector_kinds.h"

namespace lamella::hlo::compiler {

// A function of one vector while it is emitted. A thread emits one at a time.
struct Emission {
  explicit Emission(Emitter& emitter) : e(emitter) { current = this; }
  ~Emission() { current = nullptr; }
  Emission(const Emission&) = delete;
  Emission& operator=(const Emission&) = delete;

  Emitter& e;
  llvm::Value* rare = nullptr;  // the lanes that are left to a rarer way; null: none
  static inline thread_local Emission* current = nullptr;
};
inline llvm::IRBuilder<>& builder() { return Emission::current->e.b; }

struct EmittedMask {
  llvm::Value* v;
  friend EmittedMask operator&(EmittedMask x, EmittedMask y) {
    return {builder().CreateAnd(x.v, y.v)};
  }
  friend EmittedMask operator|(EmittedMask x, EmittedMask y) {
    return {builder().CreateOr(x.v, y.v)};
  }
};

// T is float, double, or an integer of the size of one of them.
template <class T>
class EmittedValue {
  using V = EmittedValue;
  using P = llvm::CmpInst::Predicate;
  static constexpr bool kFloating = std::is_floating_point_v<T>;

 public:
  EmittedValue() : EmittedValue(T(0)) {}
  EmittedValue(T number) : v(constant(number)) {}  // NOLINT(google-explicit-constructor)
  explicit EmittedValue(llvm::Value* value) : v(value) {}

  static unsigned lanes() {
    const Emitter& e = Emission::current->e;
    return e.on_device ? 1 : static_cast<unsigned>(e.vector_bytes) / sizeof(T);
  }
  static llvm::Type* type() {
    llvm::Type* one = !kFloating       ? builder().getIntNTy(sizeof(T) * 8)
                      : sizeof(T) == 4 ? builder().getFloatTy()
                                       : builder().getDoubleTy();
    return lanes() == 1 ? one : llvm::FixedVectorType::get(one, lanes());
  }

  friend V operator+(V x, V y) {
    return V(kFloating ? b().CreateFAdd(x.v, y.v) : b().CreateAdd(x.v, y.v));
  }
  friend V operator-(V x, V y) {
    return V(kFloating ? b().CreateFSub(x.v, y.v) : b().CreateSub(x.v, y.v));
  }
  friend V operator*(V x, V y) {
    return V(kFloating ? b().CreateFMul(x.v, y.v) : b().CreateMul(x.v, y.v));
  }
  friend V operator/(V x, V y)
    requires kFloating
  {
    return V(b().CreateFDiv(x.v, y.v));
  }
  friend V operator-(V x) { return V(kFloating ? b().CreateFNeg(x.v) : b().CreateNeg(x.v)); }
  friend V operator&(V x, V y) { return V(b().CreateAnd(x.v, y.v)); }
  friend V operator|(V x, V y) { return V(b().CreateOr(x.v, y.v)); }
  friend V operator^(V x, V y) { return V(b().CreateXor(x.v, y.v)); }
  friend V operator<<(V x, int by) { return V(b().CreateShl(x.v, V(T(by)).v)); }
  friend EmittedMask operator<(V x, V y) { return compare(P::FCMP_OLT, P::ICMP_SLT, x, y); }
  friend EmittedMask operator>(V x, V y) { return compare(P::FCMP_OGT, P::ICMP_SGT, x, y); }
  friend EmittedMask operator<=(V x, V y) { return compare(P::FCMP_OLE, P::ICMP_SLE, x, y); }
  friend EmittedMask operator==(V x, V y) { return compare(P::FCMP_OEQ, P::ICMP_EQ, x, y); }
  friend EmittedMask operator!=(V x, V y) { return compare(P::FCMP_UNE, P::ICMP_NE, x, y); }

  llvm::Value* v;

 private:
  static llvm::IRBuilder<>& b() { return builder(); }
  static llvm::Constant* constant(T number) {
    if constexpr (kFloating) {
      return llvm::ConstantFP::get(type(), number);
    } else {
      return llvm::ConstantInt::get(type(), static_cast<uint64_t>(number), true);
    }
  }
  static EmittedMask compare(P of_floats, P of_integers, V x, V y) {
    return {b().CreateCmp(kFloating ? of_floats : of_integers, x.v, y.v)};
  }
};

template <class T>
struct EmittedTraits {
  using V = EmittedValue<T>;
  using Mask = EmittedMask;
  static V select(Mask mask, V x, V y) { return V(builder().CreateSelect(mask.v, x.v, y.v)); }
  static Mask complement(Mask mask) { return {builder().CreateNot(mask.v)}; }
};

}  // namespace lamella::hlo::compiler

namespace lamella::native {

template <std::integral I>
struct VecTraits<hlo::compiler::EmittedValue<I>> : hlo::compiler::EmittedTraits<I> {
  using T = I;
};

template <std::floating_point F>
struct VecTraits<hlo::compiler::EmittedValue<F>> : hlo::compiler::EmittedTraits<F> {
  using T = F;
  using V = hlo::compiler::EmittedValue<F>;
  using Int = hlo::compiler::EmittedValue<std::conditional_t<sizeof(F) == 4, int32_t, int64_t>>;
  using Mask = hlo::compiler::EmittedMask;
  static constexpr int kMantissa = sizeof(F) == 4 ? 23 : 52, kBias = sizeof(F) == 4 ? 127 : 1023;
  static constexpr bool kHasFma = true;

  static V fma(V x, V y, V z) { return intrinsic(llvm::Intrinsic::fma, {x.v, y.v, z.v}); }
  static V sqrt(V x) { return intrinsic(llvm::Intrinsic::sqrt, {x.v}); }
  // By intrinsics, as LLVM 19 miscompiles bits with masks: it makes a select(m, x, (x & a) | y) of
  // integers one instruction that takes the operands for each other.
  static V abs(V x) { return intrinsic(llvm::Intrinsic::fabs, {x.v}); }
  static V copysign(V size, V sign) {
    return intrinsic(llvm::Intrinsic::copysign, {size.v, sign.v});
  }
  static V at_most(V x, V bound) { return VecTraits::select(bound < x, bound, x); }
  static V at_least(V x, V bound) { return VecTraits::select(x < bound, bound, x); }
  static Int bits(V x) { return Int(b().CreateBitCast(x.v, Int::type())); }
  static V from_bits(Int x) { return V(b().CreateBitCast(x.v, V::type())); }
  static Int shift_right(Int x, int by) { return Int(b().CreateLShr(x.v, Int(by).v)); }

  static bool looks_up() { return has_scaling() || hlo::compiler::Emission::current->e.on_device; }
  static bool has_scaling() { return hlo::compiler::Emission::current->e.vector_bytes == 64; }
  static V ldexp(V x, Rounded<V> n) {
    if (!has_scaling()) return v_ldexp_by_bits(x, n);
    return avx512(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512,
                  llvm::Intrinsic::x86_avx512_mask_scalef_pd_512, {x.v, n.value.v}, x);
  }
  static Parts<V> frexp_of_log(V x) {
    if (!has_scaling()) return v_frexp_of_log_by_bits(x);
    using namespace llvm::Intrinsic;
    // Mantissas from 3/4 to 3/2; NaN for negative numbers.
    V m = avx512(x86_avx512_mask_getmant_ps_512, x86_avx512_mask_getmant_pd_512,
                 {x.v, b().getInt32(11)}, x);
    auto exponent = [](V y) {
      return avx512(x86_avx512_mask_getexp_ps_512, x86_avx512_mask_getexp_pd_512, {y.v}, y);
    };
    return {m, exponent(x) - exponent(m)};
  }

  // AVX-512 looks up by the low bits of a number, so that tables are rotated and nothing is taken
  // from the number.
  struct Entry {
    Int at;
    int first;
  };
  static Entry entry(Int n, int first) {
    auto bound = [&](llvm::Intrinsic::ID id, Int x, int by) {
      return Int(b().CreateBinaryIntrinsic(id, x.v, Int(by).v));
    };
    Int at = bound(llvm::Intrinsic::smax, n, first);
    if (!has_scaling()) at = bound(llvm::Intrinsic::smin, at, first + kEntries - 1);
    return {at, first};
  }
  static V lookup(const F* table, Entry entry) {
    llvm::LLVMContext& context = b().getContext();
    if (has_scaling()) {
      F entries[kEntries];
      for (int n = 0; n < kEntries; ++n) entries[(n + entry.first) % kEntries] = table[n];
      auto half = [&](int begin) {
        return llvm::ConstantDataVector::get(context,
                                             llvm::ArrayRef(entries + begin, kEntries / 2));
      };
      llvm::Intrinsic::ID id = sizeof(F) == 4 ? llvm::Intrinsic::x86_avx512_vpermi2var_ps_512
                                              : llvm::Intrinsic::x86_avx512_vpermi2var_pd_512;
      return V(b().CreateIntrinsic(id, {}, {half(0), entry.at.v, half(kEntries / 2)}));
    }
    auto* whole = llvm::ConstantDataArray::get(context, llvm::ArrayRef(table, kEntries));
    llvm::Type* vector = V::type();
    llvm::Value* memory = hlo::compiler::Emission::current->e.shared_constant(whole);
    llvm::Value* addresses =
        b().CreateGEP(vector->getScalarType(), memory, (entry.at - entry.first).v);
    if (!vector->isVectorTy()) return V(b().CreateLoad(vector, addresses));
    return V(b().CreateMaskedGather(vector, addresses, llvm::Align(sizeof(F))));
  }

  // The other way is the kernel's, for the whole vector.
  template <class Way>
  static void if_any(Mask mask, const Way&) {
    llvm::Value*& rare = hlo::compiler::Emission::current->rare;
    rare = rare == nullptr ? mask.v : b().CreateOr(rare, mask.v);
  }

 private:
  static constexpr int kEntries = 128 / sizeof(F);
  static llvm::IRBuilder<>& b() { return hlo::compiler::builder(); }
  static V intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> x) {
    return V(b().CreateIntrinsic(id, {V::type()}, x));
  }
  // Emits an AVX-512 instruction on whole vectors with no lane masked.
  static V avx512(llvm::Intrinsic::ID single, llvm::Intrinsic::ID twice,
                  std::vector<llvm::Value*> arguments, V instead) {
    arguments.push_back(instead.v);
    arguments.push_back(llvm::Constant::getAllOnesValue(b().getIntNTy(V::lanes())));
    arguments.push_back(b().getInt32(4));  // the processor's current rounding mode
    return V(b().CreateIntrinsic(sizeof(F) == 4 ? single : twice, {}, arguments));
  }
};

}  // namespace lamella::native
