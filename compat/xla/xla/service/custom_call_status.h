// XLA's names for the status of a custom call.
#pragma once
#include "lamella/custom_call.h"

namespace xla {
using ::XlaCustomCallStatus;
using ::XlaCustomCallStatusSetFailure;
using ::XlaCustomCallStatusSetSuccess;
}  // namespace xla
