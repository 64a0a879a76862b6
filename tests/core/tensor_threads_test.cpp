// Reference counts and pools under many threads.
#include <atomic>
#include <thread>

#include "testing.h"

namespace {

using namespace lamella;

constexpr int kThreads = 8;

template <class F>
void in_threads(F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(f, i);
  for (std::thread& t : threads) t.join();
}

TEST(TensorThreads, SharedReferences) {
  std::atomic<int> deleted{0};
  auto count = [](void* context) { ++*static_cast<std::atomic<int>*>(context); };
  float data[1] = {};
  for (int round = 0; round < 200; ++round) {
    TensorBase shared = make_from_blob(data, {1}, {}, kFloat, kCPU, count, &deleted);
    std::vector<TensorBase> own(kThreads, shared);
    shared.reset();
    in_threads([&](int i) {
      for (int k = 0; k < 50; ++k) {
        TensorBase copy = own[static_cast<size_t>(i)];
        TensorBase view = make_view(copy, {1}, {1}, 0);
      }
      own[static_cast<size_t>(i)].reset();
    });
    ASSERT_EQ(deleted.load(), round + 1);
  }
}

TEST(TensorThreads, WeakAndStrongRace) {
  for (int round = 0; round < 300; ++round) {
    TensorBase strong = floats({4});
    std::vector<WeakTensorRef> weak(kThreads, WeakTensorRef(strong));
    std::atomic<bool> go{false};
    std::thread owner([&] {
      while (!go.load()) {
      }
      strong.reset();
    });
    in_threads([&](int i) {
      go = true;
      WeakTensorRef mine = std::move(weak[static_cast<size_t>(i)]);
      for (int k = 0; k < 20; ++k) {
        TensorBase t = mine.lock();
        if (t.defined()) {
          ASSERT_EQ(t.numel(), 4);
        }
      }
    });
    owner.join();
  }
}

// The first weak references of a tensor made by several threads at once.
TEST(TensorThreads, FirstWeakReferences) {
  for (int round = 0; round < 300; ++round) {
    TensorBase strong = floats({4});
    in_threads([&](int) {
      WeakTensorRef weak(strong);
      ASSERT_TRUE(weak.lock().defined());
    });
    EXPECT_EQ(strong.use_count(), 1u);
    EXPECT_EQ(strong.impl()->weak_references, 1u);
  }
}

TEST(TensorThreads, TensorsEndOnOtherThreads) {
  std::vector<std::vector<TensorBase>> made(kThreads);
  for (int round = 0; round < 20; ++round) {
    in_threads([&](int i) {
      for (int k = 0; k < 300; ++k) {
        made[static_cast<size_t>(i)].push_back(floats({1 + (k % 7) * 100}));
        made[static_cast<size_t>(i)].back().data_ptr<float>()[0] = static_cast<float>(i);
      }
    });
    in_threads([&](int i) {
      auto& mine = made[static_cast<size_t>((i + 1) % kThreads)];
      for (const TensorBase& t : mine) {
        ASSERT_EQ(t.data_ptr<float>()[0], static_cast<float>((i + 1) % kThreads));
      }
      mine.clear();
    });
  }
}

// Words are stepped alike before and after a second thread was started.
TEST(TensorThreads, StepsOfSharedWords) {
  auto steps = [] {
    uint32_t count = 1;
    detail::count_up(&count);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(detail::count_down(&count), 1u);
    EXPECT_TRUE(detail::count_up_unless_zero(&count));
    EXPECT_EQ(count, 2u);
    uint32_t expected = 5;
    EXPECT_FALSE(detail::replace_value(&count, &expected, 7u));
    EXPECT_EQ(expected, 2u);
    EXPECT_TRUE(detail::replace_value(&count, &expected, 0u));
    EXPECT_FALSE(detail::count_up_unless_zero(&count));
    EXPECT_EQ(count, 0u);
    TensorBase tensor = floats({2});
    WeakTensorRef weak(tensor);
    EXPECT_EQ(weak.lock().use_count(), 2u);
    EXPECT_EQ(tensor.use_count(), 1u);
    tensor.reset();
    EXPECT_FALSE(weak.lock().defined());
  };
  steps();
  std::thread(steps).join();
  steps();
}

}  // namespace
