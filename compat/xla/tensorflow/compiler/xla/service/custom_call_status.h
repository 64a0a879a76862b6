// XLA's names for the status of a custom call.
#pragma once
#include "xla/service/custom_call_status.h"
