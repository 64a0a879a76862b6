// torch::autograd::autogradNotImplementedFallback and related fallbacks.
#pragma once
#include <torch/library.h>

#include "lamella/layers/autograd/fallback.h"
