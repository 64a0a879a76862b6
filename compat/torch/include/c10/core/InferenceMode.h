// c10::InferenceMode.
#pragma once
#include <c10/core/GradMode.h>
