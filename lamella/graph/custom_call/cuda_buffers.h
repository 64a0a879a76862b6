// Device memory for the buffers of custom calls on CUDA.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "lamella/graph/custom_call/buffers.h"
#include "lamella/graph/custom_call/cuda_driver.h"

namespace lamella::hlo {

// Where the leaves of a call lie in a block of device memory. Blocks are kept for the next run.
class CudaBuffers {
 public:
  // Throws an Error where there is no GPU. The buffers must outlive this object.
  explicit CudaBuffers(const CallBuffers& buffers);
  CudaBuffers(const CudaBuffers&) = delete;
  CudaBuffers& operator=(const CudaBuffers&) = delete;
  ~CudaBuffers();
  CudaDevice& device() const { return device_; }

  // A block during one run, with the device's context.
  class Use {
   public:
    explicit Use(CudaBuffers& of);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
    // Device addresses of the operands' leaves, then of the results'; NULL for tokens. An output
    // that is aliased has the address of its operand.
    std::span<void* const> pointers() const { return pointers_; }
    // Copies the operands there, calls `enqueue`, copies the results back and waits for all of it.
    // Where something throws, waits before it lets the exception pass.
    template <class F>
    void around(const BoundBuffers& bound, F&& enqueue) {
      try {
        to_device(bound);
        enqueue();
        to_host(bound);
      } catch (...) {
        settle();
        throw;
      }
    }

   private:
    void to_device(const BoundBuffers& bound);
    void to_host(const BoundBuffers& bound);
    void settle() noexcept;

    CudaBuffers& of_;
    CudaDevice::Scope scope_;
    uint64_t memory_ = 0;
    std::vector<void*> pointers_;
  };

 private:
  static constexpr size_t none = ~size_t{0};

  const CallBuffers& buffers_;
  CudaDevice& device_;
  std::vector<size_t> offsets_;  // of operands, then of results, in a block
  size_t block_bytes_ = 0;
  std::mutex mutex_;
  std::vector<uint64_t> blocks_;
};

}  // namespace lamella::hlo
