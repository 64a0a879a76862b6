// torch::headeronly::complex.
#pragma once
#include <torch/headeronly/lamella_names.h>
#include <c10/util/complex.h>
