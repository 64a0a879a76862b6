// Replaces Fourier transforms by calls of Lamella's operators.
#include "lamella/graph/passes/fourier.h"

#include <string>

#include "lamella/core/error.h"
#include "lamella/graph/passes/rewriter.h"

namespace lamella::hlo {
namespace {

Instruction* as_operator(Rewriter& to, const Instruction& i) {
  auto length = i.integers(AttributeKey::FftLength);
  if (i.opcode != Opcode::Fft || i.shape->elements() == 0 || i.operand_shape(0).elements() == 0) {
    return nullptr;
  }
  const auto count = static_cast<int64_t>(length.size());
  std::string dimensions;
  for (int64_t d = i.shape->rank() - count; d < i.shape->rank(); ++d) {
    dimensions += str(dimensions.empty() ? "" : ", ", d);
  }
  // Inverse transforms divide by the number of elements: normalization 2 of the operators.
  std::string_view kind = i.text(AttributeKey::FftType);
  std::string target, rest;
  if (kind == "RFFT") {
    target = "aten::_fft_r2c";
    rest = "0, True";
  } else if (kind == "IRFFT") {
    target = "aten::_fft_c2r";
    rest = str("2, ", length.back());
  } else {
    target = "aten::_fft_c2c";
    rest = kind == "FFT" ? "0, True" : "2, False";
  }
  std::string arguments = str("\"(%0, [", dimensions, "], ", rest, ")\"");
  return to.add(Opcode::CustomCall, *i.shape, {i.operands[0]},
                {to.text(AttributeKey::CustomCallTarget, target),
                 to.text(AttributeKey::BackendConfig, arguments)});
}

}  // namespace

int64_t transforms_to_operators(Module& module) {
  int64_t changed = 0;
  for (Computation* computation : module.computations) {
    Rewriter rewriter(module, *computation);
    changed += rewriter.rewrite([&](Instruction* i) { return as_operator(rewriter, *i); });
  }
  return changed;
}

}  // namespace lamella::hlo
