// Several threads run backward at once: on separate graphs, on one shared graph, and while others
// record. Meant for the thread sanitizer.
#include <thread>

#include "tests/layers/autograd/testing.h"

namespace lamella {
namespace {

using autograd::AutogradContext;
using autograd::variable_list;

struct Cube : autograd::Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    Tensor x = ctx->get_saved_variables()[0];
    return {times(x * x, 3) * grads[0]};
  }
};

constexpr int kThreads = 4;
constexpr int kRounds = 50;

template <class F>
void on_threads(F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, GraphsOfTheirOwn) {
  on_threads([](int i) {
    for (int round = 0; round < kRounds; ++round) {
      Tensor x = leaf({static_cast<double>(i)});
      times(Cube::apply(x), 2).backward();
      EXPECT_EQ(numbers(x.grad()), Numbers({6.0 * i * i}));
    }
  });
}

// All add to the gradient of one leaf.
TEST(Threads, OneLeaf) {
  Tensor x = leaf({2});
  on_threads([&](int) {
    for (int round = 0; round < kRounds; ++round) times(Cube::apply(x), 2).backward();
  });
  EXPECT_EQ(numbers(x.grad()), Numbers({24.0 * kThreads * kRounds}));
}

// All run the same graph, which is kept.
TEST(Threads, OneGraph) {
  Tensor x = leaf({2});
  Tensor y = times(Cube::apply(times(x, 3)), 2);
  on_threads([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      Tensor grad = autograd::grad({y}, {x}, {}, true)[0];
      EXPECT_EQ(numbers(grad), Numbers({2 * 3 * 36 * 3}));
    }
  });
}

// All run the same graph and free it: one of them may be told that it is gone, nothing else.
TEST(Threads, OneGraphThatIsFreed) {
  for (int round = 0; round < kRounds; ++round) {
    Tensor x = leaf({2});
    Tensor y = times(Cube::apply(times(x, 3)), 2);
    std::atomic<int> done = 0, refused = 0;
    on_threads([&](int) {
      try {
        y.backward();
        ++done;
      } catch (const Error&) {
        ++refused;
      }
    });
    EXPECT_GE(done, 1);
    EXPECT_EQ(done + refused, kThreads);
  }
}

TEST(Threads, ModesAreTheirOwn) {
  Tensor x = leaf({2});
  on_threads([&](int i) {
    for (int round = 0; round < kRounds; ++round) {
      AutoGradMode mode(i % 2 == 0);
      EXPECT_EQ((times(x, 2)).requires_grad(), i % 2 == 0);
    }
  });
}

}  // namespace
}  // namespace lamella
