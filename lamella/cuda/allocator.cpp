// See Note [Blocks of streams] in allocator.h.
#include "lamella/cuda/allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/cuda/graphs.h"
#include "lamella/cuda/streams.h"

namespace lamella::cuda {
namespace {

constexpr size_t kRound = 512;
constexpr size_t kMostSmall = size_t{1} << 20;
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kLargeSegment = size_t{20} << 20;
constexpr size_t kMinLarge = size_t{10} << 20;
constexpr size_t kRoundLarge = size_t{2} << 20;
enum Pool : int { kLarge = 1, kSmall = 2 };

struct Pools;
struct Block {
  Address data;
  size_t bytes;
  size_t requested;
  int device;
  int64_t stream;
  Pool pool;
  Pools* owner;
  bool used;
  int waits;      // events that have to be done before the block is free
  Block* before;  // neighbours in the segment
  Block* after;
  std::vector<int64_t> streams;  // others that use it
  bool is_split() const { return before != nullptr || after != nullptr; }
};
struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    if (a->stream != b->stream) return a->stream < b->stream;
    if (a->bytes != b->bytes) return a->bytes < b->bytes;
    return a->data < b->data;
  }
};
using FreeBlocks = std::set<Block*, BySize>;
// The free blocks that serve all allocations, or those of captures: Note [Pools of graphs].
struct Pools {
  FreeBlocks free[3];
  int64_t segments = 0;
  int users = 0;
};

std::string bytes_text(size_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB"};
  int unit = 0;
  auto value = static_cast<double>(bytes);
  for (; value >= 1024 && unit < 3; ++unit) value /= 1024;
  char text[64];
  snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

// LAMELLA_CUDA_CACHE=0 asks the driver for each tensor's memory and gives it back at once, so that
// tools see accesses outside of it.
bool keeps_segments() {
  static const bool keeps = [] {
    const char* text = std::getenv("LAMELLA_CUDA_CACHE");
    return text == nullptr || std::strcmp(text, "0") != 0;
  }();
  return keeps;
}

class DeviceMemory {
 public:
  std::mutex mutex;
  MemoryStatistics statistics;
  double fraction = 1;

  void* allocate(size_t bytes, int device, int64_t stream, void** block) {
    Driver::check_process();
    std::lock_guard lock(mutex);
    if (!pending_.empty() && !is_any_captured()) {
      ContextGuard guard(device);
      finish_events();
    }
    Pools* owner = &shared_;
    if (LAMELLA_UNLIKELY(captured_ != nullptr) && is_captured(device, stream)) owner = captured_;
    const size_t rounded = !keeps_segments() ? std::max<size_t>(bytes, 1)
                           : bytes <= kRound ? kRound
                                             : (bytes + kRound - 1) / kRound * kRound;
    LAMELLA_CHECK(rounded >= bytes, "empty: expected a size that fits memory, got ", bytes,
                  " bytes");
    Block* found = take_recent(rounded, stream, owner);
    if (found == nullptr) {
      const Pool pool = rounded <= kMostSmall ? kSmall : kLarge;
      found = take_free(rounded, stream, pool, owner);
      if (found == nullptr) {
        ContextGuard guard(device);
        found = new_segment(bytes, rounded, device, stream, pool, owner);
      }
      const size_t rest = found->bytes - rounded;
      if (pool == kSmall ? rest >= kRound : rest > kMostSmall) split(found, rounded);
    }
    found->used = true;
    found->requested = bytes;
    count(kAllocations, found, 1);
    count(kAllocatedBytes, found, found->bytes);
    count(kRequestedBytes, found, bytes);
    count(kActive, found, 1);
    count(kActiveBytes, found, found->bytes);
    *block = found;
    return reinterpret_cast<void*>(found->data);
  }

  void deallocate(Block* block) {
    std::lock_guard lock(mutex);
    block->used = false;
    count(kAllocations, block, -1);
    count(kAllocatedBytes, block, -static_cast<int64_t>(block->bytes));
    count(kRequestedBytes, block, -static_cast<int64_t>(block->requested));
    if (block->streams.empty()) return keep(block);
    ++block->waits;
    pending_.push_back({nullptr, block});
    if (is_any_captured()) return;
    ContextGuard guard(block->device);
    record_events();
  }

  void record_stream(void* data, int64_t stream) {
    std::lock_guard lock(mutex);
    release_recent();
    const auto address = reinterpret_cast<Address>(data);
    auto at = segments_.upper_bound(address);
    Block* block = at == segments_.begin() ? nullptr : std::prev(at)->second;
    while (block != nullptr && address >= block->data + block->bytes) block = block->after;
    LAMELLA_CHECK(block != nullptr && block->used,
                  "record_stream: expected memory of Lamella's allocator, got other memory");
    if (stream == block->stream) return;
    auto& known = block->streams;
    if (std::find(known.begin(), known.end(), stream) == known.end()) known.push_back(stream);
  }

  // Joins the blocks that were freed last with their neighbours.
  void release_recent() {
    while (recent_count_ != 0) release(recent_[--recent_count_]);
  }
  // The device's context must be current, and no stream be captured.
  void empty() {
    release_recent();
    record_events();
    for (const auto& [event, block] : pending_) CUDA_CALL(cuEventSynchronize, event);
    finish_events();
    empty(shared_);
    for (auto it = pools_.begin(); it != pools_.end();) {
      if (it->second.users == 0) empty(it->second);
      it = it->second.users == 0 && it->second.segments == 0 ? pools_.erase(it) : std::next(it);
    }
  }

  void begin_pool(int64_t pool) {
    captured_ = &pools_[pool];
    ++captured_->users;
  }
  void end_pool() { captured_ = nullptr; }
  void release_pool(int64_t pool) { --pools_[pool].users; }

 private:
  void empty(Pools& pools) {
    for (FreeBlocks* blocks : {&pools.free[kLarge], &pools.free[kSmall]}) {
      for (auto it = blocks->begin(); it != blocks->end();) {
        Block* block = *it;
        if (block->is_split()) {
          ++it;
          continue;
        }
        CUDA_CALL(cuMemFree_v2, block->data);
        ++statistics.driver_frees;
        --pools.segments;
        count(kSegments, block, -1);
        count(kReservedBytes, block, -static_cast<int64_t>(block->bytes));
        segments_.erase(block->data);
        it = blocks->erase(it);
        delete block;
      }
    }
  }
  template <class N>
  void count(StatisticName name, const Block* block, N by) {
    statistics.of[name].change(block->pool, static_cast<int64_t>(by));
  }
  void count_inactive(const Block* block, int by) {
    if (!block->is_split()) return;
    count(kInactiveSplits, block, by);
    count(kInactiveSplitBytes, block, by * static_cast<int64_t>(block->bytes));
  }

  // What is freed is often asked for again at once, so the last few blocks wait, as used ones for
  // their neighbours, to serve an allocation of the same size.
  void keep(Block* block) {
    count(kActive, block, -1);
    count(kActiveBytes, block, -static_cast<int64_t>(block->bytes));
    if (!keeps_segments()) return release(block);
    block->used = true;
    if (recent_count_ == kRecent) release_recent();
    recent_[recent_count_++] = block;
  }
  Block* take_recent(size_t bytes, int64_t stream, const Pools* owner) {
    for (int i = recent_count_; i-- > 0;) {
      Block* block = recent_[i];
      if (block->bytes != bytes || block->stream != stream || block->owner != owner) continue;
      recent_[i] = recent_[--recent_count_];
      return block;
    }
    release_recent();
    return nullptr;
  }
  Block* take_free(size_t bytes, int64_t stream, Pool pool, Pools* owner) {
    Block wanted{};
    wanted.bytes = bytes;
    wanted.stream = stream;
    auto at = owner->free[pool].lower_bound(&wanted);
    if (at == owner->free[pool].end() || (*at)->stream != stream) return nullptr;
    Block* found = *at;
    take_out(at);
    return found;
  }

  Block* new_segment(size_t asked, size_t bytes, int device, int64_t stream, Pool pool,
                     Pools* owner) {
    const size_t segment = !keeps_segments() ? bytes
                           : pool == kSmall  ? kSmallSegment
                           : bytes < kMinLarge
                               ? kLargeSegment
                               : (bytes + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
    Address data = 0;
    if (!from_driver(segment, device, &data)) {
      ++statistics.retries;
      if (!is_any_captured()) empty();
      if (!from_driver(segment, device, &data)) {
        ++statistics.failures;
        out_of_memory(asked, device);
      }
    }
    ++statistics.driver_allocations;
    ++owner->segments;
    auto* block =
        new Block{data, segment, 0, device, stream, pool, owner, false, 0, nullptr, nullptr, {}};
    segments_[data] = block;
    count(kSegments, block, 1);
    count(kReservedBytes, block, segment);
    return block;
  }
  bool from_driver(size_t bytes, int device, Address* data) {
    if (fraction < 1) {
      const auto most =
          static_cast<size_t>(fraction * static_cast<double>(Driver::facts(device).total_memory));
      if (static_cast<size_t>(statistics.of[kReservedBytes].current[0]) + bytes > most)
        return false;
    }
    RelaxedCapture relaxed;
    const int result = Driver::functions().cuMemAlloc_v2(data, bytes);
    if (result == kOutOfMemory) return false;
    Driver::check(result, "cuMemAlloc_v2");
    return true;
  }
  [[noreturn]] void out_of_memory(size_t asked, int device) {
    size_t free = 0, total = 0;
    Driver::functions().cuMemGetInfo_v2(&free, &total);
    const auto used = static_cast<size_t>(statistics.of[kAllocatedBytes].current[0]);
    const auto reserved = static_cast<size_t>(statistics.of[kReservedBytes].current[0]);
    throw OutOfMemoryError(
        str("CUDA is out of memory: expected ", bytes_text(asked), " on ",
            Device(DeviceType::CUDA, static_cast<DeviceIndex>(device)), ", got none: of ",
            bytes_text(total), " in total ", bytes_text(free), " are free; this process has ",
            bytes_text(used), " in tensors and ", bytes_text(reserved - used),
            " in segments that are kept for reuse",
            fraction < 1 ? str(", and may take ", fraction * 100, " % of the device") : ""));
  }

  // `block` keeps its first bytes; the rest becomes a free block.
  void split(Block* block, size_t bytes) {
    Block* rest = made_block(*block);
    rest->data += bytes;
    rest->bytes -= bytes;
    rest->before = block;
    if (block->after != nullptr) block->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    put_in(rest);
  }
  // Joins the block with free neighbours and makes it free.
  void release(Block* block) {
    block->used = false;
    if (Block* other = block->before; other != nullptr && is_free(other)) {
      take_out(other);
      segments_.erase(other->data);
      if (other->before == nullptr) segments_[other->data] = block;
      block->before = other->before;
      if (block->before != nullptr) block->before->after = block;
      block->data = other->data;
      block->bytes += other->bytes;
      spare_blocks_.push_back(other);
    }
    if (Block* other = block->after; other != nullptr && is_free(other)) {
      take_out(other);
      block->after = other->after;
      if (block->after != nullptr) block->after->before = block;
      block->bytes += other->bytes;
      spare_blocks_.push_back(other);
    }
    put_in(block);
  }
  static bool is_free(const Block* block) { return !block->used && block->waits == 0; }
  // Sets and blocks are changed with every allocation, so their memory is kept.
  void put_in(Block* block) {
    if (spare_nodes_.empty()) {
      block->owner->free[block->pool].insert(block);
    } else {
      spare_nodes_.back().value() = block;
      block->owner->free[block->pool].insert(std::move(spare_nodes_.back()));
      spare_nodes_.pop_back();
    }
    count_inactive(block, 1);
  }
  void take_out(FreeBlocks::iterator at) {
    const Block* block = *at;
    spare_nodes_.push_back(block->owner->free[block->pool].extract(at));
    count_inactive(block, -1);
  }
  void take_out(Block* block) { take_out(block->owner->free[block->pool].find(block)); }
  Block* made_block(const Block& like) {
    if (spare_blocks_.empty()) return new Block(like);
    Block* block = spare_blocks_.back();
    spare_blocks_.pop_back();
    *block = like;
    return block;
  }
  // Records an event on each stream that uses a freed block. Blocks without events are the last
  // ones.
  void record_events() {
    std::vector<Block*> blocks;
    for (; !pending_.empty() && pending_.back().event == nullptr; pending_.pop_back()) {
      blocks.push_back(pending_.back().block);
    }
    for (Block* block : blocks) {
      const std::vector<int64_t> streams = std::move(block->streams);
      block->streams.clear();
      block->waits += static_cast<int>(streams.size()) - 1;
      for (int64_t stream : streams) {
        EventHandle event = events_.take();
        CUDA_CALL(cuEventRecord, event, handle_of(block->device, stream));
        pending_.push_back({event, block});
      }
    }
  }
  void finish_events() {
    record_events();
    size_t kept = 0;
    for (size_t i = 0; i < pending_.size(); ++i) {
      auto [event, block] = pending_[i];
      const int result = Driver::functions().cuEventQuery(event);
      if (result == kNotReady) {
        pending_[kept++] = pending_[i];
        continue;
      }
      Driver::check(result, "cuEventQuery");
      events_.give(event);
      if (--block->waits == 0) keep(block);
    }
    pending_.resize(kept);
  }

  struct Pending {
    EventHandle event;  // null: not recorded yet
    Block* block;
  };
  static constexpr int kRecent = 4;
  Block* recent_[kRecent];
  int recent_count_ = 0;
  Pools shared_;
  std::map<int64_t, Pools> pools_;  // of graphs
  Pools* captured_ = nullptr;       // that of the capture under way
  std::vector<FreeBlocks::node_type> spare_nodes_;
  std::vector<Block*> spare_blocks_;
  std::map<Address, Block*> segments_;  // the first block of each
  std::vector<Pending> pending_;
  EventPool events_;
};

// Never freed: tensors in static objects may be freed at any time.
DeviceMemory* const memories = new DeviceMemory[kMostDevices];
DeviceMemory& memory_of(int device) { return memories[device]; }

}  // namespace

void* allocate(size_t bytes, int device, int64_t stream, void** block) {
  return memory_of(device).allocate(bytes, device, stream, block);
}
void deallocate(void* given) noexcept {
  if (Driver::is_forked()) return;
  auto* block = static_cast<Block*>(given);
  try {
    const int device = block->device;
    memory_of(device).deallocate(block);
    if (!keeps_segments()) empty_cache(device);
  } catch (...) {
    // The device failed, or the driver has ended with the process: the block is not used again.
  }
}
void record_stream(void* data, int device, int64_t stream) {
  Driver::check_process();
  memory_of(device).record_stream(data, stream);
}
int64_t make_pool() {
  static std::atomic<int64_t> made{0};
  return ++made;
}
void begin_pool(int device, int64_t pool) {
  std::lock_guard lock(memory_of(device).mutex);
  memory_of(device).begin_pool(pool);
}
void end_pool(int device) {
  std::lock_guard lock(memory_of(device).mutex);
  memory_of(device).end_pool();
}
void release_pool(int device, int64_t pool) {
  std::lock_guard lock(memory_of(device).mutex);
  memory_of(device).release_pool(pool);
}
void empty_cache(int device) {
  if (!Driver::has_context(device)) return;
  LAMELLA_CHECK(!is_any_captured(), "empty_cache: expected no stream that is captured, got one");
  ContextGuard guard(device);
  std::lock_guard lock(memory_of(device).mutex);
  memory_of(device).empty();
}
MemoryStatistics memory_statistics(int device) {
  Driver::check_process();
  std::lock_guard lock(memory_of(device).mutex);
  memory_of(device).release_recent();
  return memory_of(device).statistics;
}
void reset_peaks(int device) {
  Driver::check_process();
  std::lock_guard lock(memory_of(device).mutex);
  memory_of(device).release_recent();
  for (Statistic& one : memory_of(device).statistics.of) {
    std::copy(std::begin(one.current), std::end(one.current), one.peak);
  }
}
void reset_accumulated(int device) {
  Driver::check_process();
  std::lock_guard lock(memory_of(device).mutex);
  memory_of(device).release_recent();
  MemoryStatistics& all = memory_of(device).statistics;
  for (Statistic& one : all.of) {
    std::fill(std::begin(one.increased), std::end(one.increased), 0);
    std::fill(std::begin(one.decreased), std::end(one.decreased), 0);
  }
  all.retries = all.failures = 0;
}
void set_memory_fraction(int device, double fraction) {
  LAMELLA_CHECK_VALUE(fraction >= 0 && fraction <= 1,
                      "set_per_process_memory_fraction: expected 'fraction' from 0 to 1, got ",
                      fraction);
  Driver::check_process();
  std::lock_guard lock(memory_of(device).mutex);
  memory_of(device).fraction = fraction;
}
void memory_info(int device, size_t* free, size_t* total) {
  ContextGuard guard(device);
  CUDA_CALL(cuMemGetInfo_v2, free, total);
}

}  // namespace lamella::cuda
