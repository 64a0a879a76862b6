// Parsers of attribute values; each reads at the scanner's current position. Internal to
// lamella/graph.
#pragma once
#include <string_view>
#include <vector>

#include "lamella/graph/hlo/arena.h"
#include "lamella/graph/hlo/attribute.h"
#include "lamella/graph/hlo/scanner.h"

namespace lamella::hlo {

// The module attribute that holds the tables FileNames, FunctionNames, FileLocations and
// StackFrames, as written. Metadata refers to their entries; in a text they follow the header line.
inline constexpr std::string_view kSourceTables = "source_tables";

// The name of a computation or an instruction: a word with an optional '%' before it.
std::string_view scan_name(Scanner& s);
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
// Skips a value: up to the next ',' or end of line outside brackets and quotes.
void skip_value(Scanner& s);

}  // namespace lamella::hlo
