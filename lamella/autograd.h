// Gradients for users and authors of operators: Function, guards, backward, fallbacks.
#pragma once
#include "lamella/layers/autograd/backward.h"
#include "lamella/layers/autograd/fallback.h"
#include "lamella/layers/autograd/function.h"
#include "lamella/layers/autograd/grad_mode.h"
