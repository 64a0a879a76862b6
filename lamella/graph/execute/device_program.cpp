// Runs modules on tensors of a device. See Note [Programs on a device].
#include "lamella/graph/execute/device_program.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <unordered_map>
#include <unordered_set>

#include "lamella/api/functions.h"
#include "lamella/core/cuda_stream_handle.h"
#include "lamella/core/error.h"
#include "lamella/core/interrupt.h"
#include "lamella/core/thread_allocator.h"
#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/custom_call/device_call.h"
#include "lamella/graph/custom_call/operator_plan.h"
#include "lamella/graph/evaluate/rules.h"
#include "lamella/graph/evaluate/together.h"
#include "lamella/graph/execute/device_block.h"
#include "lamella/graph/execute/device_graph.h"
#include "lamella/graph/execute/device_regions.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/passes/opcodes_to_operators.h"
#include "lamella/graph/passes/pipeline.h"
#include "lamella/graph/runtime/large_stack.h"
#include "lamella/graph/runtime/tensor_value.h"
#include "lamella/layers/profile/profile.h"

namespace lamella::hlo {
namespace {

using Tensors = std::vector<TensorBase>;  // the leaves of a value: undefined tensors are tokens

size_t count_leaves(const Shape& shape) {
  if (!shape.is_tuple()) return 1;
  size_t count = 0;
  for (const Shape& one : shape.tuple_shapes()) count += count_leaves(one);
  return count;
}
void append_tensors(const Shape& shape, const Value& value, Device device, Tensors* to) {
  if (shape.is_tuple()) {
    for (size_t e = 0; e < value.size(); ++e) {
      append_tensors(shape.tuple_shapes()[e], value.element(e), device, to);
    }
  } else if (!shape.is_array()) {
    to->emplace_back();
  } else {
    to->push_back(Tensor(tensors_of_value(value)[0]).to(device));
  }
}
Value value_of_tensors(const Shape* shape, const Tensors& tensors, size_t* next) {
  if (shape->is_tuple()) {
    std::vector<Value> elements;
    for (const Shape& one : shape->tuple_shapes()) {
      elements.push_back(value_of_tensors(&one, tensors, next));
    }
    return Value::tuple(shape, elements);
  }
  const TensorBase& tensor = tensors[(*next)++];
  return shape->is_array() ? value_of_tensor(shape, tensor) : Value::token(shape);
}

class Program final : public DeviceProgram {
 public:
  Program(std::shared_ptr<const Module> given, const CompileOptions& options, Device device)
      : given_(std::move(given)), device_(device), user_data_(options.user_data) {
    if (!make_steps(has_device_regions(device))) make_steps(false);
    const Module& module = program();
    depth_ = call_depth(module);
    for (const Computation* computation : module.computations) {
      std::vector<const DeviceStep*>& last = last_use_[computation];
      last.resize(computation->instructions.size());
      for (const DeviceStep& step : steps_.at(computation)) {
        for (const Instruction* operand : operands_of(step)) {
          last[static_cast<size_t>(operand->index)] = &step;
        }
      }
      for (const Instruction* i : computation->instructions) {
        if (i->opcode == Opcode::CustomCall && !is_manual_call(*i)) prepare(*i);
      }
    }
    find_steps(*module.entry, &run_);
    // Tools that check accesses are to see arrays apart.
    const char* cache = std::getenv("LAMELLA_CUDA_CACHE");
    if (cache == nullptr || std::string_view(cache) != "0") {
      for (const Computation* computation : run_) plan_block(*computation);
    }
    for (const Computation* computation : module.computations) {
      for (const Instruction* i : computation->instructions) {
        if (i->opcode != Opcode::Constant) continue;
        append_tensors(*i->shape, Value::of_literal(i->shape, *i->literal), device_,
                       &constants_[i]);
      }
    }
    // Calls of other code may do more than to launch.
    if (options.device_graphs && joining_.empty()) graph_ = std::make_unique<DeviceGraph>(device_);
  }

  Tensors run(std::span<const TensorBase> arguments, const RunOptions& options) const override {
    DeviceGuard guard(device_);
    BelowLayers below;
    if (graph_ == nullptr) return run_steps(arguments, options);
    return graph_->run(
        arguments, [&](std::span<const TensorBase> given) { return run_steps(given, options); });
  }
  Tensors run_steps(std::span<const TensorBase> arguments, const RunOptions& options) const {
    OneRun one(*this);
    one.context.run_id = next_run_.fetch_add(1, std::memory_order_relaxed);
    one.context.device_ordinal = device_.index();
    one.context.user_data = options.user_data != nullptr ? options.user_data : user_data_.get();
    for (PreparedCall* call : joining_) call->prepare_run(one.context);
    if (!joining_.empty()) one.context.stream = current_cuda_stream(device_);
    for (PreparedCall* call : joining_) call->start_run(one.context);
    std::vector<Tensors> given;
    size_t next = 0;
    for (const Instruction* parameter : program().entry->parameters) {
      Tensors& leaves = given.emplace_back();
      append_arguments(*parameter->shape, arguments, &next, &leaves);
    }
    Tensors made;
    run_nested(depth_, [&] { made = one.run(*program().entry, given); });
    finish(arguments, made);
    return made;
  }

  std::string explain() const override {
    std::string text = rewritten_.notes + str("on ", device_, ":\n");
    if (!problem_.empty()) text += str("  no kernels of regions: ", problem_, "\n");
    if (graph_ != nullptr) text += graph_->explain();
    for (const Computation* computation : program().computations) {
      if (!run_.contains(computation)) continue;
      if (auto plan = blocks_.find(computation); plan != blocks_.end()) {
        text += str("  one block of ", plan->second.bytes(), " bytes for ", plan->second.size(),
                    " arrays of ", computation->name, "\n");
      }
      for (const DeviceStep& step : steps_.at(computation)) {
        const Instruction* i = step.instruction;
        if (i == nullptr) {
          for (const std::string& note : step.region->notes) text += str("  kernel, ", note, "\n");
          continue;
        }
        const std::string_view target = i->text(AttributeKey::CustomCallTarget);
        auto call = calls_.find(i);
        if (call != calls_.end()) {
          text += str("  ", call->second.on_device ? "call of " : "call on the host of ", target,
                      ": ", i->name, "\n");
        } else if (!is_structure(i->opcode)) {
          text += str("  rule on the host of ", opcode_name(i->opcode), ": ", i->name, "\n");
        }
      }
    }
    return text;
  }

 private:
  struct Call {
    std::unique_ptr<PreparedCall> prepared;
    bool on_device;
  };
  // Rewrites the module and makes its steps; false: there can be no regions on this device.
  bool make_steps(bool compiled) {
    DeviceRules rules(/*least=*/2);
    rewritten_ = run_passes(
        *given_, 0, false, [](const Computation&) { return false; },
        [&](const Instruction& i) { return compiled && rules.is_compiled(i); }, /*least=*/0);
    std::optional<DeviceSteps> made = device_steps(program(), device_, compiled, &problem_);
    if (made) steps_ = *std::move(made);
    return made.has_value();
  }
  static std::span<const Instruction* const> operands_of(const DeviceStep& step) {
    if (step.region != nullptr) return step.region->inputs;
    return {step.instruction->operands.data(), step.instruction->operands.size()};
  }
  const Module& program() const {
    return rewritten_.module != nullptr ? *rewritten_.module : *given_;
  }
  // Opcodes that move no elements, or run other computations.
  static bool is_structure(Opcode opcode) {
    switch (opcode) {
      case Opcode::Parameter:
      case Opcode::Constant:
      case Opcode::Tuple:
      case Opcode::GetTupleElement:
      case Opcode::Reshape:
      case Opcode::Copy:
      case Opcode::OptimizationBarrier:
      case Opcode::AddDependency:
      case Opcode::AfterAll:
      case Opcode::Iota:
      case Opcode::Call:
      case Opcode::While:
      case Opcode::Conditional:
        return true;
      default:
        return false;
    }
  }

  // The target for CUDA, an operator, or what the host has, which gets copies.
  void prepare(const Instruction& i) {
    Call call{nullptr, true};
    if (device_.is_cuda() && device_.index() == 0 && has_target(i, "CUDA")) {
      call.prepared = prepare_call(i, "CUDA");
    } else if (!has_target(i, "Host") && is_top_k_call(i)) {
      return;
    } else {
      call.prepared = prepare_call(i, "Host");
      call.on_device = call.prepared->runs_on_device();
    }
    if (call.prepared->joins_runs()) joining_.push_back(call.prepared.get());
    calls_.emplace(&i, std::move(call));
  }

  // Whether the value of a step may have memory of an operand's.
  bool shares_operands(const Instruction& i) const {
    auto call = calls_.find(&i);
    return call == calls_.end() ? is_structure(i.opcode) : call->second.prepared->shares_operands();
  }
  // Note [One block]: what is read until the end, as the result is, is not in it.
  void plan_block(const Computation& computation) {
    const std::vector<DeviceStep>& steps = steps_.at(&computation);
    std::vector<size_t> last(computation.instructions.size(), 0);
    auto last_of = [&](const Instruction* i) -> size_t& {
      return last[static_cast<size_t>(i->index)];
    };
    last_of(computation.root) = steps.size();
    for (size_t s = steps.size(); s-- > 0;) {
      const Instruction* i = steps[s].instruction;
      const size_t end = i != nullptr && shares_operands(*i) ? std::max(s, last_of(i)) : s;
      for (const Instruction* operand : operands_of(steps[s])) {
        last_of(operand) = std::max(last_of(operand), end);
      }
    }
    BlockPlan plan;
    for (size_t s = 0; s < steps.size(); ++s) {
      const Instruction* i = steps[s].instruction;
      auto add = [&](const Instruction* made) {
        if (last_of(made) == steps.size()) return;
        for (const Shape* leaf : array_leaves(*made->shape)) {
          plan.add(s, std::max(s, last_of(made)), leaf->bytes());
        }
      };
      if (i == nullptr) {
        for (const Instruction* output : steps[s].region->outputs) add(output);
        plan.add(s, s, steps[s].region->temporary_bytes);
      } else if (!is_structure(i->opcode) && !shares_operands(*i)) {
        add(i);
      }
    }
    plan.finish(steps.size());
    if (plan.size() > 1) blocks_.emplace(&computation, std::move(plan));
  }

  void append_arguments(const Shape& shape, std::span<const TensorBase> arguments, size_t* next,
                        Tensors* to) const {
    if (shape.is_tuple()) {
      for (const Shape& one : shape.tuple_shapes()) append_arguments(one, arguments, next, to);
    } else if (!shape.is_array()) {
      to->emplace_back();
    } else {
      Tensor tensor(arguments[(*next)++]);
      if (tensor.device() != device_) tensor = tensor.to(device_);
      to->push_back(tensor.resolve_conj().resolve_neg());
    }
  }
  // Makes results dense, each with its own memory, and drops tokens.
  void finish(std::span<const TensorBase> arguments, Tensors& made) const {
    std::erase_if(made, [](const TensorBase& one) { return !one.defined(); });
    std::vector<const void*> taken;
    for (const TensorBase& one : arguments) taken.push_back(one.impl()->storage);
    for (const auto& [i, leaves] : constants_) {
      for (const TensorBase& one : leaves) taken.push_back(one.impl()->storage);
    }
    for (TensorBase& one : made) {
      Tensor tensor(one);
      const bool shares = std::ranges::find(taken, one.impl()->storage) != taken.end();
      one = shares ? tensor.clone(MemoryFormat::Contiguous) : tensor.contiguous();
      taken.push_back(one.impl()->storage);
    }
  }

  // A run on the device. As a Run it is what the host's rules call computations by.
  class OneRun final : public Run {
   public:
    explicit OneRun(const Program& program) : program_(program) {}

    Tensors run(const Computation& computation, std::vector<Tensors>& arguments) {
      const auto& last = program_.last_use_.at(&computation);
      size_t step_number = 0;
      std::vector<Tensors> values(computation.instructions.size());
      for (const Instruction* i : computation.parameters) {
        values[static_cast<size_t>(i->index)] =
            std::move(arguments[static_cast<size_t>(i->parameter_number)]);
      }
      const auto plan = program_.blocks_.find(&computation);
      DeviceBlock::Held block;
      if (plan != program_.blocks_.end()) block = DeviceBlock::make(plan->second, program_.device_);
      ThreadAllocator first(program_.device_.type(), block.get());
      for (const DeviceStep& one : program_.steps_.at(&computation)) {
        const Instruction* i = one.instruction;
        if (block) block->begin(step_number++);
        if (i != nullptr && i->opcode == Opcode::Parameter) continue;
        check_interrupt();
        profile::Span span("run");
        const auto read = operands_of(one);
        std::vector<Tensors> operands;
        for (const Instruction* operand : read) {
          Tensors& value = values[static_cast<size_t>(operand->index)];
          const bool ends = last[static_cast<size_t>(operand->index)] == &one &&
                            operand != computation.root && std::ranges::count(read, operand) == 1;
          operands.push_back(ends ? std::move(value) : value);
        }
        if (i == nullptr) {
          run_region(*one.region, operands, values);
        } else {
          values[static_cast<size_t>(i->index)] = step(*i, operands);
        }
        span.end([&] { return i == nullptr ? "region" : std::string(opcode_name(i->opcode)); });
      }
      return std::move(values[static_cast<size_t>(computation.root->index)]);
    }

    // For the host's rules, whose values are the host's.
    Value call(const Computation& computation, std::span<Value> arguments) override {
      std::vector<Value> values(computation.instructions.size());
      for (const Instruction* i : computation.instructions) {
        auto at = static_cast<size_t>(i->index);
        if (i->opcode == Opcode::Parameter) {
          values[at] = arguments[static_cast<size_t>(i->parameter_number)];
        } else if (i->opcode == Opcode::Constant) {
          values[at] = Value::of_literal(i->shape, *i->literal);
        } else {
          std::vector<Value> operands;
          for (const Instruction* operand : i->operands) {
            operands.push_back(values[static_cast<size_t>(operand->index)]);
          }
          values[at] = on_host(*i, operands);
        }
      }
      return values[static_cast<size_t>(computation.root->index)];
    }
    std::unique_ptr<Run> another() const override {
      auto made = std::make_unique<OneRun>(program_);
      made->context.run_id = context.run_id;
      made->context.user_data = context.user_data;
      made->context.kept = context.kept;
      return made;
    }

   private:
    Value on_host(const Instruction& i, std::span<Value> operands) {
      auto found = program_.calls_.find(&i);
      if (found != program_.calls_.end()) return found->second.prepared->run(operands, context);
      Step done{i, operands, *this};
      if (is_manual_call(i)) return evaluate_manual(done);
      return rule_of(i.opcode == Opcode::CustomCall ? Opcode::TopK : i.opcode)(done);
    }
    Tensors on_copies(const Instruction& i, std::vector<Tensors>& operands) {
      const std::string_view target = i.text(AttributeKey::CustomCallTarget);
      count_host_step(target.empty() ? str("hlo::", opcode_name(i.opcode))
                                     : str("hlo::custom-call ", target));
      std::vector<Value> values;
      for (size_t n = 0; n < operands.size(); ++n) {
        size_t next = 0;
        values.push_back(value_of_tensors(i.operands[n]->shape, operands[n], &next));
      }
      Tensors made;
      append_tensors(*i.shape, on_host(i, values), program_.device_, &made);
      return made;
    }
    void run_region(const DeviceRegion& region, std::vector<Tensors>& operands,
                    std::vector<Tensors>& values) {
      Tensors given;
      for (size_t n = 0; n < operands.size(); ++n) {
        const bool is_constant = region.inputs[n]->opcode == Opcode::Constant;
        given.push_back(is_constant ? program_.constants_.at(region.inputs[n])[0]
                                    : std::move(operands[n][0]));
        operands[n].clear();
      }
      Tensors made = region.run(given, program_.device_);
      for (size_t n = 0; n < made.size(); ++n) {
        values[static_cast<size_t>(region.outputs[n]->index)] = {std::move(made[n])};
      }
    }
    bool is_true(const Tensors& value) { return Tensor(value[0]).to(kCPU).item().to<bool>(); }

    Tensors step(const Instruction& i, std::vector<Tensors>& operands) {
      switch (i.opcode) {
        case Opcode::Constant:
          return program_.constants_.at(&i);
        case Opcode::Tuple: {
          Tensors all;
          for (Tensors& one : operands) all.insert(all.end(), one.begin(), one.end());
          return all;
        }
        case Opcode::GetTupleElement: {
          const auto& shapes = i.operands[0]->shape->tuple_shapes();
          const auto index = static_cast<size_t>(i.integer(AttributeKey::Index));
          size_t first = 0;
          for (size_t n = 0; n < index; ++n) first += count_leaves(shapes[n]);
          auto begin = operands[0].begin() + static_cast<std::ptrdiff_t>(first);
          return {begin, begin + static_cast<std::ptrdiff_t>(count_leaves(shapes[index]))};
        }
        case Opcode::Copy:
        case Opcode::OptimizationBarrier:
        case Opcode::AddDependency:
          return std::move(operands[0]);
        case Opcode::AfterAll:
          return Tensors(1);
        case Opcode::Reshape:
          return {Tensor(operands[0][0])
                      .reshape(
                          IntArrayRef(i.shape->dimensions().data(), i.shape->dimensions().size()))};
        case Opcode::Iota:
          if (std::optional<Tensors> made = iota(i)) return *std::move(made);
          break;
        case Opcode::Call: {
          AttributeKey key =
              i.has(AttributeKey::ToApply) ? AttributeKey::ToApply : AttributeKey::Calls;
          return run(*i.computation(key), operands);
        }
        case Opcode::While:
          for (;;) {
            check_interrupt();
            std::vector<Tensors> asked{operands[0]};
            if (!is_true(run(*i.computation(AttributeKey::Condition), asked))) break;
            std::vector<Tensors> state{std::move(operands[0])};
            operands[0] = run(*i.computation(AttributeKey::Body), state);
          }
          return std::move(operands[0]);
        case Opcode::Conditional:
          return branch(i, operands);
        case Opcode::CustomCall: {
          auto found = program_.calls_.find(&i);
          if (found == program_.calls_.end() || !found->second.on_device) break;
          Tensors flat;
          for (Tensors& one : operands) {
            flat.insert(flat.end(), one.begin(), one.end());
            one.clear();
          }
          return found->second.prepared->run_on_device(flat, program_.device_, context);
        }
        default:
          break;
      }
      return on_copies(i, operands);
    }

    // Of numbers that the operator has: unsigned ones of more than 8 bits stay with the rule.
    std::optional<Tensors> iota(const Instruction& i) {
      const ElementType type = i.shape->element_type();
      std::optional<ScalarType> scalar = scalar_type_of(type);
      const bool is_signed = element_kind(type) == ElementKind::Signed;
      if (!scalar || i.shape->elements() == 0 || element_bits(type) < 32 ||
          (!is_signed && !is_floating(type))) {
        return std::nullopt;
      }
      const int64_t dimension = i.integer(AttributeKey::IotaDimension);
      const int64_t size = i.shape->dimension(dimension);
      std::vector<int64_t> sizes(static_cast<size_t>(i.shape->rank()), 1);
      sizes[static_cast<size_t>(dimension)] = size;
      Tensor counted =
          lamella::arange(size, TensorOptions(ScalarType::Long).device(program_.device_));
      return Tensors{counted.to(*scalar).reshape(sizes).expand(
          IntArrayRef(i.shape->dimensions().data(), i.shape->dimensions().size()))};
    }

    Tensors branch(const Instruction& i, std::vector<Tensors>& operands) {
      size_t which = 0;
      const Computation* taken = nullptr;
      if (const Attribute* found = i.find(AttributeKey::BranchComputations)) {
        auto branches = found->computations();
        const auto count = static_cast<int64_t>(branches.size());
        int64_t index = Tensor(operands[0][0]).to(kCPU).item().to<int64_t>();
        if (index < 0 || index >= count) index = count - 1;
        which = static_cast<size_t>(index) + 1;
        taken = branches[static_cast<size_t>(index)];
      } else {
        const bool yes = is_true(operands[0]);
        which = yes ? 1 : 2;
        taken = i.computation(yes ? AttributeKey::TrueComputation : AttributeKey::FalseComputation);
      }
      std::vector<Tensors> given{std::move(operands[which])};
      return run(*taken, given);
    }

    const Program& program_;
  };

  std::shared_ptr<const Module> given_;
  Rewritten rewritten_;
  Device device_;
  int64_t depth_ = 0;
  std::shared_ptr<const UserData> user_data_;
  std::unordered_map<const Instruction*, Call> calls_;
  std::unique_ptr<DeviceGraph> graph_;
  std::vector<PreparedCall*> joining_;  // those that are no operators use the stream as well
  // Beside the numbers of runs on the host, which count from 1.
  mutable std::atomic<int64_t> next_run_{int64_t{1} << 62};
  std::unordered_map<const Instruction*, Tensors> constants_;
  std::string problem_;
  DeviceSteps steps_;
  std::unordered_set<const Computation*> run_;                // step by step
  std::unordered_map<const Computation*, BlockPlan> blocks_;  // of those with several arrays
  // The last step that reads each instruction, by index; null if there is none.
  std::unordered_map<const Computation*, std::vector<const DeviceStep*>> last_use_;
};

}  // namespace

std::unique_ptr<const DeviceProgram> make_device_program(std::shared_ptr<const Module> module,
                                                         const CompileOptions& options,
                                                         Device device) {
  return std::make_unique<Program>(std::move(module), options, device);
}

std::vector<TensorBase> run_on_copies(const Executable& executable,
                                      std::span<const TensorBase> arguments, Device device,
                                      const RunOptions& options) {
  count_host_step(str("hlo::program ", executable.module().name));
  std::vector<Value> leaves, values;
  size_t next = 0;
  const auto& parameters = executable.module().entry->parameters;
  for (const Instruction* parameter : parameters) {
    for (const Shape* shape : array_leaves(*parameter->shape)) {
      leaves.push_back(value_of_tensor(shape, arguments[leaves.size()]));
    }
  }
  for (const Instruction* parameter : parameters) {
    values.push_back(value_of_leaves(parameter->shape, leaves, &next));
  }
  std::vector<TensorBase> made = tensors_of_value(executable.run(values, options));
  for (TensorBase& one : made) one = Tensor(one).to(device);
  return made;
}

}  // namespace lamella::hlo
