// c10::GradMode, c10::AutoGradMode, c10::NoGradGuard, c10::AutoFwGradMode.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/layers/autograd/grad_mode.h"
