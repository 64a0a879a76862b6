// The namespace xla, through which Lamella's HLO names are found, and names that XLA spells
// differently. See Note [Directives, not copies] in c10/lamella_names.h.
#pragma once
#include <complex>

#include "lamella/hlo.h"
#include "xla/types.h"

namespace xla {

using namespace lamella::hlo;

using XlaBuilder = lamella::hlo::Builder;
using XlaOp = lamella::hlo::Op;
using XlaComputation = lamella::hlo::BuiltComputation;
// Literals are borrowed by reference.
using LiteralSlice = lamella::hlo::Literal;

// Enumerators of PrimitiveType, which are at home in the namespace itself there.
#define LAMELLA_HLO_ELEMENT(name, text, number, bits, kind, ...) \
  inline constexpr PrimitiveType name = PrimitiveType::name;
#include "lamella/graph/hlo/element_type.def"
inline constexpr PrimitiveType PRIMITIVE_TYPE_INVALID = PrimitiveType::Invalid;

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

}  // namespace xla
