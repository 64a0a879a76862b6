// Checks and runs calls of operators.
#include "lamella/graph/custom_call/operator_call.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/dispatch/operator_entry.h"
#include "lamella/dispatch/registry.h"
#include "lamella/graph/custom_call/opaque.h"
#include "lamella/graph/custom_call/operator_plan.h"
#include "lamella/graph/custom_call/operator_tensors.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

constexpr size_t kInlineElements = 16;  // the largest array that needs no heap memory

// A zero-initialized array of `size` elements, on the stack if size <= kInlineElements.
template <class T>
class InlineArray {
 public:
  explicit InlineArray(size_t size) : size_(size) {
    if (size > kInlineElements) many_ = std::make_unique<T[]>(size);
    for (size_t i = 0; i < size; ++i) data()[i] = T{};
  }
  T* data() { return many_ != nullptr ? many_.get() : few_.data(); }
  T& operator[](size_t i) { return data()[i]; }
  size_t size() const { return size_; }

 private:
  std::array<T, kInlineElements> few_;
  std::unique_ptr<T[]> many_;
  size_t size_;
};
struct OwnedTensors : InlineArray<lamella_tensor*> {
  using InlineArray::InlineArray;
  ~OwnedTensors() { release(); }
  void release() {
    for (size_t i = 0; i < size(); ++i) TensorBase::adopt(std::exchange((*this)[i], nullptr));
  }
};
struct OwnedValues : InlineArray<lamella_value> {
  using InlineArray::InlineArray;
  ~OwnedValues() { release(); }
  void release() {
    for (size_t i = 0; i < size(); ++i) lamella_value_release(&(*this)[i]);
  }
};

// The arrays of a result: the elements of a tuple, or the shape itself.
std::vector<const Shape*> parts(const Shape& shape) {
  std::vector<const Shape*> found;
  if (!shape.is_tuple()) return {&shape};
  for (const Shape& element : shape.tuple_shapes()) found.push_back(&element);
  return found;
}
std::vector<const Shape*> leaves(const Instruction& i) {
  std::vector<const Shape*> found = parts(*i.shape);
  for (const Shape* one : found) {
    LAMELLA_HLO_REQUIRE(one->is_array(), i, "expected an array or a tuple of arrays, got ",
                        i.shape->to_string(false));
  }
  return found;
}
Shape shape_of(const OperatorPlan& plan) {
  if (plan.outputs.size() == 1) return plan.outputs[0].shape;
  std::vector<Shape> elements;
  for (const OperatorOutput& output : plan.outputs) elements.push_back(output.shape);
  return Shape::tuple(std::move(elements));
}
std::vector<OperandAlias> aliases_of(const OperatorPlan& plan) {
  std::vector<OperandAlias> aliases;
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    if (plan.outputs[o].operand < 0) continue;
    OperandAlias alias;
    if (plan.outputs.size() > 1) alias.output = {static_cast<int64_t>(o)};
    alias.operand = plan.outputs[o].operand;
    aliases.push_back(std::move(alias));
  }
  return aliases;
}
std::string alias_text(const OperandAlias& alias) {
  return str(braced(alias.output), ": (", alias.operand, ", ", braced(alias.operand_index), ")");
}

class OperatorCall final : public PreparedCall, public ElementwiseCall {
 public:
  OperatorCall(const Instruction& instruction, OperatorPlan plan)
      : instruction_(instruction),
        plan_(std::move(plan)),
        boxed_(plan_.arguments),
        shapes_(leaves(instruction)) {
    for (const Instruction* operand : instruction.operands) {
      types_.push_back(*scalar_type_of(operand->shape->element_type()));
    }
    counts_from_storage_ = std::ranges::any_of(
        plan_.schema.arguments, [](const auto& one) { return one.name == "storage_offset"; });
    if (plan_.outputs.size() == 1 && plan_.outputs[0].index == 0 && plan_.outputs[0].element < 0 &&
        plan_.outputs[0].operand < 0 && plan_.schema.returns.size() == 1 &&
        !instruction.shape->is_tuple()) {
      single_.emplace(*instruction.shape);
    }
  }

  Value run(std::span<Value> operands, RunContext&) override {
    const lamella_operator* op = plan_.op;
    OwnedTensors tensors(operands.size());
    for (size_t k = 0; k < operands.size(); ++k) {
      if (plan_.written[k]) {
        operands[k] = Value::writable(std::move(operands[k]));
        tensors[k] = tensor_of(operands[k], types_[k], counts_from_storage_).unsafe_release();
      } else {
        tensors[k] =
            tensor_of(std::move(operands[k]), types_[k], counts_from_storage_).unsafe_release();
      }
    }
    OwnedValues returns(op->return_count);
    call(tensors.data(), returns);
    if (single_ && returns[0].tag == LAMELLA_TENSOR && returns[0].as.tensor != nullptr &&
        single_->fits(returns[0].as.tensor)) {
      tensors.release();
      lamella_tensor* result = std::exchange(returns[0], lamella_value{}).as.tensor;
      return single_->take(instruction_.shape, result);
    }
    return collect(operands, tensors, returns);
  }

  bool runs_on_device() const override { return true; }
  bool shares_operands() const override {
    return std::ranges::any_of(plan_.schema.returns, [](const auto& one) {
      return one.alias() != nullptr && !one.alias()->is_write;
    });
  }
  // Arguments that are devices, of factories, become this one.
  std::vector<TensorBase> run_on_device(std::span<const TensorBase> operands, Device device,
                                        RunContext&) override {
    OwnedTensors tensors(operands.size());
    for (size_t k = 0; k < operands.size(); ++k) {
      Tensor tensor(operands[k]);
      if (plan_.written[k]) tensor = tensor.clone();
      // Programs take every value as dense.
      if (counts_from_storage_) {
        tensor = tensor.contiguous();
        if (tensor.storage_offset() != 0) tensor = tensor.clone();
      }
      tensors[k] = tensor.unsafe_release();
    }
    OwnedValues returns(plan_.op->return_count);
    call(tensors.data(), returns, &device);
    check_counts(returns);
    std::vector<TensorBase> results;
    for (size_t o = 0; o < shapes_.size(); ++o) {
      const OperatorOutput& output = plan_.outputs[o];
      lamella_tensor* tensor = output.index < 0
                                   ? tensors[static_cast<size_t>(output.operand)]
                                   : returned(returns[static_cast<size_t>(output.index)], output);
      check_result(o, tensor);
      Tensor result(TensorBase::borrow(tensor));
      results.push_back(result.device() == device ? result : result.to(device));
    }
    return results;
  }

  const ElementwiseCall* elementwise() const override {
    if (!single_ || plan_.has_side_effect() || std::ranges::count(plan_.written, true) != 0) {
      return nullptr;
    }
    if (plan_.name == "aten::_to_copy") return this;
    std::lock_guard lock(Registry::get().mutex());
    const std::vector<std::string>& tags = entry_of(plan_.op)->tags;
    return std::ranges::find(tags, "pointwise") != tags.end() ? this : nullptr;
  }
  TensorBase on(std::span<lamella_tensor* const> operands, int64_t count) const override {
    OwnedValues returns(1);
    call(operands.data(), returns);
    lamella_tensor* made = returns[0].tag == LAMELLA_TENSOR ? returns[0].as.tensor : nullptr;
    bool fits = made != nullptr && made->ndim == 1 && made->sizes[0] == count &&
                single_->has_type(made) && (made->flags & LAMELLA_TENSOR_CONTIGUOUS) != 0;
    LAMELLA_HLO_REQUIRE(fits, instruction_, "expected ", plan_.name, " to give ", count,
                        " elements of ", element_name(instruction_.shape->element_type()),
                        ", because it has the tag pointwise");
    returns[0] = lamella_value{};
    return TensorBase::adopt(made);
  }

 private:
  void call(lamella_tensor* const* tensors, OwnedValues& returns,
            const Device* device = nullptr) const {
    LAMELLA_HLO_REQUIRE(plan_.op->argument_count == boxed_.size() &&
                            plan_.op->return_count == plan_.schema.returns.size(),
                        instruction_, "expected ", plan_.name,
                        " as it was when the module was compiled");
    InlineArray<lamella_value> arguments(boxed_.size());
    InlineArray<lamella_tensor*> lists(boxed_.list_entries());
    boxed_.put(tensors, arguments.data(), lists.data());
    for (size_t a = 0; device != nullptr && a < boxed_.size(); ++a) {
      if (arguments[a].tag == LAMELLA_DEVICE ||
          (arguments[a].tag == LAMELLA_NONE && types_.empty() &&
           plan_.schema.arguments[a].type.str() == "Device?")) {
        arguments[a] = lamella_value{{IValue::pack_device(*device)}, 0, LAMELLA_DEVICE, 0, 0};
      }
    }
    BelowLayers below;
    lamella_status status = call_operator(plan_.op, arguments.data(), returns.data());
    if (status != LAMELLA_OK) fail_with(status);
  }
  [[noreturn]] void fail_with(lamella_status status) const {
    // A foreign exception, such as a pending Python exception, keeps its type.
    if (status == LAMELLA_FOREIGN_ERROR) lamella::detail::throw_status(status);
    std::string text = str("hlo: '", instruction_.name, "' (custom-call ", plan_.name,
                           "): ", lamella_error_text());
    detail::fail(status, text);
    lamella::detail::throw_status(status);
  }

  Value collect(std::span<Value> operands, OwnedTensors& tensors, OwnedValues& returns) const {
    check_counts(returns);
    InlineArray<lamella_tensor*> taken(shapes_.size());
    InlineArray<Value> values(shapes_.size());
    for (size_t o = 0; o < shapes_.size(); ++o) {
      const OperatorOutput& output = plan_.outputs[o];
      lamella_tensor* tensor = output.index < 0
                                   ? tensors[static_cast<size_t>(output.operand)]
                                   : returned(returns[static_cast<size_t>(output.index)], output);
      check_result(o, tensor);
      TensorBase result = TensorBase::borrow(tensor);
      // The value of a written operand is reused, unless the kernel gave the tensor other memory.
      if (output.operand >= 0) {
        const Value& operand = operands[static_cast<size_t>(output.operand)];
        if (operand && result.const_data_ptr() == operand.data() && result.is_contiguous() &&
            result.nbytes() == operand.bytes()) {
          continue;
        }
      }
      if (output.index >= 0 && output.element < 0) {
        // Takes the reference out of `returns`, so that value_of can see that it is the only one.
        result = TensorBase();
        returns[static_cast<size_t>(output.index)] = lamella_value{};
        result = TensorBase::adopt(tensor);
      }
      values[o] = value_of(std::move(result), shapes_[o]);
    }
    returns.release();
    tensors.release();
    for (size_t o = 0; o < shapes_.size(); ++o) {
      if (values[o]) continue;
      auto operand = static_cast<size_t>(plan_.outputs[o].operand);
      // The last result that uses an operand moves it; earlier ones share it.
      bool last = true;
      for (size_t later = o + 1; later < shapes_.size(); ++later) {
        last = last && (values[later] || plan_.outputs[later].operand != plan_.outputs[o].operand);
      }
      values[o] = Value::reshaped(last ? std::move(operands[operand]) : Value(operands[operand]),
                                  shapes_[o]);
    }
    if (!instruction_.shape->is_tuple()) return std::move(values[0]);
    return Value::tuple(instruction_.shape, std::span<Value>(values.data(), values.size()));
  }

  static lamella_tensor* returned(const lamella_value& value, const OperatorOutput& output) {
    if (value.tag == LAMELLA_TENSOR) return value.as.tensor;
    if (value.tag != LAMELLA_TENSOR_LIST || static_cast<uint32_t>(output.element) >= value.size) {
      return nullptr;
    }
    return static_cast<lamella_tensor* const*>(value.as.pointer)[output.element];
  }
  void check_result(size_t o, lamella_tensor* tensor) const {
    LAMELLA_HLO_REQUIRE(tensor != nullptr, instruction_, "expected result ", o, " of ", plan_.name,
                        " to be ", shapes_[o]->to_string(false), ", got no tensor");
    const TensorBase result = TensorBase::borrow(tensor);
    LAMELLA_HLO_REQUIRE(has_shape(result, *shapes_[o]), instruction_, "expected result ", o, " of ",
                        plan_.name, " to be ", shapes_[o]->to_string(false), ", got ",
                        shape_text(result));
  }
  // Throws unless lists have as many tensors as the module declares.
  void check_counts(OwnedValues& returns) const {
    for (size_t r = 0; r < returns.size(); ++r) {
      if (returns[r].tag != LAMELLA_TENSOR_LIST) continue;
      uint32_t declared = 0;
      for (const OperatorOutput& output : plan_.outputs) {
        if (output.index == static_cast<int32_t>(r)) {
          declared = std::max(declared, static_cast<uint32_t>(output.element) + 1);
        }
      }
      LAMELLA_HLO_REQUIRE(returns[r].size == declared, instruction_, "expected ", plan_.name,
                          " to return ", declared, " tensors, got ", returns[r].size);
    }
  }

  const Instruction& instruction_;
  OperatorPlan plan_;
  BoxedArguments boxed_;
  std::vector<const Shape*> shapes_;
  std::vector<ScalarType> types_;     // of operands
  bool counts_from_storage_ = false;  // the operator takes a storage_offset
  std::optional<KnownShape> single_;  // set if the result is one tensor with its own memory
};

void check_declared(const Instruction& i, const OperatorPlan& plan) {
  if (plan.knows_shapes) {
    Shape shape = shape_of(plan);
    LAMELLA_HLO_REQUIRE(shape.compatible(*i.shape), i, "expected shape ", shape.to_string(false),
                        ", which ", plan.name, " gives, got ", i.shape->to_string(false));
  }
  if (!i.flag(AttributeKey::CustomCallHasSideEffect)) {
    LAMELLA_HLO_REQUIRE(!plan.draws_random_numbers, i,
                        "expected custom_call_has_side_effect=true, because ", plan.name,
                        " draws random numbers");
    LAMELLA_HLO_REQUIRE(!plan.acts, i, "expected custom_call_has_side_effect=true, because ",
                        plan.name, " has the tag side_effect");
    LAMELLA_HLO_REQUIRE(!plan.outputs.empty(), i,
                        "expected custom_call_has_side_effect=true, because ", plan.name,
                        " has no results");
  }
  const Attribute* declared = i.find(AttributeKey::OutputToOperandAliasing);
  if (declared == nullptr) return;
  std::vector<OperandAlias> known = aliases_of(plan);
  for (const OperandAlias& alias : declared->aliases()) {
    bool found = false;
    for (const OperandAlias& one : known) found |= alias_text(one) == alias_text(alias);
    if (found) continue;
    std::string text;
    for (const OperandAlias& one : known) text += (text.empty() ? "" : ", ") + alias_text(one);
    fail(i, "expected output_to_operand_aliasing within {", text, "}, which the schema of ",
         plan.name, " says, got ", alias_text(alias));
  }
}

}  // namespace

std::unique_ptr<PreparedCall> prepare_operator_call(const Instruction& i) {
  const lamella_operator* op = find_operator(i.text(AttributeKey::CustomCallTarget));
  if (op == nullptr) return nullptr;
  std::vector<const Shape*> operands;
  for (const Instruction* operand : i.operands) operands.push_back(operand->shape);
  std::vector<const Shape*> declared = leaves(i);
  OperatorPlan plan;
  try {
    plan = plan_operator(op, operands, opaque_of(i), &declared);
  } catch (const Error& error) {
    if (error.status() == LAMELLA_FOREIGN_ERROR) throw;
    fail(i, error.what());
  }
  check_declared(i, plan);
  return std::make_unique<OperatorCall>(i, std::move(plan));
}

OperatorCallFacts operator_call_facts(std::string_view name, std::span<const Shape> operands,
                                      std::string_view arguments, const Shape* declared) {
  const lamella_operator* op = find_operator(name);
  if (op == nullptr) {
    // Throws an error with similar names.
    std::string full(name);
    size_t dot = full.find('.', full.find("::") == std::string::npos ? 0 : full.find("::"));
    std::string overload = dot == std::string::npos ? std::string() : full.substr(dot + 1);
    full.resize(std::min(dot, full.size()));
    lamella::detail::check(lamella_find_operator(full.c_str(), overload.c_str(), &op));
  }
  std::vector<const Shape*> pointers;
  for (const Shape& shape : operands) pointers.push_back(&shape);
  std::vector<const Shape*> results;
  if (declared != nullptr) results = parts(*declared);
  OperatorPlan plan =
      plan_operator(op, pointers, arguments, declared != nullptr ? &results : nullptr);
  LAMELLA_CHECK(declared == nullptr || shape_of(plan).compatible(*declared), plan.name,
                ": expected shape ", shape_of(plan).to_string(false), ", got ",
                declared->to_string(false));
  OperatorCallFacts facts;
  facts.shape = shape_of(plan);
  facts.aliases = aliases_of(plan);
  facts.has_side_effect = plan.has_side_effect();
  facts.arguments = operator_arguments_text(plan.schema, plan.arguments);
  return facts;
}

}  // namespace lamella::hlo
