// Parts of evaluate_collective and evaluate_control that have files of their own.
#pragma once
#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

Value evaluate_transfer(Step& step);      // infeed, outfeed, send, recv and their ends
Value evaluate_asynchronous(Step& step);  // async-*, copy-start, copy-done

}  // namespace lamella::hlo
