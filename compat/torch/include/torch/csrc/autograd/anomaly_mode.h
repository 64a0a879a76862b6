// torch::autograd::AnomalyMode and DetectAnomalyGuard.
#pragma once
#include <c10/core/GradMode.h>
