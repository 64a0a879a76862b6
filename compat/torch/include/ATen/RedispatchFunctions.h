// at::redispatch: operators with the keys to dispatch on.
#pragma once
#include <ATen/Functions.h>

#include "lamella/api/redispatch.h"
