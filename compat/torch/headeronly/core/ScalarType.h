// torch::headeronly::ScalarType.
#pragma once
#include <torch/headeronly/lamella_names.h>
#include <c10/core/ScalarType.h>
