// Handing values to functions that enqueue work on a GPU.
//
// Note [Custom calls on CUDA]
//   Values live on the host. A call copies its operands to the device, hands over one pointer for
//   each array of the operands and then of the result (tuples taken apart in preorder, NULL for a
//   token), waits for the stream and copies the results back. An output that is aliased has the
//   pointer of its operand. The memory of one call is one block, kept for its next run.
#include "lamella/graph/custom_call/cuda_call.h"

#include <mutex>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/buffers.h"
#include "lamella/graph/custom_call/cuda_driver.h"
#include "lamella/graph/custom_call/host_call.h"
#include "lamella/graph/custom_call/opaque.h"
#include "lamella/graph/custom_call/status.h"
#include "lamella/graph/hlo/infer.h"

namespace lamella::hlo {
namespace {

using Original = void (*)(void* stream, void** buffers, const char* opaque, size_t opaque_len);
using StatusReturning = void (*)(void* stream, void** buffers, const char* opaque,
                                 size_t opaque_len, XlaCustomCallStatus* status);

class CudaCall final : public PreparedCall {
 public:
  CudaCall(const Instruction& instruction, TargetPointer target, ApiVersion version)
      : instruction_(instruction),
        target_(std::move(target)),
        pin_(target_->function),
        version_(version),
        opaque_(opaque_of(instruction)),
        buffers_(instruction),
        device_(CudaDevice::get()) {
    auto place = [&](const BufferLeaf& leaf) {
      constexpr size_t alignment = 256;
      if (!leaf.shape->is_array()) return kNone;
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
  ~CudaCall() override {
    if (blocks_.empty()) return;
    CudaDevice::Scope scope(device_);
    for (uint64_t block : blocks_) device_.free(block);
  }

  void start_run(RunContext& context) override { context.stream = device_.stream(); }

  Value run(std::span<Value> operands, RunContext& context) override {
    CudaDevice::Scope scope(device_);
    BoundBuffers bound(buffers_, operands);
    Block block(*this);
    std::vector<void*> pointers;
    for (size_t offset : offsets_) {
      pointers.push_back(offset == kNone ? nullptr
                                         : reinterpret_cast<void*>(block.memory + offset));
    }
    try {
      for (size_t n = 0; n < buffers_.operands().size(); ++n) {
        const Shape& shape = *buffers_.operands()[n].shape;
        if (!shape.is_array()) continue;
        device_.to_device(block.memory + offsets_[n], bound.operands()[n],
                          static_cast<size_t>(shape.bytes()));
      }
      call(context.stream, pointers.data());
      for (size_t n = 0; n < buffers_.results().size(); ++n) {
        const Shape& shape = *buffers_.results()[n].shape;
        if (!shape.is_array()) continue;
        device_.to_host(bound.results()[n], block.memory + offsets_[buffers_.operands().size() + n],
                        static_cast<size_t>(shape.bytes()));
      }
      device_.synchronize();
    } catch (...) {
      // What is under way must not write to memory that is about to go; what it says of itself
      // matters less than the first error.
      try {
        device_.synchronize();
      } catch (const Error&) {
      }
      fail_with_current_exception(instruction_, target_->name);
    }
    return bound.finish();
  }

 private:
  static constexpr size_t kNone = ~size_t{0};

  // A block of device memory for one run.
  struct Block {
    explicit Block(CudaCall& of) : call(of) {
      {
        std::lock_guard<std::mutex> lock(call.mutex_);
        if (!call.blocks_.empty()) {
          memory = call.blocks_.back();
          call.blocks_.pop_back();
          return;
        }
      }
      memory = call.device_.allocate(call.block_bytes_);
    }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() {
      std::lock_guard<std::mutex> lock(call.mutex_);
      call.blocks_.push_back(memory);
    }
    CudaCall& call;
    uint64_t memory = 0;
  };

  void call(void* stream, void** pointers) {
    void* function = target_->function;
    if (version_ == ApiVersion::Original) {
      reinterpret_cast<Original>(function)(stream, pointers, opaque_.data(), opaque_.size());
      return;
    }
    XlaCustomCallStatus_ status;
    reinterpret_cast<StatusReturning>(function)(stream, pointers, opaque_.data(), opaque_.size(),
                                                &status);
    if (status.failed) throw Error(std::move(status.message));
  }

  const Instruction& instruction_;
  TargetPointer target_;
  Pin pin_;
  ApiVersion version_;
  std::string opaque_;
  CallBuffers buffers_;
  CudaDevice& device_;
  std::vector<size_t> offsets_;  // of operands, then of results, in a block
  size_t block_bytes_ = 0;
  std::mutex mutex_;
  std::vector<uint64_t> blocks_;
};

}  // namespace

std::unique_ptr<PreparedCall> prepare_cuda_call(const Instruction& instruction,
                                                TargetPointer target, ApiVersion version) {
  return std::make_unique<CudaCall>(instruction, std::move(target), version);
}

}  // namespace lamella::hlo
