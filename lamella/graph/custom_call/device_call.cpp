// Buffers and streams of custom calls on tensors of a device.
#include "lamella/graph/custom_call/device_call.h"

#include <string>

#include "lamella/api/functions.h"
#include "lamella/core/cuda_stream_handle.h"
#include "lamella/graph/runtime/tensor_value.h"

namespace lamella::hlo {
namespace {

// The dimensions from the slowest varying to the fastest: a permutation that makes the layout
// row-major.
std::vector<int64_t> order_of(const Shape& shape) {
  std::vector<int64_t> order(shape.minor_to_major().rbegin(), shape.minor_to_major().rend());
  return order;
}
Tensor empty_on(Device device, const Shape& shape, IntArrayRef sizes) {
  return lamella::empty(sizes, TensorOptions(tensor_type_of(shape.element_type())).device(device));
}

}  // namespace

DeviceBuffers::DeviceBuffers(const CallBuffers& buffers, std::span<const TensorBase> operands,
                             Device device)
    : buffers_(buffers), operand_count_(operands.size()) {
  for (size_t n = 0; n < operands.size(); ++n) {
    const BufferLeaf& leaf = buffers_.operands()[n];
    held_.push_back(operands[n]);
    if (operands[n].defined()) {
      Tensor tensor(operands[n]);
      if (leaf.rearrangement.needed()) tensor = tensor.permute(order_of(*leaf.shape));
      held_.back() = tensor.contiguous();
    }
  }
  for (const BufferLeaf& leaf : buffers_.results()) {
    if (!leaf.shape->is_array()) {
      held_.emplace_back();
    } else if (leaf.alias >= 0) {
      // The callee writes the operand's memory, which others may read.
      TensorBase& operand = held_[static_cast<size_t>(leaf.alias)];
      operand = Tensor(operand).clone();
      held_.push_back(operand);
    } else {
      std::vector<int64_t> sizes(leaf.shape->dimensions().begin(), leaf.shape->dimensions().end());
      if (leaf.rearrangement.needed()) {
        std::vector<int64_t> order = order_of(*leaf.shape);
        for (size_t d = 0; d < order.size(); ++d) sizes[d] = leaf.shape->dimension(order[d]);
      }
      held_.push_back(empty_on(device, *leaf.shape, sizes));
    }
  }
  for (const TensorBase& one : held_) {
    pointers_.push_back(one.defined() ? one.impl()->data : nullptr);
  }
}

std::vector<TensorBase> DeviceBuffers::finish() {
  std::vector<TensorBase> results;
  for (size_t n = 0; n < buffers_.results().size(); ++n) {
    const BufferLeaf& leaf = buffers_.results()[n];
    TensorBase& one = held_[operand_count_ + n];
    if (one.defined() && leaf.rearrangement.needed()) {
      std::vector<int64_t> order = order_of(*leaf.shape), back(order.size());
      for (size_t d = 0; d < order.size(); ++d)
        back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
      one = Tensor(one).permute(back);
    }
    results.push_back(std::move(one));
  }
  return results;
}

void count_host_step(std::string_view name) {
  if (const CudaTable* table = cuda_table()) table->count_fallback(std::string(name).c_str());
}

}  // namespace lamella::hlo
