// The plan of an operator for functionalization. Internal to the layer.
//
// Note [Functional forms]
//   The functional form of an operator that writes takes the same arguments except out arguments.
//   It returns the original's returns, then the new value of each written argument that the
//   original does not return. It is found by its signature among the operators of the same base
//   name: `add.Tensor` for `add_.Tensor` and `add.out`. If there is none, one is defined when it is
//   first needed: `my::f_functional` copies the arguments that `my::f_` writes, runs `my::f_` on
//   the copies and returns them. `my::v_copy` is made from a view operator `my::v` in the same way.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "lamella/dispatch/operator_entry.h"
#include "lamella/layers/functionalize/value.h"

namespace lamella::functionalize {

enum class Kind : uint8_t {
  kPure,
  kView,
  kWrite,
  kMetadata,   // changes sizes and strides of its first argument
  kResize,     // aten::resize_
  kSet,        // aten::set_
  kDetach,     // aten::detach_
  kComposite,  // its kernel only calls operators, whatever the backend
};

struct Form {
  const lamella_operator* op = nullptr;
  bool takes_out = false;  // takes all arguments of the original, including out arguments
  // For each argument of the form the index of the original's argument, or a negative Option.
  std::vector<int> arguments;
};
enum Option : int { kDtype = -1, kLayout = -2, kDevice = -3, kPinMemory = -4 };

struct FunctionalizePlan : OperatorPlan {
  std::string name;  // without namespace, for errors
  Kind kind = Kind::kPure;
  std::vector<std::string> argument_names;
  // facts->not_returned: the written arguments whose new values follow a form's other returns.
  const OperatorFacts* facts = nullptr;
  bool pointwise = false;
  bool in_place = false;  // writes its first argument only, and returns it
  Form family;            // op is null where there is none
  Form view;              // of kMetadata: the view operator that does the same
};

PlanRef<FunctionalizePlan> plan_of(const lamella_operator* op);
// The form that is defined on demand, which runs the operator on copies.
Form made_form(const lamella_operator* op, const FunctionalizePlan& plan);
// Whether the kernel that a call with these keys reaches is CompositeImplicitAutograd.
bool is_composite(const lamella_operator* op, uint64_t keys);

}  // namespace lamella::functionalize
