// Passes in their order.
#include "lamella/graph/passes/pipeline.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <unordered_map>

#include "lamella/core/error.h"
#include "lamella/graph/hlo/copy.h"
#include "lamella/graph/passes/attention.h"
#include "lamella/graph/passes/channels_last.h"
#include "lamella/graph/passes/common_subexpressions.h"
#include "lamella/graph/passes/contractions.h"
#include "lamella/graph/passes/convolutions.h"
#include "lamella/graph/passes/dead_code.h"
#include "lamella/graph/passes/fold_constants.h"
#include "lamella/graph/passes/fourier.h"
#include "lamella/graph/passes/inline_calls.h"
#include "lamella/graph/passes/loop_invariants.h"
#include "lamella/graph/passes/opcodes_to_operators.h"
#include "lamella/graph/passes/operators_to_windows.h"
#include "lamella/graph/passes/simplify.h"
#include "lamella/graph/passes/simplify_movement.h"
#include "lamella/layers/profile/profile.h"

namespace lamella::hlo {
namespace {

struct Pass {
  const char* name;
  bool (*run)(Module& module);
};
constexpr Pass kSimplifying[] = {{"fold_constants", fold_constants},
                                 {"simplify_elementwise", simplify_elementwise},
                                 {"simplify_movement", simplify_movement},
                                 {"join_common_subexpressions", join_common_subexpressions},
                                 {"canonicalize_products", canonicalize_products},
                                 {"remove_dead_code", remove_dead_code}};
constexpr Pass kOnce[] = {{"find_attention", find_attention},
                          {"move_loop_invariants", move_loop_invariants},
                          {"transforms_to_operators", transforms_to_operators}};
// Where machine code is made.
constexpr Pass kNative[] = {{"operators_to_windows", operators_to_windows},
                            {"channels_last", channels_last}};
// One pass may give another something to do, but hardly ever more often.
constexpr int kMostRounds = 3;

class Pipeline {
 public:
  explicit Pipeline(Module& module) : module_(module), folder_(std::getenv("LAMELLA_DUMP_HLO")) {
    static std::atomic<int> number{0};
    if (folder_ != nullptr) own_ = number++;
    done("given", false);
  }

  void run(const Pass& pass) {
    profile::Span span("compile");
    bool changed = pass.run(module_);
    span.end([&] { return str(module_.name, ": ", pass.name); });
    done(pass.name, changed);
  }
  void simplify() {
    for (int round = 0; round < kMostRounds; ++round) {
      bool before = changed_;
      changed_ = false;
      for (const Pass& pass : kSimplifying) run(pass);
      bool again = changed_;
      changed_ = changed_ || before;
      if (!again) break;
    }
  }
  void done(const char* name, bool changed) {
    changed_ = changed_ || changed;
    int pass = pass_++;
    if (!changed && pass != 0) return;
#ifndef NDEBUG
    verify(module_);
#endif
    if (folder_ == nullptr) return;
    std::ofstream file(str(folder_, "/", own_, ".", module_.name, ".", pass, ".", name, ".hlo"));
    file << to_string(module_);
  }
  bool changed() const { return changed_; }

 private:
  Module& module_;
  const char* folder_;
  int own_ = 0, pass_ = 0;
  bool changed_ = false;
};

}  // namespace

std::unique_ptr<Module> run_passes(const Module& given, int64_t most, bool native,
                                   const std::function<bool(const Computation&)>& is_native,
                                   const std::function<bool(const Instruction&)>& is_code) {
  auto module = std::make_unique<Module>(given.name);
  module->attributes = given.attributes;  // texts of the module given, which lives as long
  std::unordered_map<const Computation*, Computation*> copied;
  module->entry = copy_computation(*module, *given.entry, copied, /*share_literals=*/true);
  Pipeline passes(*module);
  passes.done("inline_calls", inline_calls(*module, most, is_native));
  passes.simplify();
  for (const Pass& pass : kOnce) passes.run(pass);
  if (native) {
    for (const Pass& pass : kNative) passes.run(pass);
  }
  passes.done("convolutions_to_operators", convolutions_to_operators(*module, native));
  passes.done("opcodes_to_operators", opcodes_to_operators(*module, is_code));
  passes.simplify();
  return passes.changed() ? std::move(module) : nullptr;
}

}  // namespace lamella::hlo
