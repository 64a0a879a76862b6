// PreparedCall: a custom call whose target and calling convention have been resolved.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lamella/core/tensor_base.h"
#include "lamella/graph/hlo/module.h"
#include "lamella/graph/runtime/user_data.h"
#include "lamella/graph/runtime/value.h"

namespace lamella::hlo {

struct Participant;

// State that all custom calls of one run of a module share.
struct RunContext {
  int64_t run_id = 0;  // unique among the runs of the process
  int32_t device_ordinal = 0;
  void* stream = nullptr;  // the device's stream, or NULL
  const UserData* user_data = nullptr;
  const Participant* participant = nullptr;  // of a run on several devices of this process
  // Objects that calls keep from prepare_run to the end of the run, by the address of the call.
  std::unordered_map<const void*, std::shared_ptr<void>> kept;

  // An uninitialized array for a result. `bytes` must be shape->bytes().
  Value array(const Shape* shape, size_t bytes) {
    if (spare_ && spare_.bytes() == bytes) return Value::reused(std::move(spare_), shape);
    return Value::uninitialized(shape, bytes);
  }
  // Releases a value. The last small array is kept for the next result of its size, which saves
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

// A call of an operator that is elementwise.
class ElementwiseCall {
 public:
  // Applies the operator to `count` elements of each operand; operands with one element are
  // broadcast. Returns a dense tensor.
  virtual TensorBase on(std::span<lamella_tensor* const> operands, int64_t count) const = 0;

 protected:
  ~ElementwiseCall() = default;
};

class PreparedCall {
 public:
  virtual ~PreparedCall() = default;
  // Hooks before the first step of a run, called only if joins_runs(). prepare_run is called for
  // all calls, in the order of the instructions, then start_run.
  virtual bool joins_runs() const { return false; }
  virtual void prepare_run(RunContext& /*context*/) {}
  virtual void start_run(RunContext& /*context*/) {}
  // Returns a value of the instruction's shape. May move and write an operand whose only reference
  // is in `operands`. Throws an Error with the instruction, the target and the target's message.
  virtual Value run(std::span<Value> operands, RunContext& context) = 0;
  // Whether run_on_device() can be called.
  virtual bool runs_on_device() const { return false; }
  // The same for operands on a device, whose current stream is context.stream: tensors for the
  // leaves of the operands, undefined ones for tokens, and the result's. Operands are not written.
  virtual std::vector<TensorBase> run_on_device(std::span<const TensorBase> /*operands*/,
                                                Device /*device*/, RunContext& /*context*/) {
    return {};
  }
  // Whether a result on a device may have an operand's memory, as a view has.
  virtual bool shares_operands() const { return false; }
  // This call as an elementwise call; null if it is not elementwise.
  virtual const ElementwiseCall* elementwise() const { return nullptr; }
};

// Resolves the target and its calling convention. `platform` is "Host" or "CUDA". Throws an Error
// that names the instruction if the target is unknown (with similar names) or does not fit the
// api_version, operands or result.
std::unique_ptr<PreparedCall> prepare_call(const Instruction& instruction,
                                           std::string_view platform);

// Whether a target is registered under the instruction's name.
bool has_target(const Instruction& instruction, std::string_view platform);

// Throws an Error unless the platform is "Host", or is "CUDA" and a GPU is present.
void check_platform(std::string_view platform);

}  // namespace lamella::hlo
