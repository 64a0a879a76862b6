// Parses a shape at the scanner's position. Internal to lamella/graph.
#pragma once
#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

// `depth` is the number of enclosing tuples.
Shape scan_shape(Scanner& scanner, int depth = 0);
// Whether a layout is next: a brace, and in it a number or a colon. Other braces open computations.
bool layout_follows(Scanner& scanner);
// {1,0}; the list may be empty.
std::vector<int64_t> scan_braced_integers(Scanner& scanner);

}  // namespace lamella::hlo
