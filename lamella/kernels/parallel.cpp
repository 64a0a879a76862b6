// The thread pool behind parallel_for.
//
// Note [The pool]
//   A call cuts its range into parts and registers a job. The caller and the job's workers take the
//   parts one by one, so a worker that gets no processor delays nothing: the caller runs all parts
//   that no worker has begun, and waits only for parts that are running. Each thread begins with a
//   share of its own, one stretch of the range, so that successive loops over the same data find it
//   in the cache of the same processor, and memory is read in order.
//   Workers are created when a job first needs them. If the system refuses another thread, the
//   existing ones do the work. A worker without a job spins for a moment and then sleeps. Waking a
//   sleeping thread takes some 50 microseconds, more than most operators, so programs that call
//   operators in quick succession need spinning workers, while programs that compute rarely, or on
//   busy processors, need sleeping ones. So a worker spins for as long as a wake-up is worth while
//   jobs come that quickly, and for half as long each time that none came, down to a negligible
//   time. Nothing here is ever destroyed, so a process may end while jobs run. A forked child
//   begins with an empty pool.
//   Another program's threads, if they are set, run the job in place of the workers: each of its
//   tasks is what a worker would do.
#include "lamella/kernels/parallel.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <new>

#include "lamella/abi/operators.h"
#include "lamella/abi/threads.h"
#include "lamella/core/error.h"
#include "lamella/core/float_mode.h"
#include "lamella/core/fork.h"
#include "lamella/core/interrupt.h"
#include "lamella/core/key_set.h"
#include "lamella/core/thread_count.h"

namespace lamella {
namespace {

using native::detail::RangeFunction;

// Parts for each thread; several, so that a slow thread runs fewer of them.
constexpr int64_t kPartsEach = 8;
// Grains after which the caller checks for an interrupt, and the most parts that this makes:
// foreign loops often have a grain of 1, whatever the work.
constexpr int64_t kGrainsUnchecked = 8;
constexpr int64_t kPartsChecked = 32;
// The most shares that a job's parts are divided into.
constexpr int kMaxShares = 16;
// How long a thread spins before it sleeps: Note [The pool].
constexpr std::chrono::microseconds kLongestWatch{200}, kShortestWatch{5}, kWatchForEnd{50};

// The C library loads the unwinder when a thread first calls pthread_exit(), and aborts the process
// if memory does not suffice. Unwinding one frame here loads it early.
[[maybe_unused]] const int unwinder_is_known = [] {
  void* frame;
  return backtrace(&frame, 1);
}();

std::atomic<int> set_threads{0};  // 0: not set

thread_local bool inside = false;
thread_local int thread_number = 0;  // among the threads of the job that it works for
thread_local struct Job* own_job = nullptr;
thread_local const lamella_host_threads* host_threads = nullptr;

// Parts that one thread runs first, and others after their own shares.
struct alignas(64) Share {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

// A loop that several threads divide among them.
struct Job {
  RangeFunction function = nullptr;
  void* context = nullptr;
  int64_t begin = 0, end = 0, size = 0;
  lamella_thread_state caller{};
  uint64_t subnormals = subnormal_mode();  // of the caller
  std::array<Share, kMaxShares> shares;
  int share_count = 1;
  std::atomic<int> running{0};  // workers inside; changed under the pool's lock
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // the first one
  int places = 0;            // for workers that have not come; under the pool's lock
  int came = 0;              // workers so far, each of which has this number; under the pool's lock
  Job* later = nullptr;
  Job* outer = own_job;

  void fail() {
    if (!failed.exchange(true)) error = std::current_exception();
    for (Share& share : shares) share.next.store(share.end, std::memory_order_relaxed);
  }
  void divide(int64_t parts, int64_t threads) {
    share_count = static_cast<int>(std::min<int64_t>(threads, kMaxShares));
    for (int i = 0; i < share_count; ++i) {
      shares[i].next.store(parts * i / share_count, std::memory_order_relaxed);
      shares[i].end = parts * (i + 1) / share_count;
    }
  }
  // `number` is 0 for the caller.
  void work(int number) {
    bool before = std::exchange(inside, true);
    try {
      for (int i = 0; i < share_count; ++i) {
        Share& share = shares[(number + i) % share_count];
        for (int64_t part;
             (part = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) {
          int64_t from = begin + part * size;
          int64_t to = end - from < size ? end : from + size;
          function(context, from, to);
          if (number == 0 && to != end) check_interrupt();
        }
      }
    } catch (...) {
      fail();
    }
    inside = before;
  }
  // A task of another program's threads, which may run on the caller.
  static void run_task(void* job, int32_t n) {
    const int before = std::exchange(thread_number, n);
    static_cast<Job*>(job)->work_for(lamella_thread, n);
    thread_number = before;
  }
  // Runs as a worker with this thread state: takes over the caller's keys and modes, except for
  // ThreadInit.
  void work_for(lamella_thread_state& state, int number) {
    constexpr uint64_t kStart =
        lamella::detail::functionality_bit(lamella::detail::Functionality::ThreadInit);
    lamella_thread_state before = state;
    auto take = [&](const lamella_thread_state& from) {
      state.included = (from.included & ~kStart) | (state.included & kStart);
      state.excluded = from.excluded;
      state.modes = from.modes;
    };
    take(caller);
    {
      SubnormalMode mode(subnormals);
      work(number);
    }
    take(before);
  }
};

using Clock = std::chrono::steady_clock;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until there is news or the time is over. Returns whether there is news.
template <class News>
bool watch(Clock::time_point end, News&& news) {
  constexpr int kLooksBetween = 32;  // looks at the clock
  do {
    for (int i = 0; i < kLooksBetween; ++i) {
      if (news()) return true;
      pause_briefly();
    }
  } while (Clock::now() < end);
  return false;
}

// Spins for the pool's lock: it is held only briefly, and a thread that sleeps for it wakes too
// late.
void take(std::unique_lock<std::mutex>& lock) {
  for (int i = 0; i < 100; ++i) {
    if (lock.try_lock()) return;
    pause_briefly();
  }
  lock.lock();
}

struct Pool {
  fork::Held<std::mutex> mutex{fork::Level::kCore};
  std::condition_variable more, done;
  Job* jobs = nullptr;            // those with places
  std::atomic<int> open_jobs{0};  // how many
  std::atomic<int> watching{0};   // workers that stay awake without a job
  int workers = 0, sleeping = 0;
  Clock::time_point refused{};  // the last time that the system refused a thread

  void start_workers(int wanted) {
    wanted = std::min(wanted, kMaxThreads - 1);
    if (workers >= wanted) return;
    auto now = Clock::now();
    if (now - refused < std::chrono::seconds(1)) return;
    // Workers block all signals, so that the program's own threads handle them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    while (workers < wanted) {
      pthread_t thread;
      if (pthread_create(&thread, &detached, &Pool::run_worker, this) != 0) {
        refused = now;
        break;
      }
      ++workers;
    }
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static void* run_worker(void* pool) { static_cast<Pool*>(pool)->serve(); }
  [[noreturn]] void serve() {
    std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
    Clock::duration moment = kLongestWatch;
    while (true) {
      auto idle = Clock::now();
      if (watching.fetch_add(1, std::memory_order_relaxed) < default_num_threads() - 1) {
        watch(idle + moment, [&] { return open_jobs.load(std::memory_order_relaxed) != 0; });
      }
      watching.fetch_sub(1, std::memory_order_relaxed);
      take(lock);
      while (jobs == nullptr) {
        ++sleeping;
        more.wait(lock);
        --sleeping;
      }
      moment = Clock::now() - idle < kLongestWatch
                   ? kLongestWatch
                   : std::max<Clock::duration>(moment / 2, kShortestWatch);
      Job& job = *jobs;
      job.running.fetch_add(1, std::memory_order_relaxed);
      thread_number = ++job.came;
      if (--job.places == 0) unlist(job);
      lock.unlock();
      job.work_for(lamella_thread, thread_number);
      take(lock);
      if (job.running.fetch_sub(1, std::memory_order_release) == 1) done.notify_all();
      lock.unlock();
    }
  }

  void list(Job& job) {
    job.later = jobs;
    jobs = &job;
    open_jobs.fetch_add(1, std::memory_order_relaxed);
  }
  void unlist(Job& job) {
    for (Job** at = &jobs; *at != nullptr; at = &(*at)->later) {
      if (*at != &job) continue;
      *at = job.later;
      open_jobs.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
  }

  // The condition variables are made anew, because threads that no longer exist may be waiting.
  void forget_workers() {
    new (&more) std::condition_variable;
    new (&done) std::condition_variable;
    jobs = nullptr;
    open_jobs.store(0, std::memory_order_relaxed);
    watching.store(0, std::memory_order_relaxed);
    workers = sleeping = 0;
    refused = {};
  }

  void run(Job& job) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      start_workers(job.places);
      job.places = std::min(job.places, workers);
      if (job.places != 0) list(job);
      for (int i = std::min(job.places, sleeping); i > 0; --i) more.notify_one();
    }
    own_job = &job;
    job.work(0);
    own_job = job.outer;
    std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
    take(lock);
    if (job.places != 0) unlist(job);
    if (job.running.load(std::memory_order_relaxed) == 0) return;
    lock.unlock();
    watch(Clock::now() + kWatchForEnd,
          [&] { return job.running.load(std::memory_order_acquire) == 0; });
    take(lock);
    while (job.running.load(std::memory_order_relaxed) != 0) done.wait(lock);
  }
};

Pool* the_pool = nullptr;

// In a forked child the workers do not exist, so the parts that they had taken are lost.
void begin_child() {
  for (Job* job = own_job; job != nullptr; job = job->outer) {
    if (job->running.exchange(0) == 0) continue;
    try {
      throw Error(
          "expected no fork inside of a parallel computation: the child process lacks its other "
          "threads");
    } catch (...) {
      job->fail();
    }
  }
  the_pool->forget_workers();
}

Pool& pool() {
  static Pool& one = []() -> Pool& {
    the_pool = new Pool;
    fork::in_child(&begin_child);
    return *the_pool;
  }();
  return one;
}
// It is made while the library is loaded: see Note [Forking].
[[maybe_unused]] const Pool& made_at_load = pool();

}  // namespace

int get_num_threads() {
  int threads = set_threads.load(std::memory_order_relaxed);
  return threads != 0 ? threads : default_num_threads();
}

void set_num_threads(int threads) {
  LAMELLA_CHECK_VALUE(threads >= 1 && threads <= kMaxThreads,
                      "set_num_threads: expected a number of threads from 1 to ", kMaxThreads,
                      ", got ", threads);
  set_threads.store(threads, std::memory_order_relaxed);
}

bool in_parallel_region() { return inside; }

namespace native::detail {

void parallel_for_erased(int64_t begin, int64_t end, int64_t grain, RangeFunction function,
                         void* context) {
  int64_t total = end - begin;
  int64_t grains = total / std::max<int64_t>(grain, 1);
  const lamella_host_threads* host = inside ? nullptr : host_threads;
  const int most = host != nullptr ? host->count(host->context) : get_num_threads();
  int64_t threads = inside ? 1 : std::min<int64_t>(most, grains);
  int64_t parts = std::max(std::min(grains, threads > 1 ? threads * kPartsEach : 1),
                           std::min(grains / kGrainsUnchecked, kPartsChecked));
  if (parts <= 1) {
    function(context, begin, end);
    return;
  }
  const int64_t size = total / parts + (total % parts != 0 ? 1 : 0);
  parts = total / size + (total % size != 0 ? 1 : 0);
  threads = std::min(threads, parts);
  if (threads <= 1) {
    for (int64_t from = begin; from != end;) {
      const int64_t to = end - from < size ? end : from + size;
      function(context, from, to);
      if (to != end) check_interrupt();
      from = to;
    }
    return;
  }
  Job job;
  job.function = function;
  job.context = context;
  job.begin = begin;
  job.end = end;
  job.size = size;
  job.divide(parts, threads);
  job.caller = lamella_thread;
  job.places = static_cast<int>(threads) - 1;
  if (host != nullptr) {
    host->run(host->context, static_cast<int32_t>(threads), &Job::run_task, &job);
  } else {
    pool().run(job);
  }
  if (job.failed.load(std::memory_order_relaxed)) std::rethrow_exception(job.error);
}

}  // namespace native::detail
}  // namespace lamella

lamella_status lamella_parallel_for(int64_t begin, int64_t end, int64_t grain,
                                    void (*function)(void*, int64_t, int64_t),
                                    void* context) noexcept {
  return lamella::detail::guarded([&] {
    if (begin < end) {
      lamella::native::detail::parallel_for_erased(begin, end, grain, function, context);
    }
  });
}
int32_t lamella_thread_count() noexcept { return lamella::get_num_threads(); }
lamella_status lamella_set_thread_count(int32_t threads) noexcept {
  return lamella::detail::guarded([&] { lamella::set_num_threads(threads); });
}
int32_t lamella_in_parallel_loop() noexcept { return lamella::in_parallel_region() ? 1 : 0; }
int32_t lamella_thread_number() noexcept { return lamella::thread_number; }
const lamella_host_threads* lamella_set_host_threads(const lamella_host_threads* threads) noexcept {
  return std::exchange(lamella::host_threads, threads);
}
