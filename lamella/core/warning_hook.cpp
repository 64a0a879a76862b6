// The hook that shows warnings.
#include "lamella/core/warning_hook.h"

#include <atomic>

#include "lamella/core/error.h"

namespace lamella {
namespace {
std::atomic<WarningHook> warning_hook{nullptr};
}  // namespace

void set_warning_hook(WarningHook hook) { warning_hook = hook; }

void warn_user(const std::string& text) {
  if (WarningHook hook = warning_hook.load()) detail::check(hook(text.c_str()));
}

}  // namespace lamella
