// torch::RegisterOperators, c10::RegisterOperators.
#pragma once
#include <torch/library.h>

#include "lamella/dispatch/register_operators.h"
