// The functions of all operators.
#pragma once
#include <ATen/Functions.h>
