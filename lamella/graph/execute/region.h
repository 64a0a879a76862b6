// Regions: instructions of one computation that become one function of machine code.
//
// Note [Regions]
//   An instruction is native if the compiler can do it: its opcode and its element types are known
//   there, and so is every computation that it calls. What is native and does not wait for anything
//   else is one region, with memory laid out beforehand inside; what is not native is a step of its
//   own between regions. So a computation that is native as a whole is one function, loops and
//   branches included, and one foreign instruction makes two of it.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lamella/graph/hlo/module.h"
#include "lamella/graph/hlo/single_operation.h"

namespace lamella::hlo {

// What is native among a module's instructions. Answers are kept for its computations.
class NativeRules {
 public:
  explicit NativeRules(const Module& module)
      : most_instructions_(std::max<int64_t>(4000, 4 * module.instruction_count())) {}
  // Instructions up to which computations are taken into the code of their callers: some times
  // those of the module, as calls of calls may stand for any number.
  int64_t most_instructions() const { return most_instructions_; }

  // Whether the compiler can do the instruction, and why not.
  bool is_native(const Instruction& instruction, std::string* reason = nullptr);
  // Instructions of all that it calls, each as often as it is called.
  int64_t expanded_size(const Instruction& instruction);
  // Whether a computation is native as a whole.
  bool is_native(const Computation& computation) { return known(computation).is_native; }

 private:
  struct Known {
    bool is_native = false;
    bool is_scalar = false;  // a function of scalars without loops
    int64_t size = 0;
  };
  const Known& known(const Computation& computation);
  bool is_scalar_function(const Computation& computation);
  bool has_native_details(const Instruction& instruction);

  int64_t most_instructions_;
  std::unordered_map<const Computation*, Known> known_;
};

// A reduce-window each of whose windows begins, or ends, where the operand does: what is reached
// after each element, from the first on or from the last.
struct Prefix {
  int64_t dimension;
  bool from_last;
};
std::optional<Prefix> prefix_of(const Instruction& reduce_window);

struct Region {
  std::vector<const Instruction*> instructions;  // operands before their users
  std::vector<const Instruction*> inputs;        // what is read from outside, each once
  std::vector<const Instruction*> outputs;       // what is read outside, or is the root
  bool blocks = false;                           // no machine code: Note [Blocks]
};

// One step of a computation: a region, or an instruction that is none.
struct ScheduledStep {
  const Instruction* instruction = nullptr;
  Region region;
};
// The steps of a computation in an order that respects operands and side effects. Instructions that
// the root does not need are left out, unless they act on the world outside. Without `native`
// there are no regions.
std::vector<ScheduledStep> schedule(const Computation& computation, NativeRules* native);

// The arrays of a value's shape, tuples flattened in preorder.
void append_leaves(const Shape& shape, std::vector<const Shape*>* leaves);

}  // namespace lamella::hlo
