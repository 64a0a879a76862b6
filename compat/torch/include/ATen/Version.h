// The version of PyTorch whose names these are.
#pragma once
#include <torch/version.h>
