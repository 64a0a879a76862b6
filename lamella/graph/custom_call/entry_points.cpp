// The C functions of lamella/custom_call.h.
#include "lamella/core/error.h"
#include "lamella/graph/custom_call/registry.h"
#include "lamella/graph/custom_call/status.h"

using lamella::hlo::Target;
using lamella::hlo::TargetKind;

void XlaCustomCallStatusSetSuccess(XlaCustomCallStatus* status) {
  status->failed = false;
  status->message.clear();
}

void XlaCustomCallStatusSetFailure(XlaCustomCallStatus* status, const char* message,
                                   size_t message_len) {
  status->failed = true;
  status->message.assign(message != nullptr ? message : "", message != nullptr ? message_len : 0);
}

lamella_status lamella_register_custom_call_target(const char* name, void* function,
                                                   const char* platform, const char* file,
                                                   uint32_t line) {
  return lamella::detail::guarded([&] {
    Target target;
    target.name = name != nullptr ? name : "";
    target.platform = platform != nullptr ? platform : "";
    target.function = function;
    if (file != nullptr) target.where = lamella::str(file, ":", line);
    lamella::hlo::register_target(std::move(target));
  });
}

lamella_status lamella_remove_custom_call_target(const char* name, void* function,
                                                 const char* platform) {
  return lamella::detail::guarded([&] {
    bool removed = lamella::hlo::remove_target(name != nullptr ? name : "",
                                               platform != nullptr ? platform : "",
                                               TargetKind::Function, function);
    LAMELLA_CHECK(removed, "hlo: expected the custom-call target '", name,
                  "' to be registered for ", platform, ", got ",
                  function == nullptr ? "none" : "none of this function");
  });
}

void* lamella_find_custom_call_target(const char* name, const char* platform) {
  auto target = lamella::hlo::find_target(
      name != nullptr ? name : "", platform != nullptr ? platform : "", TargetKind::Function);
  return target != nullptr ? target->function : nullptr;
}

lamella_status lamella_visit_custom_call_targets(const char* platform,
                                                 void (*visit)(void* context, const char* name,
                                                               void* function),
                                                 void* context) {
  return lamella::detail::guarded([&] {
    std::string wanted = lamella::hlo::canonical_platform(platform != nullptr ? platform : "");
    for (const auto& target : lamella::hlo::list_targets()) {
      if (target->platform != wanted || target->kind != TargetKind::Function) continue;
      visit(context, target->name.c_str(), target->function);
    }
  });
}
