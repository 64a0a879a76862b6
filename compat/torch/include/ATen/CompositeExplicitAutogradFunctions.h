// at::compositeexplicitautograd: the operators. Each call dispatches as usual.
#pragma once
#include <ATen/Functions.h>

namespace at::compositeexplicitautograd {
using namespace lamella;
}
