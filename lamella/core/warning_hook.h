// Warnings to the user of the language above: Python shows them as UserWarning.
#pragma once
#include <string>

#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"

namespace lamella {

// Is given the text of a warning; if it fails, because warnings are errors there, so does the call.
using WarningHook = lamella_status (*)(const char* text);
// NULL turns warnings off.
LAMELLA_PRIVATE_API void set_warning_hook(WarningHook hook);
void warn_user(const std::string& text);

}  // namespace lamella
