// torch::empty and its kin.
#pragma once
#include <torch/types.h>
