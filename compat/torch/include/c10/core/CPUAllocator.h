// c10::GetCPUAllocator: memory on the CPU for code that keeps it itself.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <cstring>

namespace c10 {
namespace detail {
class CpuAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t bytes) override {
    void* data = alloc_cpu(bytes);
    return {data, data, &free_cpu, Device(DeviceType::CPU)};
  }
  DeleterFnPtr raw_deleter() const override { return &free_cpu; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};
}  // namespace detail
inline Allocator* GetCPUAllocator() {
  static auto* allocator = new detail::CpuAllocator;
  return allocator;
}
inline Allocator* GetDefaultCPUAllocator() { return GetCPUAllocator(); }
// There are no others for the CPU.
inline Allocator* GetAllocator(DeviceType type) {
  LAMELLA_CHECK(type == DeviceType::CPU, "GetAllocator: expected the CPU, got ", type);
  return GetCPUAllocator();
}
}  // namespace c10
namespace at {
inline c10::Allocator* getCPUAllocator() { return c10::GetCPUAllocator(); }
}  // namespace at
