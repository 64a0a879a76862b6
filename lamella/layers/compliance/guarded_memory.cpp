// Memory guards and their allocator: see Note [Guarded memory].
#include "lamella/layers/compliance/guarded_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "lamella/core/allocator.h"
#include "lamella/core/error.h"

namespace lamella::compliance {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMaxBlocks = size_t{1} << 14;
constexpr size_t kKeptFreed = 512;
// A larger mapping is unmapped as soon as it is freed, to stay within limits on address space.
constexpr size_t kMostKept = size_t{1} << 20;
// Limits sizes, so that rounding them up cannot overflow.
constexpr size_t kMostBytes = size_t{1} << 48;

// Read by the signal handler, without the lock.
struct Region {
  std::atomic<uintptr_t> begin;  // of the mapping; 0: free
  std::atomic<size_t> mapped;
  std::atomic<uintptr_t> data;
  std::atomic<size_t> bytes;
  std::atomic<bool> freed;
  uint8_t margin;
};
Region regions[kMaxBlocks];

size_t page_size() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

class GuardingAllocator final : public Allocator {
 public:
  void* allocate(size_t bytes, DeviceIndex, void** context) override {
    size_t page = page_size();
    if (bytes > kMostBytes) {
      throw OutOfMemoryError(str("could not allocate ", bytes, " guarded bytes on cpu"));
    }
    size_t alignment = placement_ == GuardPlacement::kAligned ? kAlignment : 1;
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    size_t middle = (rounded + page - 1) / page * page;
    size_t mapped = middle + 2 * page;
    void* mapping =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
      throw OutOfMemoryError(str("could not allocate ", bytes, " guarded bytes on cpu"));
    }
    char* begin = static_cast<char*>(mapping);
    bool first = placement_ == GuardPlacement::kFirst;
    char* data = begin + page + (first ? 0 : middle - rounded);
    std::lock_guard lock(mutex_);
    std::memset(begin + page, margin_, middle);
    std::memset(data, fresh_, bytes);
    mprotect(begin, page, PROT_NONE);
    mprotect(begin + page + middle, page, PROT_NONE);
    while (next_ < kMaxBlocks && regions[next_].begin != 0) ++next_;
    if (next_ == kMaxBlocks) {
      munmap(mapping, mapped);
      throw OutOfMemoryError(str("expected at most ", kMaxBlocks, " guarded blocks at a time"));
    }
    Region& region = regions[next_];
    used_ = std::max(used_, next_ + 1);
    region.mapped = mapped;
    region.data = reinterpret_cast<uintptr_t>(data);
    region.bytes = bytes;
    region.freed = false;
    region.margin = margin_;
    region.begin = reinterpret_cast<uintptr_t>(begin);
    *context = &region;
    ++live_.blocks;
    live_.bytes += static_cast<int64_t>(bytes);
    return data;
  }

  void deallocate(void*, size_t, DeviceIndex, void* context) noexcept override {
    std::lock_guard lock(mutex_);
    auto* region = static_cast<Region*>(context);
    note_damage(*region);
    --live_.blocks;
    live_.bytes -= static_cast<int64_t>(region->bytes);
    region->freed = true;
    auto* begin = reinterpret_cast<void*>(region->begin.load());
    mprotect(begin, region->mapped, PROT_NONE);
    madvise(begin, region->mapped, MADV_DONTNEED);
    if (region->mapped <= kMostKept) {
      if (freed_.size() < kKeptFreed) {
        freed_.push_back(region);
        return;
      }
      std::swap(region, freed_[oldest_]);
      oldest_ = (oldest_ + 1) % kKeptFreed;
    }
    munmap(reinterpret_cast<void*>(region->begin.load()), region->mapped);
    region->begin = 0;
    next_ = std::min(next_, static_cast<size_t>(region - regions));
  }

  GuardedMemory look() {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < used_; ++i) {
      if (regions[i].begin != 0 && !regions[i].freed) note_damage(regions[i]);
    }
    return live_;
  }
  void set(uint8_t fresh, uint8_t margin, GuardPlacement placement) {
    std::lock_guard lock(mutex_);
    fresh_ = fresh;
    margin_ = margin;
    placement_ = placement;
  }

 private:
  // Restores the margins, so that a damaged block is counted once.
  void note_damage(Region& region) noexcept {
    size_t page = page_size();
    auto* first = reinterpret_cast<uint8_t*>(region.begin.load()) + page;
    auto* data = reinterpret_cast<uint8_t*>(region.data.load());
    uint8_t* last = reinterpret_cast<uint8_t*>(region.begin.load()) + region.mapped - page;
    uint8_t margin = region.margin;
    bool damaged = false;
    auto restore = [&](uint8_t* from, uint8_t* to) {
      uint8_t differs = 0;
      for (const uint8_t* at = from; at < to; ++at) differs |= *at ^ margin;
      if (differs == 0) return;
      damaged = true;
      std::memset(from, margin, static_cast<size_t>(to - from));
    };
    restore(first, data);
    restore(data + region.bytes, last);
    if (damaged) ++live_.damaged;
  }

  std::mutex mutex_;
  size_t next_ = 0;  // no free region comes before it
  size_t used_ = 0;  // no region from it on was ever used
  uint8_t fresh_ = 0;
  uint8_t margin_ = 0;
  std::atomic<GuardPlacement> placement_ = GuardPlacement::kAligned;
  GuardedMemory live_{0, 0, 0};
  std::vector<Region*> freed_;  // a ring once it is full
  size_t oldest_ = 0;
};

// Never destroyed: storages may outlive everything.
GuardingAllocator& guarding() {
  static auto* instance = new GuardingAllocator();
  return *instance;
}

int report_to = -1;

// Text for a signal handler: no allocation, no locale.
struct Text {
  char characters[160];
  size_t size = 0;
  void add(const char* text) {
    while (*text != 0 && size < sizeof(characters)) characters[size++] = *text++;
  }
  void add(size_t number) {
    char digits[24];
    size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count > 0 && size < sizeof(characters)) characters[size++] = digits[--count];
  }
};

void on_fault(int number, siginfo_t* info, void* context) {
  auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Region& region : regions) {
    uintptr_t begin = region.begin;
    if (begin == 0 || at < begin || at - begin >= region.mapped) continue;
    const char* what = "accessed ";
#if defined(__x86_64__)
    what = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? "wrote "
                                                                                    : "read ";
#endif
    Text text;
    text.add(what);
    uintptr_t data = region.data;
    size_t bytes = region.bytes;
    if (region.freed) {
      text.add("freed memory of a tensor");
    } else if (at < data) {
      text.add(data - at);
      text.add(" bytes before a tensor's memory");
    } else {
      text.add(at - data - bytes);
      text.add(" bytes past the end of a tensor's ");
      text.add(bytes);
      text.add(" bytes");
    }
    text.add("\n");
    ssize_t written = write(report_to, text.characters, text.size);
    _exit(written < 0 ? 1 : kGuardFaultStatus);
  }
  signal(number, SIG_DFL);  // the access faults again and ends the process
}

}  // namespace

void set_guarded_memory(bool on, uint8_t fresh, uint8_t margin, GuardPlacement placement) {
  guarding().set(fresh, margin, placement);
  set_allocator(DeviceType::CPU, on ? &guarding() : nullptr);
}

GuardedMemory guarded_memory() { return guarding().look(); }

void report_guard_faults(int file_descriptor) {
  report_to = file_descriptor;
  struct sigaction action = {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace lamella::compliance
