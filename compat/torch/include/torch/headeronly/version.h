// What PyTorch version the names are of.
#pragma once
#include <torch/version.h>
