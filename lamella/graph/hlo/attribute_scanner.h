// Reads the values of attributes where a scanner stands. Internal to the graph room.
#pragma once
#include <string_view>
#include <vector>

#include "lamella/graph/hlo/arena.h"
#include "lamella/graph/hlo/attribute.h"
#include "lamella/graph/hlo/scanner.h"

namespace lamella::hlo {

// The attribute of a module under which the tables FileNames, FunctionNames, FileLocations and
// StackFrames are kept, as written; metadata refers to them. They stand below the header in texts.
inline constexpr std::string_view kSourceTables = "source_tables";

// A word, which '%' may precede: the name of a computation or an instruction.
std::string_view scan_name(Scanner& s);
bool scan_boolean(Scanner& s);
// Without its quotes; a text with escapes is copied into the arena.
std::string_view scan_quoted(Scanner& s, Arena& arena);
// {size=3x3 stride=2x1 pad=0_1x0_1}
std::vector<WindowDimension> scan_window(Scanner& s);
// 0_1_0x2_0
std::vector<PaddingDimension> scan_padding(Scanner& s);
// {[0:4], [1:5:2]}
std::vector<SliceDimension> scan_slices(Scanner& s);
// b01f_01io->b01f
ConvolutionDimensions scan_dim_labels(Scanner& s);
// Something up to the ',' or end of line that is not in brackets or quotes.
void skip_value(Scanner& s);

}  // namespace lamella::hlo
