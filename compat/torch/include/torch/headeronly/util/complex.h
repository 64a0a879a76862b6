// torch::headeronly::complex.
#pragma once
#include <c10/util/complex.h>
#include <torch/headeronly/lamella_names.h>
