// Declares the rules of reduce-window, select-and-scatter and scan.
#pragma once
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

Value evaluate_reduce_window(Step& step);
Value evaluate_select_and_scatter(Step& step);
Value evaluate_scan(Step& step);

}  // namespace lamella::hlo
