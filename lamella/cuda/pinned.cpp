// Pinned memory of the host, which the devices' copies reach beside other work. Blocks are kept by
// size, powers of two, and serve anew when the copies that used them are done.
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/cuda/allocator.h"
#include "lamella/cuda/graphs.h"
#include "lamella/cuda/streams.h"

namespace lamella::cuda {
namespace {

struct Use {
  int device;
  int64_t stream;
  bool operator<(const Use& other) const {
    return device != other.device ? device < other.device : stream < other.stream;
  }
};
struct PinnedBlock {
  char* data;
  size_t bytes;
  bool used;
  bool captured;  // graphs may use it for ever
  std::set<Use> uses;
  std::vector<std::unique_ptr<Event>> waits;
};

struct Pinned {
  std::mutex mutex;
  std::map<const char*, PinnedBlock> blocks;  // by address
  std::multimap<size_t, PinnedBlock*> free;
  std::vector<PinnedBlock*> waiting;
  int64_t used_bytes = 0;

  void finish() {
    if (is_any_captured()) return;
    for (size_t i = 0; i < waiting.size();) {
      PinnedBlock* block = waiting[i];
      record(*block);
      while (!block->waits.empty() && block->waits.back()->query()) block->waits.pop_back();
      if (!block->waits.empty()) {
        ++i;
        continue;
      }
      free.emplace(block->bytes, block);
      waiting[i] = waiting.back();
      waiting.pop_back();
    }
  }
  static void record(PinnedBlock& block) {
    for (const Use& use : block.uses) {
      block.waits.push_back(std::make_unique<Event>(use.device, false));
      block.waits.back()->record(use.device, use.stream);
    }
    block.uses.clear();
  }
  PinnedBlock* find(const void* data) {
    auto at = blocks.upper_bound(static_cast<const char*>(data));
    if (at == blocks.begin()) return nullptr;
    PinnedBlock& block = std::prev(at)->second;
    return data < block.data + block.bytes ? &block : nullptr;
  }
};
Pinned& pinned = *new Pinned();

}  // namespace

void* allocate_pinned(size_t bytes, void** result) {
  ContextGuard guard(current().device);
  size_t rounded = 512;
  while (rounded < bytes) rounded *= 2;
  Pinned& all = pinned;
  std::lock_guard lock(all.mutex);
  all.finish();
  PinnedBlock* block;
  if (auto at = all.free.find(rounded); at != all.free.end()) {
    block = at->second;
    all.free.erase(at);
  } else {
    void* data = nullptr;
    RelaxedCapture relaxed;
    CUDA_CALL(cuMemHostAlloc, &data, rounded, 1);  // usable from every context
    auto* place = static_cast<char*>(data);
    block =
        &all.blocks.emplace(place, PinnedBlock{place, rounded, false, false, {}, {}}).first->second;
  }
  block->used = true;
  all.used_bytes += static_cast<int64_t>(block->bytes);
  *result = block;
  return block->data;
}
void free_pinned(void* given) noexcept {
  if (Driver::is_forked()) return;
  auto* block = static_cast<PinnedBlock*>(given);
  Pinned& all = pinned;
  std::lock_guard lock(all.mutex);
  block->used = false;
  all.used_bytes -= static_cast<int64_t>(block->bytes);
  if (block->captured) return;
  try {
    if (!is_any_captured()) Pinned::record(*block);
    all.waiting.push_back(block);
  } catch (...) {
    // The device failed, or the driver has ended with the process: the block is not used again.
  }
}
bool is_pinned(const void* data) {
  std::lock_guard lock(pinned.mutex);
  PinnedBlock* block = pinned.find(data);
  return block != nullptr && block->used;
}
void note_pinned_use(const void* data, int device, int64_t stream) {
  Pinned& all = pinned;
  std::lock_guard lock(all.mutex);
  if (PinnedBlock* block = all.blocks.empty() ? nullptr : all.find(data)) {
    block->captured = block->captured || is_captured(device, stream);
    block->uses.insert({device, stream});
  }
}
void empty_pinned_cache() {
  ContextGuard guard(current().device);
  Pinned& all = pinned;
  std::lock_guard lock(all.mutex);
  all.finish();
  for (const auto& [bytes, block] : all.free) {
    CUDA_CALL(cuMemFreeHost, block->data);
    all.blocks.erase(block->data);
  }
  all.free.clear();
}
PinnedStatistics pinned_statistics() {
  Pinned& all = pinned;
  std::lock_guard lock(all.mutex);
  int64_t kept = 0;
  for (const auto& [place, block] : all.blocks) kept += static_cast<int64_t>(block.bytes);
  return {all.used_bytes, kept - all.used_bytes, static_cast<int64_t>(all.blocks.size())};
}

}  // namespace lamella::cuda
