// at::autocast.
#pragma once
#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "lamella/autocast.h"
