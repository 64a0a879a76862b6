// The header for operator libraries: torch:: with TORCH_LIBRARY.
#pragma once
#include <c10/util/order_preserving_flat_hash_map.h>
#include <torch/all.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/unordered_map_values.h>
