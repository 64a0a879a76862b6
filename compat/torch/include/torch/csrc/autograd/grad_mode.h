// torch::autograd::GradMode and AutoGradMode.
#pragma once
#include <c10/core/GradMode.h>
