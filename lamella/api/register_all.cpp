// Runs the generated registrations when the library is loaded.
#include <exception>

#include "lamella/api/operator_tables.h"

extern "C" void lamella_register_all() noexcept {
  // Not std::call_once: its thread-local state needs the static TLS block, which has no room if
  // another library loaded libstdc++ at run time.
  static const bool once = [] {
    try {
      lamella::register_layers();
      lamella::register_generated();
      lamella::register_generated_derivatives();
    } catch (const std::exception& error) {
      lamella_defer_failure(error.what(), "native_functions.yaml", 0);
    }
    return true;
  }();
  static_cast<void>(once);
}

namespace {
const bool registered = (lamella_register_all(), true);
}
