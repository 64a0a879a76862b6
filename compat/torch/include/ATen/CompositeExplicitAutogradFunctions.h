// at::compositeexplicitautograd: operators, which find their kernel themselves.
#pragma once
#include <ATen/Functions.h>

namespace at::compositeexplicitautograd {
using namespace lamella;
}
