// ScalarCall: a computation over scalars, made ready to be called once per element.
//
// Note [Scalar calls]
//   Reducers, comparators and mappers are computations that run once per element, so they are laid
//   out once: every scalar has a place, and each instruction is a function from places to a place.
//   The commonest instructions have such a function of their own (they must give the same bits as
//   their rules; a test compares them), others are done by their rule, and calls are laid out in
//   place. A computation with anything else (loops, arrays, custom calls) is called as a whole.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

// One instruction over scalars: from up to three operands to its result.
using ScalarFunction = void (*)(const void* a, const void* b, const void* c, void* out);
// NULL where the instruction has none and is done by its rule.
ScalarFunction scalar_function(const Instruction& i);

class ScalarCall {
 public:
  // Parameters must be scalars; the result a scalar or a flat tuple of scalars.
  ScalarCall(const Computation& computation, Run& run);
  ScalarCall(const ScalarCall&) = delete;
  ScalarCall& operator=(const ScalarCall&) = delete;

  // Takes a pointer to each argument and stores the elements of the result where `results` say,
  // which may be where arguments are.
  void operator()(std::span<const void* const> arguments, std::span<void* const> results);
  // The result where it is one pred[].
  bool test(std::span<const void* const> arguments);
  // The opcode, if the computation only applies this binary instruction to its two parameters, in
  // either order.
  std::optional<Opcode> single() const;

 private:
  struct ScalarStep {
    ScalarFunction function;         // NULL: done by the rule
    const Instruction* instruction;  // of the rule
    uint32_t in[3];                  // of a function
    uint32_t first_operand;          // of the rule, in operands_
    uint32_t out;
  };
  struct alignas(16) Cell {
    std::byte bytes[16];
  };

  bool lay_out(const Computation& computation, std::span<const std::vector<uint32_t>> parameters,
               std::vector<uint32_t>* root);
  bool lay_out_step(const Instruction& i, std::span<const std::vector<uint32_t>> places,
                    uint32_t* out);
  uint32_t add_place(const void* constant);
  void run_steps(std::span<const void* const> arguments);
  void run_rule(const ScalarStep& step);
  void call_whole(std::span<const void* const> arguments, std::span<void* const> results);

  const Computation& computation_;
  Run& run_;
  bool whole_ = false;
  static constexpr size_t kMostLaidOut = 100000;
  size_t visited_ = 0;  // instructions, once for each call
  std::vector<ScalarStep> steps_;
  std::vector<uint32_t> operands_;
  std::vector<const void*> constants_;  // by place; NULL: a cell of its own
  std::vector<Cell> cells_;
  std::vector<Cell> kept_;  // results before any is stored
  std::vector<const void*> places_;
  std::vector<uint32_t> root_;
  std::vector<size_t> root_bytes_;
  std::vector<Value> taken_;
};

}  // namespace lamella::hlo
