// OperatorPlan: the arguments, results and effects of an operator's call, determined before it
// runs. Internal to custom_call.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamella/dispatch/dispatch_key.h"
#include "lamella/dispatch/signature.h"
#include "lamella/graph/custom_call/operator_arguments.h"
#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// One array of a call's result.
struct OperatorOutput {
  Shape shape;           // invalid if it depends on values
  int32_t index = -1;    // the number of the return; -1 for a written argument not returned
  int32_t element = -1;  // the element of a returned list
  int32_t operand = -1;  // the written operand that it aliases; -1 if it has its own memory
};

struct OperatorPlan {
  const lamella_operator* op = nullptr;
  std::string name;  // "aten::add.Tensor"
  FunctionSchema schema;
  std::vector<OperatorArgument> arguments;
  std::vector<bool> written;  // by operand
  std::vector<OperatorOutput> outputs;
  bool knows_shapes = false;
  bool draws_random_numbers = false;
  bool acts = false;  // has side effects other than its results: the tag side_effect

  bool has_side_effect() const { return draws_random_numbers || acts || outputs.empty(); }
};

// The operator with this full name, or NULL. A name without "::" gives NULL.
const lamella_operator* find_operator(std::string_view full_name);
// The arguments of a custom call to that operator. Empty for other instructions, and if the text
// does not parse, which prepare_operator_call reports.
std::vector<OperatorArgument> arguments_of_call(const Instruction& i, std::string_view full_name);
// True if the operator exists and draws random numbers.
bool operator_draws_random_numbers(std::string_view full_name);

// `declared` are the result arrays that the module declares, for operators that cannot infer their
// shapes; may be null. Throws an Error that begins with the operator's name.
OperatorPlan plan_operator(const lamella_operator* op, std::span<const Shape* const> operands,
                           std::string_view arguments, const std::vector<const Shape*>* declared);

// The boxed arguments of a call. put() fills in the tensors.
class BoxedArguments {
 public:
  explicit BoxedArguments(const std::vector<OperatorArgument>& arguments);
  size_t size() const { return values_.size(); }
  size_t list_entries() const { return list_entries_; }
  // Writes size() values to `values`; the elements of tensor lists go to `lists`, which must have
  // list_entries() entries.
  void put(lamella_tensor* const* operands, lamella_value* values, lamella_tensor** lists) const;

 private:
  struct TensorSlot {
    uint32_t argument;
    int32_t operand;  // for a list, the index of its first entry in list_operands_
    uint32_t count;
    bool is_list;
  };
  std::vector<lamella_value> values_;  // borrowed from the arguments
  std::vector<TensorSlot> places_;
  std::vector<int32_t> list_operands_;
  size_t list_entries_ = 0;
};

// Disables this thread's layers during its lifetime.
class BelowLayers {
 public:
  BelowLayers() : included_(lamella_thread.included & ~kThreadInit) {
    uint64_t keys =
        autograd_dispatch_keyset_with_ADInplaceOrView.raw_repr() & ~lamella::detail::kBackendMask;
    excluded_ = keys & ~lamella_thread.excluded;
    lamella_thread.included &= kThreadInit;
    lamella_thread.excluded |= keys;
  }
  ~BelowLayers() {
    lamella_thread.included |= included_;
    lamella_thread.excluded &= ~excluded_;
  }
  BelowLayers(const BelowLayers&) = delete;
  BelowLayers& operator=(const BelowLayers&) = delete;

 private:
  // This key is included until the thread's first call; it is not a layer.
  static constexpr uint64_t kThreadInit =
      lamella::detail::functionality_bit(lamella::detail::Functionality::ThreadInit);
  uint64_t included_;
  uint64_t excluded_;
};

// A boxed call with the dispatch keys of the arguments and of this thread.
inline lamella_status call_operator(const lamella_operator* op, const lamella_value* arguments,
                                    lamella_value* returns) {
  uint64_t keys =
      abi::with_thread(abi::keys_of_values(arguments, op->argument_count), op, lamella_thread);
  return abi::call_boxed(op, keys, arguments, returns);
}

}  // namespace lamella::hlo
