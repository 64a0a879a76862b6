// Emits operations on complex numbers, and ReducePrecision.
//
// Note [Complex numbers in registers]
//   A C64 is one integer of 64 bits, so that code which moves, selects or stores elements treats it
//   like any other type. Sums and products work on vectors of twice as many floats, real and
//   imaginary parts alternating as in memory. Other operations split a number into its parts; LLVM
//   removes the split where the number was joined just before.
#include <llvm/IR/Intrinsics.h>

#include "lamella/core/error.h"
#include "lamella/graph/compiler/emitter.h"

namespace lamella::hlo::compiler {
namespace {

unsigned lane_count(llvm::Value* v) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector == nullptr ? 1 : vector->getNumElements();
}

}  // namespace

Emitter::Parts Emitter::parts(llvm::Value* z) {
  unsigned count = lane_count(z);
  llvm::Value* both = b.CreateBitCast(z, llvm::FixedVectorType::get(b.getFloatTy(), 2 * count));
  auto part = [&](int first) -> llvm::Value* {
    if (!z->getType()->isVectorTy()) {
      return b.CreateExtractElement(both, static_cast<uint64_t>(first));
    }
    llvm::SmallVector<int, 64> which;
    for (unsigned n = 0; n < count; ++n) which.push_back(static_cast<int>(2 * n) + first);
    return b.CreateShuffleVector(both, which);
  };
  return {part(0), part(1)};
}
llvm::Value* Emitter::joined(Parts z) {
  even_out({&z.real, &z.imag});
  unsigned count = lane_count(z.real);
  llvm::Value* both = nullptr;
  if (z.real->getType()->isVectorTy()) {
    llvm::SmallVector<int, 64> which;
    for (unsigned n = 0; n < count; ++n) {
      which.push_back(static_cast<int>(n));
      which.push_back(static_cast<int>(count + n));
    }
    both = b.CreateShuffleVector(z.real, z.imag, which);
  } else {
    both = llvm::PoisonValue::get(llvm::FixedVectorType::get(z.real->getType(), 2));
    both = b.CreateInsertElement(both, z.real, uint64_t{0});
    both = b.CreateInsertElement(both, z.imag, uint64_t{1});
  }
  return b.CreateBitCast(both, widened(b.getInt64Ty(), z.real));
}

llvm::Value* Emitter::complex_combination(Opcode opcode, llvm::Value* x, llvm::Value* y) {
  even_out({&x, &y});
  unsigned count = 2 * lane_count(x);
  auto* floats = llvm::FixedVectorType::get(b.getFloatTy(), count);
  llvm::Value *left = b.CreateBitCast(x, floats), *right = b.CreateBitCast(y, floats);
  // For each pair (real, imaginary): element `even` and element `odd` of the pair in `first` and
  // `second` concatenated.
  auto pairs = [&](llvm::Value* first, llvm::Value* second, int even, int odd) {
    llvm::SmallVector<int, 64> which;
    for (unsigned n = 0; n < count; n += 2) {
      which.push_back(static_cast<int>(n) + even);
      which.push_back(static_cast<int>(n) + odd);
    }
    return b.CreateShuffleVector(first, second, which);
  };
  llvm::Value* made = nullptr;
  switch (opcode) {
    case Opcode::Add:
      made = b.CreateFAdd(left, right);
      break;
    case Opcode::Subtract:
      made = b.CreateFSub(left, right);
      break;
    case Opcode::Multiply: {
      llvm::Value* by_real = b.CreateFMul(pairs(left, left, 0, 0), right);
      llvm::Value* by_imag = b.CreateFMul(pairs(left, left, 1, 1), pairs(right, right, 1, 0));
      made = pairs(b.CreateFSub(by_real, by_imag), b.CreateFAdd(by_real, by_imag), 0,
                   static_cast<int>(count) + 1);
      break;
    }
    default:
      LAMELLA_INTERNAL_ASSERT(false, "compiler: expected a combination, got ", opcode_name(opcode));
  }
  return b.CreateBitCast(made, x->getType());
}

// Divides as complex<T> does: scaled by the larger part of the divisor. Where both parts would be
// NaN the infinities and zeros are those of C99's Annex G, as in the evaluator.
llvm::Value* Emitter::quotient(llvm::Value* x, llvm::Value* y) {
  Parts p = parts(x), q = parts(y);
  llvm::Type* type = p.real->getType();
  llvm::Value* zero = llvm::ConstantFP::get(type, 0.0);
  llvm::Value* one = llvm::ConstantFP::get(type, 1.0);
  llvm::Value* infinity = llvm::ConstantFP::getInfinity(type);
  auto size_of = [&](llvm::Value* v) { return intrinsic(llvm::Intrinsic::fabs, {v}); };
  auto with_sign = [&](llvm::Value* size, llvm::Value* sign) {
    return intrinsic(llvm::Intrinsic::copysign, {size, sign});
  };
  llvm::Value *real_size = size_of(q.real), *imag_size = size_of(q.imag);
  llvm::Value* by_real = b.CreateFCmpOGE(real_size, imag_size);
  llvm::Value* large = b.CreateSelect(by_real, q.real, q.imag);
  llvm::Value* small = b.CreateSelect(by_real, q.imag, q.real);
  llvm::Value* first = b.CreateSelect(by_real, p.real, p.imag);
  llvm::Value* second = b.CreateSelect(by_real, p.imag, p.real);
  llvm::Value* ratio = b.CreateFDiv(small, large);
  llvm::Value* scale = b.CreateFDiv(one, b.CreateFAdd(large, b.CreateFMul(small, ratio)));
  llvm::Value* real = b.CreateFMul(b.CreateFAdd(first, b.CreateFMul(second, ratio)), scale);
  llvm::Value* turned = b.CreateFMul(first, ratio);
  llvm::Value* imag = b.CreateFMul(
      b.CreateSelect(by_real, b.CreateFSub(second, turned), b.CreateFSub(turned, second)), scale);

  llvm::Value* none = b.CreateAnd(b.CreateFCmpUNO(real, real), b.CreateFCmpUNO(imag, imag));
  auto is_infinite = [&](llvm::Value* v) { return b.CreateFCmpOEQ(size_of(v), infinity); };
  auto has_infinity = [&](const Parts& z) {
    return b.CreateOr(is_infinite(z.real), is_infinite(z.imag));
  };
  auto is_finite = [&](const Parts& z) {
    return b.CreateAnd(b.CreateFCmpOLT(size_of(z.real), infinity),
                       b.CreateFCmpOLT(size_of(z.imag), infinity));
  };
  // The direction of a number with infinite parts.
  auto direction = [&](const Parts& z) {
    auto of = [&](llvm::Value* v) {
      return with_sign(b.CreateSelect(is_infinite(v), one, zero), v);
    };
    return Parts{of(z.real), of(z.imag)};
  };
  auto replace = [&](llvm::Value* where, const Parts& u, const Parts& v, llvm::Value* by) {
    where = b.CreateAnd(none, where);
    llvm::Value* re = b.CreateFAdd(b.CreateFMul(u.real, v.real), b.CreateFMul(u.imag, v.imag));
    llvm::Value* im = b.CreateFSub(b.CreateFMul(u.imag, v.real), b.CreateFMul(u.real, v.imag));
    real = b.CreateSelect(where, b.CreateFMul(by, re), real);
    imag = b.CreateSelect(where, b.CreateFMul(by, im), imag);
  };
  replace(b.CreateAnd(has_infinity(q), is_finite(p)), p, direction(q), zero);
  replace(b.CreateAnd(has_infinity(p), is_finite(q)), direction(p), q, infinity);
  llvm::Value* by_zero =
      b.CreateAnd(b.CreateAnd(b.CreateFCmpOEQ(real_size, zero), b.CreateFCmpOEQ(imag_size, zero)),
                  b.CreateOr(b.CreateFCmpORD(p.real, p.real), b.CreateFCmpORD(p.imag, p.imag)));
  llvm::Value* end = with_sign(infinity, q.real);
  by_zero = b.CreateAnd(none, by_zero);
  real = b.CreateSelect(by_zero, b.CreateFMul(end, p.real), real);
  imag = b.CreateSelect(by_zero, b.CreateFMul(end, p.imag), imag);
  return joined({real, imag});
}

llvm::Value* Emitter::complex_operation(const Instruction* i, llvm::ArrayRef<llvm::Value*> x) {
  llvm::Value *left = x[0], *right = x.size() > 1 ? x[1] : nullptr;
  if (right != nullptr) even_out({&left, &right});
  switch (i->opcode) {
    case Opcode::Complex:
      return joined({left, right});
    case Opcode::Real:
      return parts(left).real;
    case Opcode::Imag:
      return parts(left).imag;
    case Opcode::Convert: {
      ElementType from = i->operand_shape(0).element_type();
      if (is_complex(from)) return left;
      llvm::Value* real = convert(from, ElementType::F32, left);
      return joined({real, llvm::ConstantFP::get(real->getType(), 0.0)});
    }
    case Opcode::Negate: {
      Parts z = parts(left);
      return joined({b.CreateFNeg(z.real), b.CreateFNeg(z.imag)});
    }
    case Opcode::Abs: {
      // Squares of floats are exact in double precision and neither overflow nor underflow.
      Parts z = parts(left);
      llvm::Type* wide = widened(b.getDoubleTy(), z.real);
      llvm::Value *re = b.CreateFPExt(z.real, wide), *im = b.CreateFPExt(z.imag, wide);
      llvm::Value* sum = b.CreateFAdd(b.CreateFMul(re, re), b.CreateFMul(im, im));
      llvm::Value* size =
          b.CreateFPTrunc(intrinsic(llvm::Intrinsic::sqrt, {sum}), z.real->getType());
      llvm::Value* infinite = llvm::ConstantFP::getInfinity(z.real->getType());
      llvm::Value* is_infinite =
          b.CreateOr(b.CreateFCmpOEQ(intrinsic(llvm::Intrinsic::fabs, {z.real}), infinite),
                     b.CreateFCmpOEQ(intrinsic(llvm::Intrinsic::fabs, {z.imag}), infinite));
      return b.CreateSelect(is_infinite, infinite, size);
    }
    case Opcode::Compare: {
      // Compares both parts at once, to all ones or zero, then tests each pair of results.
      auto* floats = llvm::FixedVectorType::get(b.getFloatTy(), 2 * lane_count(left));
      auto* words = llvm::FixedVectorType::get(b.getInt32Ty(), 2 * lane_count(left));
      bool equal = i->text(AttributeKey::Direction) == "EQ";
      llvm::Value *p = b.CreateBitCast(left, floats), *q = b.CreateBitCast(right, floats);
      llvm::Value* each = equal ? b.CreateFCmpOEQ(p, q) : b.CreateFCmpUNE(p, q);
      llvm::Value* pairs = b.CreateBitCast(b.CreateSExt(each, words), left->getType());
      llvm::Constant* none = llvm::Constant::getNullValue(left->getType());
      llvm::Constant* all = llvm::Constant::getAllOnesValue(left->getType());
      return equal ? b.CreateICmpEQ(pairs, all) : b.CreateICmpNE(pairs, none);
    }
    case Opcode::Divide:
      return quotient(left, right);
    default:
      return complex_combination(i->opcode, left, right);
  }
}

// Follows the evaluator's rule step by step, on the bits as they are in memory.
llvm::Value* Emitter::reduced_precision(const Instruction* i, llvm::Value* x) {
  ElementType type = i->shape->element_type();
  auto width = static_cast<unsigned>(element_bits(type));
  int64_t mantissa = element_row(type).mantissa_bits;
  int64_t exponent = static_cast<int64_t>(width) - 1 - mantissa;
  llvm::Value* memory = to_memory(type, x);
  llvm::Type* word = widened(b.getIntNTy(width), x);
  auto number = [&](uint64_t n) { return llvm::ConstantInt::get(word, n); };
  const uint64_t sign_bit = uint64_t{1} << (width - 1);
  const uint64_t infinite = ((uint64_t{1} << exponent) - 1) << mantissa;
  llvm::Value* bits = b.CreateBitCast(memory, word);
  llvm::Value* sign = b.CreateAnd(bits, number(sign_bit));
  llvm::Value* size = b.CreateAnd(bits, number(sign_bit - 1));
  llvm::Value* none = b.CreateICmpUGT(size, number(infinite));
  if (int64_t wanted = i->integer(AttributeKey::MantissaBits); wanted < mantissa) {
    auto drop = static_cast<uint64_t>(mantissa - wanted);
    llvm::Value* odd = b.CreateAnd(b.CreateLShr(size, number(drop)), number(1));
    size = b.CreateAdd(size, b.CreateAdd(odd, number((uint64_t{1} << (drop - 1)) - 1)));
    size = b.CreateAnd(size, number(~uint64_t{0} << drop));
  }
  if (int64_t wanted = i->integer(AttributeKey::ExponentBits); wanted < exponent) {
    uint64_t bias = (uint64_t{1} << (exponent - 1)) - 1;
    uint64_t small_bias = (uint64_t{1} << (wanted - 1)) - 1;
    llvm::Value* own = b.CreateLShr(size, number(static_cast<uint64_t>(mantissa)));
    llvm::Value* over = b.CreateICmpUGT(own, number(bias + small_bias));
    llvm::Value* under = b.CreateICmpULE(own, number(bias - small_bias));
    size = b.CreateSelect(over, number(infinite), size);
    size = b.CreateSelect(under, number(0), size);
  }
  llvm::Value* made = b.CreateSelect(none, bits, b.CreateOr(sign, size));
  return from_memory(type, b.CreateBitCast(made, memory->getType()));
}

}  // namespace lamella::hlo::compiler
