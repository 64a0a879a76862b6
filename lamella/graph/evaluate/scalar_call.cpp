// Lays out and runs computations over scalars.
#include "lamella/graph/evaluate/scalar_call.h"

#include <cstring>

#include "lamella/graph/hlo/effects.h"

namespace lamella::hlo {
namespace {

// True for instructions on scalars whose rule can run inside a ScalarCall: they call no computation
// and have no side effect.
bool has_scalar_rule(const Instruction& i) {
  if (!i.shape->is_scalar()) return false;
  for (const Instruction* operand : i.operands) {
    if (!operand->shape->is_scalar()) return false;
  }
  bool calls = false;
  for_each_called(i, [&](const Computation&) { calls = true; });
  if (calls || has_side_effect(i)) return false;
  switch (opcode_family(i.opcode)) {
    case Family::Elementwise:
    case Family::Movement:
    case Family::Reduction:
    case Family::Contraction:
      return true;
    default:
      return false;
  }
}

}  // namespace

ScalarCall::ScalarCall(const Computation& computation, Run& run)
    : computation_(computation), run_(run) {
  std::vector<std::vector<uint32_t>> parameters;
  for (const Instruction* parameter : computation.parameters) {
    LAMELLA_HLO_REQUIRE(parameter->shape->is_scalar(), *parameter, "expected a scalar, got ",
                        parameter->shape->to_string(false));
    parameters.push_back({add_place(nullptr)});
  }
  whole_ = !lay_out(computation, parameters, &root_);
  const Shape& result = *computation.root->shape;
  if (result.is_tuple()) {
    for (const Shape& shape : result.tuple_shapes()) {
      root_bytes_.push_back(static_cast<size_t>(shape.bytes()));
    }
  } else {
    root_bytes_.push_back(static_cast<size_t>(result.bytes()));
  }
  kept_.resize(root_bytes_.size());
  cells_.resize(constants_.size());
  places_.resize(constants_.size());
  for (size_t p = 0; p < places_.size(); ++p) {
    places_[p] = constants_[p] != nullptr ? constants_[p] : cells_[p].bytes;
  }
}

uint32_t ScalarCall::add_place(const void* constant) {
  constants_.push_back(constant);
  return static_cast<uint32_t>(constants_.size() - 1);
}

// Lays out a computation and returns the places of the root's elements in `root`. False if the
// computation must be called as a whole.
bool ScalarCall::lay_out(const Computation& computation,
                         std::span<const std::vector<uint32_t>> parameters,
                         std::vector<uint32_t>* root) {
  size_t count = computation.instructions.size();
  // Bounds the total, because nested calls may expand exponentially.
  visited_ += count;
  if (visited_ > kMaxLaidOut) return false;
  std::vector<bool> needed(count, false);
  needed[static_cast<size_t>(computation.root->index)] = true;
  for (size_t n = count; n-- > 0;) {
    if (!needed[n]) continue;
    for (const Instruction* operand : computation.instructions[n]->operands) {
      needed[static_cast<size_t>(operand->index)] = true;
    }
  }
  std::vector<std::vector<uint32_t>> places(count);
  for (size_t n = 0; n < count; ++n) {
    const Instruction& i = *computation.instructions[n];
    if (!needed[n]) {
      if (has_side_effect(i)) return false;
      continue;
    }
    std::vector<std::vector<uint32_t>> of_operands;
    for (const Instruction* operand : i.operands) {
      of_operands.push_back(places[static_cast<size_t>(operand->index)]);
    }
    switch (i.opcode) {
      case Opcode::Parameter:
        places[n] = parameters[static_cast<size_t>(i.parameter_number)];
        break;
      case Opcode::Constant:
        if (!i.shape->is_scalar()) return false;
        places[n] = {add_place(i.literal->data())};
        break;
      case Opcode::Tuple:
        for (const Instruction* operand : i.operands) {
          if (!operand->shape->is_scalar()) return false;
        }
        for (const auto& one : of_operands) places[n].push_back(one[0]);
        break;
      case Opcode::GetTupleElement:
        if (!i.shape->is_scalar()) return false;
        places[n] = {of_operands[0][static_cast<size_t>(i.integer(AttributeKey::Index))]};
        break;
      case Opcode::Call:
      case Opcode::Fusion: {
        AttributeKey key =
            i.has(AttributeKey::ToApply) ? AttributeKey::ToApply : AttributeKey::Calls;
        if (!lay_out(*i.computation(key), of_operands, &places[n])) return false;
        break;
      }
      default: {
        uint32_t out = 0;
        if (!lay_out_step(i, of_operands, &out)) return false;
        places[n] = {out};
      }
    }
  }
  *root = places[static_cast<size_t>(computation.root->index)];
  return true;
}

bool ScalarCall::lay_out_step(const Instruction& i, std::span<const std::vector<uint32_t>> places,
                              uint32_t* out) {
  if (!has_scalar_rule(i)) return false;
  ScalarStep step{};
  step.instruction = &i;
  step.function = scalar_function(i);
  step.first_operand = static_cast<uint32_t>(operands_.size());
  for (size_t o = 0; o < places.size(); ++o) {
    if (step.function != nullptr) {
      step.in[o] = places[o][0];
    } else {
      operands_.push_back(places[o][0]);
    }
  }
  step.out = *out = add_place(nullptr);
  steps_.push_back(step);
  return true;
}

void ScalarCall::operator()(std::span<const void* const> arguments,
                            std::span<void* const> results) {
  if (whole_) return call_whole(arguments, results);
  run_steps(arguments);
  // Results may overwrite arguments that are later results themselves, so all are read first.
  if (root_.size() == 1) {
    std::memcpy(results[0], places_[root_[0]], root_bytes_[0]);
    return;
  }
  for (size_t r = 0; r < root_.size(); ++r) {
    std::memcpy(kept_[r].bytes, places_[root_[r]], root_bytes_[r]);
  }
  for (size_t r = 0; r < root_.size(); ++r) {
    std::memcpy(results[r], kept_[r].bytes, root_bytes_[r]);
  }
}

bool ScalarCall::test(std::span<const void* const> arguments) {
  uint8_t yes = 0;
  void* results[] = {&yes};
  (*this)(arguments, results);
  return yes != 0;
}

void ScalarCall::run_steps(std::span<const void* const> arguments) {
  for (size_t a = 0; a < arguments.size(); ++a) places_[a] = arguments[a];
  for (const ScalarStep& step : steps_) {
    if (step.function != nullptr) {
      step.function(places_[step.in[0]], places_[step.in[1]], places_[step.in[2]],
                    cells_[step.out].bytes);
    } else {
      run_rule(step);
    }
  }
}

void ScalarCall::run_rule(const ScalarStep& step) {
  const Instruction& i = *step.instruction;
  taken_.clear();
  for (size_t o = 0; o < i.operands.size(); ++o) {
    const void* data = places_[operands_[step.first_operand + o]];
    taken_.push_back(Value::view(i.operands[o]->shape, const_cast<void*>(data), nullptr, nullptr));
  }
  Step one{i, taken_, run_};
  Value result = rule_of(i.opcode)(one);
  std::memcpy(cells_[step.out].bytes, result.data(), result.bytes());
}

void ScalarCall::call_whole(std::span<const void* const> arguments,
                            std::span<void* const> results) {
  taken_.clear();
  for (size_t a = 0; a < arguments.size(); ++a) {
    taken_.push_back(Value::uninitialized(computation_.parameters[a]->shape));
    std::memcpy(taken_[a].data(), arguments[a], taken_[a].bytes());
  }
  Value result = run_.call(computation_, taken_);
  if (!result.shape().is_tuple()) {
    std::memcpy(results[0], result.data(), result.bytes());
    return;
  }
  for (size_t r = 0; r < result.size(); ++r) {
    std::memcpy(results[r], result.element(r).data(), result.element(r).bytes());
  }
}

std::optional<Opcode> ScalarCall::single() const {
  const Instruction& root = *computation_.root;
  bool binary = root.operands.size() == 2 && computation_.parameters.size() == 2 &&
                root.operands[0]->opcode == Opcode::Parameter &&
                root.operands[1]->opcode == Opcode::Parameter &&
                root.operands[0] != root.operands[1];
  return binary ? std::optional(root.opcode) : std::nullopt;
}

}  // namespace lamella::hlo
