// Graphs as text.
#include <charconv>

#include "lamella/core/error.h"
#include "lamella/core/memory_format.h"
#include "lamella/core/scalar.h"
#include "lamella/layers/trace/graph.h"
#include "lamella/layers/trace/operators.h"
#include "lamella/schema/printer.h"
#include "lamella/schema/type.h"

namespace lamella::tracing {
namespace {

// The shortest text that reads back as the same number, and is no whole number's.
template <class T>
std::string number_text(T number) {
  char text[32];
  char* end = std::to_chars(text, text + sizeof(text), number).ptr;
  std::string made(text, end);
  return made.find_first_of(".en") == std::string::npos ? made + ".0" : made;
}
std::string complex_text(double real, double imag) {
  return "complex(" + number_text(real) + ", " + number_text(imag) + ")";
}

template <class F>
std::string joined(uint32_t count, F&& item, const char* open = "[", const char* close = "]") {
  std::string text = open;
  for (uint32_t i = 0; i < count; ++i) {
    if (i != 0) text += ", ";
    text += item(i);
  }
  return text + close;
}

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string value_name(ValueId id) const {
    if (id == kNoValue) return "None";
    return "%" + std::to_string(id);
  }
  std::string operand(const Operand& operand, TypeKind kind) const {
    ArrayRef<ValueId> ids = graph_.tensors(operand);
    switch (operand.form) {
      case Operand::kTensor:
        return value_name(ids[0]);
      case Operand::kList:
        return joined(operand.count, [&](uint32_t i) { return value_name(ids[i]); });
      default: {
        const ValueId* next = ids.data();
        return plain(operand.value.value(), kind, &next);
      }
    }
  }

 private:
  static std::string literal(const TensorBase& tensor) {
    const void* data = tensor.data_ptr();
    switch (tensor.scalar_type()) {
      case ScalarType::Double:
        return number_text(*static_cast<const double*>(data));
      case ScalarType::Float:
        return number_text(*static_cast<const float*>(data));
      case ScalarType::Long:
        return std::to_string(*static_cast<const int64_t*>(data));
      case ScalarType::Bool:
        return *static_cast<const bool*>(data) ? "True" : "False";
      case ScalarType::ComplexDouble: {
        auto* parts = static_cast<const double*>(data);
        return complex_text(parts[0], parts[1]);
      }
      case ScalarType::ComplexFloat: {
        auto* parts = static_cast<const float*>(data);
        return complex_text(static_cast<double>(parts[0]), static_cast<double>(parts[1]));
      }
      default:
        return lamella::str("number of ", tensor.scalar_type());
    }
  }
  std::string plain(const lamella_value& v, TypeKind kind, const ValueId** next) const {
    switch (v.tag) {
      case LAMELLA_NONE:
        return "None";
      case LAMELLA_TENSOR:
        if (v.as.tensor != nullptr) return literal(TensorBase::borrow(v.as.tensor));
        return value_name(*(*next)++);
      case LAMELLA_INT:
        if (kind == TypeKind::kScalarType) return dtype_name(static_cast<ScalarType>(v.as.i));
        if (kind == TypeKind::kMemoryFormat) return toString(static_cast<MemoryFormat>(v.as.i));
        if (kind == TypeKind::kLayout && v.as.i == 0) return "strided";
        return std::to_string(v.as.i);
      case LAMELLA_DOUBLE:
        return number_text(v.as.d);
      case LAMELLA_BOOL:
        return v.as.i != 0 ? "True" : "False";
      case LAMELLA_COMPLEX: {
        auto* parts = static_cast<const double*>(v.as.pointer);
        return complex_text(parts[0], parts[1]);
      }
      case LAMELLA_STRING:
        return detail::quote_string({static_cast<const char*>(v.as.pointer), v.size});
      case LAMELLA_DEVICE:
        return IValue::unpack_device(v.as.i).str();
      case LAMELLA_INT_LIST:
        return joined(v.size, [&](uint32_t i) {
          return std::to_string(static_cast<const int64_t*>(v.as.pointer)[i]);
        });
      case LAMELLA_DOUBLE_LIST:
        return joined(v.size, [&](uint32_t i) {
          return number_text(static_cast<const double*>(v.as.pointer)[i]);
        });
      case LAMELLA_BOOL_LIST:
        return joined(v.size, [&](uint32_t i) {
          return std::string(static_cast<const uint8_t*>(v.as.pointer)[i] != 0 ? "True" : "False");
        });
      case LAMELLA_GENERATOR:
        return "<generator>";
      case LAMELLA_OBJECT:
        return "<object>";
      case LAMELLA_TENSOR_LIST:
        return joined(v.size, [&](uint32_t) { return value_name(*(*next)++); });
      case LAMELLA_DICT: {
        auto* items = static_cast<const lamella_value*>(v.as.pointer);
        return joined(
            v.size / 2,
            [&](uint32_t i) {
              std::string key = plain(items[2 * i], TypeKind::kAny, next);
              return key + ": " + plain(items[2 * i + 1], TypeKind::kAny, next);
            },
            "{", "}");
      }
      default: {
        auto* items = static_cast<const lamella_value*>(v.as.pointer);
        bool tuple = v.tag == LAMELLA_TUPLE;
        return joined(
            v.size, [&](uint32_t i) { return plain(items[i], TypeKind::kAny, next); },
            tuple ? "(" : "[", tuple ? ")" : "]");
      }
    }
  }

  const Graph& graph_;
};

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
  Printer printer(*this);
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
      text += "_";  // a number: what became of it is Python's
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
    text += printer.operand(given[i],
                            known ? static_cast<TypeKind>(plan.schema_kinds[i]) : TypeKind::kAny);
  }
  text += ")";
  if (node.grad_mode != GradMode::kInherit) {
    text += node.grad_mode == GradMode::kOff ? " under no_grad" : " under enable_grad";
  }
  return text;
}

std::string Graph::str() const {
  Printer printer(*this);
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
    text += printer.value_name(outputs_[i]);
  }
  if (outputs_.empty()) text += "nothing";
  return text + "\n";
}

}  // namespace lamella::tracing
