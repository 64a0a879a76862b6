// Custom calls of functions that enqueue work on a GPU.
//
// Note [Custom calls on CUDA]
//   Values are in host memory. A call copies its operands to the device, passes one pointer for
//   each array of the operands and then of the result (tuples are flattened in preorder; NULL for a
//   token), waits for the stream, and copies the results back. An aliased output has the pointer of
//   its operand. The memory of a call is one block, which is kept for its next run. In a program on
//   a device the values are on the device, so nothing is copied or waited for.
#include "lamella/graph/custom_call/cuda_call.h"

#include <vector>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/buffers.h"
#include "lamella/graph/custom_call/cuda_buffers.h"
#include "lamella/graph/custom_call/device_call.h"
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
        memory_(buffers_) {}

  bool joins_runs() const override { return true; }
  void prepare_run(RunContext& context) override { context.stream = memory_.device().stream(); }

  Value run(std::span<Value> operands, RunContext& context) override {
    CudaBuffers::Use use(memory_);
    BoundBuffers bound(buffers_, operands);
    try {
      use.around(bound, [&] { call(context.stream, use.pointers()); });
    } catch (...) {
      fail_with_current_exception(instruction_, target_->name);
    }
    return bound.finish();
  }

  bool runs_on_device() const override { return true; }
  std::vector<TensorBase> run_on_device(std::span<const TensorBase> operands, Device device,
                                        RunContext& context) override {
    DeviceBuffers bound(buffers_, operands, device);
    try {
      CudaDevice::Scope scope(memory_.device());
      call(context.stream, bound.pointers());
    } catch (...) {
      fail_with_current_exception(instruction_, target_->name);
    }
    return bound.finish();
  }

 private:
  void call(void* stream, std::span<void* const> buffers) {
    std::vector<void*> pointers(buffers.begin(), buffers.end());
    void* function = target_->function;
    if (version_ == ApiVersion::Original) {
      reinterpret_cast<Original>(function)(stream, pointers.data(), opaque_.data(), opaque_.size());
      return;
    }
    XlaCustomCallStatus_ status;
    reinterpret_cast<StatusReturning>(function)(stream, pointers.data(), opaque_.data(),
                                                opaque_.size(), &status);
    if (status.failed) throw Error(std::move(status.message));
  }

  const Instruction& instruction_;
  TargetPointer target_;
  Pin pin_;
  ApiVersion version_;
  std::string opaque_;
  CallBuffers buffers_;
  CudaBuffers memory_;
};

}  // namespace

std::unique_ptr<PreparedCall> prepare_cuda_call(const Instruction& instruction,
                                                TargetPointer target, ApiVersion version) {
  return std::make_unique<CudaCall>(instruction, std::move(target), version);
}

}  // namespace lamella::hlo
