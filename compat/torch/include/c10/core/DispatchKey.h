// c10::DispatchKey.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/dispatch/dispatch_key.h"

#include "lamella/core/text_stream.h"

// Declared in the type's namespace, so that argument-dependent lookup finds it.
namespace lamella {
template <detail::TextStream Stream>
Stream& operator<<(Stream& out, DispatchKey key) {
  return detail::stream(out, toString(key));
}
}  // namespace lamella
