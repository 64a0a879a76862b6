// c10's names for std::to_string and similar functions.
#pragma once
#include <string>

#include <c10/lamella_names.h>

namespace c10 {
using std::stod;
using std::stoi;
using std::stoll;
using std::stoull;
using std::to_string;
}  // namespace c10
