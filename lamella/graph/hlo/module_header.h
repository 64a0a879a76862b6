// Parses the part of a module's text before its computations. Internal to lamella/graph.
#pragma once
#include "lamella/graph/hlo/shape_reader.h"

namespace lamella::hlo {

// Parses "HloModule name, attributes" and the tables of source locations, if there are any.
void scan_header(Scanner& s, ShapeReader& shapes, Module* module);

}  // namespace lamella::hlo
