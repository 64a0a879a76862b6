// at::cpu: operators, which find the kernel of the CPU themselves.
#pragma once
#include <ATen/Functions.h>

namespace at::cpu {
using namespace lamella;
}
