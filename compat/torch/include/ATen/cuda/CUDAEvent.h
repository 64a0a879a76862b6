// at::cuda::CUDAEvent: a mark in a stream, made when it is first recorded.
#pragma once
#include <c10/cuda/CUDAGuard.h>

#include <optional>
#include <utility>

namespace at::cuda {

class CUDAEvent {
 public:
  // The flags of cudaEventCreateWithFlags; the default keeps no times.
  explicit CUDAEvent(unsigned flags = cudaEventDisableTiming) : flags_(flags) {}
  CUDAEvent(const CUDAEvent&) = delete;
  CUDAEvent& operator=(const CUDAEvent&) = delete;
  CUDAEvent(CUDAEvent&& other) noexcept { *this = std::move(other); }
  CUDAEvent& operator=(CUDAEvent&& other) noexcept {
    std::swap(flags_, other.flags_);
    std::swap(device_, other.device_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~CUDAEvent() {
    if (event_ != nullptr) C10_CUDA_IGNORE_ERROR(cudaEventDestroy(event_));
  }
  operator cudaEvent_t() const { return event_; }  // NOLINT: as in PyTorch
  cudaEvent_t event() const { return event_; }
  bool isCreated() const { return event_ != nullptr; }
  c10::DeviceIndex device_index() const { return device_; }
  std::optional<c10::Device> device() const {
    return event_ == nullptr ? std::nullopt
                             : std::optional(c10::Device(c10::DeviceType::CUDA, device_));
  }
  void record() { record(getCurrentCUDAStream()); }
  void recordOnce(const CUDAStream& stream) {
    if (event_ == nullptr) record(stream);
  }
  void record(const CUDAStream& stream) {
    CUDAGuard guard(stream.device());
    if (event_ == nullptr) {
      device_ = stream.device_index();
      C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags_));
    }
    TORCH_CHECK(device_ == stream.device_index(), "CUDAEvent: expected a stream of device ",
                int{device_}, ", on which it was recorded first, got ", stream.device());
    C10_CUDA_CHECK(cudaEventRecord(event_, stream.stream()));
  }
  void block(const CUDAStream& stream) const {
    if (event_ != nullptr) C10_CUDA_CHECK(cudaStreamWaitEvent(stream.stream(), event_, 0));
  }
  bool query() const {
    if (event_ == nullptr) return true;
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) {
      C10_CUDA_CLEAR_ERROR();
      return false;
    }
    C10_CUDA_CHECK(result);
    return true;
  }
  // Milliseconds until a later event.
  float elapsed_time(const CUDAEvent& later) const {
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, event_, later.event_));
    return milliseconds;
  }
  void synchronize() const {
    if (event_ != nullptr) C10_CUDA_CHECK(cudaEventSynchronize(event_));
  }

 private:
  unsigned flags_ = cudaEventDisableTiming;
  c10::DeviceIndex device_ = -1;
  cudaEvent_t event_ = nullptr;
};

}  // namespace at::cuda
