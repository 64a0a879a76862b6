// Buffers and streams of custom calls on tensors of a device.
#include "lamella/graph/custom_call/device_call.h"

#include <dlfcn.h>

#include <string>

#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/core/stream.h"
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

template <class Function>
Function cuda_function(const char* name) {
  // The library of the devices was loaded with the first tensor on one; other libraries may bring
  // such devices too, and do not have these functions.
  void* library = dlopen("liblamella_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto found = reinterpret_cast<Function>(dlsym(library, name));
  dlclose(library);
  return found;
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

void* current_stream_handle(Device device) {
  const int64_t number = current_stream(device).id();
  using Handle = lamella_status (*)(int, int64_t, int64_t*);
  using Enter = lamella_status (*)(int);
  auto handle = cuda_function<Handle>("lamella_cuda_stream_handle");
  auto enter = cuda_function<Enter>("lamella_cuda_enter");
  // Other backends number their streams by handles.
  if (handle == nullptr || enter == nullptr) return reinterpret_cast<void*>(number);
  int64_t found = 0;
  lamella::detail::check(enter(device.index()));
  lamella::detail::check(handle(device.index(), number, &found));
  return reinterpret_cast<void*>(found);
}

void count_host_step(std::string_view name) {
  using Count = void (*)(const char*);
  if (auto count = cuda_function<Count>("lamella_cuda_count_fallback")) {
    count(std::string(name).c_str());
  }
}

}  // namespace lamella::hlo
