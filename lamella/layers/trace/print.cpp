// Prints graphs as text.
#include "lamella/core/error.h"
#include "lamella/dispatch/value_text.h"
#include "lamella/layers/trace/graph.h"
#include "lamella/layers/trace/operators.h"
#include "lamella/schema/printer.h"
#include "lamella/schema/type.h"

namespace lamella::tracing {
namespace {

template <class F>
std::string joined(uint32_t count, F&& item, const char* open = "[", const char* close = "]") {
  std::string text = open;
  for (uint32_t i = 0; i < count; ++i) {
    if (i != 0) text += ", ";
    text += item(i);
  }
  return text + close;
}
std::string value_name(ValueId id) { return id == kNoValue ? "None" : str("%", id); }

// Tensors in a plain operand are Python numbers; all other tensors are values of the graph.
class Words final : public ValueWords {
 public:
  explicit Words(ArrayRef<ValueId> ids) : next_(ids.data()) {}
  std::string tensor(lamella_tensor* tensor) override {
    if (tensor == nullptr) return value_name(*next_++);
    TensorBase number = TensorBase::borrow(tensor);
    return number_text(number).value_or(str("number of ", number.scalar_type()));
  }
  std::string other(const lamella_value& value, SchemaType) override {
    auto nested = [&](uint32_t i) {
      return value_text(static_cast<const lamella_value*>(value.as.pointer)[i],
                        SchemaType::atom(TypeKind::kAny), *this);
    };
    switch (value.tag) {
      case LAMELLA_TENSOR_LIST:
        return joined(value.size, [&](uint32_t) { return value_name(*next_++); });
      case LAMELLA_TUPLE:
        return joined(value.size, nested, "(", ")");
      case LAMELLA_DICT:
        return joined(
            value.size / 2, [&](uint32_t i) { return nested(2 * i) + ": " + nested(2 * i + 1); },
            "{", "}");
      case LAMELLA_GENERATOR:
        return "<generator>";
      default:
        return "<object>";
    }
  }

 private:
  const ValueId* next_;
};

std::string operand_text(const Graph& graph, const Operand& operand, SchemaType type) {
  ArrayRef<ValueId> ids = graph.tensors(operand);
  switch (operand.form) {
    case Operand::kTensor:
      return value_name(ids[0]);
    case Operand::kList:
      return joined(operand.count, [&](uint32_t i) { return value_name(ids[i]); });
    default: {
      Words words(ids);
      return value_text(operand.value.value(), type, words);
    }
  }
}

}  // namespace

std::string Graph::type_text(ValueId id) const {
  const Value& v = values_[id];
  IntArrayRef sizes = this->sizes(id);
  std::string text = dtype_name(v.dtype);
  text +=
      joined(static_cast<uint32_t>(v.ndim), [&](uint32_t i) { return std::to_string(sizes[i]); });
  if (!v.device.is_cpu()) text += " on " + v.device.str();
  return text;
}

std::string Graph::node_text(const Node& node) const {
  PlanRef<TracingPlan> held = plan_of(node.op);
  const TracingPlan& plan = *held;
  std::string text;
  auto one = [&](ValueId id) {
    return id == kNoValue ? "None" : "%" + std::to_string(id) + ": " + type_text(id);
  };
  ArrayRef<Operand> results = returns(node);
  for (size_t r = 0; r < results.size(); ++r) {
    if (r != 0) text += ", ";
    ArrayRef<ValueId> ids = tensors(results[r]);
    if (results[r].form == Operand::kPlain) {
      text += "_";  // a Python number, which is not a value of the graph
    } else if (results[r].form == Operand::kTensor) {
      text += one(ids[0]);
    } else {
      text += joined(results[r].count, [&](uint32_t i) { return one(ids[i]); });
    }
  }
  if (!results.empty()) text += " = ";
  text += plan.name + "(";
  ArrayRef<Operand> given = arguments(node);
  for (size_t i = 0; i < given.size(); ++i) {
    if (i != 0) text += ", ";
    bool known = i < plan.arguments.size();
    if (known && plan.keyword_only[i] != 0) text += plan.arguments[i] + "=";
    text += operand_text(*this, given[i], known ? plan.types[i] : SchemaType::atom(TypeKind::kAny));
  }
  text += ")";
  if (node.grad_mode != GradMode::kInherit) {
    text += node.grad_mode == GradMode::kOff ? " under no_grad" : " under enable_grad";
  }
  return text;
}

std::string Graph::str() const {
  std::string text = "graph(";
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (i != 0) text += ", ";
    text +=
        "%" + std::to_string(inputs_[i]) + " " + name(inputs_[i]) + ": " + type_text(inputs_[i]);
  }
  text += "):\n";
  for (ValueId id = 0; id < values_.size(); ++id) {
    const Value& v = values_[id];
    if (v.kind != ValueKind::kParameter && v.kind != ValueKind::kConstant) continue;
    text += "  %" + std::to_string(id) + ": " + type_text(id) +
            (v.kind == ValueKind::kParameter ? " = parameter " : " = constant ") +
            detail::quote_string(name(id)) + "\n";
  }
  for (const Node& node : nodes_) {
    text += "  " + node_text(node);
    std::string where = location(node).str();
    if (!where.empty()) text += "  # " + where;
    text += "\n";
  }
  text += "  return ";
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (i != 0) text += ", ";
    text += value_name(outputs_[i]);
  }
  if (outputs_.empty()) text += "nothing";
  return text + "\n";
}

}  // namespace lamella::tracing
