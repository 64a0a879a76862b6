// at::meta: the operators. Each call dispatches as usual, so it runs the Meta kernel for meta
// tensors.
#pragma once
#include <ATen/Functions.h>

namespace at::meta {
using namespace lamella;
}
