// How a batching rule is written. Internal to Lamella; see batch_rule.h for rules outside of it.
//
// Note [Writing a rule]
//   A rule is a function of a BatchedCall: a call in which at least one argument is batched at the
//   level being handled. Tensors of that level are already unwrapped, with the batch in dimension
//   0; all others are unchanged and are the same for every example. A rule changes the arguments
//   until one call of the operator (or of others) on them computes all examples, with the batch in
//   dimension 0 of every result, and then either
//     - calls run(), which calls the operator on the arguments and wraps its results, or
//     - computes results itself and gives each to give().
//   For an operator that writes an argument, run() and give() return the batched tensor that was
//   written; the kernel has checked that it is batched. A rule reads facts about the operator from
//   plan(), since one rule serves a family of operators.
//
//   void over_last(BatchedCall& call) {                    // an operator over the last dimension
//     Tensor self = call.front(0);                  // batch in front, whether batched or not
//     if (call.dim(0) == 0) self = self.unsqueeze(-1);
//     call.set(0, self);
//     call.run();
//   }
//
//   It is named in rule_table.cpp, and by `batching: NAME` in the operators' entries.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/core/ivalue.h"
#include "lamella/dispatch/operator_entry.h"
#include "lamella/layers/vmap/vmap.h"

namespace lamella::vmap {

class BatchedCall;
using Rule = void (*)(BatchedCall& call);  // throws

// The facts about an operator that rules use. Made at its first batched call, and again after it or
// its kernels change: Note [Plans] in lamella/dispatch/operator_plan.h.
struct BatchingPlan : OperatorPlan {
  struct ArgumentPlan {
    std::string name;
    TypeKind kind;  // within ? and []
  };
  const OperatorEntry* op;
  const OperatorFacts* facts;
  std::string name;  // "add_": begins messages
  std::vector<ArgumentPlan> arguments;
  bool checks_written = false;  // the kernel checks that written arguments are batched
  bool has_list = false;        // some argument is a list of tensors
  bool random = false;          // tag nondeterministic_seeded
  Rule rule = nullptr;
  // The replacement for a reduction without `dim`: an operator whose argument 1 is the dimensions
  // to reduce, followed by `keepdim` and this operator's other arguments. Null: there is none.
  const OperatorEntry* over_dims = nullptr;
  bool dims_are_list = false;  // its argument 1

  bool writes() const { return !facts->written.empty(); }
  // The index of the argument with this name; -1: none.
  int find(std::string_view argument) const;
};

// The plan of an operator, valid during a call to it. Throws if its declaration names a rule that
// does not exist.
LAMELLA_PRIVATE_API const BatchingPlan& plan_of(const lamella_operator* op);
// Tells dispatch which kernels to use for the keys of this layer.
void add_slot_rules();
// The rule with this name; NULL if there is none.
Rule find_rule(std::string_view name);

// One call, as a rule sees it. dim() counts the dimensions of one example: for a batched tensor one
// less than tensor() has. Indices of arguments are not checked.
class LAMELLA_PRIVATE_API BatchedCall {
 public:
  BatchedCall(const BatchingPlan& plan, const lamella_operator* op, const Level& level,
              const lamella_value* arguments, lamella_value* returns);
  ~BatchedCall();
  BatchedCall(const BatchedCall&) = delete;
  BatchedCall& operator=(const BatchedCall&) = delete;

  const BatchingPlan& plan() const { return plan_; }
  const lamella_operator* op() const { return op_; }
  const Level& level() const { return level_; }
  int64_t batch_size() const { return level_.size; }

  // ---- Arguments ----

  // The argument as run() will pass it to the operator.
  const lamella_value& value(uint32_t i) const { return values_[i]; }
  // The argument as the caller passed it: batched tensors are not unwrapped.
  const lamella_value& original(uint32_t i) const { return originals_[i]; }
  bool has(uint32_t i) const {
    return values_[i].tag != LAMELLA_NONE &&
           (values_[i].tag != LAMELLA_TENSOR || values_[i].as.tensor != nullptr);
  }
  // Whether the tensor, or some tensor of the list, has the batch in dimension 0.
  bool is_batched(uint32_t i) const { return ((batched_ >> i) & 1) != 0; }
  // The same for entry k of a list.
  bool is_batched(uint32_t i, uint32_t k) const;
  // The tensor that run() will pass; undefined if there is none.
  Tensor tensor(uint32_t i) const {
    return Tensor(
        TensorBase::borrow(values_[i].tag == LAMELLA_TENSOR ? values_[i].as.tensor : nullptr));
  }
  Tensor tensor(uint32_t i, uint32_t k) const;
  // Dimensions of the tensor for one example.
  int64_t dim(uint32_t i) const { return values_[i].as.tensor->ndim - (is_batched(i) ? 1 : 0); }
  // The tensor with the batch in front, expanded over it if it is not batched.
  Tensor front(uint32_t i) const;
  Tensor front(uint32_t i, uint32_t k) const;
  int64_t integer(uint32_t i) const { return values_[i].as.i; }
  bool flag(uint32_t i) const { return values_[i].as.i != 0; }
  IntArrayRef integers(uint32_t i) const {
    return {static_cast<const int64_t*>(values_[i].as.pointer), values_[i].size};
  }

  // Replaces an argument; the new one is kept alive until the call is over. A tensor counts as
  // batched from then on unless `batched` is false.
  void set(uint32_t i, const Tensor& tensor, bool batched = true);
  void set(uint32_t i, const std::vector<Tensor>& list);
  void set_value(uint32_t i, IValue value);
  // Converts `dim`, one of the `ndim` dimensions of an example (at least one is assumed), to the
  // same dimension of the tensor with the batch in front. IndexError names the operator.
  int64_t shifted(int64_t dim, int64_t ndim) const;

  // ---- Results ----

  // Calls the operator, or another one with the same returns, on the arguments as they are now.
  void run() { run(op_); }
  void run(const lamella_operator* other);
  // The same, but applies `change` to each returned tensor, also in lists, before wrapping it.
  template <class Change>  // Tensor(Tensor)
  void run_and(Change change) {
    ValueBuffer made(op_->return_count);
    invoke(op_, made.data());
    std::vector<IValue> owned;
    for (uint32_t r = 0; r < op_->return_count; ++r) owned.push_back(IValue::adopt(made[r]));
    for (uint32_t r = 0; r < op_->return_count; ++r) {
      if (plan_.facts->returns[r].written >= 0 || owned[r].isNone()) {
        give_value(r, std::move(owned[r]));
      } else if (owned[r].isTensor()) {
        Tensor result = owned[r].toTensor();
        give(r, result.defined() ? change(result) : result);
      } else if (owned[r].isTensorList()) {
        std::vector<Tensor> list;
        for (const Tensor& result : owned[r].toTensorVector()) list.push_back(change(result));
        give(r, list);
      } else {
        give_value(r, std::move(owned[r]));
      }
    }
  }
  // Calls a kernel of the operator on batched tensors, such as the caller's own arguments.
  void run_kernel(const lamella_kernel* kernel, const lamella_value* arguments);
  // Sets return r to a tensor with the batch in dimension 0; ignored for a written argument.
  void give(uint32_t r, const Tensor& result);
  void give(uint32_t r, const std::vector<Tensor>& list);
  // Sets return r to a value that is the same for all examples.
  void give_value(uint32_t r, IValue result);

 private:
  friend lamella_status run_call(BatchedCall& call) noexcept;
  static constexpr uint32_t kInline = 16;

  void unwrap_list(uint32_t i);
  void invoke(const lamella_operator* other, lamella_value* returns);
  void wrap(uint32_t r, lamella_value* result);
  TensorBase in_shape_of_example(uint32_t r, TensorBase result);
  void give_written(uint32_t r);

  const BatchingPlan& plan_;
  const lamella_operator* op_;
  const Level& level_;
  const lamella_value* originals_;
  lamella_value* returns_;
  lamella_value* values_;
  uint64_t batched_ = 0;
  uint32_t given_ = 0;
  lamella_value inline_values_[kInline];
  std::vector<IValue>* kept_ = nullptr;  // owned; NULL while nothing is kept
  std::unique_ptr<lamella_value[]> more_values_;
  std::vector<IValue> examples_;  // see in_shape_of_example()
};

// ---- Rules of the core; families have their own headers ----

// Results have the shape to which the arguments broadcast.
void pointwise_rule(BatchedCall& call);
// Reduces the dimensions in argument `dim`, or all if the operator has no such argument.
void reduction_rule(BatchedCall& call);
// Runs the composite kernel (CompositeImplicitAutograd, else CompositeExplicitAutograd) on the
// batched tensors; run_composite runs it on the arguments given.
void composite_rule(BatchedCall& call);
void run_composite(BatchedCall& call, const lamella_value* arguments);
// Draws separate numbers for every example of the batched argument: Note [Drawing under vmap].
void random_rule(BatchedCall& call);
// Calls the operator for each example, and stacks the results.
LAMELLA_PRIVATE_API void loop_rule(BatchedCall& call);
// Raises an error: the result's shape, or a result that is not a tensor, depends on values.
void refuse_rule(BatchedCall& call);

}  // namespace lamella::vmap
