// Lowering: conversion of operator calls to opcodes.
//
// Note [Lowering rules]
//   A rule is a function from a Call to the ops of its results, which it makes with the builder. It
//   is in a table under the operator's name without the overload, so one rule serves all overloads,
//   including in-place and `out` forms; it finds arguments by their names in the schema. A rule
//   that does not apply returns no ops, and the call becomes a custom call to its operator.
//   The sizes and dtypes of the results are known from the recording. If a rule's result has other
//   sizes, it is a bug; another element type is converted. So rules need not compute shapes that
//   the operator's Meta kernel has computed already.
//
// Note [Types inside of a call]
//   Elementwise functions compute in one type, Call::type(): that of the first result or, if that
//   is Pred, the promoted type of the operands. Call::in() converts an operand to this type and
//   broadcasts it to the sizes of the result. Functions of several steps compute float16 and
//   bfloat16 in float32 and round once, as kernels do (Call::widen).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/core/ivalue.h"
#include "lamella/graph/builder/functions.h"
#include "lamella/graph/builder/lib/arithmetic.h"
#include "lamella/graph/builder/lib/constants.h"
#include "lamella/graph/hlo/opcode.h"
#include "lamella/schema/schema.h"

namespace lamella::hlo::lowering {

using Ops = std::vector<Op>;
using Sizes = std::vector<int64_t>;

// One argument of a call.
struct Given {
  enum class Form : uint8_t { Plain, Tensor, Tensors };
  Form form = Form::Plain;
  const IValue* value = nullptr;  // of Plain; a tensor in it is a Python number
  Ops ops;                        // invalid ops stand for undefined tensors
};

class Call {
 public:
  Call(Builder* builder, const FunctionSchema& schema, std::vector<Given> arguments,
       std::vector<Shape> results);

  Builder* builder() const { return builder_; }

  // ---- Arguments, by name ----

  std::string_view argument_name(size_t i) const;
  // The element type of a tensor argument; Invalid for other arguments.
  ElementType argument_type(size_t i) const;
  // True if the operator has the argument and its value is not None.
  bool has(std::string_view name) const;
  bool is_tensor(std::string_view name) const;
  // A tensor argument without conversion; throws if the argument is not a tensor.
  Op op(std::string_view name) const;
  Ops ops(std::string_view name) const;
  // A number, or a Python number given for a tensor; `otherwise` if the argument is absent.
  Number number(std::string_view name, Number otherwise = 0) const;
  double real(std::string_view name, double otherwise = 0) const;
  int64_t integer(std::string_view name, int64_t otherwise = 0) const;
  bool flag(std::string_view name, bool otherwise = false) const;
  std::string_view text(std::string_view name) const;
  Sizes integers(std::string_view name) const;
  std::vector<bool> flags(std::string_view name) const;
  // A dimension of an array of this rank; negative numbers are converted to non-negative ones.
  int64_t dimension(std::string_view name, int64_t rank, int64_t otherwise = 0) const;
  // Dimensions in ascending order; all dimensions if the argument is missing, None or empty.
  Sizes dimensions(std::string_view name, int64_t rank) const;

  // ---- Results ----

  size_t result_count() const { return results_.size(); }
  const Shape& result(size_t i = 0) const { return results_.at(i); }
  Sizes sizes(size_t i = 0) const;

  // ---- Elementwise ----

  ElementType type() const { return type_; }
  void set_type(ElementType type) { type_ = type; }
  void widen() { type_ = wide(type_); }
  // float32 for 16-bit types; other types unchanged.
  static ElementType wide(ElementType type);
  // A tensor or number in type(), with the sizes of the first result.
  Op in(std::string_view name) const;
  // A number in type(), with the sizes of the first result.
  Op fill(Number number) const;

  // ---- Making ops ----

  const Shape& shape(Op op) const { return **builder_->GetShapePtr(op); }
  Sizes sizes_of(Op op) const;
  int64_t rank_of(Op op) const { return shape(op).rank(); }
  ElementType type_of(Op op) const { return shape(op).element_type(); }
  // Converts values; nonzero values become true.
  Op convert(Op op, ElementType type) const;
  Op constant(ElementType type, Number number) const;
  Op full(ElementType type, const Sizes& sizes, Number number) const;
  Op like(Op op, Number number) const { return full(type_of(op), sizes_of(op), number); }
  // Repeats dimensions of size 1 and adds leading dimensions.
  Op broadcast(Op op, const Sizes& sizes) const;
  // Broadcasts the result of a reduction along `dims` back to the sizes before the reduction.
  Op broadcast_back(Op op, const Sizes& dims, const Sizes& sizes) const;
  Op reshape(Op op, const Sizes& sizes) const;
  Op apply(Opcode opcode, std::initializer_list<Op> operands) const;
  Op sum(Op op, const Sizes& dims) const;
  Op maximum(Op op, const Sizes& dims) const;
  // 0, 1, ... along a dimension.
  Op iota(ElementType type, const Sizes& sizes, int64_t dimension) const;

 private:
  const Given* find(std::string_view name) const;
  Builder* builder_;
  const FunctionSchema& schema_;
  std::vector<Given> arguments_;
  std::vector<Shape> results_;
  ElementType type_;
};

struct Rule {
  const char* name;  // "aten::add"
  Ops (*lower)(Call&);
};

// The rule of an operator, or NULL. Names of in-place forms and overloads are reduced to the name
// of the functional form.
const Rule* find_rule(std::string_view operator_name);
// The rule of an operator that machine code calculates by a kernel's function, or NULL.
const Rule* find_portable_rule(std::string_view operator_name);
// Lowers the call of an operator that is a single elementwise opcode, as the word `hlo:` of its
// declaration states. The first arguments are the operands.
Ops lower_word(Opcode opcode, Call& call);
// The names of all operators that have a rule.
std::vector<std::string_view> lowered_operators();

// Rules by family.
std::span<const Rule> unary_rules();
std::span<const Rule> binary_rules();
std::span<const Rule> activation_rules();
std::span<const Rule> shape_rules();
std::span<const Rule> strided_rules();
std::span<const Rule> factory_rules();
std::span<const Rule> reduction_rules();
std::span<const Rule> contraction_rules();
std::span<const Rule> normalization_rules();
std::span<const Rule> loss_rules();
std::span<const Rule> ordering_rules();
std::span<const Rule> optimizer_rules();

}  // namespace lamella::hlo::lowering
