// torch::headeronly::Layout.
#pragma once
#include <c10/core/Layout.h>
#include <torch/headeronly/lamella_names.h>
