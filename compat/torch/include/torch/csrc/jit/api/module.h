// torch::jit::Module: declared so that code with TorchScript programs compiles; at run time its
// functions throw, because Lamella has no TorchScript.
#pragma once
#include <ATen/core/Dict.h>
#include <ATen/core/Tensor.h>
#include <torch/standard_headers.h>

namespace torch::jit {

using ExtraFilesMap = std::unordered_map<std::string, std::string>;

namespace detail {
// Throws: Lamella has no TorchScript.
[[noreturn]] inline void no_torchscript(const char* name) {
  throw lamella::NotImplementedError(lamella::str(
      "torch::jit::", name,
      ": expected a program of lamella::nn or of lamella.trace, got TorchScript, which "
      "Lamella does not run"));
}
}  // namespace detail

// Has no instances, because Module has none.
struct Method {
  lamella::IValue operator()(std::vector<lamella::IValue>) { detail::no_torchscript("Method"); }
};

// Has no instances: the constructor and the methods throw.
class Module {
 public:
  Module() { detail::no_torchscript("Module"); }
  explicit Module(const std::string&) { detail::no_torchscript("Module"); }
  lamella::IValue forward(std::vector<lamella::IValue>) { detail::no_torchscript("Module"); }
#define LAMELLA_NO_TORCHSCRIPT(Result, name) \
  template <class... A>                      \
  Result name(A&&...) const {                \
    detail::no_torchscript("Module");        \
  }
  LAMELLA_NO_TORCHSCRIPT(lamella::IValue, operator())
  LAMELLA_NO_TORCHSCRIPT(lamella::IValue, run_method)
  LAMELLA_NO_TORCHSCRIPT(lamella::IValue, attr)
  LAMELLA_NO_TORCHSCRIPT(std::optional<Method>, find_method)
  LAMELLA_NO_TORCHSCRIPT(Method, get_method)
  LAMELLA_NO_TORCHSCRIPT(bool, hasattr)
  LAMELLA_NO_TORCHSCRIPT(void, setattr)
  LAMELLA_NO_TORCHSCRIPT(void, train)
  LAMELLA_NO_TORCHSCRIPT(void, eval)
  LAMELLA_NO_TORCHSCRIPT(void, to)
  LAMELLA_NO_TORCHSCRIPT(void, save)
#undef LAMELLA_NO_TORCHSCRIPT
};

// Throws: Lamella cannot read TorchScript files.
template <class... A>
Module load(const std::string&, A&&...) {
  detail::no_torchscript("load");
}
template <class... A>
Module load(std::istream&, A&&...) {
  detail::no_torchscript("load");
}

namespace script {
using Module = torch::jit::Module;
}
}  // namespace torch::jit
