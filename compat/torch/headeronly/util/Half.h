// torch::headeronly::Half.
#pragma once
#include <torch/headeronly/lamella_names.h>
#include <c10/util/Half.h>
