// Finds the names that a formula of derivatives.yaml mentions. A formula is a C++ expression; it is
// scanned as tokens, not parsed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lamella::codegen {

struct FormulaToken {
  enum class Kind { kName, kNumber, kText, kMark };
  Kind kind;
  std::string_view text;  // of a mark: one character, or `::` or `->`
  std::size_t offset;
};

struct FormulaProblem {
  std::string message;
  std::size_t offset;
};

// Comments are left out. Reports brackets, quotes and comments that do not close.
std::vector<FormulaToken> scan_formula(std::string_view text,
                                       std::vector<FormulaProblem>& problems);

// The attribute of a value that a formula uses.
enum class Attribute {
  kValue,
  kSizes,     // x.sizes(); sizes_of(xs)
  kSize,      // x.size(dim)
  kStrides,   // x.strides()
  kStride,    // x.stride(dim)
  kDtype,     // x.scalar_type(), x.dtype(); dtypes_of(xs)
  kDevice,    // x.device()
  kOptions,   // x.options()
  kLayout,    // x.layout()
  kDim,       // x.dim()
  kNumel,     // x.numel()
  kOffset,    // x.storage_offset()
  kGeometry,  // TensorGeometry(x)
  kZeros,     // zeros_like(x)
  kDefined,   // x.defined(), x.has_value()
  kCount,     // xs.size()
};

// The kind of a named value, which decides what attributes it has.
enum class NameKind { kTensor, kTensorList, kOther };

struct KnownName {
  std::string name;
  NameKind kind;
};

// One place of a formula that names an argument or return. Bytes `begin` to `end` of the formula
// are the whole attribute expression; for x.size(dim) and x.stride(dim) they end after the opening
// parenthesis.
struct Mention {
  std::size_t begin;
  std::size_t end;
  std::size_t name;  // index in the list of known names
  Attribute attribute;
  bool optional = false;  // x->sizes()
};

// A name used as a variable that is not a known one.
struct UnknownName {
  std::string_view text;
  std::size_t offset;
};

struct FormulaNames {
  std::vector<Mention> mentions;  // in order
  std::vector<UnknownName> unknown;
  std::vector<std::size_t> grad_indices;  // of `grads[2]`; SIZE_MAX where no number stands there
  std::vector<std::size_t> grad_index_offsets;
  bool makes_functions = false;  // contains a lambda, so it may declare variables
};

// Finds the known names in a formula. C++ keywords, constants (M_PI, kLong), members and functions
// are not reported as unknown names.
FormulaNames find_names(const std::vector<FormulaToken>& tokens,
                        const std::vector<KnownName>& known);

// As formulas spell it, for messages and lists: "x", "x.sizes()", "sizes_of(xs)".
std::string describe(const KnownName& name, Attribute attribute);

// Python's str.title() on the parts between `_`: max_pool2d -> MaxPool2D.
std::string camel_case(std::string_view name);

}  // namespace lamella::codegen
