// at::compositeexplicitautogradnonfunctional: operators, which find their kernel themselves.
#pragma once
#include <ATen/Functions.h>

namespace at::compositeexplicitautogradnonfunctional {
using namespace lamella;
}
