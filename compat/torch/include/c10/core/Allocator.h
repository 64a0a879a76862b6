// c10::Allocator, c10::DataPtr, REGISTER_ALLOCATOR.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/core/device_interfaces.h"

namespace c10 {
using lamella::interfaces::Allocator;
using lamella::interfaces::DataPtr;
using lamella::interfaces::DeleterFnPtr;
}  // namespace c10

// REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator)
#define REGISTER_ALLOCATOR(type, allocator)                                                \
  static const ::lamella::interfaces::RegisteredPart<::lamella::interfaces::AllocatorPart> \
      LAMELLA_UNIQUE_NAME(lamella_allocator_)(type, {type, allocator}, __FILE__, __LINE__);
