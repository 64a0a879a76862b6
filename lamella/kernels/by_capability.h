// Calls of functions that are compiled once for each CPU capability, in a namespace of its name.
//
// Note [Capabilities of a build]
//   LAMELLA_BUILT_AVX512 and so on are defined for the capabilities that a library has functions
//   for: all of them, or one in a build for this machine alone (LAMELLA_CAPABILITIES=native).
#pragma once
#include "lamella/kernels/dispatch_stub.h"
#include "lamella/kernels/machine_code.h"

#ifdef LAMELLA_BUILT_AVX512
#define LAMELLA_IF_AVX512(...) __VA_ARGS__
#else
#define LAMELLA_IF_AVX512(...)
#endif
#ifdef LAMELLA_BUILT_AVX2
#define LAMELLA_IF_AVX2(...) __VA_ARGS__
#else
#define LAMELLA_IF_AVX2(...)
#endif
#ifdef LAMELLA_BUILT_DEFAULT
#define LAMELLA_IF_DEFAULT(...) __VA_ARGS__
#else
#define LAMELLA_IF_DEFAULT(...)
#endif

// Returns CALL of the namespace of the capability that kernels run with. Throws NotImplementedError
// where the build lacks it. `name` begins the message.
#define LAMELLA_RETURN_BY_CAPABILITY(name, ...)                                        \
  switch (::lamella::native::code_capability()) {                                      \
    LAMELLA_IF_AVX512(case 2 : return AVX512::__VA_ARGS__;)                            \
    LAMELLA_IF_AVX2(case 1 : return AVX2::__VA_ARGS__;)                                \
    LAMELLA_IF_DEFAULT(case 0 : return DEFAULT::__VA_ARGS__;)                          \
    default:                                                                           \
      throw ::lamella::NotImplementedError(                                            \
          ::lamella::str(name, ": expected functions for capability ",                 \
                         ::lamella::toString(::lamella::native::get_cpu_capability()), \
                         ", got none: Lamella was built for this machine alone "       \
                         "(LAMELLA_CAPABILITIES=native)"));                            \
  }
