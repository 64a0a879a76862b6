// PreparedCall: a custom call whose target was found and whose convention is known.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lamella/core/tensor_base.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/runtime/user_data.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

// What all custom calls of one run of a module share.
struct RunContext {
  int64_t run_id = 0;  // another one for each run in the process
  int32_t device_ordinal = 0;
  void* stream = nullptr;  // of a device that has them
  const UserData* user_data = nullptr;
  // What a call keeps from prepare_run to the end of the run, by the call.
  std::unordered_map<const void*, std::shared_ptr<void>> kept;

  // An array for a result, whose elements are not set. `bytes` are the shape's.
  Value array(const Shape* shape, size_t bytes) {
    if (spare_ && spare_.bytes() == bytes) return Value::reused(std::move(spare_), shape);
    return Value::uninitialized(shape, bytes);
  }
  // Lets go of a value. The last small array is kept for the next result of its size, which saves
  // an allocation in chains of small steps.
  void drop(Value& value) {
    constexpr size_t small = 1024;
    if (value && value.bytes() <= small && value.unique()) {
      spare_ = std::move(value);
    } else {
      value = Value();
    }
  }

 private:
  Value spare_;
};

// A call of an operator that does to each element what it does to the others.
class ElementwiseCall {
 public:
  // On `count` elements of each operand that has more than one. Gives a dense tensor of them.
  virtual TensorBase on(std::span<lamella_tensor* const> operands, int64_t count) const = 0;

 protected:
  ~ElementwiseCall() = default;
};

class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  // Before the first step of a run, in the order of the instructions: all calls prepare, then all
  // start. Only calls that say so are asked.
  virtual bool joins_runs() const { return false; }
  virtual void prepare_run(RunContext& /*context*/) {}
  virtual void start_run(RunContext& /*context*/) {}
  // Gives the value of the instruction's shape. An operand whose only reference is in `operands`
  // may be taken and written. Throws an Error that names the instruction, the target and what it
  // said.
  virtual Value run(std::span<Value> operands, RunContext& context) = 0;
  // The call as one on elements; null if it is none.
  virtual const ElementwiseCall* elementwise() const { return nullptr; }
};

// Finds the target and its convention. `platform` is "Host" or "CUDA". Throws an Error that names
// the instruction where the target is unknown (and lists near names) or does not fit its
// api_version, operands or result.
std::unique_ptr<PreparedCall> prepare_call(const Instruction& instruction,
                                           std::string_view platform);

// Throws an Error unless modules can be compiled for the platform here: it is "Host", or "CUDA"
// where there is a GPU.
void check_platform(std::string_view platform);

}  // namespace lamella::hlo
