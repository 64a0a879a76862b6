// Device memory, mapped twice, and pinned memory of the host.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "tests/cuda/standin/standin.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) (static_cast<void>(at), static_cast<void>(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) (static_cast<void>(at), static_cast<void>(bytes))
#endif

namespace standin {
namespace {

constexpr size_t kAlignment = 512;
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kApart = 512;  // bytes between blocks that no kernel may touch
#else
constexpr size_t kApart = 0;
#endif
constexpr int kMostDevices = 8;

struct Ranges {
  char* host;
  char* worker;
  size_t bytes;  // address space of a device
};
// Valgrind leaves less address space than a process has by itself.
Ranges reserve() {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  for (size_t bytes = size_t{1} << 36; bytes >= size_t{1} << 28; bytes /= 4) {
    const size_t each = bytes * kMostDevices;
    void* both = mmap(nullptr, 2 * each, PROT_NONE, flags, -1, 0);
    if (both == MAP_FAILED) continue;
    return {static_cast<char*>(both), static_cast<char*>(both) + each, bytes};
  }
  abort();
}
const Ranges& ranges() {
  static const Ranges both = reserve();
  return both;
}

std::mutex host_mutex;
std::map<const char*, size_t>& host_memory() {
  static auto* all = new std::map<const char*, size_t>();
  return *all;
}

}  // namespace

intptr_t worker_offset() { return ranges().worker - ranges().host; }

Memory::Memory(int device, size_t bytes) : bytes_(bytes) {
  if (bytes > ranges().bytes || device >= kMostDevices) abort();
  const size_t at = ranges().bytes * static_cast<size_t>(device);
  int file = memfd_create("standin", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) abort();
  constexpr int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED;
  void* view = mmap(ranges().worker + at, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (view == MAP_FAILED) abort();
  close(file);
  base_ = reinterpret_cast<uint64_t>(ranges().host + at);
  free_[base_] = bytes;
}

uint64_t Memory::allocate(size_t asked) {
  const size_t bytes = (asked + kAlignment - 1) / kAlignment * kAlignment + kApart;
  std::lock_guard lock(mutex_);
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    auto [at, room] = *block;
    if (room < bytes) continue;
    free_.erase(block);
    if (room > bytes) free_[at + bytes] = room - bytes;
    used_[at] = bytes;
    used_bytes_ += bytes;
    ASAN_UNPOISON_MEMORY_REGION(worker_view<char>(at), asked);
    ASAN_POISON_MEMORY_REGION(worker_view<char>(at) + asked, bytes - asked);
    return at;
  }
  return 0;
}

bool Memory::free(uint64_t at) {
  std::lock_guard lock(mutex_);
  auto block = used_.find(at);
  if (block == used_.end()) return false;
  size_t bytes = block->second;
  used_.erase(block);
  used_bytes_ -= bytes;
  ASAN_POISON_MEMORY_REGION(worker_view<char>(at), bytes);
  // Gives the pages back that lie in the block alone.
  constexpr size_t kPage = 4096;
  const size_t first = (at + kPage - 1) / kPage * kPage, end = (at + bytes) / kPage * kPage;
  if (first < end) madvise(worker_view<char>(first), end - first, MADV_REMOVE);
  auto next = free_.lower_bound(at);
  if (next != free_.end() && next->first == at + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == at) {
    std::prev(next)->second += bytes;
  } else {
    free_[at] = bytes;
  }
  return true;
}

bool Memory::holds(uint64_t address, size_t bytes) {
  std::lock_guard lock(mutex_);
  auto block = used_.upper_bound(address);
  if (block == used_.begin()) return false;
  --block;
  return address + bytes <= block->first + block->second;
}
size_t Memory::used() {
  std::lock_guard lock(mutex_);
  return used_bytes_;
}
size_t Memory::blocks() {
  std::lock_guard lock(mutex_);
  return used_.size();
}

void* allocate_host(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 4096, bytes) != 0) return nullptr;
  std::lock_guard lock(host_mutex);
  host_memory()[static_cast<char*>(memory)] = bytes;
  return memory;
}
bool free_host(void* memory) {
  {
    std::lock_guard lock(host_mutex);
    if (host_memory().erase(static_cast<char*>(memory)) == 0) return false;
  }
  std::free(memory);
  return true;
}
bool is_pinned(const void* memory) {
  std::lock_guard lock(host_mutex);
  const auto* at = static_cast<const char*>(memory);
  auto block = host_memory().upper_bound(at);
  if (block == host_memory().begin()) return false;
  --block;
  return at < block->first + block->second;
}
size_t host_blocks() {
  std::lock_guard lock(host_mutex);
  return host_memory().size();
}

}  // namespace standin
