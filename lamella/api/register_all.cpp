// Runs the generated registrations when the library is loaded.
#include <mutex>

#include "lamella/api/operator_tables.h"

extern "C" void lamella_register_all() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      lamella::register_generated();
    } catch (const std::exception& error) {
      lamella_defer_failure(error.what(), "native_functions.yaml", 0);
    }
  });
}

namespace {
const bool registered = (lamella_register_all(), true);
}
