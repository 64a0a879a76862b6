// The thread pool: coverage, exceptions, nesting, interrupts, forks.
#include "lamella/kernels/parallel.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include "lamella/core/allocator.h"
#include "lamella/core/interrupt.h"
#include "lamella/dispatch/guards.h"
#include "tests/core/testing.h"

namespace lamella {
namespace {

using native::parallel_for;

struct Threads {
  int before = get_num_threads();
  explicit Threads(int count) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
};

void wait_until(const std::atomic<int>& count, int wanted) {
  for (int i = 0; i < 5000 && count < wanted; ++i) usleep(1000);
}

// The exit status of a child that runs f().
template <class F>
int in_child(F&& f) {
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(f());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
int count_in_parallel() {
  std::atomic<int> sum{0};
  parallel_for(0, 100, 1,
               [&](int64_t begin, int64_t end) { sum += static_cast<int>(end - begin); });
  return sum;
}

// What runs before a fork while the locks of Note [Forking] are held: it was registered before the
// library's own function, and such functions run in reverse order.
std::atomic<bool> user_waits{false}, locks_are_held{false};
[[gnu::constructor(101)]] void register_before_the_library() {
  auto let_the_user_begin = [] {
    if (!user_waits) return;
    locks_are_held = true;
    usleep(100'000);
  };
  pthread_atfork(let_the_user_begin, nullptr, nullptr);
}

#ifndef __SANITIZE_THREAD__  // which takes a mutex that the child makes anew for the parent's
// This test is the first of the file: a process that is forked here has not computed in parallel
// yet, nor allocated a large block. Its thread does both for the first time in the middle of a
// fork.
TEST(Parallel, IsFirstUsedWhileAnotherThreadForks) {
  Threads set(2);
  auto use = [] {
    cpu_free(cpu_allocate(size_t{4} << 20), size_t{4} << 20);
    return count_in_parallel() == 100 ? 0 : 1;
  };
  auto fork_beside_a_user = [&] {
    user_waits = true;
    std::thread user([&] {
      while (!locks_are_held) std::this_thread::yield();
      use();
    });
    int status = in_child(use);
    user.join();
    return status;
  };
  EXPECT_EQ(in_child(fork_beside_a_user), 0);
}
#endif

TEST(Parallel, CoversAnyRangeOnce) {
  for (int threads : {1, 2, 5}) {
    Threads set(threads);
    for (int64_t grain : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{1000}, INT64_MAX}) {
      for (int64_t total : {0, 1, 2, 999, 70001}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(total));
        parallel_for(-5, total - 5, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i + 5)];
        });
        for (auto& count : seen) ASSERT_EQ(count, 1) << threads << ' ' << grain << ' ' << total;
      }
    }
  }
  parallel_for(3, -3, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(Parallel, MakesFewPartsWhateverTheGrain) {
  for (int threads : {1, 2, 3}) {
    Threads set(threads);
    std::atomic<int> parts{0};
    parallel_for(0, 10000000, 1, [&](int64_t, int64_t) { ++parts; });
    EXPECT_LE(parts, 32);
    EXPECT_GE(parts, threads);
  }
}

TEST(Parallel, BeginsWithAShareForEachThread) {
  Threads set(2);
  std::mutex mutex;
  std::map<std::thread::id, int64_t> first;
  std::atomic<int> here{0};
  parallel_for(0, 64, 1, [&](int64_t begin, int64_t) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (first.try_emplace(std::this_thread::get_id(), begin).second) ++here;
    }
    wait_until(here, 2);  // neither goes on before the other has begun
  });
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first.at(std::this_thread::get_id()), 0);
  first.erase(std::this_thread::get_id());
  EXPECT_EQ(first.begin()->second, 32);
}

TEST(Parallel, TakesNumbersWithinBounds) {
  Threads set(4096);
  EXPECT_EQ(get_num_threads(), 4096);
  for (int bad : {0, -1, 4097, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(
        error_of<ValueError>([&] { set_num_threads(bad); }),
        "set_num_threads: expected a number of threads from 1 to 4096, got " + std::to_string(bad));
  }
  EXPECT_EQ(get_num_threads(), 4096);
}

TEST(Parallel, UsesAsManyThreadsAsAsked) {
  Threads set(4);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::atomic<int> here{0};
  parallel_for(0, 4, 1, [&](int64_t, int64_t) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      ids.insert(std::this_thread::get_id());
    }
    ++here;
    wait_until(here, 4);  // all four parts run at once
  });
  EXPECT_EQ(ids.size(), 4u);
}

TEST(Parallel, KeepsTheKindOfAnException) {
  Threads set(4);
  auto from_worker = [](auto error) {
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> here{0};
    parallel_for(0, 4, 1, [&](int64_t, int64_t) {
      ++here;
      wait_until(here, 4);
      if (std::this_thread::get_id() != caller) throw error;
    });
  };
  EXPECT_EQ(error_of<IndexError>([&] { from_worker(IndexError("far")); }), "far");
  EXPECT_EQ(error_of<LinAlgError>([&] { from_worker(LinAlgError("singular")); }), "singular");
  EXPECT_THROW(from_worker(std::bad_alloc()), std::bad_alloc);
  EXPECT_THROW(from_worker(5), int);
  EXPECT_EQ(error_of<ValueError>([] {
              parallel_for(0, 1000, 1, [](int64_t begin, int64_t) {
                if (begin == 0) throw ValueError("first");
              });
            }),
            "first");
  // Nothing of it is left.
  std::atomic<int64_t> sum{0};
  parallel_for(0, 1000, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 1000);
  EXPECT_FALSE(in_parallel_region());
}

TEST(Parallel, IsSerialInside) {
  Threads set(3);
  std::atomic<int64_t> sum{0};
  parallel_for(0, 30, 1, [&](int64_t begin, int64_t end) {
    std::thread::id outer = std::this_thread::get_id();
    EXPECT_TRUE(in_parallel_region());
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(0, 1000, 1, [&](int64_t b, int64_t e) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        sum += e - b;
      });
      EXPECT_EQ(
          error_of([] { parallel_for(0, 100, 1, [](int64_t, int64_t) { throw Error("inner"); }); }),
          "inner");
    }
  });
  EXPECT_EQ(sum, 30 * 1000);
}

TEST(Parallel, GivesWorkersTheCallersState) {
  Threads set(4);
  ExcludeDispatchKeyGuard without{DispatchKey::Conjugate};
  uint64_t excluded = lamella_thread.excluded;
  std::atomic<int> here{0}, same{0};
  parallel_for(0, 4, 1, [&](int64_t, int64_t) {
    ++here;
    wait_until(here, 4);
    if (lamella_thread.excluded == excluded) ++same;
  });
  EXPECT_EQ(same, 4);
}

TEST(Parallel, ServesManyCallersWhileTheNumberChanges) {
  Threads set(3);
  std::atomic<bool> stop{false};
  std::thread changing([&] {
    for (int i = 0; !stop; ++i) set_num_threads(1 + i % 7);
  });
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        parallel_for(0, 64, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  stop = true;
  changing.join();
  EXPECT_EQ(sum, 4 * 500 * 64);
}

TEST(Parallel, LooksForInterruptsBetweenParts) {
  for (int threads : {1, 3}) {
    Threads set(threads);
    set_interrupt_function(
        []() -> lamella_status { return lamella_fail(LAMELLA_ERROR, "stop", 4); });
    begin_interruptible_call();
    std::atomic<int> parts{0};
    EXPECT_EQ(error_of([&] {
                parallel_for(0, 1000000, 1, [&](int64_t, int64_t) {
                  ++parts;
                  usleep(20000);
                });
              }),
              "stop");
    EXPECT_LT(parts, 20);
    set_interrupt_function(nullptr);
  }
}

TEST(Parallel, WorksInAForkedChild) {
  Threads set(4);
  EXPECT_EQ(count_in_parallel(), 100);
  EXPECT_EQ(in_child(count_in_parallel), 100);
  EXPECT_EQ(in_child([] { return in_child(count_in_parallel); }), 100);
  // While other threads are inside.
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      while (!stop) count_in_parallel();
    });
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(in_child(count_in_parallel), 100);
  stop = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(count_in_parallel(), 100);
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // whose own memory would be refused
TEST(Parallel, AThreadEndsWhereMemoryIsExhausted) {
  static std::atomic<bool> exhausted;
  exhausted = false;
  EXPECT_EQ(in_child([] {
              pthread_t thread;
              auto body = [](void*) -> void* {
                while (!exhausted) usleep(1000);
                pthread_exit(nullptr);
              };
              if (pthread_create(&thread, nullptr, body, nullptr) != 0) return 1;
              usleep(10000);  // it is running, and has its stack
              const rlimit none{1, 1};
              setrlimit(RLIMIT_AS, &none);
              for (size_t bytes = 1 << 20; bytes >= 16; bytes /= 2) {
                while (std::malloc(bytes) != nullptr) {
                }
              }
              exhausted = true;
              return pthread_join(thread, nullptr);
            }),
            0);
}
#endif

TEST(Parallel, AForkInsideFailsInTheChildAlone) {
  Threads set(2);
  pid_t child = -1;
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> here{0};
  std::string text = error_of([&] {
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      ++here;
      wait_until(here, 2);
      if (std::this_thread::get_id() == caller) {
        child = fork();
      } else {
        usleep(200000);  // is at work meanwhile
      }
    });
  });
  if (child == 0) {
    _exit(text == "expected no fork inside of a parallel computation: the child process lacks its "
                  "other threads"
              ? 0
              : 1);
  }
  EXPECT_EQ(text, "no exception");
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lamella
