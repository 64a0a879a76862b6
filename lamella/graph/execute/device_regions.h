// Regions of programs on a device: instructions that become kernels of their own.
//
// Note [Regions on a device]
//   Elementwise instructions, reductions of rows, and movements that only they read are compiled:
//   what a unit of the compiler calculates (Note [Units] in lamella/graph/compiler/program.h) is
//   one kernel, and reads and writes memory once. An instruction alone stays a call of its
//   operator, which takes strided tensors as they are, and so does what the device's code has no
//   instructions for. Kernels take dense arrays that begin at multiples of 16 bytes: others are
//   copied.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lamella/core/cuda_stream_handle.h"
#include "lamella/core/tensor_base.h"
#include "lamella/graph/execute/region.h"

namespace lamella::hlo {

// True if programs on this device may have regions.
bool has_device_regions(Device device);

// Decides, for each computation as a whole, which instructions are compiled for a device, if at
// least `least` connected ones calculate something.
class DeviceRules {
 public:
  explicit DeviceRules(int least) : least_(least) {}
  bool is_compiled(const Instruction& i);

 private:
  const int least_;
  std::unordered_map<const Computation*, std::unordered_set<const Instruction*>> compiled_;
};

// A region that is ready to be run on a device.
struct DeviceRegion {
  struct Kernel {
    void* kernel;
    unsigned blocks, threads;
  };
  std::vector<const Instruction*> inputs, outputs;
  std::vector<Kernel> kernels;
  std::vector<std::string> notes;  // what each kernel writes
  int64_t temporary_bytes = 0;
  const CudaTable* cuda = nullptr;

  // An array for each output; inputs are tensors of the device. Waits for nothing.
  std::vector<TensorBase> run(std::span<const TensorBase> given, Device device) const;
};

// The steps of a computation of a program on a device.
struct DeviceStep {
  const Instruction* instruction = nullptr;
  std::unique_ptr<DeviceRegion> region;  // if that is null
};
using DeviceSteps = std::unordered_map<const Computation*, std::vector<DeviceStep>>;
// The steps of all computations of the module. Without `compiled` they are the instructions in
// their order. With it regions are compiled and loaded; nullopt, and why, if that is not possible.
std::optional<DeviceSteps> device_steps(const Module& module, Device device, bool compiled,
                                        std::string* why);

}  // namespace lamella::hlo
