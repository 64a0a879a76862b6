// torch::headeronly::BFloat16.
#pragma once
#include <torch/headeronly/lamella_names.h>
#include <c10/util/BFloat16.h>
