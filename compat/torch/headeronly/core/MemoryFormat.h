// torch::headeronly::MemoryFormat.
#pragma once
#include <torch/headeronly/lamella_names.h>
#include <c10/core/MemoryFormat.h>
