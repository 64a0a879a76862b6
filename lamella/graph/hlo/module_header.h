// Reads what stands above a module's computations in its text. Internal to the graph room.
#pragma once
#include "lamella/graph/hlo/shape_reader.h"

namespace lamella::hlo {

// HloModule name, attributes; and the tables of source lines, where there are some.
void scan_header(Scanner& s, ShapeReader& shapes, Module* module);

}  // namespace lamella::hlo
