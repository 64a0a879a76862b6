// The executor: plans of computations, and the loop that runs them.
//
// Note [Steps]
//   A computation is a list of steps over numbered places, each of which holds a value. A step is a
//   region of machine code, a custom call, or the evaluator's rule for one instruction. At its last
//   use an operand is moved into the step, so that its memory is released early and a step that
//   holds the only reference may write in place. Inside a region memory is planned in advance, in
//   one block that is allocated for the duration of the step.
#include "lamella/graph/execute/executor.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "lamella/core/allocator.h"
#include "lamella/core/float_mode.h"
#include "lamella/core/interrupt.h"
#include "lamella/graph/custom_call/annotation.h"
#include "lamella/graph/evaluate/dynamic_sizes.h"
#include "lamella/graph/evaluate/rules.h"
#include "lamella/graph/evaluate/together.h"
#include "lamella/graph/execute/blocks.h"
#include "lamella/graph/execute/code_cache.h"
#include "lamella/graph/execute/computation_plan.h"
#include "lamella/graph/execute/device_program.h"
#include "lamella/graph/execute/device_regions.h"
#include "lamella/graph/execute/machine_code.h"
#include "lamella/graph/execute/planned_module.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/passes/pipeline.h"
#include "lamella/graph/runtime/large_stack.h"
#include "lamella/graph/runtime/sized_value.h"
#include "lamella/layers/profile/profile.h"

namespace lamella::hlo {
namespace {

// Calls f(array) for each array of the value.
template <class F>
void for_each_leaf(const Value& value, F&& f) {
  if (value.shape().is_array()) return f(value);
  for (size_t e = 0; e < value.size(); ++e) for_each_leaf(value.element(e), f);
}
Value assembled(const Shape* shape, Value*& leaves) {
  if (shape->is_array()) return std::move(*leaves++);
  std::vector<Value> elements;
  for (const Shape& element : shape->tuple_shapes()) {
    elements.push_back(assembled(&element, leaves));
  }
  return Value::tuple(shape, elements);
}

// Temporary memory for the duration of a step.
class Temporary {
 public:
  explicit Temporary(size_t bytes) : data_(cpu_allocate(bytes)), bytes_(bytes) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (data_ != nullptr) cpu_free(data_, bytes_);
  }
  void* data() const { return data_; }

 private:
  void* data_;
  size_t bytes_;
};

void run_region(const PlannedRegion& region, std::span<Value> operands, Value* places) {
  constexpr size_t kInlineValues = 24, kInlineBuffers = 64;
  size_t outputs = region.output_leaves.size();
  size_t count = 2 * region.input_leaves + outputs + 1;
  void* few_buffers[kInlineBuffers];
  Value few_values[kInlineValues];
  std::vector<void*> many_buffers(count > kInlineBuffers ? count : 0);
  std::vector<Value> many_values(outputs > kInlineValues ? outputs : 0);
  void** buffers = count > kInlineBuffers ? many_buffers.data() : few_buffers;
  Value* values = outputs > kInlineValues ? many_values.data() : few_values;
  void** next = buffers;
  void** storages = buffers + region.input_leaves + outputs + 1;
  for (const Value& operand : operands) {
    for_each_leaf(operand, [&](const Value& leaf) {
      *next++ = leaf.data();
      *storages++ = leaf.storage();
    });
  }
  for (size_t o = 0; o < outputs; ++o) {
    const OutputLeaf& leaf = region.output_leaves[o];
    Value* shared =
        leaf.shared_operand >= 0 ? &operands[static_cast<size_t>(leaf.shared_operand)] : nullptr;
    // Code may use streaming stores, which require alignment to cache lines.
    if (shared != nullptr && shared->unique() &&
        reinterpret_cast<uintptr_t>(shared->data()) % 64 == 0) {
      // The data stays in place: the code reads it there and overwrites it with the output.
      values[o] =
          Value::reused(std::move(operands[static_cast<size_t>(leaf.shared_operand)]), leaf.shape);
    } else {
      values[o] = Value::uninitialized(leaf.shape, leaf.bytes);
    }
    *next++ = values[o].data();
  }
  Temporary temporary(region.temporary_bytes);
  *next = temporary.data();
  if (region.blocks != nullptr) {
    region.blocks->run(buffers);
  } else if (region.function(buffers) != 0) {
    throw_pending();  // no frame of machine code is on the stack here
  }
  Value* leaf = values;
  for (const RegionOutput& output : region.outputs) {
    Value value = assembled(output.shape, leaf);
    places[output.place] = std::move(value);
  }
}

constexpr size_t kInlineRunValues = 32;
std::atomic<int64_t> next_run{1};

// A module as given, and as it is run: the same if no pass changed it.
struct Program {
  std::shared_ptr<const Module> given;
  Rewritten rewritten;
  const Module& run() const { return rewritten.module != nullptr ? *rewritten.module : *given; }
};
std::shared_ptr<const Program> unchanged(std::shared_ptr<const Module> given) {
  auto program = std::make_shared<Program>();
  program->given = std::move(given);
  return program;
}
std::shared_ptr<const Program> make_program(std::shared_ptr<const Module> given, bool native) {
  auto program = std::make_shared<Program>();
  NativeRules rules(*given);
  std::optional<NativeRules> own;   // for the copy that passes rewrite
  std::optional<NativeRules> last;  // for the result of the other passes
  program->rewritten = run_passes(
      *given, rules.most_instructions(), native,
      [&](const Computation& one) {
        if (!native) return false;
        if (!own) own.emplace(*one.parent);
        return own->is_native(one);
      },
      [&](const Instruction& i) {
        if (!native) return false;
        if (!last) last.emplace(*i.parent->parent);
        return last->is_native(i);
      });
  program->given = std::move(given);
  return program;
}

// How a program is run: as fast as possible, or each instruction by its rule, as a reference for
// tests.
enum class Means : uint8_t { Fastest, Rules };

class Executor final : public Executable {
 public:
  Executor(const std::shared_ptr<const Program>& program, Means means,
           const CompileOptions& options, StoredCode* stored = nullptr)
      : Executable({program, program->given.get()}),
        means_(means),
        passes_(program->rewritten.notes),
        program_(program->run()),
        is_dynamic_(has_dynamic_sizes(program_)),
        depth_(call_depth(program_)),
        user_data_(options.user_data),
        flush_subnormals_(options.flush_subnormals),
        device_graphs_(options.device_graphs) {
    check_platform(options.platform);
    for (const Computation* computation : program_.computations) {
      for (const Instruction* i : computation->instructions) {
        if (i->opcode != Opcode::CustomCall) continue;
        if (is_manual_call(*i)) continue;
        if (!has_target(*i, options.platform) && is_top_k_call(*i)) continue;
        calls_.push_back(prepare_call(*i, options.platform));
        prepared_.emplace(i, calls_.back().get());
        if (calls_.back()->joins_runs()) joining_.push_back(calls_.back().get());
      }
    }
    // Where there are GPUs it may run there alone: code for the host waits for its first run.
    const bool later = means_ == Means::Fastest && has_device_regions(kCUDA);
    if (stored != nullptr || !later) plan_once(stored);
  }

  using Executable::run;
  Value run(std::span<Value> arguments, const RunOptions& options) const override {
    check_arguments(arguments);
    plan_once(nullptr);
    OneRun one(*this);
    one.context.run_id = next_run.fetch_add(1, std::memory_order_relaxed);
    one.context.device_ordinal = options.device_ordinal;
    one.context.participant = options.participant;
    one.context.user_data = options.user_data != nullptr ? options.user_data : user_data_.get();
    for (PreparedCall* call : joining_) call->prepare_run(one.context);
    for (PreparedCall* call : joining_) call->start_run(one.context);
    for (size_t a = 0; is_dynamic_ && a < arguments.size(); ++a) {
      arguments[a] = unpacked(module().entry->parameters[a]->shape, arguments[a]);
    }
    profile::Span whole("run");
    Value made;
    auto run_entry = [&] {
      SubnormalMode mode(flush_subnormals_ ? kFlushSubnormals : subnormal_mode());
      made = one.run(*entry_, arguments);
    };
    if (depth_ <= kMaxDepthOnOwnStack) {
      run_entry();
    } else {
      run_nested(depth_, run_entry);
    }
    whole.end([&] { return std::string(program_.name); });
    return is_dynamic_ ? packed(made) : made;
  }
  std::vector<TensorBase> run_on_device(std::span<const TensorBase> arguments, Device device,
                                        const RunOptions& options) const override {
    if (means_ == Means::Fastest) return on_device(device).run(arguments, options);
    return run_on_copies(*this, arguments, device, options);  // the reference is the host's
  }
  std::string explain() const override {
    std::string text;
    plan_once(nullptr);
    run_nested(depth_, [&] { text = explained(); });
    std::lock_guard lock(devices_mutex_);
    for (const auto& [index, program] : devices_) text += program->explain();
    return text;
  }
  std::shared_ptr<const Module> plan() const override {
    std::shared_ptr<const Module> made;
    plan_once(nullptr);
    run_nested(depth_, [&] { made = planned(); });
    return made;
  }

 private:
  const DeviceProgram& on_device(Device device) const {
    std::lock_guard lock(devices_mutex_);
    std::unique_ptr<const DeviceProgram>& one = devices_[device.index()];
    if (one == nullptr) {
      CompileOptions options;
      options.user_data = user_data_;
      options.device_graphs = device_graphs_;
      one = make_device_program(shared_module(), options, device);
    }
    return *one;
  }
  std::string explained() const;
  std::shared_ptr<const Module> planned() const;
  class OneRun final : public Run {
   public:
    explicit OneRun(const Executor& executor) : executor_(executor) {}
    Value call(const Computation& computation, std::span<Value> arguments) override {
      return run(executor_.plans_.at(&computation), arguments);
    }
    std::unique_ptr<Run> another() const override {
      auto made = std::make_unique<OneRun>(executor_);
      made->context.run_id = context.run_id;
      made->context.device_ordinal = context.device_ordinal;
      made->context.user_data = context.user_data;
      made->context.kept = context.kept;
      return made;
    }
    Value run(const ComputationPlan& plan, std::span<Value> arguments) {
      // Small plans keep their places on the stack.
      size_t count = plan.places + plan.most_operands;
      Value few[kInlineRunValues];
      std::vector<Value> many(count > kInlineRunValues ? count : 0);
      Value* places = many.empty() ? few : many.data();
      Value* operands = places + plan.places;
      for (size_t p = 0; p < plan.parameters.size(); ++p) {
        places[plan.parameters[p]] = std::move(arguments[p]);
      }
      for (const auto& [place, value] : plan.constants) places[place] = value;
      for (const PlannedStep& step : plan.steps) {
        check_interrupt();
        profile::Span span("run");
        std::span<Value> taken(operands, step.operand_count);
        for (uint32_t o = 0; o < step.operand_count; ++o) {
          const StepOperand& operand = plan.operands[step.first_operand + o];
          if (operand.ends) {
            taken[o].take(places[operand.place]);
          } else {
            taken[o].share(places[operand.place]);
          }
        }
        if (step.region != nullptr) {
          run_region(*step.region, taken, places);
          for (Value& operand : taken) context.drop(operand);
          span.end([&] { return step.region->name; });
          continue;
        }
        Value& result = places[step.result];
        if (executor_.is_dynamic_) {
          result = run_dynamic(step, taken);
        } else if (step.call != nullptr) {
          result = step.call->run(taken, context);
        } else {
          Step done{*step.instruction, taken, *this};
          result = step.rule(done);
        }
        if (step.unused) context.drop(result);
        for (Value& operand : taken) context.drop(operand);
        span.end([&] { return name_of(step); });
      }
      return std::move(places[plan.root]);
    }

   private:
    Value run_dynamic(const PlannedStep& step, std::span<Value> operands) {
      Step done{*step.instruction, operands, *this};
      if (step.call == nullptr) return run_with_sizes(done, step.rule);
      bool sized = std::ranges::any_of(operands, has_sizes);
      if (sized && is_annotation(*step.instruction)) return std::move(operands[0]);
      LAMELLA_HLO_REQUIRE(!sized, *step.instruction, "expected operands of static size, got ",
                          "sizes below the bounds of their shapes");
      return step.call->run(operands, context);
    }
    static std::string name_of(const PlannedStep& step) {
      if (step.call == nullptr) return str("rule of ", opcode_name(step.instruction->opcode));
      return str("call of ", step.instruction->text(AttributeKey::CustomCallTarget));
    }
    const Executor& executor_;
  };

  void plan_once(StoredCode* stored) const {
    std::call_once(is_planned_, [&] { run_nested(depth_, [&] { plan_all(stored); }); });
  }
  void plan_all(StoredCode* stored) const {
    native_ = means_ == Means::Fastest && (may_have_machine_compiler() || stored != nullptr);
    profile::Span machine_code("compile");
    std::vector<PlannedComputation> scheduled = schedule_all();
    std::optional<std::vector<MachineCode>> found = find_code(scheduled, stored);
    if (!found) {
      native_ = false;
      scheduled = schedule_all();
      found.emplace();
    }
    size_t code = 0;
    for (const PlannedComputation& one : scheduled) {
      for (const ScheduledStep& step : one.steps) {
        if (step.instruction != nullptr) continue;
        codes_.push_back(step.region.blocks ? MachineCode() : std::move((*found)[code++]));
      }
    }
    machine_code.end([&] { return str(program_.name, ": machine code"); });
    size_t next = 0;
    for (const PlannedComputation& one : scheduled) {
      plans_.emplace(one.computation, make_plan(*one.computation, one.steps, codes_, &next));
    }
    entry_ = &plans_.at(program_.entry);
  }
  // Schedules all computations that are run step by step: the entry, and those that rules call.
  std::vector<PlannedComputation> schedule_all() const {
    NativeRules rules(program_);
    std::vector<PlannedComputation> all{{program_.entry, {}}};
    for (size_t n = 0; n < all.size(); ++n) {
      std::vector<ScheduledStep> steps = schedule(*all[n].computation, native_ ? &rules : nullptr);
      if (means_ == Means::Fastest) join_blocks(steps, prepared_);
      for (const ScheduledStep& step : steps) {
        if (step.instruction == nullptr) continue;
        for_each_called(*step.instruction, [&](const Computation& called) {
          if (std::ranges::find(all, &called, &PlannedComputation::computation) == all.end()) {
            all.push_back({&called, {}});
          }
        });
      }
      all[n].steps = std::move(steps);
    }
    return all;
  }
  // The code of all regions but blocks: from the caller, from the disk cache, or from the compiler.
  // nullopt if there is none.
  std::optional<std::vector<MachineCode>> find_code(
      const std::vector<PlannedComputation>& scheduled, StoredCode* stored) const {
    std::vector<const Region*> regions;
    for (const PlannedComputation& one : scheduled) {
      for (const ScheduledStep& step : one.steps) {
        if (step.instruction == nullptr && !step.region.blocks) regions.push_back(&step.region);
      }
    }
    if (regions.empty()) return std::vector<MachineCode>();
    std::optional<CodeImage> image = image_of(program_, regions, stored);
    if (!image) return std::nullopt;
    return load(*image, &code_holder_);
  }

  ComputationPlan make_plan(const Computation& computation,
                            const std::vector<ScheduledStep>& scheduled,
                            const std::vector<MachineCode>& codes, size_t* next_code) const {
    ComputationPlan plan;
    plan.places = static_cast<uint32_t>(computation.instructions.size());
    plan.root = place_of(computation.root);
    for (const Instruction* parameter : computation.parameters) {
      plan.parameters.push_back(place_of(parameter));
    }
    std::vector<const MachineCode*> code_of;
    for (const ScheduledStep& one : scheduled) {
      const Instruction* i = one.instruction;
      if (i != nullptr && i->opcode == Opcode::Constant) {
        plan.constants.emplace_back(place_of(i), Value::of_literal(i->shape, *i->literal));
        continue;
      }
      PlannedStep step;
      step.instruction = i;
      step.first_operand = static_cast<uint32_t>(plan.operands.size());
      auto read = [&](const Instruction* operand) {
        plan.operands.push_back({place_of(operand), false});
      };
      if (i == nullptr) {
        code_of.push_back(&codes[(*next_code)++]);
        plan.regions.push_back(std::make_unique<PlannedRegion>());
        step.region = plan.regions.back().get();
        for (const Instruction* input : one.region.inputs) read(input);
      } else {
        step.result = place_of(i);
        auto prepared = prepared_.find(i);
        if (prepared != prepared_.end()) {
          step.call = prepared->second;
        } else {
          step.rule = is_manual_call(*i)                ? &evaluate_manual
                      : i->opcode == Opcode::CustomCall ? rule_of(Opcode::TopK)
                                                        : rule_of(i->opcode);
        }
        for (const Instruction* operand : i->operands) read(operand);
      }
      step.operand_count = static_cast<uint32_t>(plan.operands.size()) - step.first_operand;
      plan.most_operands = std::max(plan.most_operands, step.operand_count);
      plan.steps.push_back(step);
    }
    find_ends(plan);
    size_t r = 0, s = 0;
    for (const ScheduledStep& one : scheduled) {
      if (one.instruction != nullptr) {
        if (one.instruction->opcode != Opcode::Constant) ++s;
        continue;
      }
      fill_region(*plan.regions[r], one.region, *code_of[r], plan, plan.steps[s++]);
      if (one.region.blocks) {
        plan.regions[r]->blocks = std::make_unique<Blocks>(one.region, prepared_);
      }
      ++r;
    }
    return plan;
  }

  static void fill_region(PlannedRegion& to, const Region& region, const MachineCode& code,
                          const ComputationPlan& plan, const PlannedStep& step) {
    to.name = str(region.blocks ? "blocks of " : "machine code of ", region.outputs.front()->name);
    to.function = code.function;
    to.temporary_bytes = static_cast<size_t>(code.temporary_bytes);
    std::vector<int32_t> operand_of_leaf;
    for (size_t o = 0; o < region.inputs.size(); ++o) {
      const Shape& shape = *region.inputs[o]->shape;
      std::vector<const Shape*> leaves;
      append_leaves(shape, &leaves);
      bool may = shape.is_array() && plan.operands[step.first_operand + o].ends;
      operand_of_leaf.insert(operand_of_leaf.end(), leaves.size(),
                             may ? static_cast<int32_t>(o) : -1);
    }
    to.input_leaves = static_cast<uint32_t>(operand_of_leaf.size());
    for (const Instruction* output : region.outputs) {
      std::vector<const Shape*> leaves;
      append_leaves(*output->shape, &leaves);
      for (const Shape* leaf : leaves) {
        to.output_leaves.push_back({leaf, static_cast<size_t>(leaf->bytes()), -1});
      }
      to.outputs.push_back({output->shape, place_of(output)});
    }
    for (auto [output, input] : code.may_share) {
      to.output_leaves[output].shared_operand = operand_of_leaf[input];
    }
    if (!region.blocks) return;
    // An output of blocks takes over the memory of an input whose last use this is; each input
    // gives its memory to one output.
    for (size_t o = 0; o < region.outputs.size(); ++o) {
      for (size_t n = 0; n < region.inputs.size(); ++n) {
        int32_t& operand = operand_of_leaf[n];
        if (operand < 0 || !Blocks::may_share(*region.outputs[o], *region.inputs[n])) continue;
        to.output_leaves[o].shared_operand = std::exchange(operand, -1);
        break;
      }
    }
  }

  const Means means_;
  std::string passes_;     // description of the passes' changes
  const Module& program_;  // lives as long as module()
  const bool is_dynamic_;  // whether values may have sizes below their bounds
  int64_t depth_;          // of its calls
  std::shared_ptr<const UserData> user_data_;
  bool flush_subnormals_, device_graphs_;
  std::vector<std::unique_ptr<PreparedCall>> calls_;
  std::unordered_map<const Instruction*, PreparedCall*> prepared_;
  std::vector<PreparedCall*> joining_;  // the calls that must be prepared at the start of a run
  // What plan_once() makes.
  mutable std::once_flag is_planned_;
  mutable bool native_ = false;  // true if there is machine code
  mutable std::shared_ptr<const void> code_holder_;
  mutable std::vector<MachineCode> codes_;  // of the regions in their order
  mutable std::unordered_map<const Computation*, ComputationPlan> plans_;
  mutable const ComputationPlan* entry_ = nullptr;
  mutable std::mutex devices_mutex_;
  mutable std::map<DeviceIndex, std::unique_ptr<const DeviceProgram>> devices_;
};

std::string Executor::explained() const {
  if (means_ == Means::Rules) {
    return str("every instruction by its rule, ",
               is_dynamic_ ? "since sizes are dynamic\n" : "as a reference\n");
  }
  std::string text = passes_;
  NativeRules rules(program_);
  size_t next = 0;
  for (const PlannedComputation& one : schedule_all()) {
    text += str(one.computation->name, ":\n");
    for (const ScheduledStep& step : one.steps) {
      const Instruction* i = step.instruction;
      if (i == nullptr) {
        const MachineCode& code = codes_[next++];
        if (step.region.blocks) {
          text += str("  blocks of ", step.region.instructions.size(), " calls:");
          for (const Instruction* call : step.region.instructions) {
            text += str(" ", call->text(AttributeKey::CustomCallTarget));
          }
          text += "\n";
          continue;
        }
        text += str("  machine code for ", step.region.instructions.size(), " instructions, with ",
                    code.temporary_bytes, " bytes of temporary memory:\n");
        for (const std::string& note : code.notes) text += str("    ", note, "\n");
      } else if (i->opcode == Opcode::CustomCall) {
        text +=
            str("  custom call of ", i->text(AttributeKey::CustomCallTarget), ": ", i->name, "\n");
      } else if (i->opcode != Opcode::Constant) {
        std::string reason = "between steps";
        if (!native_) {
          reason = "there is no compiler";
        } else {
          rules.is_native(*i, &reason);
        }
        text += str("  rule of ", opcode_name(i->opcode), ": ", i->name, " (", reason, ")\n");
      }
    }
  }
  return text;
}

std::shared_ptr<const Module> Executor::planned() const {
  if (means_ == Means::Rules) return shared_module();
  std::vector<PlannedComputation> scheduled = schedule_all();
  std::vector<RegionFacts> facts;
  for (const PlannedComputation& one : scheduled) {
    for (const auto& region : plans_.at(one.computation).regions) {
      const MachineCode& code = codes_[facts.size()];
      RegionFacts& made = facts.emplace_back(RegionFacts{code.temporary_bytes, code.loops, {}});
      for (size_t o = 0; o < region->output_leaves.size(); ++o) {
        int32_t operand = region->output_leaves[o].shared_operand;
        if (operand >= 0) made.shared.emplace_back(static_cast<int64_t>(o), operand);
      }
    }
  }
  // The plan refers to constants of the program, so it must keep the program alive.
  struct Held {
    std::shared_ptr<const Module> program;
    std::unique_ptr<Module> plan;
  };
  auto held =
      std::make_shared<Held>(Held{shared_module(), planned_module(program_, scheduled, facts)});
  return {held, held->plan.get()};
}

}  // namespace

std::unique_ptr<Executable> make_executor(std::shared_ptr<const Module> module,
                                          const CompileOptions& options, StoredCode* stored) {
  require_runnable(*module);
  if (has_dynamic_sizes(*module)) {
    // Code and passes take every array as having its whole shape.
    return std::make_unique<Executor>(unchanged(std::move(module)), Means::Rules, options);
  }
  bool native = may_have_machine_compiler() || stored != nullptr;
  std::unique_ptr<Executable> made;
  run_nested(call_depth(*module), [&] {
    made = std::make_unique<Executor>(make_program(std::move(module), native), Means::Fastest,
                                      options, stored);
  });
  return made;
}
std::unique_ptr<Executable> make_evaluator(std::shared_ptr<const Module> module,
                                           const CompileOptions& options) {
  require_runnable(*module);
  std::unique_ptr<Executable> made;
  run_nested(call_depth(*module), [&] {
    made = std::make_unique<Executor>(unchanged(std::move(module)), Means::Rules, options);
  });
  return made;
}

}  // namespace lamella::hlo
