// Eight threads call, register, deregister, differentiate, trace, functionalize and vmap one
// operator. Meant for the thread sanitizer. Note [Plans] in lamella/dispatch/operator_plan.h.
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "lamella/layers/functionalize/functionalize.h"
#include "lamella/layers/trace/recorder.h"
#include "tests/layers/vmap/testing.h"

namespace lamella {
namespace {

lamella_status triple_backward(const lamella_backward* call) {
  Tensor grad(TensorBase::borrow(call->grads[0]));
  call->results[0] = (grad * 3).unsafe_release();
  return LAMELLA_OK;
}
constexpr uint16_t kSlots[] = {0};
constexpr lamella_derivative kTriple = [] {
  lamella_derivative made = {};
  made.name = "TripleBackward";
  made.backward = &triple_backward;
  made.slots = kSlots;
  made.slot_count = 1;
  made.differentiable_returns = 1;
  return made;
}();

class Stress : public ::testing::Test {
 protected:
  Stress() {
    m_.def("triple(Tensor x) -> Tensor", "batching:pointwise");
    m_.def("triple_(Tensor(a!) x) -> Tensor(a!)", "batching:pointwise");
    cpu_.impl("triple", [](const Tensor& x) { return x.mul(3); });
    cpu_.impl("triple_", [](Tensor& x) -> Tensor& { return x.mul_(3); });
  }
  static auto triple() {
    return Dispatcher::singleton()
        .findSchemaOrThrow("plans::triple", "")
        .typed<Tensor(const Tensor&)>();
  }
  // Runs `body` again and again on a thread of its own, until all of `rounds` are over elsewhere.
  template <class F>
  void on_thread(F body) {
    threads_.emplace_back([this, body] {
      while (!stop_.load(std::memory_order_relaxed)) {
        try {
          body();
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex_);
          failures_.insert(error.what());
        }
      }
    });
  }
  template <class F>
  void on_thread(int rounds, F body) {
    changers_.emplace_back([this, rounds, body] {
      for (int i = 0; i < rounds; ++i) body(i);
    });
  }
  void finish() {
    for (std::thread& thread : changers_) thread.join();
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
    EXPECT_EQ(failures_, std::set<std::string>());
  }

  Library m_{Library::DEF, "plans", std::nullopt, "test.cpp", 1};
  Library cpu_{Library::IMPL, "plans", DispatchKey::CPU, "test.cpp", 2};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::set<std::string> failures_;
  std::vector<std::thread> threads_, changers_;
};

TEST_F(Stress, EverythingAtOnce) {
  on_thread([] { EXPECT_EQ(numbers(triple().call(make({1, 2}))), Numbers({3, 6})); });
  on_thread([] {
    Mapped map(2);
    EXPECT_EQ(numbers(map.out(triple().call(map.in(make({1, 2, 3, 4}, {2, 2}))))),
              Numbers({3, 6, 9, 12}));
  });
  on_thread([] {
    Tensor x = make({1, 2});
    tracing::Recorder recorder;
    recorder.add_input("x", x);
    recorder.start();
    Tensor y = triple().call(x);
    recorder.stop();
    tracing::Graph graph = recorder.finish(std::vector<TensorBase>{y});
    EXPECT_NE(graph.str().find("plans::triple"), std::string::npos);
    EXPECT_EQ(numbers(Tensor(graph.run({make({5, 6})})[0])), Numbers({15, 18}));
  });
  on_thread([] {
    Tensor x = leaf({1, 2});
    Tensor y = triple().call(x);
    // With or without the derivative that comes and goes, at the call or at the backward.
    try {
      y.sum().backward();
      EXPECT_EQ(numbers(x.grad()), Numbers({3, 3}));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("plans::triple: "), std::string::npos)
          << error.what();
    }
  });
  on_thread(150, [](int) {
    Library cuda(Library::IMPL, "plans", DispatchKey::CUDA, "test.cpp", 3);
    cuda.impl("triple", [](const Tensor& x) { return x; });
    Library composite(Library::IMPL, "plans", DispatchKey::CompositeExplicitAutograd, "test.cpp",
                      4);
    composite.impl("triple", [](const Tensor& x) { return x.mul(3); });
  });
  on_thread(150, [](int) {
    Library derivative(Library::IMPL, "plans", std::nullopt, "test.cpp", 5);
    derivative.derivative("triple", &kTriple);
    Tensor x = leaf({1});
    triple().call(x).sum().backward();
    EXPECT_EQ(numbers(x.grad()), Numbers({3}));
  });
  on_thread(150, [](int i) {
    Library other(Library::FRAGMENT, "plans", std::nullopt, "test.cpp", 6);
    std::string name = "other" + std::to_string(i % 3);
    other.def((name + "(Tensor x) -> Tensor").c_str(), [](const Tensor& x) { return x + 1; });
    auto op = Dispatcher::singleton()
                  .findSchemaOrThrow(("plans::" + name).c_str(), "")
                  .typed<Tensor(const Tensor&)>();
    EXPECT_EQ(numbers(op.call(make({1}))), Numbers({2}));
  });
  on_thread(150, [](int) {
    Tensor given = make({1, 2});
    functionalize::Session* session = functionalize::begin(false);
    std::vector<TensorBase> wrapped = functionalize::wrap_arguments(session, {given});
    Tensor x(wrapped[0]);
    Dispatcher::singleton()
        .findSchemaOrThrow("plans::triple_", "")
        .typed<Tensor&(Tensor&)>()
        .call(x);
    functionalize::finish(session, {x});
    functionalize::end(session);
    EXPECT_EQ(numbers(given), Numbers({3, 6}));
  });
  finish();
}

}  // namespace
}  // namespace lamella
