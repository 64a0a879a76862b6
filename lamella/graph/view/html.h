// Converts modules to an HTML page.
#pragma once
#include <string>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// A self-contained HTML page with a picture of the graph that can be panned, zoomed and searched.
// Fusions and called computations are boxes that can be opened. The page shows shape, attributes,
// operands, source, bytes and cost of the instruction under the pointer, and has a light and a dark
// theme. Without JavaScript it is a list. For a scheduled module, such as the plan of an
// executable, it also shows the memory in use at each step, and the peak.
std::string to_html(const Module& module);

}  // namespace lamella::hlo
