// c10::bit_cast.
#pragma once
#include <bit>

#include <c10/lamella_names.h>

namespace c10 {
using std::bit_cast;
}
