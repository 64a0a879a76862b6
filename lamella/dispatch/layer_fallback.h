// Registers the boxed fallback of a built-in layer for all operators. Internal to Lamella.
#pragma once
#include <atomic>

#include "lamella/core/error.h"
#include "lamella/dispatch/dispatch_key.h"

namespace lamella {

// Registers a boxed kernel for every operator that has none for the key, for as long as the process
// lives. `file` and `line` say where, in explanations.
inline void register_layer_fallback(DispatchKey key, lamella_boxed_function boxed, const char* file,
                                    uint32_t line, void* context = nullptr) {
  auto number = static_cast<uint16_t>(key);
  lamella_library* library = nullptr;
  lamella_kernel_description kernel = {};
  kernel.boxed = boxed;
  kernel.context = context;
  kernel.file = file;
  kernel.line = line;
  detail::check(lamella_library_open(LAMELLA_LIBRARY_IMPL, "_", number, file, line, &library));
  detail::check(lamella_library_fallback(library, number, &kernel));
}

// Keys that a thread includes from its first call on.
LAMELLA_PRIVATE_API extern std::atomic<uint64_t> keys_of_new_threads;

}  // namespace lamella
