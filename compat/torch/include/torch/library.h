// TORCH_LIBRARY and related macros, torch::Library, torch::CppFunction.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/CompileTimeFunctionPointer.h>
#include <c10/core/SymInt.h>
#include <c10/util/string_view.h>
#include <torch/custom_class.h>

#include "lamella/dispatch/library.h"
#include "lamella/dispatch/whole_values.h"

namespace lamella {
// The kinds are accepted and ignored: the schema says what an operator aliases.
enum class AliasAnalysisKind : uint8_t {
  INTERNAL_SPECIAL_CASE,
  CONSERVATIVE,
  FROM_SCHEMA,
  PURE_FUNCTION
};
}  // namespace lamella
namespace torch {
inline const char* schema(const char* text, c10::AliasAnalysisKind = {}, bool = false) {
  return text;
}
}  // namespace torch
namespace torch::detail {
using TorchLibraryInit = lamella::detail::LibraryInit;
}
namespace c10::impl {
// No key is filtered out.
constexpr bool dispatch_key_allowlist_check(lamella::DispatchKey) { return true; }
}  // namespace c10::impl

#define TORCH_LIBRARY(ns, m) LAMELLA_LIBRARY(ns, m)
#define TORCH_LIBRARY_FRAGMENT(ns, m) LAMELLA_LIBRARY_FRAGMENT(ns, m)
#define TORCH_LIBRARY_IMPL(ns, k, m) LAMELLA_LIBRARY_IMPL(ns, k, m)
#define TORCH_LIBRARY_THREAD_UNSAFE_LAZY_INIT(ns, m) LAMELLA_LIBRARY(ns, m)
// Blocks of registrations that are values, and end with their scopes.
#define MAKE_TORCH_LIBRARY(ns) \
  torch::Library(torch::Library::DEF, #ns, std::nullopt, __FILE__, __LINE__)
#define MAKE_TORCH_LIBRARY_IMPL(ns, k) \
  torch::Library(torch::Library::IMPL, #ns, c10::DispatchKey::k, __FILE__, __LINE__)
// No operator and no kernel is filtered out.
#define TORCH_SELECTIVE_NAME(name) name
#define TORCH_SELECTIVE_SCHEMA(schema) schema
