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

// The positions of a call's leaves in a block of device memory. Blocks are kept for later runs.
class CudaBuffers {
 public:
  // Throws an Error if there is no GPU. The buffers must outlive this object.
  explicit CudaBuffers(const CallBuffers& buffers);
  CudaBuffers(const CudaBuffers&) = delete;
  CudaBuffers& operator=(const CudaBuffers&) = delete;
  ~CudaBuffers();
  CudaDevice& device() const { return device_; }

  // Acquires a block and makes the device's context current during one run.
  class Use {
   public:
    explicit Use(CudaBuffers& of);
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
    // Device addresses of the operands' leaves, then of the results'; NULL for tokens. An output
    // that is aliased has the address of its operand.
    std::span<void* const> pointers() const { return pointers_; }
    // Copies the operands to the device, calls `enqueue`, copies the results back, and waits. If an
    // exception is thrown, waits for pending work before rethrowing it.
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
  std::vector<size_t> offsets_;  // in a block: of operands, then of results
  size_t block_bytes_ = 0;
  std::mutex mutex_;
  std::vector<uint64_t> blocks_;
};

}  // namespace lamella::hlo
