// torch::autograd::autogradNotImplementedFallback and its kin.
#pragma once
#include <torch/library.h>

#include "lamella/layers/autograd/fallback.h"
