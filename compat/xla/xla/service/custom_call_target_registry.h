// XLA's names for the registration of custom-call targets.
#pragma once
#include "lamella/custom_call.h"

namespace xla {
using ::lamella::CustomCallTargetRegistry;
}  // namespace xla

#define XLA_REGISTER_CUSTOM_CALL_TARGET(function, platform) \
  LAMELLA_REGISTER_CUSTOM_CALL_TARGET(function, platform)
#define XLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM(symbol, address, platform) \
  LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM(symbol, address, platform)
#define XLA_CPU_REGISTER_CUSTOM_CALL_TARGET(function) \
  LAMELLA_REGISTER_CUSTOM_CALL_TARGET(function, "Host")
#define XLA_CPU_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM(symbol, address) \
  LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM(symbol, address, "Host")
