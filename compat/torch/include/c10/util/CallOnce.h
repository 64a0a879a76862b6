// c10::call_once, c10::once_flag.
#pragma once
#include <c10/lamella_names.h>
#include <torch/standard_headers.h>

namespace c10 {
using std::call_once;
using std::once_flag;
}  // namespace c10
