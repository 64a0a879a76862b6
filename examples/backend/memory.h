// The memory of one device: an arena that is mapped twice. Tensors hold addresses of the first
// mapping, which is inaccessible, so that host code that reads device memory by mistake crashes at
// once. The device's own workers use the second mapping.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>

namespace sim {

class Memory {
 public:
  explicit Memory(size_t bytes);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  // The address of a free block, or null if no block is large enough.
  void* allocate(size_t bytes);
  void free(void* data);
  // The workers' address of a tensor's `data`.
  template <class T>
  T* worker_view(T* data) const {
    return reinterpret_cast<T*>(reinterpret_cast<size_t>(data) + offset_);
  }

 private:
  size_t bytes_;
  char* tensors_;  // the inaccessible mapping
  char* workers_;  // the accessible mapping
  size_t offset_;
  std::mutex mutex_;
  std::map<size_t, size_t> free_;  // offset -> bytes, no two of them adjacent
  std::map<size_t, size_t> used_;
};

}  // namespace sim
