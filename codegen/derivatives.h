// The generator's model of derivatives.yaml: how operators are differentiated, checked against what
// native_functions.yaml declares.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "codegen/derivative_formula.h"
#include "codegen/model.h"

namespace lamella::codegen {

// One place of a formula that names an argument or a return; see Mention.
struct FormulaUse {
  enum class Role { kArgument, kReturn, kTangent };  // `x` or `x_p`, `result`, `x_t`
  std::size_t begin;
  std::size_t end;
  Role role;
  std::size_t index;  // of the argument or return
  std::string name;   // as the formula spells it
  Attribute attribute = Attribute::kValue;
  bool optional = false;
};

// One `NAMES: FORMULA` of an entry.
struct Formula {
  enum class Kind { kExpression, kNotImplemented, kAutoLinear, kAutoElementWise };
  Kind kind = Kind::kExpression;
  YamlPtr key;  // null, as is `node`, if the entry does not mention the argument
  YamlPtr node;
  std::string names;  // as the key spells them
  std::string text;
  std::string what;                  // of not_implemented("what"), with its quotes
  std::vector<std::size_t> targets;  // arguments, or with forward mode returns, as named
  std::vector<FormulaUse> uses;      // in order
  bool uses_grad = false;
  bool uses_grads = false;               // grads[i] or grads as a whole
  std::vector<std::size_t> named_grads;  // returns whose grad_NAME is used
  bool uses_mask = false;                // grad_input_mask
  bool loops = false;                    // names `i`: one formula for each entry of the lists
};

// One table of an entry: the entry itself, or one key of its `dispatch`.
struct DerivativeTable {
  std::string key;                  // "Default", or an autograd key
  Location where;                   // of the key; of the entry where there is no `dispatch`
  std::string node;                 // MulBackward0; empty if nothing is differentiable
  std::vector<Formula> backward;    // ordered by their first argument
  std::vector<Formula> forward;     // ordered by their first return
  std::vector<std::size_t> slots;   // arguments with a gradient, ascending
  std::vector<bool> returns;        // which may require gradients
  std::vector<Formula> conditions;  // of returns that require gradients only for some calls
  std::size_t main_return = 0;      // the one whose gradient is `grad`
};

struct Derivative {
  const NativeFunction* function = nullptr;
  // Has the same arguments and no entry of its own; may be null.
  const NativeFunction* inplace = nullptr;
  Location where;                       // of the name
  std::string node;                     // stated for the nodes of Default; empty: by its place
  std::vector<DerivativeTable> tables;  // one is "Default"
};

struct DerivativeModel {
  std::deque<Derivative> entries;
};

// Every error goes to `diagnostics`; the model then holds what could be read. `model` must outlive
// the result.
DerivativeModel load_derivatives(const std::vector<std::string>& paths, const ModelOptions& options,
                                 const Model& model, SourceSet& sources, Diagnostics& diagnostics);

// One value that is kept for a table's backward formulas, LAMELLA_SAVE_* in `what`.
struct SavedItem {
  int what;
  bool is_return;
  std::size_t index;
  std::uint64_t used_by;  // slots
  friend bool operator==(const SavedItem&, const SavedItem&) = default;
};
// In order of first use.
std::vector<SavedItem> saved_items(const DerivativeTable& table);
// The LAMELLA_SAVE_* that an attribute is made from.
std::vector<int> saved_for(Attribute attribute);

// For each entry one line per formula, with the name of the node:
//   aten::mul.Tensor MulBackward0: self saves other, self.scalar_type()
//   aten::mul.Tensor MulBackward0: result uses other_t, self_p, self_t, other_p
// A table of `dispatch` has its key after the operator's name, in brackets. An argument that the
// entry does not mention "is without a formula".
std::string list_saved(const DerivativeModel& model);

}  // namespace lamella::codegen
