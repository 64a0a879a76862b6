// c10::SmallVector: a vector here.
#pragma once
#include <c10/lamella_names.h>

#include <vector>

namespace c10 {
template <class T, unsigned N = 0>
using SmallVector = std::vector<T>;
template <class T>
using SmallVectorImpl = std::vector<T>;
}  // namespace c10
