// What custom calls get of JAX: user data of runs, types and handlers.
#pragma once
#include <cstdint>

#include "lamella/pjrt/c_api.h"

namespace lamella::pjrt {

void add_user_data(ExecuteContext& context, int64_t type, void* data);
// The type under which JAX adds its callbacks to the user data; 0 before it has.
int64_t callbacks_type();

}  // namespace lamella::pjrt
