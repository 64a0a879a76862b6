// at::redispatch: the operators with an explicit key set as first argument.
#pragma once
#include <ATen/Functions.h>

#include "lamella/api/redispatch.h"
