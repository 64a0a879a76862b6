// Converts a traced graph to a module in one pass over its nodes.
#include "lamella/graph/lowering/graph_to_module.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <unordered_set>

#include "lamella/core/error.h"
#include "lamella/dispatch/registry.h"
#include "lamella/graph/custom_call/opaque.h"
#include "lamella/graph/custom_call/operator_arguments.h"
#include "lamella/graph/custom_call/operator_call.h"
#include "lamella/graph/custom_call/operator_tensors.h"
#include "lamella/graph/hlo/attribute_scanner.h"
#include "lamella/graph/lowering/lowering.h"
#include "lamella/graph/runtime/tensor_value.h"
#include "lamella/layers/trace/operators.h"

namespace lamella::hlo {
namespace {

using tracing::Graph;
using tracing::kNoValue;
using tracing::Node;
using tracing::ValueId;
using tracing::ValueKind;

// Marks the tangents and the values that depend on them.
std::vector<bool> late_values(const Graph& graph, const std::vector<ValueId>& tangents) {
  std::vector<bool> late(graph.values().size(), false);
  for (ValueId id : tangents) late[id] = true;
  for (const Node& node : graph.nodes()) {
    bool is_late =
        std::ranges::any_of(graph.used_by(node), [&](ValueId id) { return bool(late[id]); });
    for (ValueId id : graph.made_by(node)) late[id] = late[id] || is_late;
  }
  return late;
}

class Converter {
 public:
  Converter(const Graph& graph, std::string_view name, const GraphPart& part)
      : graph_(graph),
        part_(part),
        builder_(name),
        made_(graph.values().size()),
        stale_(graph.values().size(), false),
        tensor_(graph.values().size()) {
    std::iota(tensor_.begin(), tensor_.end(), ValueId{0});
    builder_.set_die_immediately_on_error(true);
  }

  std::shared_ptr<const Module> convert() {
    for (size_t i = 0; i < part_.inputs.size(); ++i) {
      ValueId id = part_.inputs[i];
      bool named = graph_.value(id).kind != ValueKind::kResult;
      made_[id] = Parameter(&builder_, static_cast<int64_t>(i), shape_of(id, nullptr),
                            named ? graph_.name(id) : str("saved", id));
    }
    std::vector<bool> kept = needed_nodes();
    for (size_t n = 0; n < kept.size(); ++n) {
      if (kept[n]) add_node(graph_.nodes()[n]);
    }
    std::vector<Op> outputs;
    auto add_output = [&](ValueId id) {
      Op made = current(id);
      LAMELLA_CHECK(made.valid() && !stale_[tensor_[id]], "from_trace: expected output %", id,
                    !made.valid() ? " to be made by an operator that returns tensors"
                                  : " not to be written through another tensor over its memory; "
                                    "functionalize what is traced");
      outputs.push_back(made);
    };
    for (ValueId id : part_.outputs) {
      if (id != kNoValue) add_output(id);
    }
    for (ValueId id : written_inputs_) {
      auto place = std::find(part_.inputs.begin(), part_.inputs.end(), id);
      builder_.SetUpAlias({static_cast<int64_t>(outputs.size())}, place - part_.inputs.begin(), {});
      add_output(id);
    }
    return with_names(builder_.Build(Tuple(&builder_, outputs)).value().module());
  }

 private:
  [[noreturn]] void refuse(const Node& node, const std::string& why) const {
    std::string where = graph_.location(node).str();
    throw Error(str("from_trace: node ", &node - graph_.nodes().data(), " (",
                    tracing::plan_of(node.op)->name, where.empty() ? "" : " at ", where,
                    "): ", why));
  }
  Shape shape_of(ValueId id, const Node* node) const {
    const tracing::Value& value = graph_.value(id);
    ElementType type = element_type_of(value.dtype);
    // A module has no devices: it runs where its arguments are.
    bool fits = type != ElementType::Invalid && (value.device.is_cpu() || value.device.is_cuda());
    if (!fits) {
      std::string why = str("expected tensors on the CPU or CUDA of a type that modules have, got ",
                            graph_.type_text(id));
      if (node != nullptr) refuse(*node, why);
      throw Error("from_trace: " + why);
    }
    IntArrayRef sizes = graph_.sizes(id);
    return Shape::array(type, std::vector<int64_t>(sizes.begin(), sizes.end()));
  }
  // Gives parameters the names of the graph's inputs, as far as XLA's text allows, instead of the
  // builder's numbered names. An operator made from the module has these argument names.
  std::shared_ptr<const Module> with_names(std::shared_ptr<const Module> built) const {
    auto& module = const_cast<Module&>(*built);  // not shared yet
    std::unordered_set<std::string> taken;
    for (Instruction* parameter : module.entry->parameters) {
      ValueId id = part_.inputs[static_cast<size_t>(parameter->parameter_number)];
      if (graph_.value(id).kind == ValueKind::kResult) continue;
      std::string name = graph_.name(id);
      std::ranges::replace_if(name, [](char c) { return c == '.' || c == '-'; }, '_');
      name = name_in_text(name, NameOf::Instruction);
      if (taken.insert(name).second) parameter->name = module.arena().copy(name);
    }
    return built;
  }

  // Marks the nodes to convert: those that the outputs depend on, those that write needed values or
  // inputs, and those with side effects.
  std::vector<bool> needed_nodes() const {
    std::vector<bool> needed(graph_.values().size(), false), roots(needed),
        kept(graph_.nodes().size(), false);
    std::vector<bool> given(needed);
    for (ValueId id : part_.inputs) {
      given[id] = true;
      if (part_.writes) roots[graph_.value(id).root] = true;
    }
    auto need = [&](ValueId id) {
      if (id != kNoValue && !given[id]) needed[id] = roots[graph_.value(id).root] = true;
    };
    for (ValueId id : part_.outputs) need(id);
    std::vector<bool> late = late_values(graph_, part_.tangents);
    for (size_t n = kept.size(); n-- > 0;) {
      const Node& node = graph_.nodes()[n];
      std::vector<ValueId> made = graph_.made_by(node), written = graph_.written_by(node);
      kept[n] = std::ranges::any_of(made, [&](ValueId id) { return bool(needed[id]); }) ||
                (part_.writes && (made.empty() || std::ranges::any_of(written, [&](ValueId id) {
                                    return bool(roots[graph_.value(id).root]);
                                  })));
      std::vector<ValueId> used = graph_.used_by(node);
      bool is_late = std::ranges::any_of(used, [&](ValueId id) { return bool(late[id]); });
      kept[n] = kept[n] || (is_late != part_.writes && tracing::plan_of(node.op)->acts);
      if (!kept[n]) continue;
      for (ValueId id : used) need(id);
    }
    return kept;
  }

  // The op with a tensor's current contents. Makes a constant for tensors from outside the graph.
  Op current(ValueId id) {
    Op& made = made_[tensor_[id]];
    if (!made.valid() && graph_.value(id).kind != ValueKind::kResult &&
        graph_.value(id).kind != ValueKind::kInput) {
      Shape shape = shape_of(id, nullptr);
      Value value = value_of_tensor(&shape, graph_.tensor(id));
      Literal literal(shape);
      if (value.bytes() != 0) std::memcpy(literal.data(), value.data(), value.bytes());
      made = ConstantLiteral(&builder_, literal);
    }
    return made;
  }

  // The dimensions of a tensor from the slowest to the fastest varying in memory, for operators
  // that address elements by memory position. Refuses tensors that are not dense or do not cover
  // their memory.
  std::vector<int64_t> order_in_memory(const Node& node, ValueId id) const {
    IntArrayRef sizes = graph_.sizes(id), strides = graph_.strides(id);
    std::vector<int64_t> order(sizes.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    auto size_of = [&](int64_t d) { return sizes[static_cast<size_t>(d)]; };
    auto stride_of = [&](int64_t d) { return strides[static_cast<size_t>(d)]; };
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
      return size_of(a) != 1 && size_of(b) != 1 && stride_of(a) > stride_of(b);
    });
    int64_t expected = 1, whole = 1;
    bool dense = true;
    for (size_t k = order.size(); k-- > 0;) {
      if (size_of(order[k]) != 1) dense = dense && stride_of(order[k]) == expected;
      expected *= size_of(order[k]);
    }
    for (int64_t size : graph_.sizes(graph_.value(id).root)) whole *= size;
    if (!dense || expected != whole) {
      refuse(node, str("expected %", id,
                       " to be contiguous and all of its memory, as the arrays of a module are"));
    }
    return order;
  }
  static std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
    std::vector<int64_t> made(order.size());
    for (size_t d = 0; d < order.size(); ++d) {
      made[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
    }
    return made;
  }
  static Shape permuted(const Shape& shape, const std::vector<int64_t>& order) {
    std::vector<int64_t> sizes;
    for (int64_t d : order) sizes.push_back(shape.dimension(d));
    return shape.with_dimensions(std::move(sizes));
  }

  FunctionSchema schema_of(const lamella_operator* op) const {
    auto* entry = entry_of(op);
    std::lock_guard lock(Registry::get().mutex());
    LAMELLA_CHECK(entry->defined(), "from_trace: expected ", entry->full_name(),
                  " to be defined still");
    return Registry::get().schema(entry);
  }
  std::vector<OperatorArgument> arguments_of(const Node& node, const FunctionSchema& schema,
                                             std::vector<Op>* operands) {
    std::vector<OperatorArgument> arguments;
    auto take = [&](ValueId id) -> int32_t {
      if (id == kNoValue) return -1;
      if (stale_[tensor_[id]]) {
        refuse(node, str("expected %", id, " not to be written through another tensor over its ",
                         "memory; functionalize what is traced"));
      }
      Op made = current(id);
      if (!made.valid()) {
        refuse(node, str("expected %", id, " to be made by an operator that returns tensors"));
      }
      operands->push_back(made);
      return static_cast<int32_t>(operands->size()) - 1;
    };
    ArrayRef<tracing::Operand> given = graph_.arguments(node);
    for (size_t i = 0; i < given.size(); ++i) {
      OperatorArgument one;
      switch (given[i].form) {
        case tracing::Operand::kPlain:
          one.value = given[i].value;
          break;
        case tracing::Operand::kTensor: {
          int32_t operand = take(graph_.tensors(given[i])[0]);
          if (operand >= 0) {
            one.form = OperatorArgument::Form::Operand;
            one.operands = {operand};
          }
          break;
        }
        case tracing::Operand::kList:
          one.form = OperatorArgument::Form::Operands;
          for (ValueId id : graph_.tensors(given[i])) one.operands.push_back(take(id));
          break;
        case tracing::Operand::kNested:
          refuse(node, str("expected argument '", schema.arguments[i].name,
                           "' to be a tensor or a list of tensors, got them nested"));
      }
      arguments.push_back(std::move(one));
    }
    return arguments;
  }

  // Marks all other tensors over memory that a call has written as stale.
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
    // The values of the call's results, in order, and the written arguments among them.
    std::vector<ValueId> results;
    std::vector<ValueId> written;
    ArrayRef<tracing::Operand> returns = graph_.returns(node);
    for (size_t r = 0; r < returns.size(); ++r) {
      const tracing::Operand& one = returns[r];
      // A call that returns a number has no value in the graph.
      if (one.form == tracing::Operand::kPlain && one.value.value().tag != LAMELLA_NONE) return;
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
      bool said = schema_says_written(node, *plan.facts, id);
      if (!said && !part_.rules) {
        refuse(node,
               str("expected a call that writes what its schema declares, got a write to %", id));
      }
      written.push_back(id);
      results.push_back(id);
    }
    // detach and alias return the same tensor: writes to one are writes to the other.
    if (part_.rules && (plan.name == "aten::detach" || plan.name == "aten::alias")) {
      ValueId before = graph_.used_by(node)[0];
      if (current(before).valid() && !stale_[tensor_[before]]) {
        tensor_[results[0]] = tensor_[before];
        return;
      }
    }
    std::vector<Op> operands;
    std::vector<OperatorArgument> arguments = arguments_of(node, schema, &operands);
    builder_.SetOpMetadata(metadata_of(node, plan));
    std::vector<Shape> shapes;
    for (ValueId id : results) shapes.push_back(shape_of(id, &node));
    std::vector<Op> ops;
    std::vector<int64_t> memory_order;
    if (plan.name.starts_with("aten::as_strided")) {
      memory_order = order_in_memory(node, graph_.used_by(node)[0]);
      operands[0] = Transpose(operands[0], memory_order);
      // The result of a scatter has the memory order of the operand.
      if (plan.name.find("scatter") == std::string::npos) {
        memory_order.clear();
      } else {
        shapes[0] = permuted(shapes[0], memory_order);
      }
    }
    if (part_.rules) ops = lowered(node, plan, schema, arguments, operands, shapes);
    if (ops.empty()) ops = called(node, plan, schema, arguments, operands, shapes);
    if (!memory_order.empty()) ops[0] = Transpose(ops[0], inverse(memory_order));
    for (size_t r = 0; r < results.size(); ++r) {
      made_[tensor_[results[r]]] = ops[r];
      // A new view of written memory is made from its current contents.
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

  // Records inputs whose memory was written: they become results of the module.
  void note_written(const Node& node, ValueId id) {
    ValueId root = graph_.value(id).root;
    ValueKind kind = graph_.value(root).kind;
    if (kind == ValueKind::kResult || !part_.writes) return;
    if (std::find(part_.inputs.begin(), part_.inputs.end(), root) == part_.inputs.end()) {
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

  // Lowers a node by the operator's rule or `hlo:` word; returns nothing if neither applies.
  std::vector<Op> lowered(const Node& node, const tracing::TracingPlan& plan,
                          const FunctionSchema& schema,
                          const std::vector<OperatorArgument>& arguments,
                          const std::vector<Op>& operands, const std::vector<Shape>& shapes) {
    const lowering::Rule* rule = lowering::find_rule(plan.name);
    if (part_.portable) {
      const lowering::Rule* portable = lowering::find_portable_rule(plan.name);
      if (portable != nullptr) rule = portable;
    }
    std::optional<Opcode> word = rule != nullptr ? std::nullopt : word_of(node.op);
    if ((rule == nullptr && !word) || shapes.empty() || plan.random) return {};
    std::vector<lowering::Given> given(arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      given[i].form = static_cast<lowering::Given::Form>(arguments[i].form);
      given[i].value = &arguments[i].value;
      for (int32_t at : arguments[i].operands) {
        given[i].ops.push_back(at < 0 ? Op() : operands[static_cast<size_t>(at)]);
      }
    }
    lowering::Call call(&builder_, schema, std::move(given), shapes);
    std::vector<Op> ops = rule != nullptr ? rule->lower(call) : lowering::lower_word(*word, call);
    if (ops.empty() || (node.also_writes != 0 && ops.size() != shapes.size())) return {};
    LAMELLA_INTERNAL_ASSERT(ops.size() == shapes.size(), "lowering: expected ", shapes.size(),
                            " results of ", plan.name, ", got ", ops.size());
    for (size_t r = 0; r < ops.size(); ++r) {
      LAMELLA_INTERNAL_ASSERT(call.shape(ops[r]).same_dimensions(shapes[r]), "lowering: expected ",
                              shapes[r].to_string(false), " of ", plan.name, ", got ",
                              call.shape(ops[r]).to_string(false));
      ops[r] = call.convert(ops[r], shapes[r].element_type());
    }
    return ops;
  }
  // The opcode that the declaration of an operator names in its tag, such as "hlo:add".
  static std::optional<Opcode> word_of(const lamella_operator* op) {
    std::lock_guard lock(Registry::get().mutex());
    std::string_view name(op->name);
    for (OperatorEntry* entry : Registry::get().overloads(std::string(name))) {
      for (const std::string& tag : entry->tags) {
        if (tag.starts_with("hlo:")) return opcode_from_name(std::string_view(tag).substr(4));
      }
    }
    return std::nullopt;
  }

  // Converts a node to a custom call to its operator.
  std::vector<Op> called(const Node& node, const tracing::TracingPlan& plan,
                         const FunctionSchema& schema,
                         const std::vector<OperatorArgument>& arguments,
                         const std::vector<Op>& operands, const std::vector<Shape>& shapes) {
    if (node.also_writes != 0) {
      refuse(node, "expected a call that writes what its schema declares, got more writes");
    }
    std::string text;
    try {
      std::vector<OperatorArgument> placed = arguments;
      for (OperatorArgument& one : placed) {
        if (one.value.isDevice() && one.value.toDevice().is_cuda()) one.value = IValue(kCPU);
      }
      text = operator_arguments_text(schema, placed);
    } catch (const Error& error) {
      refuse(node, error.what());
    }
    if (part_.rules) require_known_sizes(node, plan, text, operands, shapes);
    bool is_tuple = shapes.size() != 1;
    Shape shape = is_tuple ? Shape::tuple(shapes) : shapes[0];
    Op call = CustomCall(&builder_, plan.name, operands, shape, text,
                         plan.random || plan.acts || shapes.empty());
    if (!is_tuple) return {call};
    std::vector<Op> ops;
    for (size_t r = 0; r < shapes.size(); ++r) {
      ops.push_back(GetTupleElement(call, static_cast<int64_t>(r)));
    }
    return ops;
  }

  // Refuses operators whose result sizes depend on elements: a module must be valid for any
  // contents of its inputs, not only for the recorded ones.
  void require_known_sizes(const Node& node, const tracing::TracingPlan& plan,
                           const std::string& text, const std::vector<Op>& operands,
                           const std::vector<Shape>& shapes) const {
    std::vector<Shape> given;
    for (Op op : operands) given.push_back(**builder_.GetShapePtr(op));
    Shape known;
    try {
      known = operator_call_facts(plan.name, given, text).shape;
    } catch (const Error& error) {
      refuse(node, error.what());
    }
    Shape recorded = shapes.size() == 1 ? shapes[0] : Shape::tuple(shapes);
    if (!known.compatible(recorded)) {
      refuse(node,
             str("expected sizes that do not depend on elements, got ", known.to_string(false),
                 " for other elements than those of ", recorded.to_string(false)));
    }
  }

  OpMetadata metadata_of(const Node& node, const tracing::TracingPlan& plan) const {
    OpMetadata metadata;
    metadata.set_op_name(plan.name);
    tracing::SourceLocation place = graph_.location(node);
    if (!place.file.empty()) {
      metadata.set_source_file(place.file);
      metadata.set_source_line(place.line);
    }
    return metadata;
  }

  const Graph& graph_;
  const GraphPart& part_;
  Builder builder_;
  // Indexed by the first value of a tensor (tensor_): the op with its current contents, and whether
  // its memory has since been written through another tensor.
  std::vector<Op> made_;
  std::vector<bool> stale_;
  std::vector<ValueId> tensor_;
  std::vector<ValueId> written_inputs_;
};

}  // namespace

GraphPart whole_graph(const Graph& graph) {
  ArrayRef<ValueId> inputs = graph.inputs(), outputs = graph.outputs();
  return {{inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}};
}
std::shared_ptr<const Module> module_of_graph(const Graph& graph, std::string_view name,
                                              const GraphPart& part) {
  return Converter(graph, name, part).convert();
}

std::vector<ValueId> divide_graph(const Graph& graph, const std::vector<ValueId>& tangents,
                                  size_t results) {
  std::vector<bool> late = late_values(graph, tangents);
  std::vector<const Node*> maker(graph.values().size(), nullptr);
  ArrayRef<ValueId> outputs = graph.outputs();
  std::vector<ValueId> wanted(outputs.begin() + static_cast<std::ptrdiff_t>(results),
                              outputs.end());
  for (const Node& node : graph.nodes()) {
    std::vector<ValueId> used = graph.used_by(node);
    bool is_late = std::ranges::any_of(used, [&](ValueId id) { return bool(late[id]); });
    for (ValueId id : graph.made_by(node)) maker[id] = &node;
    if (is_late) wanted.insert(wanted.end(), used.begin(), used.end());
  }
  std::vector<ValueId> saved;
  std::vector<bool> seen(graph.values().size(), false);
  auto save = [&](auto& self, ValueId id) -> void {
    if (id == kNoValue || late[id] || seen[id]) return;
    seen[id] = true;
    if (const Node* node = maker[id]) {
      PlanRef<tracing::TracingPlan> plan = tracing::plan_of(node->op);
      std::vector<ValueId> used = graph.used_by(*node);
      bool is_view = used.size() == 1 && plan->facts->written.empty() &&
                     plan->facts->returns.size() == 1 && !plan->facts->returns[0].bases.empty();
      if (is_view) return self(self, used[0]);
    }
    saved.push_back(id);
  };
  for (ValueId id : wanted) save(save, id);
  return saved;
}

}  // namespace lamella::hlo
