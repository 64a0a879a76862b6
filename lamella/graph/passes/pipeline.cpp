// Runs the passes in order.
#include "lamella/graph/passes/pipeline.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

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
#include "lamella/graph/passes/product_epilogues.h"
#include "lamella/graph/passes/simplify.h"
#include "lamella/graph/passes/simplify_movement.h"
#include "lamella/layers/profile/profile.h"

namespace lamella::hlo {
namespace {

struct Pass {
  const char* name;
  int64_t (*run)(Module& module);  // returns the number of changes
  const char* what;                // what it counts, in the singular
  const char* became;
};
constexpr Pass kSimplifying[] = {
    {"fold_constants", fold_constants, "instruction", "computed at compile time"},
    {"simplify_elementwise", simplify_elementwise, "elementwise instruction", "simplified"},
    {"simplify_movement", simplify_movement, "movement", "merged or removed"},
    {"join_common_subexpressions", join_common_subexpressions, "instruction",
     "replaced by an equal one"},
    {"canonicalize_products", canonicalize_products, "product", "brought to canonical form"},
    {"remove_dead_code", remove_dead_code, "instruction", "removed as dead code"}};
constexpr Pass kOnce[] = {
    {"find_attention", find_attention, "attention", "replaced by a call"},
    {"move_loop_invariants", move_loop_invariants, "loop", "with invariants moved out"},
    {"transforms_to_operators", transforms_to_operators, "Fourier transform",
     "replaced by a call"}};
// Passes that run only if machine code is compiled.
constexpr Pass kNative[] = {
    {"operators_to_windows", operators_to_windows, "windowed operator", "rewritten as opcodes"},
    {"channels_last", channels_last, "convolution", "changed to channels last"}};
// The pass of programs for devices, whose libraries add rows to products.
constexpr Pass kForDevices = {"add_rows_in_products", add_rows_in_products, "product",
                              "merged with its sum, rounding or relu"};
// A pass may enable another one, but rarely more than a few times.
constexpr int kMaxRounds = 3;

class Pipeline {
 public:
  explicit Pipeline(Module& module) : module_(module), folder_(std::getenv("LAMELLA_DUMP_HLO")) {
    static std::atomic<int> number{0};
    if (folder_ != nullptr) own_ = number++;
    done({"given", nullptr, "", ""}, 0);
  }

  void run(const Pass& pass) {
    profile::Span span("compile");
    int64_t changes = pass.run(module_);
    span.end([&] { return str(module_.name, ": ", pass.name); });
    done(pass, changes);
  }
  void simplify() {
    for (int round = 0; round < kMaxRounds; ++round) {
      int64_t before = changes_;
      for (const Pass& pass : kSimplifying) run(pass);
      if (changes_ == before) break;
    }
  }
  void done(const Pass& pass, int64_t changes) {
    changes_ += changes;
    int number = number_++;
    if (changes == 0 && number != 0) return;
    if (changes != 0) add_note(pass, changes);
#ifndef NDEBUG
    verify(module_);
#endif
    if (folder_ == nullptr) return;
    std::ofstream file(
        str(folder_, "/", own_, ".", module_.name, ".", number, ".", pass.name, ".hlo"));
    file << to_string(module_);
  }
  // A line for each pass that changed anything, in the order of their first changes.
  std::string notes() const {
    std::string text;
    for (const auto& [pass, changes] : notes_) {
      text += str("  ", pass.name, ": ", changes, " ", pass.what, changes == 1 ? " " : "s ",
                  pass.became, "\n");
    }
    return text;
  }
  bool changed() const { return changes_ != 0; }

 private:
  void add_note(const Pass& pass, int64_t changes) {
    auto known = std::ranges::find_if(
        notes_, [&](const auto& one) { return std::string_view(one.first.name) == pass.name; });
    if (known == notes_.end()) {
      notes_.emplace_back(pass, changes);
    } else {
      known->second += changes;
    }
  }

  Module& module_;
  const char* folder_;
  int own_ = 0, number_ = 0;
  int64_t changes_ = 0;
  std::vector<std::pair<Pass, int64_t>> notes_;
};

}  // namespace

Rewritten run_passes(const Module& given, int64_t most, bool native,
                     const std::function<bool(const Computation&)>& is_native,
                     const std::function<bool(const Instruction&)>& is_code, int64_t least) {
  auto module = std::make_unique<Module>(given.name);
  module->attributes = given.attributes;  // their texts are owned by `given`
  std::unordered_map<const Computation*, Computation*> copied;
  module->entry = copy_computation(*module, *given.entry, copied, /*share_literals=*/true);
  int64_t before = module->instruction_count();
  Pipeline passes(*module);
  passes.done({"inline_calls", nullptr, "call", "inlined"}, inline_calls(*module, most, is_native));
  passes.simplify();
  for (const Pass& pass : kOnce) passes.run(pass);
  if (native) {
    for (const Pass& pass : kNative) passes.run(pass);
  }
  if (least == 0) passes.run(kForDevices);
  passes.done({"convolutions_to_operators", nullptr, "convolution", "replaced by a call"},
              convolutions_to_operators(*module, native));
  passes.done({"opcodes_to_operators", nullptr, "instruction", "replaced by a call"},
              opcodes_to_operators(*module, is_code, least));
  passes.simplify();
  if (!passes.changed()) return {};
  int64_t after = module->instruction_count();
  return {std::move(module),
          str("passes, ", before, " instructions became ", after, ":\n", passes.notes())};
}

}  // namespace lamella::hlo
