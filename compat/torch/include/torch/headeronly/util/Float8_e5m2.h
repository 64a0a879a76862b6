// torch::headeronly::Float8_e5m2.
#pragma once
#include <c10/util/Float8_e5m2.h>
#include <torch/headeronly/lamella_names.h>
