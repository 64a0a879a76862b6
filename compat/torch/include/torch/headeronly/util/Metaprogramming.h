// Traits of callables.
#pragma once
#include <c10/util/Metaprogramming.h>
#include <torch/headeronly/lamella_names.h>

namespace torch::headeronly::guts {
using namespace c10::guts;
}
