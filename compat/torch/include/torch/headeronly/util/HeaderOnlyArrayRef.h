// torch::headeronly::HeaderOnlyArrayRef.
#pragma once
#include <c10/util/ArrayRef.h>
#include <torch/headeronly/lamella_names.h>

namespace torch::headeronly {
template <class T>
using HeaderOnlyArrayRef = lamella::ArrayRef<T>;
using IntHeaderOnlyArrayRef = lamella::IntArrayRef;
}  // namespace torch::headeronly
