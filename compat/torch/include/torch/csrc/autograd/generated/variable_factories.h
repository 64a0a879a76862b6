// torch::empty and the other factories.
#pragma once
#include <torch/types.h>
