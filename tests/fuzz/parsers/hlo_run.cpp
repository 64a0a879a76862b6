// Valid HLO programs, run with hostile numbers: a result, or a documented error.
#include <algorithm>

#include "hlo_texts.h"
#include "lamella/core/error.h"
#include "lamella/graph/client/compile.h"
#include "lamella/graph/hlo/effects.h"
#include "lamella/graph/view/cost.h"
#include "target.h"

namespace lamella::fuzz {
namespace {

using namespace lamella::hlo;

constexpr int64_t kMostInAll = 1 << 14;  // elements
constexpr double kMostWork = 1e6;

// Programs that stay small, and end.
bool runs_soon(const Module& module) {
  int64_t elements = 0;
  for (const Computation* computation : module.computations) {
    for (const Instruction* i : computation->instructions) {
      if (i->opcode == Opcode::While || i->opcode == Opcode::Scan) {
        // Only those of the texts, whose loops are counted.
        if (i->opcode == Opcode::Scan && i->operands.empty()) return false;
      }
      if (i->shape->bytes() > kMostInAll) return false;
      elements += i->shape->bytes();
      if (elements > 8 * kMostInAll) return false;
    }
  }
  Cost cost = Costs(module).of(*module.entry);
  return cost.flops + cost.transcendentals < kMostWork;
}

// Bits of every kind: ends of integers, infinities, what is no number, and small numbers.
Value hostile_value(const Shape* shape, uint64_t* state) {
  if (shape->is_tuple()) {
    std::vector<Value> parts;
    for (const Shape& part : shape->tuple_shapes()) parts.push_back(hostile_value(&part, state));
    return Value::tuple(shape, parts);
  }
  if (!shape->is_array()) return Value::token(shape);
  Value value = Value::zeros(shape);
  auto* bytes = static_cast<uint8_t*>(value.data());
  auto item = static_cast<size_t>(element_bytes(shape->element_type()));
  for (size_t n = 0; n + item <= value.bytes(); n += item) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t word = *state >> 33;
    switch (word % 6) {
      case 0:  // small
        bytes[n] = static_cast<uint8_t>(word >> 8 & 3);
        break;
      case 1:  // -1, or what is no number
        std::memset(bytes + n, 0xff, item);
        break;
      case 2:  // the least integer, -0
        bytes[n + item - 1] = 0x80;
        break;
      case 3:  // the greatest integer, or what is no number
        std::memset(bytes + n, 0xff, item);
        bytes[n + item - 1] = 0x7f;
        break;
      case 4:  // large
        bytes[n + item - 1] = 0x7e;
        break;
      default:
        for (size_t b = 0; b < item; ++b) bytes[n + b] = static_cast<uint8_t>(word >> (b % 4 * 8));
    }
  }
  return value;
}

}  // namespace

std::vector<std::string> seeds() { return hlo_texts(); }
std::vector<std::string> words() { return hlo_words(); }

}  // namespace lamella::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lamella;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    std::shared_ptr<const hlo::Module> module = hlo::parse_module(text);
    if (!fuzz::runs_soon(*module)) return 0;
    auto executable = hlo::compile(module);
    uint64_t state = size * 31 + (size > 0 ? data[size / 2] : 0);
    std::vector<hlo::Value> arguments;
    for (const hlo::Instruction* parameter : module->entry->parameters) {
      arguments.push_back(fuzz::hostile_value(parameter->shape, &state));
    }
    hlo::Value result = executable->run(arguments);
    if (!result.shape().compatible(*module->entry->root->shape)) {
      fuzz::found("a result of another shape than the program's");
    }
    result.to_literal();
  } catch (const InternalError& error) {
    fuzz::found(error.msg());
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  }
  return 0;
}
