// Note [Indices on the device] in index_reports.h.
#include "lamella/cuda/index_reports.h"

#include <atomic>
#include <mutex>

#include "lamella/core/error.h"
#include "lamella/cuda/driver.h"
#include "lamella/cuda/graphs.h"
#include "lamella/cuda/kernels/walk.h"
#include "lamella/cuda/streams.h"

namespace lamella::cuda {
namespace {

// A slot is used again after so many launches, more than streams hold. Launches that are captured
// have slots of their own, since they are done again and again.
constexpr int64_t kSlots = 8192;

struct Launch {
  const char* op;
  IndexText text;
  int64_t least, size;
};
struct Reports {
  std::mutex mutex;
  volatile int64_t* slots = nullptr;  // twice kSlots, and whether any has a report
  Launch launches[2 * kSlots];
  int64_t next = 0, next_captured = 0;
};
std::atomic<Reports*> all[kMostDevices];  // made once, under `making`
std::mutex making;

Reports& reports_of(int device) {
  if (Reports* made = all[device].load(std::memory_order_acquire)) return *made;
  std::lock_guard lock(making);
  if (all[device] == nullptr) {
    auto* made = new Reports();
    void* memory = nullptr;
    constexpr unsigned kPortable = 1;
    RelaxedCapture relaxed;
    CUDA_CALL(cuMemHostAlloc, &memory, (2 * kSlots + 1) * sizeof(int64_t), kPortable);
    made->slots = static_cast<volatile int64_t*>(memory);
    for (int64_t i = 0; i < 2 * kSlots; ++i) made->slots[i] = kNoReport;
    made->slots[2 * kSlots] = 0;
    all[device] = made;
  }
  return *all[device];
}

}  // namespace

IndexSlot report_slot(int device, const char* op, IndexText text, int64_t least, int64_t size) {
  Reports& reports = reports_of(device);
  std::lock_guard lock(reports.mutex);
  const int64_t i = is_captured(device, current().streams[device])
                        ? kSlots + reports.next_captured++ % kSlots
                        : reports.next++ % kSlots;
  reports.launches[i] = {op, text, least, size};
  return {reinterpret_cast<uint64_t>(&reports.slots[i]),
          reinterpret_cast<uint64_t>(&reports.slots[2 * kSlots])};
}

void check_reports(int device) {
  Reports* reports = all[device].load(std::memory_order_acquire);
  if (reports == nullptr || reports->slots[2 * kSlots] == 0) return;
  std::lock_guard lock(reports->mutex);
  reports->slots[2 * kSlots] = 0;
  const Launch* first = nullptr;
  int64_t index = 0;
  for (int64_t back = 2 * kSlots; back-- > 0;) {  // from the newest: the oldest is what is raised
    const int64_t i = back < kSlots ? (reports->next + back) % kSlots : back;
    if (reports->slots[i] == kNoReport) continue;
    first = &reports->launches[i];
    index = reports->slots[i];
    reports->slots[i] = kNoReport;
  }
  if (first == nullptr) return;
  // An error that begins with no operator's name is not named after the operator that waits.
  const std::string name = str("cuda:", device, ": ", first->op);
  if (first->text == IndexText::kRange) {
    throw IndexError(str(name, ": expected 'index' in [", first->least, ", ", first->size - 1,
                         "], got ", index));
  }
  LAMELLA_CHECK(first->text != IndexText::kSource, name, ": expected 'source' to have at least ",
                index, " elements, got ", first->size);
  throw IndexError(str(name, ": expected the elements of 'indices' to be in [", first->least, ", ",
                       first->size, "), got ", index));
}

}  // namespace lamella::cuda
