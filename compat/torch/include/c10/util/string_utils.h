// Spellings of std::to_string and its kin.
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
