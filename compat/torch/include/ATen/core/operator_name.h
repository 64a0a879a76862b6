// c10::OperatorName.
#pragma once
#include <c10/lamella_names.h>

#include "lamella/dispatch/operator_handle.h"

namespace c10 {
using OperatorName = lamella::OperatorId;
}
