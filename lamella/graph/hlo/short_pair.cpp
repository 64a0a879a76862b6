// Parsing of asynchronous pairs in the short notation, which has no computation of its own.
#include "lamella/graph/hlo/short_pair.h"

#include <algorithm>

#include "lamella/core/error.h"

namespace lamella::hlo {

std::optional<ShortPair> short_pair(std::string_view word) {
  struct Ending {
    std::string_view text;
    Opcode opcode;
  };
  constexpr Ending endings[] = {{"-start", Opcode::AsyncStart},
                                {"-update", Opcode::AsyncUpdate},
                                {"-done", Opcode::AsyncDone}};
  for (const Ending& ending : endings) {
    if (!word.ends_with(ending.text)) continue;
    auto wrapped = opcode_from_name(word.substr(0, word.size() - ending.text.size()));
    bool takes_operands = wrapped && *wrapped != Opcode::Parameter && *wrapped != Opcode::Constant;
    if (takes_operands) return ShortPair{ending.opcode, *wrapped};
  }
  return std::nullopt;
}

void wrap_in_start(Module& module, Instruction* one, Computation* body) {
  std::vector<Instruction*> parameters;
  for (const Instruction* operand : one->operands) {
    auto number = static_cast<int64_t>(parameters.size());
    Instruction* parameter =
        module.add_instruction(body, Opcode::Parameter, str("param_", number), operand->shape, {});
    parameter->parameter_number = number;
    parameters.push_back(parameter);
  }
  body->parameters = parameters;
  const Shape* result = module.intern(one->shape->tuple_shapes()[1]);
  body->root = module.add_instruction(body, one->opcode, one->name, result, parameters);
  // async_execution_thread belongs to the pair. The other attributes move to the body without being
  // copied, because the parser may still fill in the computations that they name.
  std::vector<Attribute> of_pair(1);
  of_pair[0].key = AttributeKey::Calls;
  of_pair[0].computation = body;
  std::span<Attribute> rest = one->attributes;
  if (!rest.empty() && rest.back().key == AttributeKey::AsyncExecutionThread) {
    of_pair.push_back(rest.back());
    rest = rest.first(rest.size() - 1);
  }
  // The aliases of call-start count the parts of the pair. No attribute behind them names a
  // computation.
  auto aliases = std::ranges::find(rest, AttributeKey::OutputToOperandAliasing, &Attribute::key);
  if (one->opcode == Opcode::Call && aliases != rest.end()) {
    std::rotate(aliases, aliases + 1, rest.end());
    of_pair.push_back(rest.back());
    rest = rest.first(rest.size() - 1);
  }
  std::ranges::sort(of_pair, {}, &Attribute::key);
  body->root->attributes = rest;
  one->opcode = Opcode::AsyncStart;
  one->attributes = module.arena().copy(std::span<const Attribute>(of_pair));
}

}  // namespace lamella::hlo
