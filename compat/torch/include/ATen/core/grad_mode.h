// at::GradMode, at::AutoGradMode, at::NoGradGuard.
#pragma once
#include <c10/core/GradMode.h>
