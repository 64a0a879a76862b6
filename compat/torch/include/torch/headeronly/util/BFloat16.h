// torch::headeronly::BFloat16.
#pragma once
#include <c10/util/BFloat16.h>
#include <torch/headeronly/lamella_names.h>
