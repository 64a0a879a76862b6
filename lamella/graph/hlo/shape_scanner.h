// Reads a shape where a scanner stands. Internal to the graph room.
#pragma once
#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/hlo/shape.h"

namespace lamella::hlo {

Shape scan_shape(Scanner& scanner);
// {1,0}; numbers without the braces' content are allowed to be none.
std::vector<int64_t> scan_braced_integers(Scanner& scanner);

}  // namespace lamella::hlo
