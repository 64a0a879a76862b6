// Registration of typed handlers as targets.
#pragma once
#include <string>
#include <string_view>

#include "lamella/graph/custom_call/ffi/abi.h"

namespace lamella::hlo::ffi {

// Queries a handler's version, traits and state type. Throws an Error that begins with `what` if
// the handler does not answer.
Metadata metadata_of(Handler* handler, std::string_view what);

struct Registration {
  uint32_t traits = 0;  // in addition to those that the handler states
  std::string where;    // for messages: "file:line", or ""
  bool built_in = false;
  bool replace = false;  // replaces existing handlers of the name
};
// Registers the handlers as a target. `platform` is as for other targets. Throws an Error if the
// `execute` handler is missing, a handler was compiled against an unsupported version, or the name
// has other handlers.
void register_handlers(std::string_view name, std::string_view platform,
                       const HandlerBundle& bundle, Registration how = {});

// Registers through the table of functions. XLA's macros drop the returned error, so it is recorded
// and shown when a module names the missing target.
HandlerError* register_from_table(const HandlerRegisterArgs& args);
// The recorded error of a failed registration of this name; "" if there is none.
std::string refusal_of(std::string_view name, std::string_view platform);

}  // namespace lamella::hlo::ffi
