// at::meta: operators, which find their kernel themselves.
#pragma once
#include <ATen/Functions.h>

namespace at::meta {
using namespace lamella;
}
