// Passes in their order.
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
#include "lamella/graph/passes/simplify.h"
#include "lamella/graph/passes/simplify_movement.h"
#include "lamella/layers/profile/profile.h"

namespace lamella::hlo {
namespace {

struct Pass {
  const char* name;
  int64_t (*run)(Module& module);  // gives how many it changed
  const char* what;                // it counts, in the singular
  const char* became;
};
constexpr Pass kSimplifying[] = {
    {"fold_constants", fold_constants, "instruction", "computed beforehand"},
    {"simplify_elementwise", simplify_elementwise, "elementwise instruction", "made simpler"},
    {"simplify_movement", simplify_movement, "movement", "joined or left out"},
    {"join_common_subexpressions", join_common_subexpressions, "instruction",
     "left out, as an equal one is there"},
    {"canonicalize_products", canonicalize_products, "product", "made to read what was transposed"},
    {"remove_dead_code", remove_dead_code, "instruction", "left out, as nobody reads it"}};
constexpr Pass kOnce[] = {
    {"find_attention", find_attention, "attention", "made one call"},
    {"move_loop_invariants", move_loop_invariants, "loop", "given less to do in each step"},
    {"transforms_to_operators", transforms_to_operators, "Fourier transform", "made a call"}};
// Where machine code is made.
constexpr Pass kNative[] = {
    {"operators_to_windows", operators_to_windows, "convolution or pooling",
     "made opcodes, or other ones"},
    {"channels_last", channels_last, "convolution", "laid out with channels last"}};
// One pass may give another something to do, but hardly ever more often.
constexpr int kMostRounds = 3;

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
    for (int round = 0; round < kMostRounds; ++round) {
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
  // What was done, a line for each pass that changed something, by the order of their first change.
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
                     const std::function<bool(const Instruction&)>& is_code) {
  auto module = std::make_unique<Module>(given.name);
  module->attributes = given.attributes;  // texts of the module given, which lives as long
  std::unordered_map<const Computation*, Computation*> copied;
  module->entry = copy_computation(*module, *given.entry, copied, /*share_literals=*/true);
  int64_t before = module->instruction_count();
  Pipeline passes(*module);
  passes.done({"inline_calls", nullptr, "call", "replaced by what is called"},
              inline_calls(*module, most, is_native));
  passes.simplify();
  for (const Pass& pass : kOnce) passes.run(pass);
  if (native) {
    for (const Pass& pass : kNative) passes.run(pass);
  }
  passes.done({"convolutions_to_operators", nullptr, "convolution", "made a call"},
              convolutions_to_operators(*module, native));
  passes.done({"opcodes_to_operators", nullptr, "instruction", "made a call"},
              opcodes_to_operators(*module, is_code));
  passes.simplify();
  if (!passes.changed()) return {};
  int64_t after = module->instruction_count();
  return {std::move(module),
          str("passes, ", before, " instructions became ", after, ":\n", passes.notes())};
}

}  // namespace lamella::hlo
