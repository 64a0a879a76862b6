// Executable: a verified and compiled module.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lamella/core/tensor_base.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/runtime/user_data.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

struct CompileOptions {
  // The platform whose custom-call registrations are used: "Host" or "CUDA".
  std::string platform = "Host";
  // Caller's objects that typed handlers find in their execution context; may be null.
  std::shared_ptr<const UserData> user_data;
  // Whether runs take subnormal numbers for zeros, operands as well as results, on all threads.
  bool flush_subnormals = false;
  // Whether runs on a device that repeat are replays of a captured graph: Note [Programs as graphs]
  // in execute/device_graph.h.
  bool device_graphs = false;
};

struct Participant;

// What one run is given beside its arguments.
struct RunOptions {
  int32_t device_ordinal = 0;
  // Objects for typed handlers, in place of those of CompileOptions; may be null.
  const UserData* user_data = nullptr;
  // The device that this thread runs, of a run on several devices; null in a run on one.
  const Participant* participant = nullptr;
};

class Executable {
 public:
  explicit Executable(std::shared_ptr<const Module> module) : module_(std::move(module)) {}
  virtual ~Executable() = default;
  const Module& module() const { return *module_; }
  const std::shared_ptr<const Module>& shared_module() const { return module_; }

  // Runs the entry computation. There must be one argument for each parameter, with its shape; this
  // is checked, except for layouts. Arguments are not written. Several threads may run an
  // executable at the same time. Throws an Error that names the instruction that failed.
  Value run(std::span<const Value> arguments) const;
  // The same, with arguments that are moved: the run may use the memory of those that are unique.
  virtual Value run(std::span<Value> arguments, const RunOptions& options) const = 0;
  // The same on a device: the arrays of the parameters and of the result, tuples flattened. See
  // Note [Programs on a device] in execute/device_program.h.
  virtual std::vector<TensorBase> run_on_device(std::span<const TensorBase> arguments,
                                                Device device,
                                                const RunOptions& options = {}) const = 0;
  // A text for users: the changes of each pass, then a line for each step of the program.
  virtual std::string explain() const = 0;
  // The program as it will run: a new module with one instruction for each step, in the order of
  // the steps (see planned_module.h). For the reference evaluator it is the module itself.
  virtual std::shared_ptr<const Module> plan() const { return module_; }

 protected:
  void check_arguments(std::span<const Value> arguments) const;

 private:
  std::shared_ptr<const Module> module_;
};

}  // namespace lamella::hlo
