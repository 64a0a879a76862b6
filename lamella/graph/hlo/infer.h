// Shape inference: the rule that gives each opcode's result shape. Internal to lamella/graph.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Throws an Error of the form "hlo: 'add.3': expected ...".
template <class... Parts>
[[noreturn]] LAMELLA_COLD void fail(const Instruction& i, const Parts&... parts) {
  throw Error(str("hlo: '", i.name, "' (", opcode_name(i.opcode), "): ", parts...));
}
// Throws unless the condition holds. The remaining arguments make up the message; they are
// evaluated only on failure.
#define LAMELLA_HLO_REQUIRE(condition, instruction, ...)                                  \
  do {                                                                                    \
    if (LAMELLA_UNLIKELY(!(condition))) ::lamella::hlo::fail((instruction), __VA_ARGS__); \
  } while (false)

// Declares infer_SHAPE for each name in the opcode table's column `shape`. Each returns the shape
// of an instruction, and throws if its operands or attributes break the rules of the opcode.
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, ...) \
  Shape infer_##shape(const Instruction& i);
#include "lamella/graph/hlo/opcode.def"

// Groups of element types, of the table's columns `takes` and `operator`.
enum class Takes : uint8_t { None, Any, Numbers, Ordered, Integers, Bits, Reals, Floats, Inexact };
bool is_taken(Takes takes, ElementType type);
// Whether the opcode has the element type as an operand's, by its column `takes`.
bool takes_type(Opcode opcode, ElementType type);

// Whether a text may leave out the shape of the opcode's result, as XLA's parser decides, and that
// shape: what infer_shape gives without a stated one. The instruction's own shape may be null.
bool can_infer_shape(Opcode opcode);
Shape infer_missing_shape(Instruction& i);
// Whether infer_shape gives the stated shape, so that code may index operands and attributes as the
// opcode's rules allow. Modules that were not verified may have other instructions.
bool is_well_formed(const Instruction& i);

// Helpers that rules of several families share. The first two throw if the operand is not an array
// or the attribute is missing.
const Shape& array_operand(const Instruction& i, size_t operand);
Computation& computation_of(const Instruction& i, AttributeKey key);
// Throws unless the numbers are distinct dimensions of an array of this rank.
void require_dimensions(const Instruction& i, AttributeKey key, std::span<const int64_t> numbers,
                        int64_t rank);
// Throws unless the computation's parameters have these shapes.
void require_parameters(const Instruction& i, const Computation& computation,
                        std::span<const Shape> shapes);
// Throws unless output_to_operand_aliasing, if there is one, joins parts of equal shapes.
void require_aliases(const Instruction& i);
// The result sizes of sliding the window over an array. `sizes` and `window` have equal lengths.
std::vector<int64_t> window_sizes(const Instruction& i, std::span<const int64_t> sizes,
                                  std::span<const WindowDimension> window);

// Note [Numbers of windows and padding]
//   The text of an instruction may hold any int64_t as padding, stride or dilation. Verification
//   bounds the absolute value of each, and the extent of a dilated array, by kMostElements. So sums
//   of a few of them, and positions in a padded array, fit int64_t without further checks.
void require_moderate(const Instruction& i, const char* what, int64_t number);
// The extent of `size` elements that are `apart` positions apart: (size - 1) * apart + 1.
int64_t reach(const Instruction& i, int64_t size, int64_t apart);

inline bool contains(std::span<const int64_t> numbers, int64_t n) {
  return std::find(numbers.begin(), numbers.end(), n) != numbers.end();
}
inline std::vector<int64_t> copy_of(std::span<const int64_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace lamella::hlo
