// The CUDA driver, found when a module is first compiled for CUDA. Lamella is built without CUDA.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace lamella::hlo {

// The first GPU, with its primary context, which the CUDA runtime shares, and one stream. Errors
// are Errors with the driver's words.
class CudaDevice {
 public:
  // Throws an Error if there is no driver or no GPU. The driver's library is libcuda.so.1, or what
  // the environment variable LAMELLA_CUDA_DRIVER names.
  static CudaDevice& get();

  // Makes the context this thread's own while it lives.
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
  // At least one byte, aligned to 256 bytes.
  uint64_t allocate(size_t bytes);
  void free(uint64_t memory) noexcept;
  // In the stream's order; memory of the host must stay until synchronize().
  void to_device(uint64_t device, const void* host, size_t bytes);
  void to_host(void* host, uint64_t device, size_t bytes);
  // Waits for everything in the stream. Throws what a kernel did wrong.
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
