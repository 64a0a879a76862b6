// c10::impl::DeviceGuardImplInterface, C10_REGISTER_GUARD_IMPL.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/device_interfaces.h"

namespace c10 {
using lamella::interfaces::EventFlag;
namespace impl {
using lamella::interfaces::DeviceGuardImplInterface;
}
}  // namespace c10

// C10_REGISTER_GUARD_IMPL(PrivateUse1, MyGuardImpl)
#define C10_REGISTER_GUARD_IMPL(type, ...)                                                  \
  static const ::lamella::interfaces::RegisteredPart<::lamella::interfaces::GuardPart>      \
      LAMELLA_UNIQUE_NAME(lamella_guard_)(::lamella::DeviceType::type, {new __VA_ARGS__()}, \
                                          __FILE__, __LINE__);
