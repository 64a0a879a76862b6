// The status object of a custom call: a target sets it with XlaCustomCallStatusSetFailure.
#pragma once
#include <string>

#include "lamella/custom_call.h"

struct XlaCustomCallStatus_ {
  bool failed = false;
  std::string message;
};
