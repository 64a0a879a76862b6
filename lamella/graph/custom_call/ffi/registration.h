// Registering typed handlers.
#pragma once
#include <string>
#include <string_view>

#include "lamella/graph/custom_call/ffi/abi.h"

namespace lamella::hlo::ffi {

// Asks a handler what it is: version, traits, type of state. Throws an Error that begins with
// `what` where it does not answer.
Metadata metadata_of(Handler* handler, std::string_view what);

// Registers the handlers as a target: `platform` as for other targets. Throws an Error where there
// is none for `execute`, one was compiled against a version that this runtime does not understand,
// or the name has other handlers. `where` is for messages: "file:line", or "".
void register_handlers(std::string_view name, std::string_view platform,
                       const HandlerBundle& bundle, uint32_t traits = 0, std::string where = {},
                       bool built_in = false);

}  // namespace lamella::hlo::ffi
