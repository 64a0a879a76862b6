// at::compositeimplicitautograd: the operators. Each call dispatches as usual.
#pragma once
#include <ATen/Functions.h>

namespace at::compositeimplicitautograd {
using namespace lamella;
}
