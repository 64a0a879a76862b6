// The plan of an operator for functionalization. Internal to the layer.
//
// Note [Functional forms]
//   The functional form of an operator that writes has the same arguments, without those that it
//   only writes (out), and returns what it returned and then each written argument that it did not
//   return. It is found among the operators of its family by its signature: `add.Tensor` for
//   `add_.Tensor` and `add.out`. Where the family has none, one is made when it is first needed:
//   `my::f_functional` copies what `my::f_` writes, runs it on the copies and returns them. So
//   every operator that writes has a form. `my::v_copy` is made of a view operator `my::v` in the
//   same way.
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
  bool takes_out = false;  // has all arguments of the original, out ones too
  // Arguments of the form: the original's by index; -1 and below: tensor options (kOption).
  std::vector<int> arguments;
};
enum Option : int { kDtype = -1, kLayout = -2, kDevice = -3, kPinMemory = -4 };

struct FunctionalizePlan : OperatorPlan {
  std::string name;  // without namespace, for errors
  Kind kind = Kind::kPure;
  std::vector<std::string> argument_names;
  // Behind the returns of a form stand the written arguments that no return is.
  const OperatorFacts* facts = nullptr;
  bool pointwise = false;
  bool in_place = false;  // writes its first argument only, and returns it
  Form family;            // op is null where there is none
  Form view;              // of kMetadata: the view operator that does the same
};

PlanRef<FunctionalizePlan> plan_of(const lamella_operator* op);
// The form that copies: made where there is none.
Form made_form(const lamella_operator* op, const FunctionalizePlan& plan);
// Whether the kernel that a call with these keys reaches is CompositeImplicitAutograd.
bool is_composite(const lamella_operator* op, uint64_t keys);

}  // namespace lamella::functionalize
