// Parses the part of a module's text before its computations. Internal to lamella/graph.
#pragma once
#include "lamella/graph/hlo/shape_reader.h"

namespace lamella::hlo {

// What a text without a header begins with: "ENTRY", or a name and a brace; or, if the text is a
// single instruction, "ROOT", a shape, or a name and "=". They consume nothing.
bool computation_follows(Scanner& s);
bool instruction_follows(Scanner& s);
// Parses "HloModule name, attributes" and the tables of source locations, if there are any.
void scan_header(Scanner& s, ShapeReader& shapes, Module* module);

}  // namespace lamella::hlo
