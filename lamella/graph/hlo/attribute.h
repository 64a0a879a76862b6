// Attribute: one named property of an instruction, such as `dimensions={0,1}`. The keys and their
// kinds are generated from attribute.def.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/graph/hlo/opcode.h"

namespace lamella::hlo {

class Computation;
class Instruction;
class Shape;

enum class AttributeKind : uint8_t {
  Integer,
  Boolean,
  Real,
  Integers,      // {0,1}
  Word,          // LT, API_VERSION_TYPED_FFI, f32
  String,        // "quoted"; kept without quotes and escapes
  Text,          // any other value, kept as written
  Window,        // {size=3x3 pad=0_1x0_1}
  DimLabels,     // b01f_01io->b01f
  Padding,       // 0_1_0x2_0
  Slices,        // {[0:4], [1:5:2]}
  Computation,   // the name of a computation
  Computations,  // {a, b}
  Instructions,  // {a, b}, of the same computation
  Shapes,        // {f32[2]{0}, s32[]}
  ShapeOf,       // f32[2]
  Aliasing,      // {{0}: (1, {})}
};
enum class AttributeKey : uint8_t {
#define LAMELLA_HLO_ATTRIBUTE(name, text, kind) name,
#include "lamella/graph/hlo/attribute.def"
};
std::string_view attribute_name(AttributeKey key);
// The attribute of that name in the text of the opcode.
std::optional<AttributeKey> attribute_from_name(std::string_view name, Opcode opcode);
AttributeKind attribute_kind(AttributeKey key);

// How an operation slides over one dimension.
struct WindowDimension {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t padding_low = 0;
  int64_t padding_high = 0;
  int64_t window_dilation = 1;
  int64_t base_dilation = 1;
  bool reversal = false;
};
struct PaddingDimension {
  int64_t low = 0;
  int64_t high = 0;
  int64_t interior = 0;
};
struct SliceDimension {
  int64_t start;
  int64_t limit;
  int64_t stride;
};
// Which dimension of each operand and of the result is batch, feature, or the i-th spatial one.
struct ConvolutionDimensions {
  int64_t input_batch, input_feature;
  std::vector<int64_t> input_spatial;
  int64_t kernel_input_feature, kernel_output_feature;
  std::vector<int64_t> kernel_spatial;
  int64_t output_batch, output_feature;
  std::vector<int64_t> output_spatial;
};
// A part of the result that aliases a part of an operand.
struct OperandAlias {
  std::vector<int64_t> output;
  int64_t operand;
  std::vector<int64_t> operand_index;
};

// A key and its value. Values that are not stored inline live in the module's arena.
struct Attribute {
  AttributeKey key;
  uint32_t size = 0;  // number of elements that the pointer points to
  union {
    int64_t integer = 0;  // Integer, Boolean
    double real;
    const int64_t* integer_data;
    const char* text_data;  // Word, String, Text
    const WindowDimension* window_data;
    const PaddingDimension* padding_data;
    const SliceDimension* slice_data;
    const ConvolutionDimensions* convolution;
    Computation* computation;
    Computation** computation_data;
    Instruction** instruction_data;
    const Shape* shape;
    const Shape** shape_data;
    const OperandAlias* alias_data;
  };

  std::span<const int64_t> integers() const { return {integer_data, size}; }
  std::string_view text() const { return {text_data, size}; }
  std::span<const WindowDimension> window() const { return {window_data, size}; }
  std::span<const PaddingDimension> padding() const { return {padding_data, size}; }
  std::span<const SliceDimension> slices() const { return {slice_data, size}; }
  std::span<Computation* const> computations() const { return {computation_data, size}; }
  std::span<Instruction* const> instructions() const { return {instruction_data, size}; }
  std::span<const Shape* const> shapes() const { return {shape_data, size}; }
  std::span<const OperandAlias> aliases() const { return {alias_data, size}; }
};

// The text in quotes and with escapes, as a String attribute is printed.
std::string quoted(std::string_view text);

}  // namespace lamella::hlo
