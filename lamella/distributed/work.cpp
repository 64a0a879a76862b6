// Started works, and the thread that advances them. See Note [Progress] in work.h.
#include "lamella/distributed/work.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "lamella/core/interrupt.h"
#include "lamella/distributed/debug.h"
#include "lamella/distributed/failure.h"

namespace lamella::distributed {
namespace {

struct Work {
  Work(const Collective& asked, const Group& group) : running(asked, group) {}
  Running running;
  MPI_Request request = MPI_REQUEST_NULL;
  // Guarded by the mutex, as is the error. Works on a device progress without the thread here.
  bool done = false;
  std::exception_ptr error;
};

std::mutex mutex;
std::condition_variable changed;
std::map<int64_t, std::shared_ptr<Work>> works;
int64_t last_number = 0;
bool stopping = false;
std::thread progress;

int64_t microseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

// Sleeps longer the longer there was no progress.
void rest(int64_t idle_since) {
  int64_t idle = microseconds_now() - idle_since;
  long length = idle < 5000 ? 20 : idle < 100000 ? 200 : 1000;
  timespec time{0, length * 1000};
  nanosleep(&time, nullptr);
}

// Advances every work; the mutex must be held. True if one completed.
bool look() {
  bool ended = false;
  for (auto& [number, work] : works) {
    if (work->done) continue;
    if (SharedSum* sum = work->running.shared()) {
      try {
        work->done = sum->advance();
      } catch (...) {
        work->error = std::current_exception();
        work->done = true;
      }
    } else {
      int flag = 0;
      MPI_Test(&work->request, &flag, MPI_STATUS_IGNORE);
      work->done = flag != 0;
    }
    ended = ended || work->done;
  }
  return ended;
}

bool any_under_way() {
  for (auto& [number, work] : works) {
    if (!work->done) return true;
  }
  return false;
}

void look_after_works() {
  prctl(PR_SET_TIMERSLACK, 1000UL);
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (!any_under_way()) {
      changed.wait(lock);
      continue;
    }
    int64_t since = microseconds_now();
    while (!stopping && any_under_way()) {
      if (look()) since = microseconds_now();
      lock.unlock();
      rest(since);
      lock.lock();
    }
  }
}

void ensure_progress() {
  if (progress.joinable()) return;
  stopping = false;
  // Signals are blocked here, so that the program's own threads handle them.
  sigset_t all, earlier;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &earlier);
  progress = std::thread(look_after_works);
  pthread_sigmask(SIG_SETMASK, &earlier, nullptr);
}

std::shared_ptr<Work> work_of(int64_t number, const char* op_name) {
  auto at = works.find(number);
  LAMELLA_CHECK(at != works.end(), op_name,
                ": expected 'work' to be one that was begun and not waited for, got ", number);
  return at->second;
}

}  // namespace

int64_t start(const Collective& asked) {
  const char* name = name_of(asked.kind);
  const Group& group = joined_group(asked.group, name);
  if (debug_mode()) agree(asked, group);
  AutoDispatchBelowAutograd below;
  auto work = std::make_shared<Work>(asked, group);
  work->running.post(&work->request);
  work->done = work->running.on_device();
  std::lock_guard lock(mutex);
  ensure_progress();
  works.emplace(++last_number, std::move(work));
  changed.notify_one();
  return last_number;
}

bool test(int64_t number) {
  std::lock_guard lock(mutex);
  auto work = work_of(number, "test");
  if (!work->done) look();
  return work->done && work->running.device_is_done();
}

void wait(int64_t number) {
  std::unique_lock lock(mutex);
  auto work = work_of(number, "wait");
  if (!work->done) {
    Inside inside(static_cast<int>(work->running.kind()), work->running.group().number == 0,
                  /*returns=*/true);
    int64_t since = microseconds_now();
    begin_interruptible_call();
    for (;;) {
      look();
      if (work->done) break;
      lock.unlock();
      // The first 50 µs are polled, so that short works are not delayed by a sleep.
      if (microseconds_now() - since < 50) {
        std::this_thread::yield();
      } else {
        check_interrupt();
        rest(since);
      }
      lock.lock();
    }
  }
  works.erase(number);
  lock.unlock();
  if (work->error) std::rethrow_exception(work->error);
  work->running.finish();
}

void wait_for_all_works() {
  for (;;) {
    int64_t number = 0;
    {
      std::lock_guard lock(mutex);
      if (works.empty()) return;
      number = works.begin()->first;
    }
    wait(number);
  }
}

void stop_progress() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
    changed.notify_one();
  }
  if (progress.joinable()) progress.join();
}

bool wait_for(MPI_Request* request, double seconds) {
  int64_t since = microseconds_now();
  begin_interruptible_call();
  for (;;) {
    int flag = 0;
    MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    if (flag != 0) return true;
    int64_t passed = microseconds_now() - since;
    if (static_cast<double>(passed) > seconds * 1e6) return false;
    if (passed < 50) {
      std::this_thread::yield();
    } else {
      check_interrupt();
      rest(since);
    }
  }
}

}  // namespace lamella::distributed
