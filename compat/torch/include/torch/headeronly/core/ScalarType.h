// torch::headeronly::ScalarType.
#pragma once
#include <c10/core/ScalarType.h>
#include <torch/headeronly/lamella_names.h>
