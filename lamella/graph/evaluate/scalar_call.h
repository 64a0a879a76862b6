// ScalarCall: a computation over scalars, prepared to be called once per element.
//
// Note [Scalar calls]
//   Reducers, comparators and mappers run once per element, so they are laid out once: every scalar
//   has a place in memory, and each instruction is a function from places to a place. The most
//   common instructions have such a function (it must give the same bits as the rule; a test
//   compares them), others use their rule, and calls are inlined. A computation with any other
//   instruction (loops, arrays, custom calls) is called as a whole.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lamella/graph/evaluate/rules.h"

namespace lamella::hlo {

// One instruction over scalars: from up to three operands to its result.
using ScalarFunction = void (*)(const void* a, const void* b, const void* c, void* out);
// The function of an instruction; NULL if it must use its rule.
ScalarFunction scalar_function(const Instruction& i);

class ScalarCall {
 public:
  // Parameters must be scalars; the result must be a scalar or a flat tuple of scalars.
  ScalarCall(const Computation& computation, Run& run);
  ScalarCall(const ScalarCall&) = delete;
  ScalarCall& operator=(const ScalarCall&) = delete;

  // Takes a pointer to each argument and stores the elements of the result at `results`, which may
  // overlap the arguments.
  void operator()(std::span<const void* const> arguments, std::span<void* const> results);
  // The result of a computation that returns one pred[].
  bool test(std::span<const void* const> arguments);
  // The opcode, if the computation only applies this binary instruction to its two parameters, in
  // either order.
  std::optional<Opcode> single() const;

 private:
  struct ScalarStep {
    ScalarFunction function;         // NULL if the rule is used
    const Instruction* instruction;  // for the rule
    uint32_t in[3];                  // for the function
    uint32_t first_operand;          // for the rule: index in operands_
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
  static constexpr size_t kMaxLaidOut = 100000;
  size_t visited_ = 0;  // instructions laid out, counted once for each call
  std::vector<ScalarStep> steps_;
  std::vector<uint32_t> operands_;
  std::vector<const void*> constants_;  // by place; NULL if the place is in cells_
  std::vector<Cell> cells_;
  std::vector<Cell> kept_;  // copies of the results, made before any is stored
  std::vector<const void*> places_;
  std::vector<uint32_t> root_;
  std::vector<size_t> root_bytes_;
  std::vector<Value> taken_;
};

}  // namespace lamella::hlo
