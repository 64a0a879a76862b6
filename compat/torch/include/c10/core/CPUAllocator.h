// c10::GetCPUAllocator: the CPU allocator, for code that manages memory itself.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>
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
// There is only one allocator for the CPU.
inline Allocator* GetAllocator(DeviceType type) {
  LAMELLA_CHECK(type == DeviceType::CPU, "GetAllocator: expected the CPU, got ", type);
  return GetCPUAllocator();
}
}  // namespace c10
namespace at {
inline c10::Allocator* getCPUAllocator() { return c10::GetCPUAllocator(); }
}  // namespace at
