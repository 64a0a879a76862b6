// Registering typed handlers.
#pragma once
#include <string>
#include <string_view>

#include "lamella/graph/custom_call/ffi/abi.h"

namespace lamella::hlo::ffi {

// Asks a handler what it is: version, traits, type of state. Throws an Error that begins with
// `what` where it does not answer.
Metadata metadata_of(Handler* handler, std::string_view what);

struct Registration {
  uint32_t traits = 0;  // beside those that the handler states
  std::string where;    // for messages: "file:line", or ""
  bool built_in = false;
  bool replace = false;  // whatever the name has
};
// Registers the handlers as a target: `platform` as for other targets. Throws an Error where there
// is none for `execute`, one was compiled against a version that this runtime does not understand,
// or the name has other handlers.
void register_handlers(std::string_view name, std::string_view platform,
                       const HandlerBundle& bundle, Registration how = {});

// Registration through the table of functions: XLA's macros drop the error that it gives, so it is
// kept for whoever misses the target later.
HandlerError* register_from_table(const HandlerRegisterArgs& args);
// Why handlers of this name were refused; "" if none were.
std::string refusal_of(std::string_view name, std::string_view platform);

}  // namespace lamella::hlo::ffi
