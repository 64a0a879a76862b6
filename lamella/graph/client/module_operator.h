// Defines operators that run a module.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lamella/dispatch/library.h"
#include "lamella/graph/runtime/executable.h"

namespace lamella::hlo {

// Note [Modules as operators]
//   The schema follows from the entry computation. Each array among the parameters is a Tensor
//   argument with the parameter's name, where characters that a schema does not allow become '_'
//   (arrays in a tuple get their number as a suffix). Each array of the result is a returned
//   Tensor. An input_output_alias makes the argument `Tensor(a!)`: the result is written to it, and
//   that argument is returned. Arguments must have the shapes and dtypes of the parameters; a
//   Python number for a scalar is converted.
//   The operator has a CPU kernel, which runs the module, and a Meta kernel, which returns the
//   shapes. Layers treat it like any external operator: vmap calls it once for each example, a
//   trace records it, and autograd raises in backward unless a derivative is registered.
//   A module may call operators that run modules, but not itself: its own name is not defined yet
//   when it is compiled.

// Defines "ns::name" until the returned Library is destroyed. Throws an Error that begins with the
// name if a parameter or result cannot be a tensor, the name is taken, or the module does not
// compile. `file`, which must live as long, and `line` are the place of the definition.
[[nodiscard]] Library define_operator(std::string_view name, std::shared_ptr<const Module> module,
                                      const CompileOptions& options = {},
                                      const char* file = __builtin_FILE(),
                                      uint32_t line = __builtin_LINE());

// The schema that define_operator gives the operator.
std::string schema_of_module(std::string_view name, const Module& module);

}  // namespace lamella::hlo
