// The arena of memory.h and its block allocator.
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

#include "lamella/core/error.h"

namespace sim {

namespace {
constexpr size_t kAlignment = 256;

char* map(size_t bytes, int file, int protection) {
  void* data = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  LAMELLA_CHECK(data != MAP_FAILED, "sim: expected room for ", bytes, " bytes of device memory");
  return static_cast<char*>(data);
}
}  // namespace

Memory::Memory(size_t bytes) : bytes_(bytes) {
  int file = memfd_create("sim", MFD_CLOEXEC);
  LAMELLA_CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0,
                "sim: expected a file of ", bytes, " bytes in memory");
  tensors_ = map(bytes, file, PROT_NONE);
  workers_ = map(bytes, file, PROT_READ | PROT_WRITE);
  close(file);
  offset_ = reinterpret_cast<size_t>(workers_) - reinterpret_cast<size_t>(tensors_);
  free_[0] = bytes;
}

Memory::~Memory() {
  munmap(tensors_, bytes_);
  munmap(workers_, bytes_);
}

void* Memory::allocate(size_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  std::lock_guard lock(mutex_);
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    auto [at, room] = *block;
    if (room < bytes) continue;
    free_.erase(block);
    if (room > bytes) free_[at + bytes] = room - bytes;
    used_[at] = bytes;
    return tensors_ + at;
  }
  return nullptr;
}

void Memory::free(void* data) {
  auto at = static_cast<size_t>(static_cast<char*>(data) - tensors_);
  std::lock_guard lock(mutex_);
  auto block = used_.find(at);
  size_t bytes = block->second;
  used_.erase(block);
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
}

}  // namespace sim
