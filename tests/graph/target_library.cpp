// A library of custom-call targets, for tests that load and unload it.
#include "lamella/custom_call.h"

namespace {

void forty_two(void* out, const void**) { *static_cast<float*>(out) = 42; }
LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("of_a_library", forty_two, "Host");

// A second function under the name.
void forty_three(void* out, const void**) { *static_cast<float*>(out) = 43; }
LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("of_a_library", forty_three, "Host");

}  // namespace
