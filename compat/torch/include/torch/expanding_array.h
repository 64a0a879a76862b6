// torch::ExpandingArray: a number for each of D dimensions; a single number applies to all.
#pragma once
#include <torch/types.h>

#include "lamella/nn/options.h"

namespace torch {
template <size_t D, class T = int64_t>
using ExpandingArray = lamella::nn::EachOf<T, D>;
template <size_t D, class T = int64_t>
using ExpandingArrayWithOptionalElem = lamella::nn::EachOf<std::optional<T>, D>;
}  // namespace torch
