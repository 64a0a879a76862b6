// c10::SymInt: sizes are plain integers here.
#pragma once
#include <c10/lamella_names.h>

#include <cstdint>

#include "lamella/core/array_ref.h"

namespace c10 {
using SymInt = int64_t;
using SymIntArrayRef = lamella::IntArrayRef;
using OptionalSymIntArrayRef = lamella::OptionalIntArrayRef;
}  // namespace c10
