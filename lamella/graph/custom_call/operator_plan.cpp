// Determines the results of an operator's call from its schema and its Meta kernel.
#include "lamella/graph/custom_call/operator_plan.h"

#include <algorithm>
#include <mutex>

#include "lamella/core/error.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/registry.h"
#include "lamella/graph/custom_call/opaque.h"
#include "lamella/graph/custom_call/operator_tensors.h"

namespace lamella::hlo {
namespace {

using Form = OperatorArgument::Form;

bool has_tag(const OperatorEntry& entry, const char* tag) {
  return std::find(entry.tags.begin(), entry.tags.end(), tag) != entry.tags.end();
}
bool is_random(const OperatorEntry& entry) { return has_tag(entry, "nondeterministic_seeded"); }

class Planner {
 public:
  Planner(const lamella_operator* op, std::span<const Shape* const> operands)
      : operands_(operands) {
    plan_.op = op;
    auto* entry = entry_of(op);
    plan_.name = entry->full_name();
    std::lock_guard lock(Registry::get().mutex());
    LAMELLA_CHECK(entry->defined(), plan_.name, ": expected a defined operator");
    plan_.schema = Registry::get().schema(entry);
    facts_ = &Registry::get().facts(entry);
    // Schemas omit the namespace of their library.
    plan_.schema.name.ns = plan_.name.substr(0, plan_.name.find("::"));
    plan_.draws_random_numbers = is_random(*entry);
    plan_.acts = has_tag(*entry, "side_effect");
  }

  OperatorPlan make(std::string_view arguments, const std::vector<const Shape*>* declared) {
    check_schema();
    for (size_t k = 0; k < operands_.size(); ++k) {
      LAMELLA_CHECK(
          operands_[k]->is_array() && scalar_type_of(operands_[k]->element_type()).has_value(),
          plan_.name, ": expected operand ", k,
          " to be an array of an element type that tensors have, got ",
          operands_[k]->to_string(false));
    }
    plan_.arguments = read_operator_arguments(plan_.schema, arguments, operands_.size());
    plan_.written.assign(operands_.size(), false);
    for (uint16_t i : facts_->written) {
      for (int32_t operand : plan_.arguments[i].operands) {
        if (operand >= 0) plan_.written[static_cast<size_t>(operand)] = true;
      }
    }
    plan_.knows_shapes = ask_meta();
    if (!plan_.knows_shapes) take_declared(declared);
    return std::move(plan_);
  }

 private:
  void check_schema() const {
    LAMELLA_CHECK(!plan_.schema.is_vararg && !plan_.schema.is_varret, plan_.name,
                  ": expected an operator with a fixed number of arguments and results");
    for (const Argument& result : plan_.schema.returns) {
      SchemaType type = result.type.without_optional();
      bool tensors = type.is_tensor() || (type.is_list() && type.element().base().is_tensor());
      LAMELLA_CHECK(tensors, plan_.name, ": expected an operator that returns tensors, got ",
                    result.type.str(), ", which modules lack");
    }
  }

  // The operand that a return, or an element of it, aliases; -1 if it has its own memory.
  int32_t returned_operand(size_t r, int32_t element) const {
    const int written = facts_->returns[r].written;
    if (written < 0) return -1;
    const OperatorArgument& argument = plan_.arguments[static_cast<size_t>(written)];
    if (argument.form == Form::Operand) return argument.operands[0];
    bool is_element = argument.form == Form::Operands && element >= 0 &&
                      static_cast<size_t>(element) < argument.operands.size();
    return is_element ? argument.operands[static_cast<size_t>(element)] : -1;
  }
  // Written operands that are not among the outputs so far, in order of the arguments.
  std::vector<int32_t> not_returned() const {
    std::vector<int32_t> found;
    for (uint16_t i : facts_->written) {
      for (int32_t operand : plan_.arguments[i].operands) {
        bool known = operand < 0 || std::find(found.begin(), found.end(), operand) != found.end();
        for (const OperatorOutput& output : plan_.outputs) known |= output.operand == operand;
        if (!known) found.push_back(operand);
      }
    }
    return found;
  }
  static Shape shape_of(const lamella_tensor* tensor) {
    ElementType type = element_type_of(static_cast<ScalarType>(tensor->scalar_type));
    LAMELLA_CHECK(type != ElementType::Invalid,
                  "expected a result of an element type that modules have, got ",
                  static_cast<ScalarType>(tensor->scalar_type));
    return Shape::array(type, std::vector<int64_t>(tensor->sizes, tensor->sizes + tensor->ndim));
  }
  void add_output(Shape shape, int32_t index, int32_t element, int32_t operand) {
    plan_.outputs.push_back({std::move(shape), index, element, operand});
  }

  // Adds the outputs that the Meta kernel gives. False if the operator cannot infer its shapes.
  bool ask_meta() {
    std::vector<TensorBase> tensors;
    std::vector<lamella_tensor*> pointers;
    for (const Shape* shape : operands_) {
      std::span<const int64_t> sizes = shape->dimensions();
      lamella_tensor* made = nullptr;
      lamella::detail::check(
          lamella_tensor_empty(static_cast<int32_t>(sizes.size()), sizes.data(),
                               static_cast<uint8_t>(*scalar_type_of(shape->element_type())),
                               static_cast<uint8_t>(DeviceType::Meta), -1, &made));
      tensors.push_back(TensorBase::adopt(made));
      pointers.push_back(made);
    }
    std::vector<OperatorArgument> arguments = plan_.arguments;
    for (size_t i = 0; i < arguments.size(); ++i) {
      SchemaType type = plan_.schema.arguments[i].type.without_optional();
      if (type.kind() == TypeKind::kDevice) arguments[i].value = IValue(Device(DeviceType::Meta));
    }
    BoxedArguments boxed(arguments);
    std::vector<lamella_value> values(boxed.size());
    std::vector<lamella_tensor*> lists(boxed.list_entries());
    boxed.put(pointers.data(), values.data(), lists.data());
    std::vector<IValue> returns(plan_.op->return_count);
    lamella_status status;
    {
      BelowLayers below;
      status =
          call_operator(plan_.op, values.data(), reinterpret_cast<lamella_value*>(returns.data()));
    }
    if (status == LAMELLA_NOT_IMPLEMENTED) return false;
    if (status != LAMELLA_OK) lamella::detail::throw_status(status);
    for (size_t r = 0; r < returns.size(); ++r) {
      const lamella_value& value = returns[r].value();
      bool is_list = value.tag == LAMELLA_TENSOR_LIST;
      int32_t element = 0;
      each_tensor(value, [&](lamella_tensor* tensor) {
        int32_t place = is_list ? element++ : -1;
        if (tensor == nullptr) return;
        add_output(shape_of(tensor), static_cast<int32_t>(r), place, returned_operand(r, place));
      });
    }
    for (int32_t operand : not_returned()) {
      add_output(shape_of(pointers[static_cast<size_t>(operand)]), -1, -1, operand);
    }
    return true;
  }

  // Adds the outputs that the module declares, for operators that cannot infer them.
  void take_declared(const std::vector<const Shape*>* declared) {
    size_t lists = 0;
    for (const Argument& result : plan_.schema.returns) {
      lists += result.type.without_optional().is_list() ? 1 : 0;
    }
    if (declared == nullptr) {
      throw Error(str(plan_.name,
                      ": expected an operator with a Meta kernel, which gives the shape ",
                      "of its results; declare the shape by hand"));
    }
    LAMELLA_CHECK(lists <= 1, plan_.name,
                  ": expected a Meta kernel, since it returns several lists");
    const auto& returns = plan_.schema.returns;
    size_t extra = not_returned().size();
    // Written operands that are returned are counted as returns, not as extra outputs.
    for (size_t r = 0; r < returns.size(); ++r) {
      int32_t operand = returned_operand(r, -1);
      if (operand >= 0 && extra != 0) --extra;
    }
    size_t others = returns.size() - lists + extra;
    LAMELLA_CHECK(declared->size() >= others && (lists == 1 || declared->size() == others),
                  plan_.name, ": expected ", lists == 1 ? "at least " : "", others,
                  " results, got ", declared->size());
    size_t next = 0;
    for (size_t r = 0; r < returns.size(); ++r) {
      bool is_list = returns[r].type.without_optional().is_list();
      size_t count = is_list ? declared->size() - others : 1;
      for (size_t k = 0; k < count; ++k) {
        int32_t place = is_list ? static_cast<int32_t>(k) : -1;
        add_output(*(*declared)[next++], static_cast<int32_t>(r), place,
                   returned_operand(r, place));
      }
    }
    for (int32_t operand : not_returned()) add_output(*(*declared)[next++], -1, -1, operand);
  }

  OperatorPlan plan_;
  std::span<const Shape* const> operands_;
  const OperatorFacts* facts_ = nullptr;
};

}  // namespace

const lamella_operator* find_operator(std::string_view full_name) {
  size_t name = full_name.find("::");
  if (name == std::string_view::npos) return nullptr;
  size_t dot = full_name.find('.', name);
  std::string base(full_name.substr(0, dot));
  std::string overload(dot == std::string_view::npos ? std::string_view()
                                                     : full_name.substr(dot + 1));
  return lamella_lookup_operator(base.c_str(), overload.c_str(), 1);
}

std::vector<OperatorArgument> arguments_of_call(const Instruction& i, std::string_view full_name) {
  if (i.opcode != Opcode::CustomCall || i.text(AttributeKey::CustomCallTarget) != full_name) {
    return {};
  }
  const lamella_operator* op = find_operator(full_name);
  if (op == nullptr) return {};
  FunctionSchema schema;
  {
    std::lock_guard lock(Registry::get().mutex());
    schema = Registry::get().schema(entry_of(op));
  }
  try {
    return read_operator_arguments(schema, opaque_of(i), i.operands.size());
  } catch (const Error&) {
    return {};
  }
}

bool operator_draws_random_numbers(std::string_view full_name) {
  const auto* entry = static_cast<const OperatorEntry*>(find_operator(full_name));
  if (entry == nullptr) return false;
  std::lock_guard lock(Registry::get().mutex());
  return is_random(*entry);
}

OperatorPlan plan_operator(const lamella_operator* op, std::span<const Shape* const> operands,
                           std::string_view arguments, const std::vector<const Shape*>* declared) {
  return Planner(op, operands).make(arguments, declared);
}

BoxedArguments::BoxedArguments(const std::vector<OperatorArgument>& arguments) {
  for (const OperatorArgument& one : arguments) {
    lamella_value value = one.value.value();
    auto argument = static_cast<uint32_t>(values_.size());
    if (one.form == Form::Operand) {
      value = {{0}, 0, LAMELLA_TENSOR, 0, 0};
      places_.push_back({argument, one.operands[0], 1, false});
    } else if (one.form == Form::Operands) {
      auto count = static_cast<uint32_t>(one.operands.size());
      value = {{0}, count, LAMELLA_TENSOR_LIST, 0, 0};
      places_.push_back({argument, static_cast<int32_t>(list_operands_.size()), count, true});
      list_operands_.insert(list_operands_.end(), one.operands.begin(), one.operands.end());
    }
    values_.push_back(value);
  }
  list_entries_ = list_operands_.size();
}

void BoxedArguments::put(lamella_tensor* const* operands, lamella_value* values,
                         lamella_tensor** lists) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    lamella::detail::copy_value(values[i], values_[i]);
  }
  for (const TensorSlot& place : places_) {
    if (!place.is_list) {
      values[place.argument].as.tensor = operands[place.operand];
      continue;
    }
    lamella_tensor** first = lists + place.operand;
    for (uint32_t k = 0; k < place.count; ++k) {
      int32_t operand = list_operands_[static_cast<size_t>(place.operand) + k];
      first[k] = operand < 0 ? nullptr : operands[operand];
    }
    values[place.argument].as.pointer = first;
  }
}

}  // namespace lamella::hlo
