// torch::headeronly::Layout.
#pragma once
#include <torch/headeronly/lamella_names.h>
#include <c10/core/Layout.h>
