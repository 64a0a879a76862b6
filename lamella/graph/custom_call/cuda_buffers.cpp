// Blocks of device memory, and copies to and from them.
#include "lamella/graph/custom_call/cuda_buffers.h"

#include "lamella/core/error.h"

namespace lamella::hlo {

CudaBuffers::CudaBuffers(const CallBuffers& buffers)
    : buffers_(buffers), device_(CudaDevice::get()) {
  auto place = [&](const BufferLeaf& leaf) {
    constexpr size_t alignment = 256;
    if (!leaf.shape->is_array()) return none;
    size_t begin = block_bytes_;
    auto bytes = static_cast<size_t>(leaf.shape->bytes());
    block_bytes_ = (begin + bytes + alignment - 1) / alignment * alignment;
    return begin;
  };
  for (const BufferLeaf& leaf : buffers_.operands()) offsets_.push_back(place(leaf));
  for (const BufferLeaf& leaf : buffers_.results()) {
    offsets_.push_back(leaf.alias >= 0 ? offsets_[static_cast<size_t>(leaf.alias)] : place(leaf));
  }
}
CudaBuffers::~CudaBuffers() {
  if (blocks_.empty()) return;
  CudaDevice::Scope scope(device_);
  for (uint64_t block : blocks_) device_.free(block);
}

CudaBuffers::Use::Use(CudaBuffers& of) : of_(of), scope_(of.device_) {
  {
    std::lock_guard<std::mutex> lock(of.mutex_);
    if (!of.blocks_.empty()) {
      memory_ = of.blocks_.back();
      of.blocks_.pop_back();
    }
  }
  if (memory_ == 0) memory_ = of.device_.allocate(of.block_bytes_);
  for (size_t offset : of.offsets_) {
    pointers_.push_back(offset == none ? nullptr : reinterpret_cast<void*>(memory_ + offset));
  }
}
CudaBuffers::Use::~Use() {
  std::lock_guard<std::mutex> lock(of_.mutex_);
  of_.blocks_.push_back(memory_);
}

void CudaBuffers::Use::to_device(const BoundBuffers& bound) {
  const std::vector<BufferLeaf>& leaves = of_.buffers_.operands();
  for (size_t n = 0; n < leaves.size(); ++n) {
    if (!leaves[n].shape->is_array()) continue;
    of_.device_.to_device(memory_ + of_.offsets_[n], bound.operands()[n],
                          static_cast<size_t>(leaves[n].shape->bytes()));
  }
}
void CudaBuffers::Use::to_host(const BoundBuffers& bound) {
  const std::vector<BufferLeaf>& leaves = of_.buffers_.results();
  size_t first = of_.buffers_.operands().size();
  for (size_t n = 0; n < leaves.size(); ++n) {
    if (!leaves[n].shape->is_array()) continue;
    of_.device_.to_host(bound.results()[n], memory_ + of_.offsets_[first + n],
                        static_cast<size_t>(leaves[n].shape->bytes()));
  }
  of_.device_.synchronize();
}
// Waits for pending work, which must not write to memory that will be freed. Its errors are
// ignored, because the first error is being reported.
void CudaBuffers::Use::settle() noexcept {
  try {
    of_.device_.synchronize();
  } catch (const Error&) {
  }
}

}  // namespace lamella::hlo
