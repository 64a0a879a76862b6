// torch::headeronly::Half.
#pragma once
#include <c10/util/Half.h>
#include <torch/headeronly/lamella_names.h>
