// c10::TensorOptions.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/tensor_options.h"
