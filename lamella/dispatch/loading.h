// Libraries of operators that are loaded and unloaded at run time. Internal to Lamella.
#pragma once
#include <string>
#include <vector>

#include "lamella/core/code.h"
#include "lamella/dispatch/registry.h"

namespace lamella {

// The outcome of loading a library. A null handle means that it is not loaded.
struct Loaded {
  void* handle = nullptr;
  std::string problem;                // why it could not be opened
  std::vector<std::string> failures;  // of its registrations
  std::vector<std::string> warnings;  // of them
};
LAMELLA_PRIVATE_API Loaded load_shared(const char* path);
// Throws Error for a handle that is not loaded.
LAMELLA_PRIVATE_API void unload_shared(void* handle);

// Note [Families in a library of their own]
//   Fourier transforms, special functions and other families that most programs never call are in
//   a library of their own (lamella/kernels/families/, declared in ops/families.yaml), which
//   registers them as any library of operators does. The registry loads it when it looks for an
//   operator of namespace `aten` that it does not have, and before it lists all operators. So
//   programs need not name the library, and programs that do not use it do not pay for it.
//
// Loads liblamella_more.so from beside liblamella.so. False if that was tried before.
bool load_families();
// True if that was tried and there is no such library.
bool families_are_missing();

// Registrations that failed while a library loaded, where nothing may be thrown, in the order they
// happened.
void defer_load_failure(std::string text);
std::vector<std::string> load_failures();
LAMELLA_PRIVATE_API std::vector<std::string> take_load_failures();

// ---- The blocks of registrations that a library's code opened (library.cpp) ----

// Takes their registrations back until they are resumed. False if a thread is still inside one of
// their kernels.
bool park_blocks(const code::Library* library);
// Throws where something else is registered in their place; they are parked again then.
void resume_blocks(const code::Library* library);
bool has_blocks(const code::Library* library);
// The operators that they define, in the order of their definition.
std::vector<const OperatorEntry*> operators_of(const code::Library* library);
// A warning for each kernel for an operator that is not declared if one with a near name is.
std::vector<std::string> misspelt_kernels(const code::Library* library);
// Removes all registrations made since blocks_opened() returned `count`, by any library.
uint64_t blocks_opened();
void park_blocks_since(uint64_t count);

}  // namespace lamella
