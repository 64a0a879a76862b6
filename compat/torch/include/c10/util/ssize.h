// c10::ssize.
#pragma once
#include <iterator>

#include <c10/lamella_names.h>

namespace c10 {
using std::ssize;
}
