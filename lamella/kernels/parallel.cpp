// The thread pool behind parallel_for: oneTBB's, which composes with other libraries of the
// process.
#include "lamella/kernels/parallel.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>

#include "lamella/core/error.h"

namespace lamella {
namespace {

// An arena bounds the threads of what runs in it; it is made anew when their number changes.
struct Pool {
  std::mutex mutex;
  std::shared_ptr<tbb::task_arena> arena;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));

  std::shared_ptr<tbb::task_arena> get(int* count) {
    std::lock_guard<std::mutex> lock(mutex);
    *count = threads;
    if (!arena) arena = std::make_shared<tbb::task_arena>(threads);
    return arena;
  }
};
// Never destroyed: kernels may run while the process ends.
Pool& pool() {
  static Pool* instance = new Pool;
  return *instance;
}
thread_local bool inside = false;

struct InsideScope {
  bool before = inside;
  InsideScope() { inside = true; }
  ~InsideScope() { inside = before; }
};

}  // namespace

int get_num_threads() {
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  return p.threads;
}

void set_num_threads(int threads) {
  LAMELLA_CHECK_VALUE(threads >= 1, "set_num_threads: expected a positive number, got ", threads);
  Pool& p = pool();
  std::lock_guard<std::mutex> lock(p.mutex);
  if (threads != p.threads) p.arena.reset();
  p.threads = threads;
}

bool in_parallel_region() { return inside; }

namespace native::detail {

void parallel_for_erased(int64_t begin, int64_t end, int64_t grain, RangeFunction function,
                         void* context) {
  int threads = 1;
  std::shared_ptr<tbb::task_arena> arena;
  if (!inside) arena = pool().get(&threads);
  int64_t total = end - begin;
  int64_t parts = std::min<int64_t>(threads, total / std::max<int64_t>(grain, 1));
  if (parts <= 1) {
    function(context, begin, end);
    return;
  }
  int64_t size = (total + parts - 1) / parts;
  arena->execute([&] {
    tbb::parallel_for(
        int64_t{0}, parts,
        [&](int64_t part) {
          InsideScope scope;
          int64_t from = begin + part * size;
          int64_t to = std::min(end, from + size);
          if (from < to) function(context, from, to);
        },
        tbb::static_partitioner());
  });
}

}  // namespace native::detail
}  // namespace lamella
