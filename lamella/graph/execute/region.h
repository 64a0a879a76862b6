// Regions: instructions of one computation that become one function of machine code.
//
// Note [Regions]
//   An instruction is native if the compiler supports it: its opcode, its element types, and every
//   computation that it calls. Native instructions that need not wait for a non-native one form one
//   region, inside which memory is planned in advance; every other instruction is a step of its own
//   between regions. So a computation that is native as a whole is one function, loops and branches
//   included, and one instruction that is not native splits it in two.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lamella/graph/hlo/module.h"
#include "lamella/graph/hlo/single_operation.h"

namespace lamella::hlo {

// Decides which of a module's instructions are native. Results are cached per computation.
class NativeRules {
 public:
  explicit NativeRules(const Module& module)
      : most_instructions_(std::max<int64_t>(4000, 4 * module.instruction_count())) {}
  // The limit of instructions in one function after called computations are expanded: several times
  // the module's count, as nested calls may expand without bound.
  int64_t most_instructions() const { return most_instructions_; }

  // True if the compiler supports the instruction; otherwise `reason` says why not.
  bool is_native(const Instruction& instruction, std::string* reason = nullptr);
  // The number of instructions that it calls, counted once per call.
  int64_t expanded_size(const Instruction& instruction);
  // True if a computation is native as a whole.
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

struct Region {
  std::vector<const Instruction*> instructions;  // operands before their users
  std::vector<const Instruction*> inputs;        // values read from outside, each once
  std::vector<const Instruction*> outputs;       // values read outside, or the root
  bool blocks = false;                           // run as in Note [Blocks], without machine code
};

// One step of a computation: an instruction or, if that is null, a region.
struct ScheduledStep {
  const Instruction* instruction = nullptr;
  Region region;
};
// The steps of a computation in an order that respects operands and side effects. Dead code is left
// out. Without `native` there are no regions; `chosen`, if given, says which native instructions
// may be in one, and they are calculated by the first region that reads them.
std::vector<ScheduledStep> schedule(const Computation& computation, NativeRules* native,
                                    const std::function<bool(const Instruction&)>& chosen = {});

// The arrays of a value's shape, tuples flattened in preorder.
void append_leaves(const Shape& shape, std::vector<const Shape*>* leaves);

}  // namespace lamella::hlo
