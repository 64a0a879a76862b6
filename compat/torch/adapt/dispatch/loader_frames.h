// Whether the caller runs in an initialiser of a library that is being loaded, where an exception
// would end the program.
#pragma once
#include <dlfcn.h>
#include <unwind.h>

#include <string_view>

#include "lamella/core/macros.h"

namespace lamella::detail {

// The dynamic linker calls such initialisers, so one of the callers is its code. The initialisers
// of a program itself are called by the C library instead; what they throw ends the program.
LAMELLA_LAZY LAMELLA_COLD bool inside_initialiser() {
  bool found = false;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* result) {
        Dl_info info;
        void* address = reinterpret_cast<void*>(_Unwind_GetIP(context));
        if (address == nullptr || dladdr(address, &info) == 0) return _URC_NO_REASON;
        if (std::string_view(info.dli_fname).find("/ld-linux") == std::string_view::npos) {
          return _URC_NO_REASON;
        }
        *static_cast<bool*>(result) = true;
        return _URC_END_OF_STACK;
      },
      &found);
  return found;
}

}  // namespace lamella::detail
