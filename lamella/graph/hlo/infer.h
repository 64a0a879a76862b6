// The rules of shapes, by family. Internal to the graph room.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// "hlo: 'add.3': expected ...".
template <class... Parts>
[[noreturn]] LAMELLA_COLD void fail(const Instruction& i, const Parts&... parts) {
  throw Error(str("hlo: '", i.name, "' (", opcode_name(i.opcode), "): ", parts...));
}
// The condition must hold; the parts, evaluated only where it does not, say what was expected.
#define LAMELLA_HLO_REQUIRE(condition, instruction, ...)                                  \
  do {                                                                                    \
    if (LAMELLA_UNLIKELY(!(condition))) ::lamella::hlo::fail((instruction), __VA_ARGS__); \
  } while (false)

// infer_SHAPE for each name in the table's column `shape`: gives the shape of an instruction, and
// throws where the rules of its opcode are broken.
#define LAMELLA_HLO_OPCODE(name, text, operands, family, takes, shape, ...) \
  Shape infer_##shape(const Instruction& i);
#include "lamella/graph/hlo/opcode.def"

// Groups of element types, of the table's columns `takes` and `operator`.
enum class Takes : uint8_t { None, Any, Numbers, Ordered, Integers, Bits, Reals, Floats, Inexact };
bool is_taken(Takes takes, ElementType type);
// Whether the opcode has the element type as an operand's, by its column `takes`.
bool takes_type(Opcode opcode, ElementType type);

// What rules of several families share.
const Shape& array_operand(const Instruction& i, size_t operand);
Computation& computation_of(const Instruction& i, AttributeKey key);
// Each number names another dimension of `rank`.
void require_dimensions(const Instruction& i, AttributeKey key, std::span<const int64_t> numbers,
                        int64_t rank);
// The computation takes parameters of these shapes.
void require_parameters(const Instruction& i, const Computation& computation,
                        std::span<const Shape> shapes);
// Sizes after a window slid over them. `sizes` and `window` have as many dimensions.
std::vector<int64_t> window_sizes(const Instruction& i, std::span<const int64_t> sizes,
                                  std::span<const WindowDimension> window);

// Note [Numbers of windows and padding]
//   What an instruction states beside its shapes may be any int64_t. Each such number must lie
//   within kMostElements of 0, and the reach of what it spreads must too, so that sums of a few of
//   them, and places that a window or padded array has, fit int64_t without further checks.
void require_moderate(const Instruction& i, const char* what, int64_t number);
// Places that `size` elements reach over that lie `apart` of each other.
int64_t reach(const Instruction& i, int64_t size, int64_t apart);

inline bool contains(std::span<const int64_t> numbers, int64_t n) {
  return std::find(numbers.begin(), numbers.end(), n) != numbers.end();
}
inline std::vector<int64_t> copy_of(std::span<const int64_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace lamella::hlo
