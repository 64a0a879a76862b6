// c10::ArrayRef, at::IntArrayRef.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/array_ref.h"

namespace c10 {
// The name of PyTorch 0.4.
using IntList = lamella::IntArrayRef;
}  // namespace c10
