// The generator's model: what native_functions.yaml declares, checked and complete.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/yaml_source.h"
#include "lamella/schema/schema.h"

namespace lamella::codegen {

// A kernel's C++ function.
struct Kernel {
  // Empty for the default namespace; else with `::native` added: custom::ns::f is in
  // custom::ns::native.
  std::string ns;
  std::string name;
  Location where;  // of the kernel's name
  Location key;    // of its dispatch key
};

enum class DeviceCheck { kExactSame, kNone };

// `precomputed: - dim -> int dim, bool all_same`: the argument that the meta function replaces.
// Types are C++ and go into the generated code as they are.
struct PrecomputedArgument {
  std::string type;
  std::string name;
};
struct Precomputed {
  std::string replaced;  // empty for arguments that are added
  std::vector<PrecomputedArgument> with;
};

// `ufunc_inner_loop: Generic: add (AllAndComplex, BFloat16)`
struct UfuncLoop {
  std::string key;
  std::string function;
  std::vector<std::string> dtypes;
};

// `pointwise: float`: how a pointwise operator gets the dtype of its result, and by which loop it
// computes it. See Note [Pointwise entries] in pointwise.h.
struct Pointwise {
  enum class Rule { kSame, kFloat, kBool, kOwn };
  Rule rule;
  std::string loop;  // empty for kOwn
};

// A name in `autogen`. `svd.U(U, S, V)` names the out arguments of an out form, which may then be
// named at will and be made of a CompositeImplicitAutograd operator, too.
struct Autogen {
  OperatorName name;
  std::vector<std::string> outs;
};

struct NativeFunction {
  FunctionSchema schema;  // schema.name.ns as written
  std::string ns;         // the namespace it is registered in, never empty
  Location where;         // of the signature

  bool function_variant = true;
  bool method_variant = false;
  bool device_guard = true;
  DeviceCheck device_check = DeviceCheck::kExactSame;
  bool manual_kernel_registration = false;
  bool manual_cpp_binding = false;
  bool use_const_ref_for_mutable_tensors = false;
  bool structured = false;
  std::optional<OperatorName> structured_delegate;
  std::string structured_inherits;
  std::optional<Pointwise> pointwise;
  // `alias_of: abs`: the operator whose other name this is; each form is that form of the operator
  // which takes the same arguments. Empty: none.
  std::string alias_of;
  std::vector<Precomputed> precomputed;
  std::vector<UfuncLoop> ufunc_inner_loop;
  std::vector<std::string> cpp_no_default_args;
  std::string python_module;
  std::string category_override;
  std::vector<std::string> tags;  // as written; sorted, without repetitions
  // The policies for the layers: lamella/schema/policy_words.h. Empty: not given.
  std::string autocast;
  std::string batching;
  std::string hlo;
  // The documentation. Empty: not given here; see docs_by_name in docs.h.
  std::string doc;
  Location doc_where;
  // By device type, if the cast lists give another class than `autocast`.
  std::vector<std::pair<std::string, std::string>> device_autocast;
  std::vector<Autogen> autogen;
  // In the order written, shared keys split. For an omitted table the default one, with
  // `default_dispatch` set; empty with manual_kernel_registration, for structured delegates without
  // a table, and for what autogen made.
  std::vector<std::pair<std::string, Kernel>> dispatch;
  bool default_dispatch = false;
  // Made by the `autogen` of this function: its kernel copies and calls it.
  const NativeFunction* autogen_of = nullptr;

  SchemaKind kind() const { return schema.kind(); }
  const Kernel* find_kernel(std::string_view key) const;
  bool has_tag(std::string_view tag) const;
  // Tags and policies as they are registered: "pointwise,autocast:float32"; empty: none.
  std::string registered_tags() const;
  // Has a composite kernel of any sort.
  bool has_composite_kernel() const;
  bool has_composite_implicit_kernel() const;
  // A return shares memory with an argument that is not written, an argument enters the wildcard
  // set, or the tag inplace_view says that it changes only the metadata (resize_ aside).
  bool is_view() const;
  // Takes no tensor, or says `category_override: factory`, or has the arguments of TensorOptions
  // and a name like new_* or *_like.
  bool is_factory() const;
  bool is_structured() const { return structured || structured_delegate.has_value(); }
  // ns::name.overload
  std::string full_name() const;
  // The kernel's name when none is written: the operator's, with `_out` for out variants.
  std::string default_kernel_name() const;
};

// The functional, in-place, out and mutable variants of one operation: same name but for the mark
// of an in-place one, same arguments but for out ones and annotations. Any may be missing.
struct NativeFunctionGroup {
  const NativeFunction* functional = nullptr;
  const NativeFunction* inplace = nullptr;
  const NativeFunction* out = nullptr;
  const NativeFunction* mutable_variant = nullptr;

  // Some member holds the structured kernels that all share: an out variant as in PyTorch, or a
  // functional one whose autogen names the others.
  bool structured() const;
  // The first form that exists, never null.
  const NativeFunction* any() const;
};

struct Model {
  // As declared, each followed by what its autogen made. Addresses are stable.
  std::deque<NativeFunction> functions;
  // In order of their first member.
  std::vector<NativeFunctionGroup> groups;

  // By full name (`aten::add.Tensor`) or null.
  const NativeFunction* find(std::string_view full_name) const;
  // The operator that an entry with `alias_of` calls, or null.
  const NativeFunction* alias_target(const NativeFunction& alias) const;

 private:
  mutable std::unordered_map<std::string, const NativeFunction*> by_name_;  // once asked for
};

struct ModelOptions {
  // The namespace of operators that name none.
  std::string default_namespace = "aten";
  // Tag files beside the built-in list.
  std::vector<std::string> tag_files;
};

// Reads the files as one model. Every error goes to `diagnostics`; the model then holds what could
// be read.
Model load_model(const std::vector<std::string>& paths, const ModelOptions& options,
                 SourceSet& sources, Diagnostics& diagnostics);

// The text that is equal for variants of one operation.
std::string variant_signature(const NativeFunction& function);

// The signature that `autogen: WANTED` makes from `base`, or nothing when the name does not follow
// from base's. The form is told by the name: f_ is in-place, an overload with `out` in it the out
// form, f the functional one (f_functional where `base` writes arguments under a plain name).
// In-place needs a `Tensor self` and one Tensor returned; out needs a tensor returned.
// WANTED(a, b) is an out form under any overload name, with these names for what it writes.
std::optional<FunctionSchema> autogen_schema(const FunctionSchema& base, const Autogen& wanted);

// What autogen can make from `base`, named as PyTorch names it: add_ -> add and add.out;
// add.Tensor -> add_.Tensor and add.Tensor_out; a mutable f -> f_functional and f.out.
std::vector<OperatorName> autogen_names(const FunctionSchema& base);

// True if the operator's name excludes it from the Python bindings (`*_backward` and the like).
bool skipped_in_python(const NativeFunction& function);

}  // namespace lamella::codegen
