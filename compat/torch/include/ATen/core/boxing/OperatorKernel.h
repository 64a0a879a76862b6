// c10::OperatorKernel: the base of kernels written as functors.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/dispatch/operator_kernel.h"
