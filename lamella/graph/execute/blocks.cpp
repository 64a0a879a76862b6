// Blocks: joins elementwise calls of operators, and runs the joined calls block by block.
#include "lamella/graph/execute/blocks.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>

#include "lamella/abi/threads.h"
#include "lamella/core/error.h"
#include "lamella/core/interrupt.h"
#include "lamella/core/tensor_base.h"

namespace lamella::hlo {
namespace {

// Elements per block: several arrays of this many elements fit in the second-level cache.
constexpr int64_t kBlock = 8192;

const ElementwiseCall* elementwise(const ScheduledStep& step, const PreparedCalls& calls) {
  const Instruction* i = step.instruction;
  if (i == nullptr || i->opcode != Opcode::CustomCall || !i->shape->is_array()) return nullptr;
  if (i->has(AttributeKey::ControlPredecessors)) return nullptr;
  bool has_elements = false;
  for (const Instruction* operand : i->operands) {
    bool is_whole = operand->shape->same_dimensions(*i->shape);
    has_elements = has_elements || is_whole;
    if (!is_whole && operand->shape->rank() != 0) return nullptr;
  }
  if (!has_elements || i->shape->rank() == 0 || i->shape->elements() == 0) return nullptr;
  auto found = calls.find(i);
  return found != calls.end() ? found->second->elementwise() : nullptr;
}

// Pending calls with equal element counts whose results have not been read.
struct Pending {
  int64_t elements;
  Region region;
  std::vector<size_t> steps;  // their indices among the steps
};

class Joiner {
 public:
  Joiner(std::vector<ScheduledStep>& steps, const PreparedCalls& calls)
      : steps_(steps), calls_(calls) {}

  void run() {
    for (size_t s = 0; s < steps_.size(); ++s) {
      ScheduledStep& step = steps_[s];
      bool joins = elementwise(step, calls_) != nullptr;
      int64_t elements = joins ? step.instruction->shape->elements() : 0;
      for (const Instruction* operand : read_by(step)) close_before(operand, elements);
      if (!joins) {
        joined_.push_back(std::move(step));
        continue;
      }
      auto open = std::ranges::find(open_, elements, &Pending::elements);
      if (open == open_.end()) open = open_.insert(open_.end(), {elements, {}, {}});
      open->region.instructions.push_back(step.instruction);
      open->steps.push_back(s);
    }
    while (!open_.empty()) close(open_.begin());
    find_reads();
    steps_ = std::move(joined_);
  }

 private:
  static std::span<const Instruction* const> read_by(const ScheduledStep& step) {
    if (step.instruction == nullptr) return step.region.inputs;
    return {step.instruction->operands.data(), step.instruction->operands.size()};
  }
  // Closes the pending calls that include `operand`, unless its reader is about to join them.
  void close_before(const Instruction* operand, int64_t elements) {
    for (auto open = open_.begin(); open != open_.end(); ++open) {
      if (open->elements == elements) continue;
      auto& all = open->region.instructions;
      if (std::ranges::find(all, operand) == all.end()) continue;
      return close(open);
    }
  }
  void close(std::vector<Pending>::iterator open) {
    if (open->steps.size() == 1) {
      joined_.push_back(std::move(steps_[open->steps[0]]));
    } else {
      ScheduledStep step;
      step.region = std::move(open->region);
      step.region.blocks = true;
      joined_.push_back(std::move(step));
    }
    open_.erase(open);
  }
  // Finds the inputs and outputs of each new region.
  void find_reads() {
    std::unordered_map<const Instruction*, size_t> made_by;
    for (size_t s = 0; s < joined_.size(); ++s) {
      if (!joined_[s].region.blocks) continue;
      for (const Instruction* i : joined_[s].region.instructions) made_by[i] = s;
    }
    for (size_t s = 0; s < joined_.size(); ++s) {
      Region& region = joined_[s].region;
      if (region.blocks) {
        for (const Instruction* i : region.instructions) {
          for (const Instruction* operand : i->operands) {
            auto made = made_by.find(operand);
            bool is_own = made != made_by.end() && made->second == s;
            if (!is_own && std::ranges::find(region.inputs, operand) == region.inputs.end()) {
              region.inputs.push_back(operand);
            }
          }
        }
      }
      for (const Instruction* operand : read_by(joined_[s])) leave(made_by, operand);
    }
    for (const auto& [i, s] : made_by) {
      if (i == i->parent->root) leave(made_by, i);
    }
  }
  void leave(const std::unordered_map<const Instruction*, size_t>& made_by, const Instruction* i) {
    auto made = made_by.find(i);
    if (made == made_by.end()) return;
    auto& outputs = joined_[made->second].region.outputs;
    if (std::ranges::find(outputs, i) == outputs.end()) outputs.push_back(i);
  }

  std::vector<ScheduledStep>& steps_;
  const PreparedCalls& calls_;
  std::vector<ScheduledStep> joined_;
  std::vector<Pending> open_;
};

TensorBase tensor_over(void* data, int64_t count, bool is_number, ScalarType type) {
  lamella_tensor* made = nullptr;
  lamella::detail::check(
      lamella_tensor_from_blob(data, is_number ? 0 : 1, &count, nullptr, static_cast<uint8_t>(type),
                               static_cast<uint8_t>(DeviceType::CPU), -1, nullptr, nullptr, &made));
  return TensorBase::adopt(made);
}

}  // namespace

void join_blocks(std::vector<ScheduledStep>& steps, const PreparedCalls& calls) {
  Joiner(steps, calls).run();
}

Blocks::Blocks(const Region& region, const PreparedCalls& calls) {
  std::unordered_map<const Instruction*, uint32_t> places;
  for (const Instruction* input : region.inputs) {
    places.emplace(input, static_cast<uint32_t>(places.size()));
    ElementType type = input->shape->element_type();
    inputs_.push_back({*scalar_type_of(type), input->shape->rank() == 0,
                       static_cast<size_t>(element_bytes(type))});
  }
  for (const Instruction* i : region.instructions) {
    elements_ = i->shape->elements();
    Call call;
    call.call = calls.at(i)->elementwise();
    for (const Instruction* operand : i->operands) call.operands.push_back(places.at(operand));
    auto output = std::ranges::find(region.outputs, i);
    if (output != region.outputs.end()) {
      call.output = static_cast<int32_t>(output - region.outputs.begin());
    }
    calls_.push_back(std::move(call));
    places.emplace(i, static_cast<uint32_t>(places.size()));
  }
  std::vector<bool> read(places.size(), false);
  for (size_t c = calls_.size(); c-- > 0;) {
    auto own = static_cast<uint32_t>(inputs_.size() + c);
    if (!read[own]) calls_[c].ends.push_back(own);
    for (uint32_t place : calls_[c].operands) {
      if (read[place]) continue;
      read[place] = true;
      if (place >= inputs_.size()) calls_[c].ends.push_back(place);
    }
  }
  for (const Instruction* output : region.outputs) {
    output_bytes_.push_back(static_cast<size_t>(element_bytes(output->shape->element_type())));
  }
}

bool Blocks::may_share(const Instruction& output, const Instruction& input) {
  return output.shape->same_dimensions(*input.shape) &&
         element_bytes(output.shape->element_type()) == element_bytes(input.shape->element_type());
}

// Writes the outputs after all calls, as an output may share the memory of an input.
void Blocks::run_block(void* const* buffers, int64_t first, int64_t last) const {
  std::vector<TensorBase> values(inputs_.size() + calls_.size());
  std::vector<TensorBase> outputs(output_bytes_.size());
  for (size_t n = 0; n < inputs_.size(); ++n) {
    const Input& input = inputs_[n];
    auto* data = static_cast<char*>(buffers[n]);
    if (!input.is_number) data += static_cast<size_t>(first) * input.bytes;
    values[n] = tensor_over(data, last - first, input.is_number, input.type);
  }
  std::vector<lamella_tensor*> operands;
  for (size_t c = 0; c < calls_.size(); ++c) {
    const Call& call = calls_[c];
    operands.clear();
    for (uint32_t place : call.operands) operands.push_back(values[place].impl());
    TensorBase& made = values[inputs_.size() + c];
    made = call.call->on(operands, last - first);
    if (call.output >= 0) outputs[static_cast<size_t>(call.output)] = made;
    for (uint32_t place : call.ends) values[place] = TensorBase();
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    auto* to = static_cast<char*>(buffers[inputs_.size() + o]);
    // An operator may return its argument, so source and target may be the same memory.
    std::memmove(to + static_cast<size_t>(first) * output_bytes_[o], outputs[o].const_data_ptr(),
                 static_cast<size_t>(last - first) * output_bytes_[o]);
  }
}

void Blocks::run(void* const* buffers) const {
  struct Job {
    const Blocks* blocks;
    void* const* buffers;
    std::mutex mutex;
    std::exception_ptr error;
  } job{this, buffers, {}, nullptr};
  auto some = [](void* context, int64_t first, int64_t last) {
    auto& own = *static_cast<Job*>(context);
    try {
      for (int64_t b = first; b < last; ++b) {
        check_interrupt();
        own.blocks->run_block(own.buffers, b * kBlock,
                              std::min(own.blocks->elements_, (b + 1) * kBlock));
      }
    } catch (...) {
      std::lock_guard lock(own.mutex);
      if (own.error == nullptr) own.error = std::current_exception();
    }
  };
  lamella::detail::check(lamella_parallel_for(0, (elements_ + kBlock - 1) / kBlock, 4, some, &job));
  if (job.error != nullptr) std::rethrow_exception(job.error);
}

}  // namespace lamella::hlo
