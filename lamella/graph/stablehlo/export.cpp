// Making StableHLO's operations of a module: functions, blocks and control flow.
#include "lamella/graph/stablehlo/export.h"

#include <algorithm>

#include "lamella/graph/hlo/attribute_scanner.h"

#include "lamella/graph/stablehlo/names.h"
#include "lamella/graph/stablehlo/stablehlo.h"

namespace lamella::hlo::stablehlo {
namespace {

// Calls visit(shape) for each array and token of a shape.
template <class F>
void for_each_leaf(const Shape& shape, F&& visit) {
  if (!shape.is_tuple()) return visit(shape);
  for (const Shape& part : shape.tuple_shapes()) for_each_leaf(part, visit);
}
size_t leaves(const Shape& shape) {
  size_t count = 0;
  for_each_leaf(shape, [&](const Shape&) { ++count; });
  return count;
}

}  // namespace

const WrittenRow* written_row(Opcode opcode) {
  static const auto rows = [] {
    std::unordered_map<Opcode, WrittenRow> made;
    auto add = [&](std::string_view name, int version, int since, Opcode of,
                   std::string_view attributes, std::string_view regions) {
      // Where several operations become one opcode, the first of them by name is another form of
      // it.
      static constexpr std::string_view kOtherForms[] = {"broadcast",
                                                         "create_token",
                                                         "cross-replica-sum",
                                                         "dot",
                                                         "einsum",
                                                         "unary_einsum",
                                                         "if",
                                                         "torch_index_select",
                                                         "real_dynamic_slice",
                                                         "composite",
                                                         "func",
                                                         "return",
                                                         "uniform_quantize",
                                                         "uniform_dequantize",
                                                         "dynamic_broadcast_in_dim",
                                                         "dynamic_conv",
                                                         "dynamic_gather",
                                                         "dynamic_iota",
                                                         "dynamic_pad"};
      if (since > kWrittenVersion ||
          std::ranges::find(kOtherForms, name) != std::end(kOtherForms)) {
        return;
      }
      made.insert_or_assign(of, WrittenRow{str(name, "_v", version), name, attributes, regions});
    };
#define LAMELLA_STABLEHLO(name, version, since, rule, opcode, attributes, regions) \
  add(name, version, since, Opcode::opcode, attributes, regions);
#include "lamella/graph/stablehlo/operations.def"
    return made;
  }();
  auto found = rows.find(opcode);
  return found != rows.end() ? &found->second : nullptr;
}

void Export::refuse(const Instruction& i, std::string_view why) const {
  throw Error(str("to_stablehlo: '", i.name, "' (", opcode_name(i.opcode), "): ", why));
}

Operation* Export::run(const Module& module) {
  Operation* root = operation("module");
  auto* all = make_.arena().make<Block>();
  root->regions.emplace_back().blocks.push_back(all);
  add(root, "sym_name", make_.string(module.name));
  for (const auto& [key, value] : module.attributes) {
    if (key == "frontend_attributes") {
      add(root, "mhlo.frontend_attributes", frontend_attributes(value));
      continue;
    }
    if (key != "num_partitions" && key != "replica_count") continue;
    add(root, key == "num_partitions" ? "mhlo.num_partitions" : "mhlo.num_replicas",
        make_.integer(std::stoll(std::string(value)), ElementType::S32));
  }
  Operation* main = function(*module.entry, true);
  add_entry_attributes(main, module);
  all->operations.push_back(main);
  while (!waiting_.empty()) {
    const Computation* next = waiting_.back();
    waiting_.pop_back();
    all->operations.push_back(function(*next, false));
  }
  return root;
}

Operation* Export::operation(std::string_view name) {
  auto* op = make_.arena().make<Operation>();
  op->name = make_.arena().copy(name);
  return op;
}
Export::Values Export::results_of(const Shape& shape) {
  Values made;
  for_each_leaf(shape, [&](const Shape& leaf) { made.push_back(make_.value(make_.type(leaf))); });
  return made;
}

Operation* Export::function(const Computation& from, bool is_entry) {
  Operation* op = operation("func_v1");
  Block* body = block(from, nullptr);
  op->regions.emplace_back().blocks.push_back(body);
  auto* type = make_.arena().make<Type>();
  type->kind = Type::Kind::Function;
  for (const Value* one : body->arguments) type->parts.push_back(one->type);
  for (const Value* one : body->operations.back()->operands) type->results.push_back(one->type);
  add(op, "sym_name", make_.string(is_entry ? "main" : from.name == "main" ? "main_" : from.name));
  add(op, "sym_visibility", make_.string(is_entry ? "public" : "private"));
  add(op, "function_type", make_.type_of(type));
  if (!is_entry) {
    add(op, "arg_attrs", make_.list({}));
    add(op, "res_attrs", make_.list({}));
  }
  return op;
}
// Donation and shardings of the entry's parameters.
void Export::add_entry_attributes(Operation* op, const Module& module) {
  std::vector<const Attribute*> all;
  bool any = false;
  for (const Instruction* one : module.entry->parameters) {
    std::vector<Named> entries;
    for (const InputOutputAlias& alias : module.input_output_aliases) {
      if (alias.parameter != one->parameter_number || one->shape->is_tuple()) continue;
      entries.push_back(
          {"tf.aliasing_output", make_.integer(alias.output.empty() ? 0 : alias.output[0])});
    }
    if (one->has(AttributeKey::Sharding)) {
      entries.push_back({"mhlo.sharding", make_.string(one->text(AttributeKey::Sharding))});
    }
    any |= !entries.empty();
    const Attribute* made = make_.dictionary(std::move(entries));
    for_each_leaf(*one->shape, [&](const Shape&) { all.push_back(made); });
  }
  add(op, "arg_attrs", make_.list(any ? all : std::vector<const Attribute*>{}));
  add(op, "res_attrs", make_.list({}));
}

Block* Export::block(const Computation& from, const std::vector<Values>* parameters) {
  if (++depth_ > kMostNested)
    throw Error(str("to_stablehlo: expected at most ", kMostNested, " nested regions"));
  auto* made = make_.arena().make<Block>();
  Map map;
  Block* outer = std::exchange(block_, made);
  Map* outer_map = std::exchange(map_, &map);
  for (size_t p = 0; p < from.parameters.size(); ++p) {
    Values values =
        parameters != nullptr ? (*parameters)[p] : results_of(*from.parameters[p]->shape);
    if (parameters == nullptr)
      made->arguments.insert(made->arguments.end(), values.begin(), values.end());
    map.emplace(from.parameters[p], std::move(values));
  }
  for (const Instruction* one : from.instructions) {
    if (one->opcode != Opcode::Parameter) instruction(*one);
  }
  Operation* last = operation("return_v1");
  last->operands = map.at(from.root);
  made->operations.push_back(last);
  block_ = outer;
  map_ = outer_map;
  --depth_;
  return made;
}

// Instructions that only name values: tuples, and copies of what they have.
bool Export::without_operation(const Instruction& i, Values& made) {
  switch (i.opcode) {
    case Opcode::Tuple:
      for (const Instruction* one : i.operands) {
        const Values& parts = values(one);
        made.insert(made.end(), parts.begin(), parts.end());
      }
      return true;
    case Opcode::GetTupleElement: {
      const auto index = static_cast<size_t>(i.integer(AttributeKey::Index));
      const auto& shapes = i.operands[0]->shape->tuple_shapes();
      size_t begin = 0;
      for (size_t n = 0; n < index; ++n) begin += leaves(shapes[n]);
      const Values& all = values(i.operands[0]);
      made.assign(all.begin() + static_cast<ptrdiff_t>(begin),
                  all.begin() + static_cast<ptrdiff_t>(begin + leaves(shapes[index])));
      return true;
    }
    case Opcode::Copy:
    case Opcode::Domain:
    case Opcode::AddDependency:
      made = values(i.operands[0]);
      return true;
    case Opcode::Constant: {
      auto each = [&](auto&& self, const Literal& literal) -> void {
        for (const Literal& part : literal.elements()) self(self, part);
        if (literal.shape().is_tuple()) return;
        if (literal.is_elided()) refuse(i, "expected a constant whose values were not left out");
        Operation* op = operation("constant_v1");
        add(op, "value", make_.elements(literal));
        op->results = results_of(literal.shape());
        made.push_back(op->results[0]);
        block_->operations.push_back(op);
      };
      each(each, *i.literal);
      return true;
    }
    default:
      return false;
  }
}

void Export::instruction(const Instruction& i) {
  Values made;
  if (without_operation(i, made)) {
    map_->emplace(&i, std::move(made));
    return;
  }
  const WrittenRow* row = written_row(i.opcode);
  Operation* op = operation(row != nullptr ? row->name : "");
  for (const Instruction* one : i.operands) {
    const Values& parts = values(one);
    op->operands.insert(op->operands.end(), parts.begin(), parts.end());
  }
  op->results = results_of(*i.shape);
  common_attributes(i, op);
  const bool is_known = special(i, op);
  if (!is_known && row == nullptr) refuse(i, "expected an opcode that StableHLO has");
  if (row != nullptr && op->name == row->name) mapped_attributes(i, op, row->attributes);
  if (!is_known) {
    for_each_word(row->regions, [&](std::string_view word) {
      const size_t arrow = word.find('>');
      std::string_view key = word.substr(arrow + 1);
      auto found = attribute_from_name(key.empty() ? word.substr(0, arrow) : key, i.opcode);
      add_region(op, *i.computation(*found), nullptr);
    });
  }
  block_->operations.push_back(op);
  map_->emplace(&i, op->results);
}

const Attribute* Export::frontend_attributes(std::string_view text) {
  std::vector<Named> entries;
  Scanner s(make_.arena().copy(text), "to_stablehlo");
  s.expect('{');
  while (!s.take('}')) {
    std::string_view name = s.peek() == '"' ? scan_quoted(s, make_.arena()) : s.word();
    s.expect('=');
    std::string_view value;
    if (s.peek() == '"') {
      value = scan_quoted(s, make_.arena());
    } else {
      const size_t begin = s.position();
      s.peek() == '{' ? skip_brackets(s, '{') : skip_value(s);
      value = s.from(begin);
    }
    entries.push_back({name, make_.string(value)});
    if (s.peek() != '}') s.expect(',');
  }
  return make_.dictionary(std::move(entries));
}
void Export::common_attributes(const Instruction& i, Operation* op) {
  if (i.has(AttributeKey::Sharding)) {
    add(op, "mhlo.sharding", make_.string(i.text(AttributeKey::Sharding)));
  }
  if (i.has(AttributeKey::FrontendAttributes)) {
    add(op, "mhlo.frontend_attributes",
        frontend_attributes(i.text(AttributeKey::FrontendAttributes)));
  }
}

std::string to_bytecode(const Module& module) {
  Arena arena;
  try {
    return write_bytecode(*Export(arena).run(module));
  } catch (const Error& error) {
    if (error.msg().starts_with("to_stablehlo: ")) throw;
    throw Error(str("to_stablehlo: ", error.msg()));
  }
}

}  // namespace lamella::hlo::stablehlo
