// One pass over the nodes of a graph.
#include "lamella/graph/lowering/trace_to_hlo.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <unordered_set>

#include "lamella/core/error.h"
#include "lamella/dispatch/registry.h"
#include "lamella/graph/custom_call/opaque.h"
#include "lamella/graph/custom_call/operator_arguments.h"
#include "lamella/graph/custom_call/operator_tensors.h"
#include "lamella/layers/trace/operators.h"

namespace lamella::hlo {
namespace {

using tracing::Graph;
using tracing::kNoValue;
using tracing::Node;
using tracing::Operand;
using tracing::ValueId;
using tracing::ValueKind;

class Converter {
 public:
  Converter(const Graph& graph, std::string_view name)
      : graph_(graph),
        module_(std::make_unique<Module>(name)),
        made_(graph.values().size()),
        stale_(graph.values().size(), false),
        tensor_(graph.values().size()) {
    std::iota(tensor_.begin(), tensor_.end(), ValueId{0});
  }

  std::unique_ptr<Module> convert() {
    computation_ = module_->add_computation("main");
    module_->entry = computation_;
    ArrayRef<ValueId> inputs = graph_.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      Instruction* parameter =
          add(Opcode::Parameter, graph_.name(inputs[i]), shape_of(inputs[i], nullptr), {}, {});
      parameter->parameter_number = static_cast<int64_t>(i);
      computation_->parameters.push_back(parameter);
      made_[inputs[i]] = parameter;
    }
    for (ValueId id = 0; id < graph_.values().size(); ++id) {
      ValueKind kind = graph_.value(id).kind;
      if (kind == ValueKind::kParameter || kind == ValueKind::kConstant) add_constant(id);
    }
    for (const Node& node : graph_.nodes()) add_node(node);
    std::vector<Instruction*> outputs;
    std::vector<Shape> shapes;
    auto add_output = [&](ValueId id) {
      Instruction* made = made_[tensor_[id]];
      LAMELLA_CHECK(made != nullptr && !stale_[tensor_[id]], "from_trace: expected output %", id,
                    made == nullptr ? " to be made by an operator that gives tensors"
                                    : " not to be written through another tensor over its memory; "
                                      "functionalize what is traced");
      outputs.push_back(made);
      shapes.push_back(*made->shape);
    };
    for (ValueId id : graph_.outputs()) {
      if (id != kNoValue) add_output(id);
    }
    for (ValueId id : written_inputs_) {
      InputOutputAlias alias;
      alias.output = {static_cast<int64_t>(outputs.size())};
      alias.parameter = graph_.value(id).outside;
      module_->input_output_aliases.push_back(alias);
      add_output(id);
    }
    computation_->root =
        add(Opcode::Tuple, "result", module_->intern(Shape::tuple(std::move(shapes))), outputs, {});
    verify(*module_);
    return std::move(module_);
  }

 private:
  [[noreturn]] void refuse(const Node& node, const std::string& why) const {
    std::string where = graph_.location(node).str();
    throw Error(str("from_trace: node ", &node - graph_.nodes().data(), " (",
                    tracing::plan_of(node.op)->name, where.empty() ? "" : " at ", where,
                    "): ", why));
  }
  const Shape* shape_of(ValueId id, const Node* node) {
    const tracing::Value& value = graph_.value(id);
    ElementType type = element_type_of(value.dtype);
    bool fits = type != ElementType::Invalid && value.device.is_cpu();
    if (!fits) {
      std::string why = str("expected tensors on the CPU of a type that modules have, got ",
                            graph_.type_text(id));
      if (node != nullptr) refuse(*node, why);
      throw Error("from_trace: " + why);
    }
    IntArrayRef sizes = graph_.sizes(id);
    return module_->intern(Shape::array(type, std::vector<int64_t>(sizes.begin(), sizes.end())));
  }
  // A name that no instruction has, of what XLA's text allows in names.
  std::string name_like(std::string_view wanted) {
    std::string name;
    if (wanted.empty() || (wanted[0] >= '0' && wanted[0] <= '9')) name += '_';
    for (char c : wanted) {
      bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      name += plain || c == '_' ? c : '_';
    }
    // Inputs, which stand first, keep theirs where they can.
    if (names_.insert(name).second) return name;
    return name += str(".", computation_->instructions.size());
  }
  Instruction* add(Opcode opcode, std::string_view name, const Shape* shape,
                   const std::vector<Instruction*>& operands,
                   const std::vector<Attribute>& attributes) {
    return module_->add_instruction(computation_, opcode, name_like(name), shape, operands,
                                    attributes);
  }
  Attribute text_attribute(AttributeKey key, std::string_view text) {
    std::string_view kept = module_->arena().copy(text);
    Attribute attribute{};
    attribute.key = key;
    attribute.size = static_cast<uint32_t>(kept.size());
    attribute.text_data = kept.data();
    return attribute;
  }

  void add_constant(ValueId id) {
    const Shape* shape = shape_of(id, nullptr);
    Value value = value_of(graph_.tensor(id), shape);
    auto* literal = module_->arena().make<Literal>(*shape);
    if (value.bytes() != 0) std::memcpy(literal->data(), value.data(), value.bytes());
    made_[id] = add(Opcode::Constant, graph_.name(id), shape, {}, {});
    made_[id]->literal = literal;
  }

  bool is_row_major(ValueId id) const {
    IntArrayRef sizes = graph_.sizes(id), strides = graph_.strides(id);
    int64_t expected = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      if (sizes[d] != 1 && strides[d] != expected) return false;
      expected *= sizes[d];
    }
    return true;
  }

  FunctionSchema schema_of(const lamella_operator* op) const {
    auto* entry = entry_of(op);
    std::lock_guard lock(Registry::get().mutex());
    LAMELLA_CHECK(entry->defined(), "from_trace: expected ", entry->full_name(),
                  " to be defined still");
    return Registry::get().schema(entry);
  }
  std::vector<OperatorArgument> arguments_of(const Node& node, const FunctionSchema& schema,
                                             std::vector<Instruction*>* operands) {
    std::vector<OperatorArgument> arguments;
    auto take = [&](ValueId id) -> int32_t {
      if (id == kNoValue) return -1;
      if (stale_[tensor_[id]]) {
        refuse(node, str("expected %", id, " not to be written through another tensor over its ",
                         "memory; functionalize what is traced"));
      }
      Instruction* made = made_[tensor_[id]];
      if (made == nullptr) {
        refuse(node, str("expected %", id, " to be made by an operator that gives tensors"));
      }
      operands->push_back(made);
      return static_cast<int32_t>(operands->size()) - 1;
    };
    ArrayRef<Operand> given = graph_.arguments(node);
    for (size_t i = 0; i < given.size(); ++i) {
      OperatorArgument one;
      switch (given[i].form) {
        case Operand::kPlain:
          one.value = given[i].value;
          break;
        case Operand::kTensor: {
          int32_t operand = take(graph_.tensors(given[i])[0]);
          if (operand >= 0) {
            one.form = OperatorArgument::Form::Operand;
            one.operands = {operand};
          }
          break;
        }
        case Operand::kList:
          one.form = OperatorArgument::Form::Operands;
          for (ValueId id : graph_.tensors(given[i])) one.operands.push_back(take(id));
          break;
        case Operand::kNested:
          refuse(node, str("expected argument '", schema.arguments[i].name,
                           "' to be a tensor or a list of tensors, got them nested"));
      }
      arguments.push_back(std::move(one));
    }
    return arguments;
  }

  // All other tensors over the memory that a call writes are out of date.
  void forget_aliases(ValueId written) {
    for (ValueId id = 0; id < made_.size(); ++id) {
      if (graph_.value(id).root == graph_.value(written).root && tensor_[id] != tensor_[written]) {
        stale_[tensor_[id]] = true;
      }
    }
  }

  void add_node(const Node& node) {
    PlanRef<tracing::TracingPlan> held = tracing::plan_of(node.op);
    const tracing::TracingPlan& plan = *held;
    FunctionSchema schema = schema_of(node.op);
    // What the call gives, in the order of its results, and what of that is a written argument.
    std::vector<ValueId> results;
    std::vector<ValueId> written;
    ArrayRef<Operand> returns = graph_.returns(node);
    for (size_t r = 0; r < returns.size(); ++r) {
      const Operand& one = returns[r];
      // What became of a number is Python's, and not in the graph.
      if (one.form == Operand::kPlain && one.value.value().tag != LAMELLA_NONE) return;
      const int argument = plan.facts->returns[r].written;
      ArrayRef<ValueId> ids = graph_.tensors(one);
      for (size_t k = 0; k < ids.size(); ++k) {
        if (ids[k] == kNoValue) continue;
        results.push_back(ids[k]);
        if (argument < 0) continue;
        ValueId before = graph_.tensors(graph_.arguments(node)[static_cast<size_t>(argument)])[k];
        written.push_back(before);
        tensor_[ids[k]] = tensor_[before];
      }
    }
    for (ValueId id : graph_.written_by(node)) {
      if (std::find(written.begin(), written.end(), id) != written.end()) continue;
      if (!schema_says_written(node, *plan.facts, id)) {
        refuse(node,
               str("expected a call that writes what its schema says, got one that writes %", id));
      }
      written.push_back(id);
      results.push_back(id);
    }
    if (plan.name.starts_with("aten::as_strided")) {
      for (ValueId id : graph_.used_by(node)) {
        if (!is_row_major(id)) {
          refuse(node,
                 str("expected %", id, " to be contiguous, since the arrays of a module are"));
        }
      }
    }
    std::vector<Instruction*> operands;
    std::vector<OperatorArgument> arguments = arguments_of(node, schema, &operands);
    std::vector<Attribute> attributes = attributes_of(node, plan, schema, arguments);
    if (plan.random || results.empty()) {
      Attribute effect{};
      effect.key = AttributeKey::CustomCallHasSideEffect;
      effect.integer = 1;
      attributes.insert(attributes.begin() + 1, effect);
    }

    std::vector<Shape> shapes;
    for (ValueId id : results) shapes.push_back(*shape_of(id, &node));
    std::string_view name = std::string_view(plan.name).substr(plan.name.find("::") + 2);
    name = name.substr(0, name.find('.'));
    bool is_tuple = results.size() != 1;
    const Shape* shape =
        module_->intern(is_tuple ? Shape::tuple(std::move(shapes)) : std::move(shapes[0]));
    Instruction* call = add(Opcode::CustomCall, name, shape, operands, attributes);
    for (size_t r = 0; r < results.size(); ++r) {
      Instruction* made = call;
      if (is_tuple) {
        Attribute index{};
        index.key = AttributeKey::Index;
        index.integer = static_cast<int64_t>(r);
        made = add(Opcode::GetTupleElement, name, shape_of(results[r], &node), {call}, {index});
      }
      made_[tensor_[results[r]]] = made;
      // A view of memory that was written since is made of what is there now.
      stale_[tensor_[results[r]]] = false;
    }
    for (ValueId id : written) {
      forget_aliases(id);
      note_written(node, id);
    }
  }

  bool schema_says_written(const Node& node, const OperatorFacts& facts, ValueId id) const {
    return std::ranges::any_of(facts.written, [&](uint16_t i) {
      ArrayRef<ValueId> ids = graph_.tensors(graph_.arguments(node)[i]);
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    });
  }

  // Memory from outside that was written is a result of the module.
  void note_written(const Node& node, ValueId id) {
    ValueId root = graph_.value(id).root;
    ValueKind kind = graph_.value(root).kind;
    if (kind == ValueKind::kResult) return;
    if (kind != ValueKind::kInput) {
      refuse(node, str("expected a graph that writes none of its parameters and constants, got a ",
                       "write to '", graph_.name(root), "'"));
    }
    if (tensor_[id] != root) {
      refuse(node, str("expected '", graph_.name(root), "' to be written as a whole, got a write ",
                       "through a view; functionalize what is traced"));
    }
    if (std::find(written_inputs_.begin(), written_inputs_.end(), root) == written_inputs_.end()) {
      written_inputs_.push_back(root);
    }
  }

  std::vector<Attribute> attributes_of(const Node& node, const tracing::TracingPlan& plan,
                                       const FunctionSchema& schema,
                                       const std::vector<OperatorArgument>& arguments) {
    std::string text;
    try {
      text = operator_arguments_text(schema, arguments);
    } catch (const Error& error) {
      refuse(node, error.what());
    }
    tracing::SourceLocation place = graph_.location(node);
    std::string metadata = str("{op_name=", quoted_opaque(plan.name));
    if (!place.file.empty()) {
      metadata += str(" source_file=", quoted_opaque(place.file), " source_line=", place.line);
    }
    return {text_attribute(AttributeKey::CustomCallTarget, plan.name),
            text_attribute(AttributeKey::BackendConfig, quoted_opaque(text)),
            text_attribute(AttributeKey::Metadata, metadata + "}")};
  }

  const Graph& graph_;
  std::unique_ptr<Module> module_;
  Computation* computation_ = nullptr;
  // By the first value of a tensor (tensor_): where it is now, and whether its memory was written
  // through another tensor since.
  std::vector<Instruction*> made_;
  std::vector<bool> stale_;
  std::vector<ValueId> tensor_;
  std::vector<ValueId> written_inputs_;
  std::unordered_set<std::string> names_;
};

}  // namespace

std::unique_ptr<Module> module_of_graph(const Graph& graph, std::string_view name) {
  return Converter(graph, name).convert();
}

}  // namespace lamella::hlo
