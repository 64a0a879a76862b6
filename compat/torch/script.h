// What an operator library includes: torch:: with TORCH_LIBRARY.
#pragma once
#include <torch/all.h>
