// torch::headeronly::MemoryFormat.
#pragma once
#include <c10/core/MemoryFormat.h>
#include <torch/headeronly/lamella_names.h>
