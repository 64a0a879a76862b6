// Modules as a page to look at.
#pragma once
#include <string>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// One HTML file that needs nothing else: a picture of the graph in which fusions and what
// instructions call are boxes that open, to pan, zoom and search, with shape, attributes, operands,
// source, bytes and cost of what the pointer is on; light and dark. Without JavaScript it is a
// list. Of a module that is scheduled, as the plan of an executable is, it also shows the memory
// that is in use at each step, and the peak.
std::string to_html(const Module& module);

}  // namespace lamella::hlo
