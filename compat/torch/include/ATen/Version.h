// The PyTorch version whose names these headers provide.
#pragma once
#include <torch/version.h>
