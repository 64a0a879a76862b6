// Executable: a verified module made ready to run.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lamella/graph/hlo/module.h"
#include "lamella/graph/runtime/user_data.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

struct CompileOptions {
  // Which registrations of custom calls are used: "Host" or "CUDA".
  std::string platform = "Host";
  // What typed handlers find in their execution context; may be absent.
  std::shared_ptr<const UserData> user_data;
};

class Executable {
 public:
  explicit Executable(std::shared_ptr<const Module> module) : module_(std::move(module)) {}
  virtual ~Executable() = default;
  const Module& module() const { return *module_; }
  const std::shared_ptr<const Module>& shared_module() const { return module_; }

  // Runs the entry computation. Arguments are as many as its parameters and have their shapes
  // (checked; layouts aside). They are not written. Threads may run one executable at once.
  // Throws an Error that names the instruction that failed; nothing of its results is seen.
  virtual Value run(std::span<const Value> arguments) const = 0;
  // What each pass changed and what becomes of the instructions, a line for each step, as text for
  // people.
  virtual std::string explain() const = 0;
  // The program as it is run, made anew by each call: what is one step is one instruction, in the
  // order of the steps. See planned_module.h; of the oracle the module itself.
  virtual std::shared_ptr<const Module> plan() const { return module_; }

 protected:
  void check_arguments(std::span<const Value> arguments) const;

 private:
  std::shared_ptr<const Module> module_;
};

}  // namespace lamella::hlo
