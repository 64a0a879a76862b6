// c10::DispatchKey.
#pragma once
#include <c10/lamella_names.h>
#include "lamella/dispatch/dispatch_key.h"

#include "lamella/core/text_stream.h"

// Beside the type, so that it is found by it alone.
namespace lamella {
template <detail::TextStream Stream>
Stream& operator<<(Stream& out, DispatchKey key) {
  return detail::stream(out, toString(key));
}
}  // namespace lamella
