// Checks that the names and alias annotations of a signature follow the rules, so that later code
// can rely on what the schema says about memory.
#pragma once

#include <string_view>
#include <vector>

#include "lamella/schema/parser.h"

namespace lamella {

// How strictly to check a signature. PyTorch's own registered operators break two rules: some
// return a positional `out`, and one gives two arguments the same name. kRegistered accepts both.
enum class SchemaRules { kDeclared, kRegistered };

// Returns the violations of these rules in `schema`, in order of their position in the text:
//   - argument names differ, and return names differ (kDeclared);
//   - an in-place name (add_, __iadd__) writes its first argument if that is a tensor `self`, and
//     returns it, or nothing; an operator that writes and returns its `self` has such a name;
//   - an `out` that is written and returned is keyword-only (kDeclared); a keyword-only `out` is
//     written;
//   - an out argument (keyword-only, written) has no default, and the tensors returned are the out
//     arguments in order, or none;
//   - the alias set of a return is one that an argument carries, and is written there if written
//   here;
//   - a view does not write: a return that is not written shares no set that an argument writes;
//   - an argument without a default does not follow a positional one with a default (lists may).
// `text` is the parsed text, for lines and columns; empty for a schema made by hand.
std::vector<SchemaProblem> check_alias_rules(const FunctionSchema& schema,
                                             std::string_view text = {},
                                             SchemaRules rules = SchemaRules::kDeclared);

}  // namespace lamella
