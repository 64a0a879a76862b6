// Errors name the operator that was called.
//
// Note [Errors of operators inside of others]
//   A kernel that calls other operators lets their errors pass, which name operators that its
//   caller may not know: mm, in matmul. So each kernel of Lamella's own renames an error on its way
//   out, and the outermost one has the last word. Calls that succeed do nothing for it.
#pragma once
#include <string>
#include <string_view>

#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"

namespace lamella {

// The length of the names at the start of a message, each with the ": " behind it; 0: no name.
LAMELLA_PRIVATE_API size_t length_of_names(std::string_view text);

// Makes this thread's error text begin with the name of `op`, such as "aten::matmul.out", whose
// call failed with `status`. The name of an operator inside of it is removed, unless the text is
// about an argument that `op` does not have. A name that is not an operator's stays. Returns
// `status`.
LAMELLA_PRIVATE_API lamella_status name_error(lamella_status status, const char* op) noexcept;

}  // namespace lamella
