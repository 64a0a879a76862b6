// Memory traps: the SIGSEGV handler and its table.
//
// Note [Traps]
//   The handler of SIGSEGV looks the address up in a fixed table, which needs no lock, and passes
//   faults at other addresses to the previous handler. It is installed while there are traps.
#include "lamella/layers/compliance/trap.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "lamella/core/error.h"

namespace lamella::compliance {
namespace {

struct Region {
  std::atomic<uintptr_t> begin;  // 0: free
  std::atomic<size_t> bytes;
  std::atomic<bool> touched;
};
constexpr int kMaxStorages = 4096;
Region regions[kMaxStorages];
std::mutex mutex;  // guards the table's allocation and the two below
int used = 0;
struct sigaction before;

void on_fault(int number, siginfo_t* info, void* context) {
  auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Region& region : regions) {
    uintptr_t begin = region.begin.load(std::memory_order_acquire);
    if (begin == 0 || at < begin || at - begin >= region.bytes.load()) continue;
    region.touched.store(true);
    if (mprotect(reinterpret_cast<void*>(begin), region.bytes.load(), PROT_READ | PROT_WRITE) ==
        0) {
      return;
    }
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    sigaction(SIGSEGV, &before, nullptr);  // the access faults again, with the previous handler
  } else {
    before.sa_handler(number);
  }
}

}  // namespace

Trap::Trap(size_t bytes) {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes_ = (bytes + page) / page * page;
  std::lock_guard lock(mutex);
  for (slot_ = 0; slot_ < kMaxStorages && regions[slot_].begin != 0;) ++slot_;
  LAMELLA_CHECK(slot_ < kMaxStorages, "composite check: expected at most ", kMaxStorages,
                " storages in one composite kernel");
  data_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data_ == MAP_FAILED) {
    throw OutOfMemoryError("composite check: no address space for " + std::to_string(bytes_) +
                           " bytes");
  }
  regions[slot_].bytes = bytes_;
  regions[slot_].touched = false;
  regions[slot_].begin = reinterpret_cast<uintptr_t>(data_);
  if (used++ == 0) {
    struct sigaction action = {};
    action.sa_sigaction = &on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &before);
  }
}

Trap::~Trap() {
  std::lock_guard lock(mutex);
  regions[slot_].begin = 0;
  munmap(data_, bytes_);
  if (--used == 0) sigaction(SIGSEGV, &before, nullptr);
}

bool Trap::touched() const { return regions[slot_].touched; }

}  // namespace lamella::compliance
