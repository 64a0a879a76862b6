// c10::ArrayRef, at::IntArrayRef.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/array_ref.h"

namespace c10 {
// PyTorch 0.4's name.
using IntList = lamella::IntArrayRef;
}  // namespace c10
