// TORCH_ARG: a member with a function that reads and one that sets it.
#pragma once
#include "lamella/nn/options.h"

#define TORCH_ARG(T, name) LAMELLA_OPTION(T, name)
