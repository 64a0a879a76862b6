// XLA's names for the registration of custom-call targets.
#pragma once
#include "xla/service/custom_call_target_registry.h"
