// at::cpu: the operators. Each call dispatches as usual, so it runs the CPU kernel for CPU tensors.
#pragma once
#include <ATen/Functions.h>

namespace at::cpu {
using namespace lamella;
}
