// Generators of random numbers.
#pragma once
#include <ATen/core/Generator.h>
