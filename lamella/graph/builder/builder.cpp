// Building computations: instructions, errors and the finished module.
#include "lamella/graph/builder/builder.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "lamella/graph/builder/emission.h"
#include "lamella/graph/hlo/attribute.h"
#include "lamella/graph/hlo/attribute_scanner.h"
#include "lamella/graph/hlo/copy.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

std::string text_of(const OpMetadata& metadata) {
  std::string text = "{";
  auto part = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    if (text.size() > 1) text += ' ';
    text += str(key, "=", value);
  };
  auto optional = [](const std::string& value) { return value.empty() ? "" : quoted(value); };
  part("op_type", optional(metadata.op_type()));
  part("op_name", optional(metadata.op_name()));
  part("source_file", optional(metadata.source_file()));
  if (metadata.source_line() != 0) part("source_line", std::to_string(metadata.source_line()));
  return text += '}';
}
std::string text_of(const FrontendAttributes& attributes) {
  std::string text = "{";
  for (const auto& [key, value] : attributes.map()) {
    if (text.size() > 1) text += ',';
    text += str(key, "=", quoted(value));
  }
  return text += '}';
}
std::string_view file_name(const char* path) {
  std::string_view name(path);
  return name.substr(name.find_last_of('/') + 1);  // without a '/', npos + 1 is 0
}

}  // namespace

// ---- Program shapes and built computations -----------------------------------------------------

ProgramShape::ProgramShape(const Computation& computation) : result_(*computation.root->shape) {
  for (const Instruction* parameter : computation.parameters) {
    AddParameter(*parameter->shape, parameter->name);
  }
}
std::string ProgramShape::ToString() const {
  std::string text = "(";
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (i != 0) text += ", ";
    text += str(names_[i], ": ", parameters_[i].to_string(false));
  }
  return text += str(") -> ", result_.to_string(false));
}
StatusOr<ProgramShape> BuiltComputation::GetProgramShape() const {
  if (IsNull()) return Status(StatusCode::kInvalidArgument, "expected a computation, got null");
  return ProgramShape(*module_->entry);
}
std::string BuiltComputation::to_string() const { return IsNull() ? "" : hlo::to_string(*module_); }

// ---- Emission -----------------------------------------------------------------------------------

Emission::Emission(const char* function, Builder* builder, Where where)
    : function_(function), builder_(builder), where_(where), outer_(nullptr) {
  LAMELLA_CHECK(builder != nullptr, function, " at ", file_name(where.file), ":", where.line,
                ": expected an op of a builder, got an uninitialized op");
  outer_ = builder->emission_;
  if (outer_ == nullptr) builder->emission_ = this;
}
Emission::~Emission() {
  if (outer_ == nullptr) builder_->emission_ = nullptr;
}
Op Emission::failed() { return {-1, builder_}; }
Op Emission::failed(const std::exception& error) {
  const Emission& outermost = *builder_->emission_;
  builder_->report(Status(StatusCode::kInvalidArgument,
                          str(outermost.function_, " at ", file_name(outermost.where_.file), ":",
                              outermost.where_.line, ": ", error.what())));
  return failed();
}
const Shape& Emission::array(Op op, const char* name) const {
  const Shape& found = shape(op);
  LAMELLA_EXPECT(found.is_array(), "'", name, "' to be an array, got ", found.to_string(false));
  return found;
}
Computation* Emission::import(const BuiltComputation& computation, const char* name) {
  LAMELLA_EXPECT(!computation.IsNull(), "'", name, "' to be a computation, got null");
  return builder_->import(computation);
}
Op Emission::add(Opcode opcode, std::span<const Op> operands, AttributeList attributes,
                 const Shape& hint) {
  return builder_->add(opcode, operands, hint, attributes, {}, nullptr, 0);
}
Op Emission::add(Opcode opcode, std::span<const Op> operands, AttributeList attributes) {
  Shape hint;
  if (!operands.empty()) hint = shape(operands[0]);
  return add(opcode, operands, std::move(attributes), hint);
}
Op Emission::add_constant(const Literal& literal) {
  AttributeList none = attributes();
  Literal* kept = builder_->module().arena().make<Literal>(literal.clone());
  return builder_->add(Opcode::Constant, {}, literal.shape(), none, {}, kept, 0);
}
Op Emission::add_parameter(int64_t number, const Shape& shape, std::string_view name) {
  LAMELLA_EXPECT(number >= 0 && number < (1 << 20), "a parameter number from 0, got ", number);
  std::vector<Instruction*>& all = builder_->computation_->parameters;
  auto at = static_cast<size_t>(number);
  LAMELLA_EXPECT(at >= all.size() || all[at] == nullptr, "parameter ", number,
                 " to be made once, got it a second time");
  LAMELLA_EXPECT(shape.is_valid(), "'shape' to be set, got ", shape.to_string(false));
  AttributeList none = attributes();
  Op made = builder_->add(Opcode::Parameter, {}, shape, none, name, nullptr, number);
  if (at >= all.size()) all.resize(at + 1);
  all[at] = builder_->resolve(made);
  return made;
}

// ---- Builder ------------------------------------------------------------------------------------

namespace {

// The live builders, with the threads that made them.
std::mutex live_mutex;
std::vector<std::pair<std::thread::id, Builder*>> live;

}  // namespace

Builder::Builder(std::string_view name) : name_(name) {
  start();
  std::lock_guard lock(live_mutex);
  live.emplace_back(std::this_thread::get_id(), this);
}
Builder::~Builder() {
  std::lock_guard lock(live_mutex);
  std::erase_if(live, [&](const auto& one) { return one.second == this; });
}
Builder* Builder::latest() {
  std::lock_guard lock(live_mutex);
  for (auto it = live.rbegin(); it != live.rend(); ++it) {
    if (it->first == std::this_thread::get_id()) return it->second;
  }
  return nullptr;
}

void Builder::start() {
  std::string title = name_in_text(name_.empty() ? "computation" : name_, NameOf::Module);
  module_ = std::make_unique<Module>(title);
  computation_ = module_->add_computation(title);
  module_->entry = computation_;
  next_id_ = 1;
  imported_.clear();
  held_.clear();
}

std::unique_ptr<Builder> Builder::CreateSubBuilder(std::string_view name) {
  auto made = std::make_unique<Builder>(name);
  made->parent_ = this;
  made->die_immediately_on_error_ = die_immediately_on_error_;
  return made;
}

Op Builder::wrap(const Instruction* instruction) {
  return {first_handle_ + instruction->index, this};
}
Instruction* Builder::resolve(Op op) const {
  LAMELLA_EXPECT(op.builder_ != nullptr, "an initialized op, got one that is not");
  LAMELLA_EXPECT(op.builder_ == this, "an op of builder '", name_, "', got one of another builder");
  LAMELLA_EXPECT(op.handle_ >= 0, "an op that is valid, got one of a call that failed");
  int64_t at = op.handle_ - first_handle_;
  LAMELLA_EXPECT(at >= 0, "an op of the computation being built, got one of a computation that '",
                 name_, "' built before");
  return computation_->instructions.at(static_cast<size_t>(at));
}

Op Builder::add(Opcode opcode, std::span<const Op> operands, const Shape& hint,
                AttributeList& attributes, std::string_view name, const Literal* literal,
                int64_t parameter_number) {
  std::vector<Instruction*> resolved;
  for (Op op : operands) resolved.push_back(resolve(op));
  const std::optional<OpMetadata>& metadata = one_shot_metadata_ ? one_shot_metadata_ : metadata_;
  if (std::string text = metadata ? text_of(*metadata) : "{}"; text != "{}") {
    attributes.text(AttributeKey::Metadata, text);
  }
  if (sharding_) attributes.text(AttributeKey::Sharding, sharding_->to_string());
  if (!frontend_attributes_.map().empty()) {
    attributes.text(AttributeKey::FrontendAttributes, text_of(frontend_attributes_));
  }
  if (name.empty()) name = opcode_name(opcode);
  std::string full = name_in_text(str(name, ".", next_id_), NameOf::Instruction);
  Instruction* made = module_->add_instruction(computation_, opcode, full, module_->intern(hint),
                                               resolved, attributes.sorted());
  if (opcode == Opcode::Constant) made->literal = literal;
  if (opcode == Opcode::Parameter) made->parameter_number = parameter_number;
  try {
    Shape inferred = infer_shape(*made);
    LAMELLA_INTERNAL_ASSERT(inferred.is_valid(), "hlo: expected a shape for ", opcode_name(opcode));
    // A compatible hint is kept, because it may have a layout or a dynamic size.
    if (!inferred.compatible(hint)) made->shape = module_->intern(std::move(inferred));
  } catch (const Error& error) {
    computation_->instructions.pop_back();
    // The instruction's generated name means nothing to the user, so the message omits it.
    std::string ours = str("hlo: '", full, "' (", opcode_name(opcode), "): ");
    std::string_view text(error.what());
    if (!text.starts_with(ours)) throw;
    throw Error(std::string(text.substr(ours.size())));
  }
  ++next_id_;
  one_shot_metadata_.reset();
  return wrap(made);
}

Computation* Builder::import(const BuiltComputation& computation) {
  const Module* from = computation.module().get();
  auto found = imported_.find(from);
  if (found != imported_.end()) return found->second;
  std::unordered_map<const Computation*, Computation*> copied;
  Computation* made = copy_computation(*module_, *from->entry, copied);
  imported_.emplace(from, made);
  held_.push_back(computation.module());
  return made;
}

void Builder::report(const Status& error) {
  if (die_immediately_on_error_) error.check();
  first_error_.Update(error);
}
Op Builder::ReportError(const Status& error) {
  LAMELLA_CHECK(!error.ok(), "ReportError: expected an error, got OK");
  report(error);
  return {-1, this};
}
Op Builder::ReportErrorOrReturn(const StatusOr<Op>& op) {
  if (!first_error_.ok()) return {-1, this};
  return op.ok() ? op.value() : ReportError(op.status());
}

StatusOr<const Instruction*> Builder::GetInstruction(Op op) const {
  if (!first_error_.ok()) return first_error_;
  try {
    return resolve(op);
  } catch (const Error& error) {
    return Status(StatusCode::kInvalidArgument, error.what());
  }
}
StatusOr<const Shape*> Builder::GetShapePtr(Op op) const {
  StatusOr<const Instruction*> found = GetInstruction(op);
  if (!found.ok()) return found.status();
  return found.value()->shape;
}
StatusOr<Shape> Builder::GetShape(Op op) const {
  StatusOr<const Shape*> found = GetShapePtr(op);
  if (!found.ok()) return found.status();
  return **found;
}
StatusOr<ProgramShape> Builder::GetProgramShape(Op root) const {
  StatusOr<const Instruction*> found = GetInstruction(root);
  if (!found.ok()) return found.status();
  ProgramShape shape;
  for (size_t p = 0; p < computation_->parameters.size(); ++p) {
    const Instruction* parameter = computation_->parameters[p];
    if (parameter == nullptr) {
      return Status(StatusCode::kInvalidArgument, str("expected parameter ", p, ", got none"));
    }
    shape.AddParameter(*parameter->shape, parameter->name);
  }
  *shape.mutable_result() = *(*found)->shape;
  return shape;
}
StatusOr<ProgramShape> Builder::GetProgramShape() const {
  if (!first_error_.ok()) return first_error_;
  if (computation_->instructions.empty()) {
    return Status(StatusCode::kInvalidArgument, "expected an instruction, got none");
  }
  return GetProgramShape(const_cast<Builder*>(this)->wrap(computation_->instructions.back()));
}

StatusOr<BuiltComputation> Builder::Build() {
  if (first_error_.ok() && computation_->instructions.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  str("Build: expected '", name_, "' to have an instruction, got none"));
  }
  return Build(first_error_.ok() ? wrap(computation_->instructions.back()) : Op());
}
StatusOr<BuiltComputation> Builder::Build(Op root) {
  Status error = std::exchange(first_error_, {});
  BuiltComputation built;
  try {
    error.check();
    Instruction* found = resolve(root);
    for (size_t p = 0; p < computation_->parameters.size(); ++p) {
      LAMELLA_EXPECT(computation_->parameters[p] != nullptr, "parameter ", p, " of '", name_,
                     "', got none");
    }
    built = finish(found);
  } catch (const Error& caught) {
    error = Status(StatusCode::kInvalidArgument, str("Build: ", caught.what()));
  }
  first_handle_ += static_cast<int64_t>(computation_->instructions.size());
  start();
  metadata_.reset();
  one_shot_metadata_.reset();
  if (!error.ok()) {
    if (die_immediately_on_error_) error.check();
    return error;
  }
  return built;
}
BuiltComputation Builder::finish(Instruction* root) {
  computation_->root = root;
  std::vector<const Shape*> layouts;
  for (const Instruction* parameter : computation_->parameters) layouts.push_back(parameter->shape);
  module_->entry_parameter_layouts = std::move(layouts);
  module_->entry_result_layout = root->shape;
  order_computations(*module_);
  verify(*module_);
  // start() makes another module; this one's computation stays readable until then.
  return BuiltComputation(std::shared_ptr<const Module>(std::move(module_)));
}
BuiltComputation Builder::BuildAndNoteError() {
  LAMELLA_CHECK(parent_ != nullptr, "BuildAndNoteError: expected a builder with a parent");
  StatusOr<BuiltComputation> built = Build();
  if (built.ok()) return *std::move(built);
  parent_->report(built.status());
  return {};
}

// ---- Constant parts -----------------------------------------------------------------------------

namespace {

// An instruction that `root` depends on and that is not constant, or NULL. Marks in `needed` the
// instructions that `root` depends on.
const Instruction* find_variable(const Computation& computation, const Instruction* root,
                                 std::vector<bool>* needed) {
  needed->assign(computation.instructions.size(), false);
  (*needed)[static_cast<size_t>(root->index)] = true;
  for (int64_t n = root->index; n >= 0; --n) {
    if (!(*needed)[static_cast<size_t>(n)]) continue;
    const Instruction& i = *computation.instructions[static_cast<size_t>(n)];
    if (i.opcode == Opcode::Parameter || i.opcode == Opcode::CustomCall ||
        i.opcode == Opcode::AllReduce || i.opcode == Opcode::ReplicaId || has_side_effect(i)) {
      return &i;
    }
    for (const Instruction* operand : i.operands) {
      (*needed)[static_cast<size_t>(operand->index)] = true;
    }
  }
  return nullptr;
}

}  // namespace

StatusOr<bool> Builder::IsConstant(Op operand) const {
  StatusOr<const Instruction*> found = GetInstruction(operand);
  if (!found.ok()) return found.status();
  std::vector<bool> needed;
  return find_variable(*computation_, *found, &needed) == nullptr;
}
StatusOr<BuiltComputation> Builder::BuildConstantSubGraph(Op root) {
  StatusOr<const Instruction*> found = GetInstruction(root);
  if (!found.ok()) return found.status();
  std::vector<bool> needed;
  if (const Instruction* variable = find_variable(*computation_, *found, &needed)) {
    return Status(
        StatusCode::kInvalidArgument,
        str("BuildConstantSubGraph: expected an op that depends on constants alone, got '",
            (*found)->name, "' which depends on '", variable->name, "'"));
  }
  // Gathers the needed instructions in a temporary computation, which copy_computation can copy.
  Computation part;
  part.name = computation_->name;
  std::vector<Instruction> instructions;
  instructions.reserve(computation_->instructions.size());
  std::vector<Instruction*> at(computation_->instructions.size());
  std::vector<std::vector<Instruction*>> operands(at.size());
  for (int64_t n = 0; n <= (*found)->index; ++n) {
    auto place = static_cast<size_t>(n);
    if (!needed[place]) continue;
    Instruction& copy = instructions.emplace_back(*computation_->instructions[place]);
    for (const Instruction* operand : copy.operands) {
      operands[place].push_back(at[static_cast<size_t>(operand->index)]);
    }
    copy.operands = operands[place];
    copy.index = static_cast<int64_t>(part.instructions.size());
    part.instructions.push_back(at[place] = &copy);
  }
  part.root = part.instructions.back();
  auto module = std::make_unique<Module>(module_->name);
  std::unordered_map<const Computation*, Computation*> copied;
  module->entry = copy_computation(*module, part, copied);
  return BuiltComputation(std::shared_ptr<const Module>(std::move(module)));
}

// ---- Metadata, sharding and attributes of instructions ------------------------------------------

OpMetadata Builder::SwapOpMetadata(OpMetadata metadata) {
  OpMetadata before = metadata_.value_or(OpMetadata());
  metadata_ = std::move(metadata);
  return before;
}
FrontendAttributes Builder::SwapFrontendAttributes(const FrontendAttributes& attributes) {
  return std::exchange(frontend_attributes_, attributes);
}

namespace {

// Sets an attribute of an existing instruction; nullopt removes it.
void set_text(Module& module, Instruction* instruction, AttributeKey key,
              const std::optional<std::string>& text) {
  std::vector<Attribute> list(instruction->attributes.begin(), instruction->attributes.end());
  std::erase_if(list, [&](const Attribute& one) { return one.key == key; });
  if (text) {
    AttributeList made(module);
    made.text(key, *text);
    list.push_back(made.sorted()[0]);
  }
  std::sort(list.begin(), list.end(),
            [](const Attribute& a, const Attribute& b) { return a.key < b.key; });
  instruction->attributes = module.arena().copy(std::span<const Attribute>(list));
}

}  // namespace

Status Builder::SetInstructionFrontendAttribute(Op op, std::string_view key,
                                                std::string_view value) {
  StatusOr<const Instruction*> found = GetInstruction(op);
  if (!found.ok()) return found.status();
  std::string text((*found)->text(AttributeKey::FrontendAttributes));
  text = text.size() < 3 ? "{" : text.substr(0, text.size() - 1) + ",";
  text += str(key, "=", quoted(value), "}");
  set_text(*module_, resolve(op), AttributeKey::FrontendAttributes, text);
  return {};
}
Status Builder::SetInstructionSharding(Op op, const std::optional<OpSharding>& sharding) {
  StatusOr<const Instruction*> found = GetInstruction(op);
  if (!found.ok()) return found.status();
  std::optional<std::string> text;
  if (sharding) text = sharding->to_string();
  set_text(*module_, resolve(op), AttributeKey::Sharding, text);
  return {};
}

void Builder::SetUpAlias(const ShapeIndex& output_index, int64_t parameter_number,
                         const ShapeIndex& parameter_index, AliasKind kind) {
  module_->input_output_aliases.push_back(
      {output_index, parameter_number, parameter_index, kind == AliasKind::kMustAlias});
}
void Builder::AddBufferDonor(int64_t param_number, const ShapeIndex& param_index) {
  constexpr std::string_view kKey = "buffer_donor";
  auto& attributes = module_->attributes;
  auto found = std::ranges::find(attributes, kKey, [](const auto& one) { return one.first; });
  if (found == attributes.end()) found = attributes.insert(found, {kKey, "{}"});
  std::string before(found->second.substr(0, found->second.size() - 1));
  std::string text = str(before, before.size() > 1 ? ", " : "", "(", param_number, ", ",
                         braced(param_index), ")}");
  found->second = module_->arena().copy(std::string_view(text));
}

}  // namespace lamella::hlo
