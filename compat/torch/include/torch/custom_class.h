// torch::class_, torch::init, torch::arg, CustomClassHolder.
#pragma once
#include <c10/util/intrusive_ptr.h>

#include "lamella/dispatch/custom_class.h"

namespace torch::jit {
using lamella::CustomClassHolder;
}
