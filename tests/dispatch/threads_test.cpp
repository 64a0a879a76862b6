// Eight threads register, deregister and call at once. Meant for ThreadSanitizer as well.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "lamella/dispatch/registry.h"
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

// ---- Plans ----

std::atomic<int64_t> plans_alive{0};
struct KernelCount : OperatorPlan {
  explicit KernelCount(const OperatorEntry& op) {
    for (const auto& [key, list] : op.kernels) kernels += list.size();
    for (const std::string& tag : op.tags) tags += tag;
    plans_alive.fetch_add(1);
  }
  ~KernelCount() override { plans_alive.fetch_sub(1); }
  size_t kernels = 0;
  std::string tags;
};
PlanKind kernel_counts(OperatorChange::kKernels | OperatorChange::kDefined);
std::unique_ptr<KernelCount> count_kernels(OperatorEntry* op) {
  return std::make_unique<KernelCount>(*op);
}
PlanRef<KernelCount> plan_of(const lamella_operator* op) {
  return Registry::get().hold_plan<KernelCount>(op, kernel_counts, &count_kernels);
}

// What is asked after a registration has returned follows from it, whatever others do meanwhile;
// and what was replaced ends.
TEST(Threads, PlansFollowRegistrations) {
  Library m = fragment("plans");
  m.def("shared(int i) -> int", [](int64_t i) { return i; });
  std::atomic<int64_t> wrong{0};
  std::atomic<bool> stop{false};
  const lamella_operator* shared = find("plans::shared").impl();
  auto shared_call = find("plans::shared").typed<int64_t(int64_t)>();
  std::vector<std::thread> changers, readers;
  for (int t = 0; t < 4; ++t) {
    changers.emplace_back([&, t] {
      std::string own = "own" + std::to_string(t);
      for (int i = 0; i < 150; ++i) {
        Library define = fragment("plans");
        std::string tag = i % 2 == 0 ? "even" : "odd";
        define.def((own + "(int i) -> int").c_str(), tag.c_str());
        const lamella_operator* op = find(("plans::" + own).c_str()).impl();
        if (plan_of(op)->tags != tag || plan_of(op)->kernels != 0) wrong.fetch_add(1);
        {
          Library cpu = implementation("plans", DispatchKey::CPU);
          cpu.impl(own.c_str(), Checked(t));
          if (plan_of(op)->kernels != 1) wrong.fetch_add(1);
          Library more = implementation("plans", DispatchKey::CUDA);
          more.impl("shared", Checked(t));
        }
        if (plan_of(op)->kernels != 0) wrong.fetch_add(1);
        // What an unloaded library had, and has again when it is loaded again.
        Parked parked;
        int owner = 0;
        auto kernel = std::make_shared<KernelEntry>();
        kernel->boxed = fallthrough_kernel()->boxed;
        Registry::get().implement(&owner, "plans::" + own, DispatchKey::CUDA, kernel);
        Registry::get().remove(&owner, &parked);
        if (plan_of(op)->kernels != 0) wrong.fetch_add(1);
        Registry::get().resume(&owner, parked);
        if (plan_of(op)->kernels != 1) wrong.fetch_add(1);
        Registry::get().remove(&owner);
      }
    });
  }
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        if (shared_call.call(7) != 7) wrong.fetch_add(1);
        PlanRef<KernelCount> plan = plan_of(shared);
        if (plan->kernels < 1 || plan->kernels > 5) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : changers) thread.join();
  stop.store(true);
  for (std::thread& thread : readers) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  m.reset();
  EXPECT_EQ(plans_alive.load(), 0);
}

}  // namespace
}  // namespace lamella
