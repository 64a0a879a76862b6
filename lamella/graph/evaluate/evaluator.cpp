// Plans of computations, and the loop that runs them.
//
// Note [Plans]
//   A computation becomes a list of steps over numbered places: which values a step takes, where
//   its result goes, and which operands end there. An operand that ends is moved into the step, so
//   that memory goes back at once and a rule that finds itself the only holder may write in place.
//   Steps that the root does not need are left out, unless they act on the world outside.
#include "lamella/graph/evaluate/evaluator.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <vector>

#include "lamella/core/interrupt.h"
#include "lamella/graph/evaluate/rules.h"
#include "lamella/graph/hlo/effects.h"

namespace lamella::hlo {
namespace {

struct Operand {
  uint32_t place;
  bool ends;  // nobody reads the place after this step
};
struct PlannedStep {
  const Instruction* instruction;
  Rule rule;
  PreparedCall* call;  // of custom calls
  uint32_t first_operand;
  uint32_t operand_count;
  uint32_t result;
  bool unused;  // done for its effect alone
};
struct ComputationPlan {
  std::vector<PlannedStep> steps;
  std::vector<Operand> operands;
  std::vector<std::pair<uint32_t, Value>> constants;  // place, value
  std::vector<uint32_t> parameters;                   // places, by number
  uint32_t places = 0;
  uint32_t root = 0;
  uint32_t most_operands = 0;
};

ComputationPlan make_plan(const Computation& computation,
                          const std::unordered_map<const Instruction*, PreparedCall*>& calls) {
  const std::vector<Instruction*>& all = computation.instructions;
  std::vector<bool> needed(all.size(), false);
  auto at = [](const Instruction* i) { return static_cast<size_t>(i->index); };
  needed[at(computation.root)] = true;
  for (size_t n = all.size(); n-- > 0;) {
    const Instruction& i = *all[n];
    if (!needed[n] && !has_side_effect(i)) continue;
    needed[n] = true;
    for (const Instruction* operand : i.operands) needed[at(operand)] = true;
  }

  ComputationPlan plan;
  plan.places = static_cast<uint32_t>(all.size());
  plan.root = static_cast<uint32_t>(computation.root->index);
  for (const Instruction* parameter : computation.parameters) {
    plan.parameters.push_back(static_cast<uint32_t>(parameter->index));
  }
  for (size_t n = 0; n < all.size(); ++n) {
    const Instruction& i = *all[n];
    if (!needed[n] || i.opcode == Opcode::Parameter) continue;
    if (i.opcode == Opcode::Constant) {
      plan.constants.emplace_back(static_cast<uint32_t>(n), Value::of_literal(i.shape, *i.literal));
      continue;
    }
    PlannedStep step{};
    step.instruction = &i;
    step.first_operand = static_cast<uint32_t>(plan.operands.size());
    step.operand_count = static_cast<uint32_t>(i.operands.size());
    step.result = static_cast<uint32_t>(n);
    if (i.opcode == Opcode::CustomCall) {
      step.call = calls.at(&i);
    } else {
      step.rule = rule_of(i.opcode);
    }
    for (const Instruction* operand : i.operands) {
      plan.operands.push_back({static_cast<uint32_t>(operand->index), false});
    }
    plan.most_operands = std::max(plan.most_operands, step.operand_count);
    plan.steps.push_back(step);
  }
  // From the end: the first time a place is met is its last use.
  std::vector<bool> read(all.size(), false);
  read[plan.root] = true;
  for (size_t s = plan.steps.size(); s-- > 0;) {
    PlannedStep& step = plan.steps[s];
    step.unused = !read[step.result];
    for (size_t o = step.operand_count; o-- > 0;) {
      Operand& operand = plan.operands[step.first_operand + o];
      operand.ends = !read[operand.place];
      read[operand.place] = true;
    }
  }
  return plan;
}

std::atomic<int64_t> next_run{1};

class Evaluator final : public Executable {
 public:
  Evaluator(std::shared_ptr<const Module> shared, const CompileOptions& options)
      : Executable(std::move(shared)), user_data_(options.user_data) {
    check_platform(options.platform);
    std::unordered_map<const Instruction*, PreparedCall*> found;
    for (const Computation* computation : module().computations) {
      for (const Instruction* i : computation->instructions) {
        if (i->opcode != Opcode::CustomCall) continue;
        calls_.push_back(prepare_call(*i, options.platform));
        found.emplace(i, calls_.back().get());
        if (calls_.back()->joins_runs()) joining_.push_back(calls_.back().get());
      }
    }
    for (const Computation* computation : module().computations) {
      plans_.emplace(computation, make_plan(*computation, found));
    }
    entry_ = &plans_.at(module().entry);
  }

  Value run(std::span<const Value> arguments) const override {
    check_arguments(arguments);
    OneRun one(*this);
    one.context.run_id = next_run.fetch_add(1, std::memory_order_relaxed);
    one.context.user_data = user_data_.get();
    for (PreparedCall* call : joining_) call->prepare_run(one.context);
    for (PreparedCall* call : joining_) call->start_run(one.context);
    std::vector<Value> taken(arguments.begin(), arguments.end());
    return one.run(*entry_, taken);
  }
  std::string explain() const override { return "every instruction: its rule, as the oracle\n"; }

 private:
  class OneRun final : public Run {
   public:
    explicit OneRun(const Evaluator& evaluator) : evaluator_(evaluator) {}
    Value call(const Computation& computation, std::span<Value> arguments) override {
      return run(evaluator_.plans_.at(&computation), arguments);
    }
    Value run(const ComputationPlan& plan, std::span<Value> arguments) {
      std::vector<Value> places(plan.places + plan.most_operands);
      Value* operands = places.data() + plan.places;
      for (size_t p = 0; p < plan.parameters.size(); ++p) {
        places[plan.parameters[p]] = std::move(arguments[p]);
      }
      for (const auto& [place, value] : plan.constants) places[place] = value;
      for (const PlannedStep& step : plan.steps) {
        check_interrupt();
        std::span<Value> taken(operands, step.operand_count);
        for (uint32_t o = 0; o < step.operand_count; ++o) {
          const Operand& operand = plan.operands[step.first_operand + o];
          if (operand.ends) {
            taken[o].take(places[operand.place]);
          } else {
            taken[o].share(places[operand.place]);
          }
        }
        Value& result = places[step.result];
        if (step.call != nullptr) {
          result = step.call->run(taken, context);
        } else {
          Step done{*step.instruction, taken, *this};
          result = step.rule(done);
        }
        if (step.unused) context.drop(result);
        for (Value& operand : taken) context.drop(operand);
      }
      return std::move(places[plan.root]);
    }

   private:
    const Evaluator& evaluator_;
  };

  std::shared_ptr<const UserData> user_data_;
  std::vector<std::unique_ptr<PreparedCall>> calls_;
  std::vector<PreparedCall*> joining_;  // of the calls, those that take part in a run's beginning
  std::unordered_map<const Computation*, ComputationPlan> plans_;
  const ComputationPlan* entry_ = nullptr;
};

}  // namespace

std::unique_ptr<Executable> make_evaluator(std::shared_ptr<const Module> module,
                                           const CompileOptions& options) {
  return std::make_unique<Evaluator>(std::move(module), options);
}

}  // namespace lamella::hlo
