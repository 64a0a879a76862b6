// The C functions of lamella/custom_call.h for typed handlers.
#include "lamella/core/error.h"
#include "lamella/custom_call.h"
#include "lamella/graph/custom_call/ffi/registration.h"
#include "lamella/graph/custom_call/registry.h"

namespace ffi = lamella::hlo::ffi;

lamella_status lamella_register_typed_handlers(const char* name, void* instantiate, void* prepare,
                                               void* initialize, void* execute, uint32_t traits,
                                               const char* platform, const char* file,
                                               uint32_t line) {
  return lamella::detail::guarded([&] {
    auto handler = [](void* function) { return reinterpret_cast<ffi::Handler*>(function); };
    ffi::Registration how;
    how.traits = traits;
    if (file != nullptr) how.where = lamella::str(file, ":", line);
    ffi::register_handlers(
        name != nullptr ? name : "", platform != nullptr ? platform : "",
        {handler(instantiate), handler(prepare), handler(initialize), handler(execute)},
        std::move(how));
  });
}

lamella_status lamella_remove_typed_handlers(const char* name, void* execute,
                                             const char* platform) {
  return lamella::detail::guarded([&] {
    bool removed = lamella::hlo::remove_target(name != nullptr ? name : "",
                                               platform != nullptr ? platform : "",
                                               lamella::hlo::TargetKind::Typed, execute);
    LAMELLA_CHECK(removed, "hlo: expected the typed handlers '", name, "' to be registered for ",
                  platform, ", got ", execute == nullptr ? "none" : "none of this function");
  });
}
