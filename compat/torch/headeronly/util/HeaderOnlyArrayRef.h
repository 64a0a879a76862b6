// torch::headeronly::HeaderOnlyArrayRef.
#pragma once
#include <torch/headeronly/lamella_names.h>
#include <c10/util/ArrayRef.h>

namespace torch::headeronly {
template <class T>
using HeaderOnlyArrayRef = lamella::ArrayRef<T>;
using IntHeaderOnlyArrayRef = lamella::IntArrayRef;
}  // namespace torch::headeronly
