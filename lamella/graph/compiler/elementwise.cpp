// Emits the elementwise opcodes as LLVM instructions. Results must be equal to the evaluator's;
// functions such as exp are those of the kernels.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "lamella/core/error.h"
#include "lamella/graph/compiler/emitter.h"
#include "lamella/graph/custom_call/function_call.h"
#include "lamella/graph/execute/machine_code.h"

namespace lamella::hlo::compiler {

using llvm::Intrinsic::ID;

llvm::Type* Emitter::register_type(ElementType type) {
  switch (type) {
    case ElementType::PRED:
      return b.getInt1Ty();
    case ElementType::F16:
    case ElementType::BF16:
    case ElementType::F32:
      return b.getFloatTy();
    case ElementType::F64:
      return b.getDoubleTy();
    default:
      return b.getIntNTy(static_cast<unsigned>(element_bits(type)));
  }
}
llvm::Type* Emitter::memory_type(ElementType type) {
  switch (type) {
    case ElementType::PRED:
      return b.getInt8Ty();
    case ElementType::F16:
      return b.getHalfTy();
    case ElementType::BF16:
      return b.getInt16Ty();
    default:
      return register_type(type);
  }
}

// Returns `type`, or a vector of it with as many lanes as `like` has.
llvm::Type* Emitter::widened(llvm::Type* type, llvm::Value* like) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType());
  return vector != nullptr ? llvm::FixedVectorType::get(type, vector->getNumElements()) : type;
}
void Emitter::even_out(std::initializer_list<llvm::Value**> values) {
  bool vector = false;
  for (llvm::Value** v : values) vector = vector || (*v)->getType()->isVectorTy();
  if (!vector) return;
  for (llvm::Value** v : values) {
    if (!(*v)->getType()->isVectorTy()) *v = splat(*v);
  }
}
llvm::Value* Emitter::intrinsic(ID id, llvm::ArrayRef<llvm::Value*> x) {
  return b.CreateIntrinsic(id, {x[0]->getType()}, x);
}

// The fence hides from LLVM that the float was a half: LLVM would otherwise compare and select
// halves lane by lane.
llvm::Value* Emitter::from_half(llvm::Value* x) {
  llvm::Value* wide = b.CreateFPExt(x, widened(b.getFloatTy(), x));
  return on_device ? wide : b.CreateArithmeticFence(wide, wide->getType());
}

// Rounds a value to the precision of a smaller type; it remains a float.
llvm::Value* Emitter::rounded(ElementType type, llvm::Value* x) {
  if (type == ElementType::F16) return from_half(b.CreateFPTrunc(x, widened(b.getHalfTy(), x)));
  if (type != ElementType::BF16) return x;
  // Rounds to nearest, ties to even; NaN stays NaN.
  llvm::Type* word = widened(b.getInt32Ty(), x);
  auto number = [&](uint32_t n) { return llvm::ConstantInt::get(word, n); };
  llvm::Value* bits = b.CreateBitCast(x, word);
  llvm::Value* odd = b.CreateAnd(b.CreateLShr(bits, number(16)), number(1));
  llvm::Value* up = b.CreateAdd(bits, b.CreateAdd(odd, number(0x7fff)));
  up = b.CreateSelect(b.CreateFCmpUNO(x, x), b.CreateOr(bits, number(0x400000)), up);
  return b.CreateBitCast(b.CreateAnd(up, number(0xffff0000u)), x->getType());
}
llvm::Value* Emitter::from_memory(ElementType type, llvm::Value* x) {
  switch (type) {
    case ElementType::PRED:
      return b.CreateICmpNE(x, llvm::ConstantInt::get(x->getType(), 0));
    case ElementType::F16:
      return from_half(x);
    case ElementType::BF16: {
      llvm::Value* word = b.CreateZExt(x, widened(b.getInt32Ty(), x));
      word = b.CreateShl(word, llvm::ConstantInt::get(word->getType(), 16));
      return b.CreateBitCast(word, widened(b.getFloatTy(), x));
    }
    default:
      return x;
  }
}
// The value must already be rounded to the type.
llvm::Value* Emitter::to_memory(ElementType type, llvm::Value* x) {
  switch (type) {
    case ElementType::PRED:
      return b.CreateZExt(x, widened(b.getInt8Ty(), x));
    case ElementType::F16: {
      // A value that was extended from a half is that half.
      auto* fence = llvm::dyn_cast<llvm::IntrinsicInst>(x);
      if (fence != nullptr && fence->getIntrinsicID() == llvm::Intrinsic::arithmetic_fence) {
        auto* half = llvm::dyn_cast<llvm::FPExtInst>(fence->getOperand(0));
        if (half != nullptr) return half->getOperand(0);
      }
      return b.CreateFPTrunc(x, widened(b.getHalfTy(), x));
    }
    case ElementType::BF16: {
      llvm::Value* word = b.CreateBitCast(x, widened(b.getInt32Ty(), x));
      word = b.CreateLShr(word, llvm::ConstantInt::get(word->getType(), 16));
      return b.CreateTrunc(word, widened(b.getInt16Ty(), x));
    }
    default:
      return x;
  }
}

llvm::FunctionCallee Emitter::runtime(const char* name, llvm::Type* result,
                                      llvm::ArrayRef<llvm::Type*> arguments) {
  return module.getOrInsertFunction(name, llvm::FunctionType::get(result, arguments, false));
}

// Calls a kernel's function of whole vectors.
llvm::Value* Emitter::call_kernel(const char* name, llvm::ArrayRef<llvm::Value*> x) {
  llvm::Type* vector = x[0]->getType();
  llvm::SmallVector<llvm::Type*, 2> types(x.size(), vector);
  bool is_double = vector->getScalarType()->isDoubleTy();
  std::string symbol = str("lamella_", name, is_double ? "_double" : "_float");
  llvm::FunctionCallee function =
      module.getOrInsertFunction(symbol, llvm::FunctionType::get(vector, types, false));
  auto* declared = llvm::cast<llvm::Function>(function.getCallee());
  declared->setDoesNotThrow();
  declared->setDoesNotAccessMemory();
  declared->setWillReturn();
  return b.CreateCall(function, x);
}

// The functions take vectors of one width: shorter vectors are widened, longer ones split.
llvm::Value* Emitter::call_vector(const char* name, llvm::ArrayRef<llvm::Value*> x) {
  auto width = static_cast<unsigned>(vector_bytes /
                                     (x[0]->getType()->getScalarType()->isDoubleTy() ? 8 : 4));
  auto call = [&](llvm::ArrayRef<llvm::Value*> part) {
    llvm::Value* made = instructions_of(name, part);
    return made != nullptr ? made : call_kernel(name, part);
  };
  bool scalar = !x[0]->getType()->isVectorTy();
  unsigned count =
      scalar ? 1 : llvm::cast<llvm::FixedVectorType>(x[0]->getType())->getNumElements();
  if (on_device) {
    if (scalar) return instructions_of(name, x);
    llvm::Value* all = llvm::PoisonValue::get(x[0]->getType());
    for (unsigned l = 0; l < count; ++l) {
      llvm::SmallVector<llvm::Value*, 2> one;
      for (llvm::Value* v : x) one.push_back(b.CreateExtractElement(v, l));
      all = b.CreateInsertElement(all, instructions_of(name, one), l);
    }
    return all;
  }
  if (count == width && !scalar) return call(x);
  llvm::Value* joined = nullptr;
  for (unsigned first = 0; first < count; first += width) {
    std::vector<llvm::Value*> part;
    for (llvm::Value* v : x) {
      if (scalar) {
        part.push_back(b.CreateVectorSplat(width, v));
        continue;
      }
      llvm::SmallVector<int, 16> which;
      for (unsigned l = 0; l < width; ++l) {
        which.push_back(static_cast<int>(first + l % std::min(width, count)));
      }
      part.push_back(b.CreateShuffleVector(v, which));
    }
    llvm::Value* result = call(part);
    if (scalar) return b.CreateExtractElement(result, uint64_t{0});
    if (count < width) {
      llvm::SmallVector<int, 16> low;
      for (unsigned l = 0; l < count; ++l) low.push_back(static_cast<int>(l));
      return b.CreateShuffleVector(result, low);
    }
    if (joined == nullptr) {
      joined = result;
      continue;
    }
    // Appends this part to the parts so far.
    llvm::SmallVector<int, 64> all, spread;
    for (unsigned l = 0; l < first + width; ++l) {
      all.push_back(static_cast<int>(l));
      spread.push_back(l < width ? static_cast<int>(l) : -1);
    }
    spread.resize(first, -1);
    joined = b.CreateShuffleVector(joined, b.CreateShuffleVector(result, spread),
                                   llvm::ArrayRef<int>(all));
  }
  return joined;
}

// The nearest integers, and 0 for NaN, of vectors, whose intrinsic LLVM 19 splits into lanes.
llvm::Value* Emitter::saturated(llvm::Type* type, bool is_signed, llvm::Value* x) {
  unsigned width = type->getScalarSizeInBits();
  const double end = std::ldexp(1.0, static_cast<int>(width) - (is_signed ? 1 : 0));
  double last = x->getType()->getScalarType()->isFloatTy()
                    ? static_cast<double>(std::nextafter(static_cast<float>(end), 0.0F))
                    : std::nextafter(end, 0.0);
  auto number = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  llvm::Value *least = number(is_signed ? -end : 0.0), *most = number(last);
  x = b.CreateSelect(b.CreateFCmpORD(x, x), x, number(0));
  llvm::Value* inside = b.CreateSelect(b.CreateFCmpOLT(x, least), least, x);
  inside = b.CreateSelect(b.CreateFCmpOGT(inside, most), most, inside);
  llvm::Value* result = is_signed ? b.CreateFPToSI(inside, type) : b.CreateFPToUI(inside, type);
  llvm::APInt largest =
      is_signed ? llvm::APInt::getSignedMaxValue(width) : llvm::APInt::getMaxValue(width);
  llvm::Value* is_large = b.CreateFCmpOGE(x, number(end));
  return b.CreateSelect(is_large, llvm::ConstantInt::get(type, largest), result);
}

llvm::Value* Emitter::convert(ElementType from, ElementType to, llvm::Value* x) {
  if (from == to) return x;
  bool from_float = is_floating(from), to_float = is_floating(to);
  bool from_signed = element_kind(from) == ElementKind::Signed;
  llvm::Type* type = widened(register_type(to), x);
  if (to == ElementType::PRED) {
    if (from_float) return b.CreateFCmpUNE(x, llvm::ConstantFP::get(x->getType(), 0.0));
    return b.CreateICmpNE(x, llvm::ConstantInt::get(x->getType(), 0));
  }
  if (from_float && to_float) {
    if (from == ElementType::F64 && to != ElementType::F64) {
      return rounded(to, b.CreateFPTrunc(x, type));
    }
    if (to == ElementType::F64) return b.CreateFPExt(x, type);
    return rounded(to, x);
  }
  if (from_float) {
    bool is_signed = element_kind(to) == ElementKind::Signed;
    if (type->isVectorTy()) return saturated(type, is_signed, x);
    ID id = is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b.CreateIntrinsic(id, {type, x->getType()}, {x});
  }
  if (to_float) {
    return rounded(to, from_signed ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type));
  }
  return from_signed ? b.CreateSExtOrTrunc(x, type) : b.CreateZExtOrTrunc(x, type);
}

llvm::Value* Emitter::compare(const Instruction* i, llvm::Value* x, llvm::Value* y) {
  ElementType type = i->operand_shape(0).element_type();
  std::string_view direction = i->text(AttributeKey::Direction);
  bool is_signed = element_kind(type) == ElementKind::Signed;
  if (is_floating(type) && i->text(AttributeKey::Type) == "TOTALORDER") {
    // Inverts the lower bits of negative numbers, so that the bits are ordered as integers.
    llvm::Type* word = widened(type == ElementType::F64 ? b.getInt64Ty() : b.getInt32Ty(), x);
    auto ordered = [&](llvm::Value* v) {
      llvm::Value* bits = b.CreateBitCast(v, word);
      unsigned width = word->getScalarSizeInBits();
      llvm::Value* negative = b.CreateAShr(bits, llvm::ConstantInt::get(word, width - 1));
      return b.CreateXor(bits, b.CreateLShr(negative, llvm::ConstantInt::get(word, 1)));
    };
    x = ordered(x);
    y = ordered(y);
    is_signed = true;
  } else if (is_floating(type)) {
    using P = llvm::CmpInst::Predicate;
    P p = direction == "EQ"   ? P::FCMP_OEQ
          : direction == "NE" ? P::FCMP_UNE
          : direction == "LT" ? P::FCMP_OLT
          : direction == "LE" ? P::FCMP_OLE
          : direction == "GT" ? P::FCMP_OGT
                              : P::FCMP_OGE;
    return b.CreateFCmp(p, x, y);
  }
  using P = llvm::CmpInst::Predicate;
  P p = direction == "EQ"   ? P::ICMP_EQ
        : direction == "NE" ? P::ICMP_NE
        : direction == "LT" ? (is_signed ? P::ICMP_SLT : P::ICMP_ULT)
        : direction == "LE" ? (is_signed ? P::ICMP_SLE : P::ICMP_ULE)
        : direction == "GT" ? (is_signed ? P::ICMP_SGT : P::ICMP_UGT)
                            : (is_signed ? P::ICMP_SGE : P::ICMP_UGE);
  return b.CreateICmp(p, x, y);
}

// Sums, products, extremes and logic: the opcodes that reductions use, too.
llvm::Value* Emitter::combine(Opcode opcode, ElementType type, llvm::Value* x, llvm::Value* y) {
  if (is_complex(type)) return complex_combination(opcode, x, y);
  bool is_float = is_floating(type), is_signed = element_kind(type) == ElementKind::Signed;
  switch (opcode) {
    case Opcode::Add:
      if (type == ElementType::PRED) return b.CreateOr(x, y);
      return is_float ? rounded(type, b.CreateFAdd(x, y)) : b.CreateAdd(x, y);
    case Opcode::Multiply:
      if (type == ElementType::PRED) return b.CreateAnd(x, y);
      return is_float ? rounded(type, b.CreateFMul(x, y)) : b.CreateMul(x, y);
    case Opcode::And:
      return b.CreateAnd(x, y);
    case Opcode::Or:
      return b.CreateOr(x, y);
    case Opcode::Xor:
      return b.CreateXor(x, y);
    case Opcode::Maximum:
    case Opcode::Minimum: {
      bool maximum = opcode == Opcode::Maximum;
      if (is_float) {
        return intrinsic(maximum ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, {x, y});
      }
      return intrinsic(maximum ? (is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax)
                               : (is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin),
                       {x, y});
    }
    default:
      LAMELLA_INTERNAL_ASSERT(false, "compiler: expected a combination, got ", opcode_name(opcode));
  }
}

llvm::Value* Emitter::integer_operation(const Instruction* i, ElementType type, llvm::Value* x,
                                        llvm::Value* y) {
  llvm::Type* t = x->getType();
  auto number = [&](int64_t n) {
    return llvm::ConstantInt::get(t, static_cast<uint64_t>(n), true);
  };
  bool is_signed = element_kind(type) == ElementKind::Signed;
  int bits = element_bits(type);
  llvm::Value *zero = number(0), *ones = number(-1);
  switch (i->opcode) {
    case Opcode::Divide:
    case Opcode::Remainder: {
      // Where the processor's division would trap (by 0, or the minimum by -1), divides by 1 and
      // selects the defined result afterwards.
      llvm::Value* none = b.CreateICmpEQ(y, zero);
      llvm::Value* minus = is_signed ? b.CreateICmpEQ(y, ones) : nullptr;
      llvm::Value* odd = minus != nullptr ? b.CreateOr(none, minus) : none;
      llvm::Value* safe = b.CreateSelect(odd, number(1), y);
      if (i->opcode == Opcode::Divide) {
        llvm::Value* q = is_signed ? b.CreateSDiv(x, safe) : b.CreateUDiv(x, safe);
        if (minus != nullptr) q = b.CreateSelect(minus, b.CreateNeg(x), q);
        return b.CreateSelect(none, ones, q);
      }
      llvm::Value* r = is_signed ? b.CreateSRem(x, safe) : b.CreateURem(x, safe);
      if (minus != nullptr) r = b.CreateSelect(minus, zero, r);
      return b.CreateSelect(none, x, r);
    }
    case Opcode::Subtract:
      return b.CreateSub(x, y);
    case Opcode::Mulhi: {
      llvm::Type* wide = widened(b.getIntNTy(static_cast<unsigned>(2 * bits)), x);
      auto extended = [&](llvm::Value* v) {
        return is_signed ? b.CreateSExt(v, wide) : b.CreateZExt(v, wide);
      };
      llvm::Value* product = b.CreateMul(extended(x), extended(y));
      return b.CreateTrunc(
          b.CreateLShr(product, llvm::ConstantInt::get(wide, static_cast<uint64_t>(bits))), t);
    }
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightLogical:
    case Opcode::ShiftRightArithmetic: {
      llvm::Value* beyond = b.CreateICmpUGE(y, number(bits));
      llvm::Value* by = b.CreateSelect(beyond, zero, y);
      if (i->opcode == Opcode::ShiftLeft) return b.CreateSelect(beyond, zero, b.CreateShl(x, by));
      if (i->opcode == Opcode::ShiftRightLogical) {
        return b.CreateSelect(beyond, zero, b.CreateLShr(x, by));
      }
      return b.CreateAShr(x, b.CreateSelect(beyond, number(bits - 1), y));
    }
    default:
      return combine(i->opcode, type, x, y);
  }
}

namespace {

// The intrinsic of the table's column `emitted`.
constexpr ID kIntrinsics[] = {
#define LAMELLA_EMITTED_Kernel(name) llvm::Intrinsic::not_intrinsic
#define LAMELLA_EMITTED_Intrinsic(name) llvm::Intrinsic::name
#define LAMELLA_EMITTED_Own llvm::Intrinsic::not_intrinsic
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, rule, work, traffic, code, \
                           weight, complex, emitted, ...)                                         \
  LAMELLA_EMITTED_##emitted,
#include "lamella/graph/hlo/opcode.def"
};

}  // namespace

llvm::Value* Emitter::function_of(const Instruction* i, llvm::ArrayRef<llvm::Value*> x) {
  ElementType type = i->shape->element_type();
  if (const char* kernel = emitted_kernel(i->opcode)) {
    return rounded(type, call_vector(kernel, x));
  }
  switch (i->opcode) {
    case Opcode::CustomCall:
      return rounded(type, call_vector(function_call(*i), x));
    case Opcode::Sqrt:
      return rounded(type, intrinsic(llvm::Intrinsic::sqrt, {x[0]}));
    case Opcode::Rsqrt:
      return rounded(type, b.CreateFDiv(llvm::ConstantFP::get(x[0]->getType(), 1.0),
                                        intrinsic(llvm::Intrinsic::sqrt, {x[0]})));
    case Opcode::Cbrt: {
      // Lane by lane, as cube roots are rare.
      llvm::Type* wide = b.getDoubleTy();
      llvm::FunctionCallee cbrt = runtime("lamella_cbrt", wide, {wide});
      auto one = [&](llvm::Value* v) -> llvm::Value* {
        llvm::Value* root =
            b.CreateCall(cbrt, {v->getType()->isDoubleTy() ? v : b.CreateFPExt(v, wide)});
        return v->getType()->isDoubleTy() ? root : b.CreateFPTrunc(root, v->getType());
      };
      if (!x[0]->getType()->isVectorTy()) return rounded(type, one(x[0]));
      llvm::Value* all = llvm::PoisonValue::get(x[0]->getType());
      for (int l = 0; l < lanes; ++l) {
        auto at = static_cast<uint64_t>(l);
        all = b.CreateInsertElement(all, one(b.CreateExtractElement(x[0], at)), at);
      }
      return rounded(type, all);
    }
    default:
      LAMELLA_INTERNAL_ASSERT(false, "compiler: expected a function, got ", opcode_name(i->opcode));
  }
}

llvm::Value* Emitter::elementwise(const Instruction* i, llvm::SmallVectorImpl<llvm::Value*>& x) {
  ElementType type = i->shape->element_type(), from = i->operand_shape(0).element_type();
  bool is_float = is_floating(from);
  bool only_moves = i->opcode == Opcode::Select || i->opcode == Opcode::BitcastConvert;
  if ((is_complex(type) || is_complex(from)) && !only_moves) return complex_operation(i, x);
  switch (i->opcode) {
    case Opcode::Convert:
      return convert(from, type, x[0]);
    case Opcode::BitcastConvert:
      // The bits are those in memory, where PRED is a byte and small floats have their own size.
      return from_memory(type,
                         b.CreateBitCast(to_memory(from, x[0]), widened(memory_type(type), x[0])));
    case Opcode::Compare:
      even_out({&x[0], &x[1]});
      return compare(i, x[0], x[1]);
    case Opcode::Select:
      even_out({&x[1], &x[2]});
      if (x[0]->getType()->isVectorTy()) even_out({&x[0], &x[1], &x[2]});
      return b.CreateSelect(x[0], x[1], x[2]);
    case Opcode::Clamp: {
      even_out({&x[0], &x[1], &x[2]});
      if (!is_float) {
        bool is_signed = element_kind(type) == ElementKind::Signed;
        llvm::Value* low =
            intrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, {x[0], x[1]});
        return intrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, {low, x[2]});
      }
      llvm::Value* low = b.CreateSelect(b.CreateFCmpOLT(x[1], x[0]), x[0], x[1]);
      llvm::Value* high = b.CreateSelect(b.CreateFCmpOLT(x[2], low), x[2], low);
      // A NaN operand or bound gives NaN; the operand's comes first, then the lower bound's.
      high = b.CreateSelect(b.CreateFCmpUNO(x[2], x[2]), x[2], high);
      high = b.CreateSelect(b.CreateFCmpUNO(x[0], x[0]), x[0], high);
      return b.CreateSelect(b.CreateFCmpUNO(x[1], x[1]), x[1], high);
    }
    case Opcode::Abs:
      if (is_float) return intrinsic(llvm::Intrinsic::fabs, {x[0]});
      if (element_kind(type) != ElementKind::Signed) return x[0];
      return b.CreateIntrinsic(llvm::Intrinsic::abs, {x[0]->getType()}, {x[0], b.getFalse()});
    case Opcode::Negate:
      return is_float ? b.CreateFNeg(x[0]) : b.CreateNeg(x[0]);
    case Opcode::Not:
      return b.CreateNot(x[0]);
    case Opcode::Sign: {
      llvm::Type* t = x[0]->getType();
      if (!is_float) {
        llvm::Value* zero = llvm::ConstantInt::get(t, 0);
        llvm::Value* above = b.CreateZExt(b.CreateICmpNE(x[0], zero), t);
        if (element_kind(type) != ElementKind::Signed) return above;
        return b.CreateSelect(b.CreateICmpSLT(x[0], zero),
                              llvm::ConstantInt::get(t, ~uint64_t{0}, true), above);
      }
      llvm::Value* one =
          b.CreateIntrinsic(llvm::Intrinsic::copysign, {t}, {llvm::ConstantFP::get(t, 1.0), x[0]});
      return b.CreateSelect(b.CreateFCmpUEQ(x[0], llvm::ConstantFP::get(t, 0.0)), x[0], one);
    }
    case Opcode::IsFinite: {
      llvm::Value* size = intrinsic(llvm::Intrinsic::fabs, {x[0]});
      return b.CreateFCmpOLT(size, llvm::ConstantFP::getInfinity(x[0]->getType()));
    }
    case Opcode::Clz:
      return b.CreateIntrinsic(llvm::Intrinsic::ctlz, {x[0]->getType()}, {x[0], b.getFalse()});
    case Opcode::ReducePrecision:
      return reduced_precision(i, x[0]);
    default:
      break;
  }
  if (ID id = kIntrinsics[static_cast<size_t>(i->opcode)]) return intrinsic(id, {x[0]});
  if (x.size() != 2) return function_of(i, x);
  even_out({&x[0], &x[1]});
  if (!is_float) return integer_operation(i, type, x[0], x[1]);
  switch (i->opcode) {
    case Opcode::Subtract:
      return rounded(type, b.CreateFSub(x[0], x[1]));
    case Opcode::Divide:
      return rounded(type, b.CreateFDiv(x[0], x[1]));
    case Opcode::Add:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Multiply:
      return combine(i->opcode, type, x[0], x[1]);
    default:
      return function_of(i, x);
  }
}

// ---- Reducers ----

// The value that leaves any other unchanged when combined with it.
llvm::Value* Emitter::reduce_identity(Opcode opcode, ElementType type) {
  llvm::Type* t = register_type(type);
  if (is_complex(type)) {
    llvm::Type* part = b.getFloatTy();
    llvm::Value* zero = llvm::ConstantFP::get(part, opcode == Opcode::Add ? -0.0 : 0.0);
    return joined({opcode == Opcode::Add ? zero : llvm::ConstantFP::get(part, 1.0), zero});
  }
  if (is_floating(type)) {
    switch (opcode) {
      case Opcode::Add:
        return llvm::ConstantFP::get(t, -0.0);
      case Opcode::Multiply:
        return llvm::ConstantFP::get(t, 1.0);
      default:
        return llvm::ConstantFP::getInfinity(t, opcode == Opcode::Maximum);
    }
  }
  unsigned bits = t->getIntegerBitWidth();
  bool is_signed = element_kind(type) == ElementKind::Signed;
  using llvm::APInt;
  switch (opcode) {
    case Opcode::Multiply:
      return llvm::ConstantInt::get(t, 1);
    case Opcode::And:
      return llvm::ConstantInt::getAllOnesValue(t);
    case Opcode::Maximum:
      return llvm::ConstantInt::get(
          t, is_signed ? APInt::getSignedMinValue(bits) : APInt::getZero(bits));
    case Opcode::Minimum:
      return llvm::ConstantInt::get(
          t, is_signed ? APInt::getSignedMaxValue(bits) : APInt::getAllOnes(bits));
    default:
      return llvm::ConstantInt::get(t, 0);
  }
}

// Combines the halves of the vector until one lane is left.
llvm::Value* Emitter::across_lanes(Opcode opcode, ElementType type, llvm::Value* vector) {
  auto* t = llvm::dyn_cast<llvm::FixedVectorType>(vector->getType());
  if (t == nullptr) return vector;
  for (unsigned half = t->getNumElements() / 2; half > 0; half /= 2) {
    llvm::SmallVector<int, 64> low, high;
    for (unsigned l = 0; l < half; ++l) {
      low.push_back(static_cast<int>(l));
      high.push_back(static_cast<int>(half + l));
    }
    vector = combine(opcode, type, b.CreateShuffleVector(vector, low),
                     b.CreateShuffleVector(vector, high));
  }
  return b.CreateExtractElement(vector, uint64_t{0});
}

std::vector<llvm::Value*> Emitter::apply(const Computation& computation,
                                         const std::vector<llvm::Value*>& arguments) {
  std::unordered_map<const Instruction*, llvm::Value*> known;
  for (size_t p = 0; p < arguments.size(); ++p) known[computation.parameters[p]] = arguments[p];
  for (const Instruction* i : computation.instructions) {
    if (i->opcode == Opcode::Parameter || i->opcode == Opcode::Tuple) continue;
    if (i->opcode == Opcode::Constant) {
      known[i] = constant(i);
      continue;
    }
    llvm::SmallVector<llvm::Value*, 4> x;
    for (const Instruction* operand : i->operands) x.push_back(known.at(operand));
    if (i->opcode == Opcode::Call) {
      AttributeKey key =
          i->has(AttributeKey::ToApply) ? AttributeKey::ToApply : AttributeKey::Calls;
      known[i] = apply(*i->computation(key), {x.begin(), x.end()})[0];
    } else {
      known[i] = moves_one_operand(i->opcode) ? x[0] : elementwise(i, x);
    }
  }
  const Instruction* root = computation.root;
  std::vector<llvm::Value*> results;
  if (root->opcode != Opcode::Tuple) return {known.at(root)};
  for (const Instruction* operand : root->operands) results.push_back(known.at(operand));
  return results;
}

}  // namespace lamella::hlo::compiler
