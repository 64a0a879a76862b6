// TORCH_ARG: a member with a getter and a setter.
#pragma once
#include "lamella/nn/options.h"

#define TORCH_ARG(T, name) LAMELLA_OPTION(T, name)
