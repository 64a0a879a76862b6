// DeviceProgram: a module as it runs on tensors of a device.
//
// Note [Programs on a device]
//   An executable that is given tensors of a device makes a second program of its module, for that
//   device. The passes that need no machine code rewrite it. Then regions become kernels of their
//   own (Note [Regions on a device] in device_regions.h), and every other opcode that an operator
//   computes becomes a call of the operator; so a step launches kernels for the device, in
//   the current stream, and nothing waits for it. Values are tensors of the device:
//   results come from its allocator, and what only the program reads lies in one block that was
//   planned when it was compiled (Note [One block] in device_block.h). Views stay views, constants
//   are copied to the device once, and control flow runs on the host, which reads a loop's
//   condition.
//
//   Custom calls in XLA's conventions for CUDA get the tensors' addresses and the handle of the
//   current stream (custom_call/device_call.h). An opcode or target that only the host has runs by
//   the host's rule on copies, and is counted with the operators that do so, as "hlo::sort" in
//   lamella.cuda.fallbacks(). A program has the same results on every device, up to the order
//   of sums.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "lamella/core/tensor_base.h"
#include "lamella/graph/runtime/executable.h"

namespace lamella::hlo {

class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  // Arguments and results are the arrays of the parameters and of the result, tuples flattened; the
  // results are dense, and share no memory with each other, arguments or constants. An
  // argument on another device is copied.
  virtual std::vector<TensorBase> run(std::span<const TensorBase> arguments,
                                      const RunOptions& options) const = 0;
  // A line for each step, for users.
  virtual std::string explain() const = 0;
};

// The module must be verified, have static sizes, and not be changed afterwards.
std::unique_ptr<const DeviceProgram> make_device_program(std::shared_ptr<const Module> module,
                                                         const CompileOptions& options,
                                                         Device device);
// A run on the host of arguments that are on a device, which is counted; results are on the device.
std::vector<TensorBase> run_on_copies(const Executable& executable,
                                      std::span<const TensorBase> arguments, Device device,
                                      const RunOptions& options);

}  // namespace lamella::hlo
