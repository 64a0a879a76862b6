// at::compositeexplicitautogradnonfunctional: the operators. Each call dispatches as usual.
#pragma once
#include <ATen/Functions.h>

namespace at::compositeexplicitautogradnonfunctional {
using namespace lamella;
}
