// Eight threads register, deregister and call at once. Meant for ThreadSanitizer as well.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/dispatch/helpers.h"

namespace lamella {
namespace {

using T = TensorBase;

// A kernel whose state turns invalid when it is destroyed: a call that outlives it would notice.
struct Checked {
  explicit Checked(int64_t value) : value(std::make_shared<std::atomic<int64_t>>(value)) {}
  Checked(const Checked& other)
      : value(std::make_shared<std::atomic<int64_t>>(other.value->load())) {}
  ~Checked() { value->store(-1); }
  int64_t operator()(int64_t i) const {
    int64_t v = value->load();
    return v < 0 ? -1 : v + i;
  }
  std::shared_ptr<std::atomic<int64_t>> value;
};

TEST(Threads, RegisterDeregisterAndCall) {
  Library m = fragment("threads");
  m.def("f(int i) -> int");
  Library base = implementation("threads", DispatchKey::CompositeExplicitAutograd);
  base.impl("f", [](int64_t i) { return i; });
  std::atomic<bool> stop{false};
  std::atomic<int64_t> calls{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 5; ++t) {
    threads.emplace_back([&] {
      auto op = find("threads::f").typed<int64_t(int64_t)>();
      while (!stop.load(std::memory_order_relaxed)) {
        int64_t got = op.call(1);
        if (got != 1 && got != 101) wrong.fetch_add(1);
        calls.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        Library cpu = implementation("threads", DispatchKey::CPU);
        cpu.impl("f", Checked(100));
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < 100; ++i) {
      Library other = fragment("threads_other");
      std::string name = "g" + std::to_string(i);
      other.def((name + "(int i) -> int").c_str(), [](int64_t v) { return v; });
      if (find(("threads_other::" + name).c_str()).typed<int64_t(int64_t)>().call(7) != 7) {
        wrong.fetch_add(1);
      }
    }
  });
  for (size_t t = 5; t < threads.size(); ++t) threads[t].join();
  stop.store(true);
  for (size_t t = 0; t < 5; ++t) threads[t].join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_GT(calls.load(), 0);
}

}  // namespace
}  // namespace lamella
