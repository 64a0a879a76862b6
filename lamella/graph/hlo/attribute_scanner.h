// Parsers of attribute values; each reads at the scanner's current position. Internal to
// lamella/graph.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/graph/hlo/arena.h"
#include "lamella/graph/hlo/attribute.h"
#include "lamella/graph/hlo/scanner.h"

namespace lamella::hlo {

// The module attribute that holds the tables FileNames, FunctionNames, FileLocations and
// StackFrames, as written. Metadata refers to their entries; in a text they follow the header line.
inline constexpr std::string_view kSourceTables = "source_tables";

// Whether the word is a name only behind '%', such as "true" or "f32"; and whether it is an element
// type's, which cannot name an instruction at all.
bool is_keyword(std::string_view word);
bool is_type_name(std::string_view word);
// The nearest name that XLA's text can have for it: of letters, digits, '_', '.' and '-', beginning
// with a letter or '_', and no type's, nor a keyword's where no '%' may precede it. Instructions
// have none that begins with "__".
enum class NameOf : uint8_t { Module, Computation, Instruction };
std::string name_in_text(std::string_view wanted, NameOf of);
// The name of a module, a computation or an instruction: a word with an optional '%' before it and
// an optional ':' behind it. Empty, and nothing is consumed, if no name is next.
std::string_view scan_name(Scanner& s);
// A computation may have an element type's name.
std::string_view scan_computation_name(Scanner& s);
// Whether the word is next; consumes nothing.
bool at_word(Scanner& s, std::string_view wanted);
bool scan_boolean(Scanner& s);
// A quoted string, returned without its quotes. A string with escapes is copied into the arena.
std::string_view scan_quoted(Scanner& s, Arena& arena);
// {size=3x3 stride=2x1 pad=0_1x0_1}
std::vector<WindowDimension> scan_window(Scanner& s);
// 0_1_0x2_0
std::vector<PaddingDimension> scan_padding(Scanner& s);
// {[0:4], [1:5:2]}
std::vector<SliceDimension> scan_slices(Scanner& s);
// b01f_01io->b01f
ConvolutionDimensions scan_dim_labels(Scanner& s);
// Whether a shape is next: an element type's name, or a tuple's '('. Consumes nothing.
bool shape_follows(Scanner& s);
// {{0}: (1, {})}
std::vector<OperandAlias> scan_operand_aliases(Scanner& s);
// Skips the value of an attribute of the kind Text.
void scan_text_value(Scanner& s, AttributeKey key);
// Skips a value: up to the next ',' or end of line outside brackets and quotes.
void skip_value(Scanner& s);
// Skips one pair of brackets with what they contain.
void skip_brackets(Scanner& s, char open);

}  // namespace lamella::hlo
