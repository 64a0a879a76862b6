// Modules as operators.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lamella/dispatch/library.h"
#include "lamella/graph/runtime/executable.h"

namespace lamella::hlo {

// Note [Modules as operators]
//   The schema follows from the entry: each array among the parameters is a Tensor, by the
//   parameter's name with what no schema takes made '_' (arrays in a tuple have their number behind
//   it); each array of the result is a Tensor that is returned. An input_output_alias makes the
//   argument `Tensor(a!)`: the result is written there, and what is returned is that argument.
//   Arguments must have the shapes and dtypes of the parameters; a Python number in the place of a
//   scalar is converted.
//   The operator has kernels for the CPU, which runs the module, and for Meta, which knows its
//   shapes; layers treat it as any operator from outside: vmap calls it once for each example, a
//   trace records it, autograd raises in backward unless a derivative is registered.
//   A module may call operators that are modules. One cannot call itself: the name means nothing
//   when it is compiled.

// Defines "ns::name" until the result is destroyed. Throws an Error that begins with the name:
// parameters or results that tensors cannot be, names that are taken, modules that do not compile.
// `file`, which must live as long, and `line` say where it is defined.
[[nodiscard]] Library define_operator(std::string_view name, std::shared_ptr<const Module> module,
                                      const CompileOptions& options = {},
                                      const char* file = __builtin_FILE(),
                                      uint32_t line = __builtin_LINE());

// The schema that define_operator gives it.
std::string schema_of_module(std::string_view name, const Module& module);

}  // namespace lamella::hlo
