// What custom calls on tensors of a device share: addresses of their buffers, and the stream.
#pragma once
#include <span>
#include <vector>

#include "lamella/core/device.h"
#include "lamella/core/tensor_base.h"
#include "lamella/graph/custom_call/buffers.h"

namespace lamella::hlo {

// The buffers of one call whose operands are on a device: an address for each leaf, in the layout
// that the callee expects; NULL for tokens.
class DeviceBuffers {
 public:
  // `operands` has a tensor for each leaf, an undefined one for a token.
  DeviceBuffers(const CallBuffers& buffers, std::span<const TensorBase> operands, Device device);
  std::span<void* const> operands() const { return {pointers_.data(), operand_count_}; }
  std::span<void* const> results() const {
    return std::span<void* const>(pointers_).subspan(operand_count_);
  }
  std::span<void* const> pointers() const { return pointers_; }
  // The results' leaves, after the call was enqueued.
  std::vector<TensorBase> finish();

 private:
  const CallBuffers& buffers_;
  size_t operand_count_;
  std::vector<TensorBase> held_;  // operands in the callee's layout, then results
  std::vector<void*> pointers_;
};

// Counts a step that ran on the host instead of the device, in lamella.cuda.fallbacks().
void count_host_step(std::string_view name);

}  // namespace lamella::hlo
