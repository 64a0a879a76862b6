// STABLE_TORCH_LIBRARY and related macros, TORCH_BOX.
#pragma once
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/stableivalue_conversions.h>
#include <torch/library.h>

namespace torch::stable::detail {
class StableLibrary {
 public:
  explicit StableLibrary(lamella::Library& library) : library_(library) {}
  StableLibrary& def(const char* schema) {
    library_.def(schema);
    return *this;
  }
  // Registers a kernel made by TORCH_BOX, or one that takes a stack of StableIValue words.
  template <auto f>
  StableLibrary& impl(const char* name, lamella::CompileTimeFunction<f> function) {
    library_.impl(name, function);
    return *this;
  }
  StableLibrary& impl(const char* name, lamella::WordKernel* kernel) {
    library_.impl(name, lamella::word_function(kernel));
    return *this;
  }

 private:
  lamella::Library& library_;
};
}  // namespace torch::stable::detail

#define TORCH_BOX(f) (::lamella::CompileTimeFunction<f>())

// `open` is one of Lamella's macros, up to the name of its block.
#define LAMELLA_STABLE_LIBRARY_(open, body, m)                      \
  static void body(::torch::stable::detail::StableLibrary&);        \
  open {                                                            \
    ::torch::stable::detail::StableLibrary stable_library(library); \
    body(stable_library);                                           \
  }                                                                 \
  static void body(::torch::stable::detail::StableLibrary& m)
#define STABLE_TORCH_LIBRARY(ns, m) \
  LAMELLA_STABLE_LIBRARY_(LAMELLA_LIBRARY(ns, library), stable_library_##ns, m)
#define STABLE_TORCH_LIBRARY_FRAGMENT(ns, m) STABLE_TORCH_LIBRARY_FRAGMENT_(ns, m, __COUNTER__)
#define STABLE_TORCH_LIBRARY_FRAGMENT_(ns, m, id)                \
  LAMELLA_STABLE_LIBRARY_(LAMELLA_LIBRARY_FRAGMENT(ns, library), \
                          LAMELLA_CONCATENATE(stable_library_fragment_##ns##_, id), m)
#define STABLE_TORCH_LIBRARY_IMPL(ns, k, m) STABLE_TORCH_LIBRARY_IMPL_(ns, k, m, __COUNTER__)
#define STABLE_TORCH_LIBRARY_IMPL_(ns, k, m, id)                \
  LAMELLA_STABLE_LIBRARY_(LAMELLA_LIBRARY_IMPL(ns, k, library), \
                          LAMELLA_CONCATENATE(stable_library_impl_##ns##_##k##_, id), m)
