// at::compositeimplicitautograd: operators, which find their kernel themselves.
#pragma once
#include <ATen/Functions.h>

namespace at::compositeimplicitautograd {
using namespace lamella;
}
