// The CUDA driver, loaded when a module is first compiled for CUDA. The build does not need CUDA.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace lamella::hlo {

// The first GPU, with its primary context, which the CUDA runtime shares, and one stream. Functions
// throw an Error with the driver's message.
class CudaDevice {
 public:
  // Throws an Error if there is no driver or no GPU. The driver's library is libcuda.so.1, or the
  // value of the environment variable LAMELLA_CUDA_DRIVER.
  static CudaDevice& get();

  // Makes the context current on this thread during its lifetime.
  class Scope {
   public:
    explicit Scope(CudaDevice& device);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    CudaDevice& device_;
  };

  void* stream() const { return stream_; }  // a CUstream
  // Allocates at least one byte, aligned to 256 bytes.
  uint64_t allocate(size_t bytes);
  void free(uint64_t memory) noexcept;
  // Copies in stream order; the host memory must stay valid until synchronize().
  void to_device(uint64_t device, const void* host, size_t bytes);
  void to_host(void* host, uint64_t device, size_t bytes);
  // Waits for all work in the stream. Throws if a kernel failed.
  void synchronize();

 private:
  struct Functions;
  explicit CudaDevice(const Functions& functions);
  void check(int result, const char* function) const;

  const Functions& functions_;
  void* context_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace lamella::hlo
