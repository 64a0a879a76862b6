// The extensions of the table, and how C enters functions that throw.
#pragma once
#include "lamella/core/macros.h"
#include "lamella/pjrt/c_api.h"
#include "lamella/pjrt/status.h"

namespace lamella::pjrt {

LayoutsExtension layouts_extension();
FfiExtension ffi_extension();
MemoryDescriptionsExtension memory_descriptions_extension();

[[noreturn]] void fail_size(size_t least, size_t got);

// A function of the table or of an extension: exceptions become errors.
template <class Args, void (*function)(Args&)>
Error* called(Args* args) noexcept {
  try {
    if (LAMELLA_UNLIKELY(args->struct_size < least_size<Args>)) {
      fail_size(least_size<Args>, args->struct_size);
    }
    function(*args);
    return nullptr;
  } catch (...) {
    return make_error(current_status());
  }
}

}  // namespace lamella::pjrt
