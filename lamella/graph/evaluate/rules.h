// Rules: how the reference evaluator does each opcode. Plain loops that say what the operation
// means; they are what faster code is compared with.
#pragma once
#include <span>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/call.h"
#include "lamella/graph/hlo/infer.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// One run of a module: what rules that call computations need.
class Run {
 public:
  // Takes the arguments. The computation is one of the module's.
  virtual Value call(const Computation& computation, std::span<Value> arguments) = 0;
  RunContext context;

 protected:
  ~Run() = default;
};

// One instruction about to be done. Operands whose only reference is here may be taken and written.
struct Step {
  const Instruction& instruction;
  std::span<Value> operands;
  Run& run;
  // The shape of the result.
  const Shape& shape() const { return *instruction.shape; }
  Value result() const { return Value::uninitialized(instruction.shape); }
};

using Rule = Value (*)(Step& step);
// The rule of an opcode; every opcode but custom-call has one, since that is prepared instead.
Rule rule_of(Opcode opcode);

// By family, one file each.
Value evaluate_unary(Step& step);          // abs ... tanh, not, popcnt, is-finite, real, imag, ...
Value evaluate_binary(Step& step);         // add ... xor, atan2, complex, shifts, mulhi
Value evaluate_compare(Step& step);        // compare, select, clamp
Value evaluate_convert(Step& step);        // convert, bitcast-convert, reduce-precision, ...
Value evaluate_random(Step& step);         // rng, rng-bit-generator, rng-get-and-update-state
Value evaluate_data_movement(Step& step);  // broadcast, reshape, slice, pad, concatenate, iota, ...
Value evaluate_gather(Step& step);
Value evaluate_scatter(Step& step);
Value evaluate_dot(Step& step);  // dot, ragged-dot, scaled-dot
Value evaluate_convolution(Step& step);
Value evaluate_reduce(Step& step);  // reduce, reduce-window, select-and-scatter, map, scan
Value evaluate_sort(Step& step);    // sort, topk
Value evaluate_fft(Step& step);
Value evaluate_linear_algebra(Step& step);  // cholesky, triangular-solve
Value evaluate_batch_norm(Step& step);
Value evaluate_control(Step& step);     // tuple, call, while, conditional, fusion, async-*, tokens
Value evaluate_collective(Step& step);  // all-reduce and the like on one replica; infeed, send, ...

}  // namespace lamella::hlo
