// What custom calls get of JAX: user data of runs, types and handlers.
#pragma once
#include <cstdint>

#include "lamella/pjrt/c_api.h"

namespace lamella::pjrt {

void add_user_data(ExecuteContext& context, int64_t type, void* data);
// The type under which runs have JAX's callbacks among their user data.
inline constexpr int64_t kCallbacksType = -1;

}  // namespace lamella::pjrt
