// Modules, their functions and optimizers.
#pragma once
#include "lamella/nn/modules.h"
#include "lamella/nn/optim.h"
