// Reads a shape where a scanner stands. Internal to the graph room.
#pragma once
#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

// `depth`: tuples around the shape.
Shape scan_shape(Scanner& scanner, int depth = 0);
// {1,0}; numbers without the braces' content are allowed to be none.
std::vector<int64_t> scan_braced_integers(Scanner& scanner);

}  // namespace lamella::hlo
