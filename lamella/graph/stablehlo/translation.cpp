// Functions, regions, values and instructions of a translation.
#include "lamella/graph/stablehlo/translation.h"

#include <algorithm>

#include "lamella/graph/hlo/attribute_scanner.h"
#include "lamella/graph/stablehlo/names.h"

namespace lamella::hlo::stablehlo {

void Translation::run(std::string_view entry) {
  module_.name = module_.arena().copy("main");
  if (const Attribute* name = program_.root->find("sym_name");
      name != nullptr && !name->text.empty()) {
    module_.name = module_.arena().copy(name_in_text(name->text, NameOf::Module));
  }
  find_functions();
  auto main = functions_.find(entry);
  if (main == functions_.end()) {
    fail(*program_.root, "expected a function '", entry, "' among ", functions_.size());
  }
  module_attributes();
  module_.entry = main->second.computation = add_function(main->first);
  translate_function(main->second, true);
  while (!waiting_.empty()) {
    Function& next = functions_.at(waiting_.back());
    waiting_.pop_back();
    translate_function(next, false);
  }
  order_computations(module_);
}

void Translation::find_functions() {
  for (const Region& region : program_.root->regions) {
    for (const Block* block : region.blocks) {
      for (const Operation* op : block->operations) {
        if (op->name != "func") continue;
        Function made{op, attribute(*op, "function_type").type, nullptr};
        if (made.type == nullptr || made.type->kind != Type::Kind::Function) {
          fail(*op, "expected the type of a function");
        }
        if (!functions_.emplace(text(*op, "sym_name"), made).second) {
          fail(*op, "expected functions of different names, got '", text(*op, "sym_name"),
               "' again");
        }
      }
    }
  }
}
Computation* Translation::add_function(std::string_view name) {
  const std::string wanted = name_in_text(name, NameOf::Computation);
  return module_.add_computation(module_.free_computation_name(wanted));
}
const Translation::Function& Translation::function(const Operation& op, std::string_view name) {
  auto found = functions_.find(name);
  if (found == functions_.end()) fail(op, "expected the name of a function, got '", name, "'");
  Function& one = found->second;
  if (one.computation == nullptr) {
    one.computation = add_function(name);
    waiting_.push_back(found->first);
  }
  return one;
}

void Translation::translate_function(const Function& function, bool is_entry) {
  const Operation& op = *function.operation;
  require_regions(op, 1);
  if (op.regions[0].blocks.size() != 1) {
    fail(op, "expected a body of one block, got ", op.regions[0].blocks.size());
  }
  const Block& block = *op.regions[0].blocks[0];
  current_ = function.computation;
  remade_.clear();
  for (Value* argument : block.arguments) {
    argument->made = parameter(static_cast<int64_t>(current_->parameters.size()),
                               shape(*argument->type, op.position));
  }
  translate_block(op, block);
  Instructions results = returned(op, block);
  finish(packed(results));
  if (function.type->parts.size() != block.arguments.size() ||
      function.type->results.size() != results.size()) {
    fail(op, "expected operands and results of its type, ", type_text(*function.type), ", got ",
         block.arguments.size(), " and ", results.size());
  }
  if (is_entry) entry_attributes(function);
}

// ---- Regions -----------------------------------------------------------------------------------

void Translation::translate_block(const Operation& op, const Block& block) {
  if (block.operations.empty()) fail(op, "expected a region that ends with return");
  for (size_t i = 0; i + 1 < block.operations.size(); ++i) translate(*block.operations[i]);
}
Instructions Translation::returned(const Operation& op, const Block& block) {
  const Operation& last = *block.operations.back();
  if (last.name != "return")
    fail(op, "expected a region that ends with return, got '", last.name, "'");
  return operands(last);
}
namespace {
const Block& block_of(const Translation& t, const Operation& op, size_t region) {
  if (region >= op.regions.size())
    t.fail(op, "expected ", region + 1, " regions, got ", op.regions.size());
  const auto& blocks = op.regions[region].blocks;
  if (blocks.size() != 1) t.fail(op, "expected regions of one block, got ", blocks.size());
  return *blocks[0];
}
}  // namespace

Computation* Translation::computation(const Operation& op, size_t region) {
  const Block& block = block_of(*this, op, region);
  Computation* outer =
      std::exchange(current_, module_.add_computation(str("region_", next_name_++)));
  auto remade = std::exchange(remade_, {});
  for (Value* argument : block.arguments) {
    argument->made = parameter(static_cast<int64_t>(current_->parameters.size()),
                               shape(*argument->type, op.position));
  }
  translate_block(op, block);
  finish(packed(returned(op, block)));
  remade_ = std::move(remade);
  return std::exchange(current_, outer);
}

Computation* Translation::sum(ElementType type) {
  const Shape* scalar = module_.intern(Shape::scalar(type));
  Computation* outer =
      std::exchange(current_, module_.add_computation(str("region_", next_name_++)));
  Instruction* left = parameter(0, scalar);
  finish(add(Opcode::Add, {left, parameter(1, scalar)}, *scalar));
  return std::exchange(current_, outer);
}

Computation* Translation::packed_computation(const Operation& op, size_t region,
                                             const std::vector<Value*>& captured,
                                             bool returns_captured) {
  const Block& block = block_of(*this, op, region);
  Computation* outer =
      std::exchange(current_, module_.add_computation(str("region_", next_name_++)));
  auto remade = std::exchange(remade_, {});
  std::vector<Value*> values = block.arguments;
  values.insert(values.end(), captured.begin(), captured.end());
  std::vector<Shape> shapes;
  for (const Value* one : values) shapes.push_back(*shape(*one->type, op.position));
  Instruction* all =
      parameter(0, module_.intern(values.size() == 1 ? shapes[0] : Shape::tuple(shapes)));
  Instructions before;
  for (size_t i = 0; i < values.size(); ++i) {
    before.push_back(values[i]->made);
    values[i]->made = values.size() == 1 ? all : element(all, i);
  }
  translate_block(op, block);
  Instructions results = returned(op, block);
  if (returns_captured) {
    for (const Value* one : captured) results.push_back(one->made);
  }
  finish(packed(results));
  for (size_t i = block.arguments.size(); i < values.size(); ++i) values[i]->made = before[i];
  remade_ = std::move(remade);
  return std::exchange(current_, outer);
}

namespace {
// Calls visit(value) for each operand within a region whose definition is outside of it.
template <class F>
void for_each_captured(const Region& region, uint32_t mark, F& visit) {
  for (const Block* block : region.blocks) {
    for (Value* argument : block->arguments) argument->mark = mark;
    for (const Operation* op : block->operations) {
      for (Value* operand : op->operands) {
        if (operand->mark != mark) visit(operand);
      }
      for (const Region& inner : op->regions) for_each_captured(inner, mark, visit);
      for (Value* result : op->results) result->mark = mark;
    }
  }
}
}  // namespace

std::vector<Value*> Translation::captured(const Operation& op) {
  std::vector<Value*> found;
  ++mark_;
  auto visit = [&](Value* value) {
    value->mark = mark_;
    if (value->made == nullptr) fail(op, "expected a value that is defined above");
    if (!is_remade(*value->made, 0)) found.push_back(value);
  };
  for (const Region& region : op.regions) for_each_captured(region, mark_, visit);
  for (Value* value : found) in_current(op, value);
  return found;
}

// Whether an instruction is made again in a region that uses it: constants, and what changes their
// shape and type alone.
bool Translation::is_remade(const Instruction& made, int depth) const {
  switch (made.opcode) {
    case Opcode::Constant:
      return true;
    case Opcode::Broadcast:
    case Opcode::Convert:
    case Opcode::Reshape:
      return depth < 8 && is_remade(*made.operands[0], depth + 1);
    default:
      return false;
  }
}
Instruction* Translation::remade(Instruction* made) {
  if (made->parent == current_) return made;
  Instruction*& kept = remade_[made];
  if (kept != nullptr) return kept;
  Instructions operands;
  for (Instruction* one : made->operands) operands.push_back(remade(one));
  Instruction* copy = module_.add_instruction(current_, made->opcode,
                                              str(opcode_name(made->opcode), ".", next_name_++),
                                              made->shape, operands, made->attributes);
  if (made->opcode == Opcode::Constant) copy->literal = made->literal;
  return remade_[made] = copy;
}
Instruction* Translation::in_current(const Operation& op, Value* value) {
  Instruction* made = value->made;
  if (made == nullptr) fail(op, "expected a value that is defined above");
  if (made->parent == current_) return made;
  if (is_remade(*made, 0)) return remade(made);
  fail(op, "expected a region that uses its own values and constants, got '", made->name,
       "' from outside");
}

// ---- Instructions ------------------------------------------------------------------------------

Instruction* Translation::parameter(int64_t number, const Shape* shape) {
  Instruction* made = module_.add_instruction(current_, Opcode::Parameter,
                                              str("Arg_", number, ".", next_name_++), shape, {});
  made->parameter_number = number;
  current_->parameters.push_back(made);
  return made;
}
void Translation::finish(Instruction* root) { current_->root = root; }

Instruction* Translation::add(Opcode opcode, std::span<Instruction* const> operands,
                              AttributeList attributes, const Shape& shape) {
  places_.emplace_back(next_name_, position_);
  return module_.add_instruction(current_, opcode, str(opcode_name(opcode), ".", next_name_++),
                                 module_.intern(shape), operands, attributes.sorted());
}
Instruction* Translation::constant(Literal literal) {
  Instruction* made = add(Opcode::Constant, {}, literal.shape());
  made->literal = module_.arena().make<Literal>(std::move(literal));
  return made;
}
Instruction* Translation::broadcast(Instruction* scalar, const Shape& shape) {
  AttributeList list(module_);
  list.integers(AttributeKey::Dimensions, {});
  return add(Opcode::Broadcast, std::span(&scalar, 1), std::move(list), shape);
}
Instruction* Translation::element(Instruction* tuple, size_t index) {
  AttributeList list(module_);
  list.integer(AttributeKey::Index, static_cast<int64_t>(index));
  return add(Opcode::GetTupleElement, std::span(&tuple, 1), std::move(list),
             tuple->shape->tuple_shapes()[index]);
}
Instruction* Translation::packed(const Instructions& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<Shape> shapes;
  for (const Instruction* one : parts) shapes.push_back(*one->shape);
  return add(Opcode::Tuple, parts, AttributeList(module_), Shape::tuple(std::move(shapes)));
}
void Translation::emit(const Operation& op, std::span<Instruction* const> operands,
                       AttributeList attributes) {
  Instruction* made = add(row(op).opcode, operands, std::move(attributes), result_shape(op));
  op.results.size() == 1 ? give(op, {made}) : give_parts(op, made);
}
void Translation::give(const Operation& op, const Instructions& results) {
  if (results.size() != op.results.size()) {
    fail(op, "expected ", results.size(), " results, got ", op.results.size());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Shape& stated = *shape(*op.results[i]->type, op.position);
    if (!stated.compatible(*results[i]->shape)) {
      fail(op, "expected a result of ", results[i]->shape->to_string(false), ", got ",
           stated.to_string(false));
    }
    op.results[i]->made = results[i];
  }
}
void Translation::give_parts(const Operation& op, Instruction* made) {
  Instructions parts;
  for (size_t i = 0; i < op.results.size(); ++i) parts.push_back(element(made, i));
  give(op, parts);
}

void Translation::verify() const {
  try {
    hlo::verify(module_);
  } catch (const Error& error) {
    // The message names the instruction, whose number leads to the operation: "hlo: 'add.12' ...".
    const std::string message(error.msg());
    const size_t dot = message.find_last_of('.', message.find('\'', 6));
    const int64_t number = dot == std::string::npos ? 0 : std::atoll(message.c_str() + dot + 1);
    for (const auto& [name, position] : places_) {
      if (name == number) program_.source.fail(position, message);
    }
    throw;
  }
}

// ---- Operations --------------------------------------------------------------------------------

const OperationRow& Translation::row(const Operation& op) const {
  const OperationRow* found = find_row(op.name);
  if (found == nullptr) fail(op, "expected an operation of StableHLO");
  return *found;
}
void Translation::translate(const Operation& op) {
  const size_t outer = std::exchange(position_, op.position);
  try {
    op.name.starts_with("chlo.") ? translate_chlo(*this, op) : row(op).rule(*this, op);
  } catch (const Error& error) {
    if (error.msg().starts_with("stablehlo: ")) throw;
    fail(op, error.msg());
  }
  position_ = outer;
}

Instructions Translation::operands(const Operation& op) {
  Instructions made;
  made.reserve(op.operands.size());
  for (Value* one : op.operands) made.push_back(in_current(op, one));
  return made;
}
Instructions Translation::operands(const Operation& op, size_t count) {
  if (op.operands.size() != count) {
    fail(op, "expected ", count, count == 1 ? " operand" : " operands", ", got ",
         op.operands.size());
  }
  return operands(op);
}
void Translation::require_regions(const Operation& op, size_t count) const {
  if (op.regions.size() != count) {
    fail(op, "expected ", count, count == 1 ? " region" : " regions", ", got ", op.regions.size());
  }
}

const Shape* Translation::shape(const Type& type, size_t position) {
  const Shape*& kept = shapes_[&type];
  if (kept == nullptr) {
    kept = module_.intern(
        shape_of(type, [&](const std::string& why) { program_.source.fail(position, why); }));
  }
  return kept;
}
Shape Translation::result_shape(const Operation& op) {
  if (op.results.size() == 1) return *shape(*op.results[0]->type, op.position);
  std::vector<Shape> parts;
  for (const Value* one : op.results) parts.push_back(*shape(*one->type, op.position));
  return Shape::tuple(std::move(parts));
}

}  // namespace lamella::hlo::stablehlo
