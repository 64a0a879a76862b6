// ThreadAllocator: memory that a caller has ready for what this thread allocates. Internal.
#pragma once
#include "lamella/core/allocator.h"

namespace lamella {

// For its lifetime, on this thread: storages on devices of this type ask the allocator first, which
// may return NULL, after which the device's own serves them. The CPU's storages do not ask. NULL:
// none is asked.
class LAMELLA_PRIVATE_API ThreadAllocator {
 public:
  ThreadAllocator(DeviceType type, Allocator* allocator) noexcept;
  ~ThreadAllocator();
  ThreadAllocator(const ThreadAllocator&) = delete;
  ThreadAllocator& operator=(const ThreadAllocator&) = delete;

 private:
  DeviceType type_before_;
  Allocator* before_;
};

}  // namespace lamella
