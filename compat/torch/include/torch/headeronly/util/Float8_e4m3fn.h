// torch::headeronly::Float8_e4m3fn.
#pragma once
#include <c10/util/Float8_e4m3fn.h>
#include <torch/headeronly/lamella_names.h>
