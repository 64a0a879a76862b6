// Allocators: alignment, reuse, statistics, replacement.
#include "lamella/core/allocator.h"

#include <cstring>
#include <set>
#include <thread>

#include "lamella/core/memory_pool.h"
#include "testing.h"

namespace {

using namespace lamella;

const std::vector<size_t> kSizes = {1,    63,     64,      65,      1000,    1024,    1025,
                                    5000, 100000, 1048576, 1048577, 3000000, 4194304, 10000000};

TEST(Allocator, AlignedWritableAndDistinct) {
  std::vector<std::pair<char*, size_t>> blocks;
  for (int round = 0; round < 3; ++round) {
    for (size_t size : kSizes) {
      auto* p = static_cast<char*>(cpu_allocate(size));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u) << size;
      std::memset(p, static_cast<int>(blocks.size()), size);
      blocks.emplace_back(p, size);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    auto [p, size] = blocks[i];
    ASSERT_EQ(p[0], static_cast<char>(i));
    ASSERT_EQ(p[size - 1], static_cast<char>(i));
    cpu_free(p, size);
  }
  EXPECT_EQ(cpu_allocate(0), nullptr);
  cpu_free(nullptr, 0);
}

TEST(Allocator, SizeClasses) {
  for (size_t bytes = 1; bytes <= detail::kPoolLimit; bytes += bytes < 4096 ? 1 : 509) {
    int index = detail::pool_class(bytes);
    ASSERT_GE(index, 0);
    ASSERT_LT(index, detail::kPoolClasses);
    ASSERT_GE(detail::pool_class_bytes(index), bytes);
    if (index > 0) {
      ASSERT_LT(detail::pool_class_bytes(index - 1), bytes);
    }
    ASSERT_EQ(detail::pool_class(detail::pool_class_bytes(index)), index);
  }
}

TEST(Allocator, CountsBytesInUse) {
  int64_t before = cpu_memory_statistics().bytes_in_use;
  std::vector<void*> blocks;
  for (size_t size : kSizes) blocks.push_back(cpu_allocate(size));
  int64_t during = cpu_memory_statistics().bytes_in_use - before;
  int64_t asked = 0;
  for (size_t size : kSizes) asked += static_cast<int64_t>(size);
  EXPECT_GE(during, asked);
  EXPECT_LE(during, asked + asked / 2 + 4096);
  // Freed on another thread, they are no longer in use all the same.
  std::thread([&] {
    for (size_t i = 0; i < kSizes.size(); ++i) cpu_free(blocks[i], kSizes[i]);
  }).join();
  EXPECT_EQ(cpu_memory_statistics().bytes_in_use, before);
}

#if !LAMELLA_POOL_BYPASS
TEST(Allocator, ReusesBlocks) {
  for (size_t size : {size_t{64}, size_t{500}, size_t{5000}, size_t{3000000}}) {
    void* first = cpu_allocate(size);
    cpu_free(first, size);
    uint64_t system = cpu_memory_statistics().system_allocations;
    for (int i = 0; i < 100; ++i) {
      void* again = cpu_allocate(size);
      EXPECT_EQ(again, first) << size;
      cpu_free(again, size);
    }
    EXPECT_EQ(cpu_memory_statistics().system_allocations, system) << size;
  }
}

TEST(Allocator, ThreadsReturnTheirCaches) {
  empty_cpu_cache();
  void* block = nullptr;
  std::thread([&] {
    block = cpu_allocate(777);
    cpu_free(block, 777);
  }).join();
  // A new thread finds it in the centre.
  void* again = nullptr;
  std::thread([&] {
    again = cpu_allocate(777);
    cpu_free(again, 777);
  }).join();
  EXPECT_EQ(again, block);
}

TEST(Allocator, EmptyCacheGivesEverythingBack) {
  std::vector<void*> blocks;
  for (size_t size : kSizes) blocks.push_back(cpu_allocate(size));
  for (size_t i = 0; i < kSizes.size(); ++i) cpu_free(blocks[i], kSizes[i]);
  EXPECT_GT(cpu_memory_statistics().bytes_cached, 10000000);
  empty_cpu_cache();
  EXPECT_EQ(cpu_memory_statistics().bytes_cached, 0);
}

TEST(Allocator, LargeCacheIsBounded) {
  empty_cpu_cache();
  size_t before = set_cpu_cache_limit(8 << 20);
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(cpu_allocate(4 << 20));
  for (void* p : blocks) cpu_free(p, 4 << 20);
  EXPECT_EQ(cpu_memory_statistics().bytes_cached, 8 << 20);
  set_cpu_cache_limit(0);
  EXPECT_EQ(cpu_memory_statistics().bytes_cached, 0);
  set_cpu_cache_limit(before);
}

TEST(Allocator, ManyBlocksOfOneClassGoToTheCentre) {
  empty_cpu_cache();
  std::vector<void*> blocks;
  for (int i = 0; i < 5000; ++i) blocks.push_back(cpu_allocate(100));
  EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 5000u);
  for (void* p : blocks) cpu_free(p, 100);
  uint64_t system = cpu_memory_statistics().system_allocations;
  for (void*& p : blocks) p = cpu_allocate(100);
  EXPECT_EQ(cpu_memory_statistics().system_allocations, system);
  for (void* p : blocks) cpu_free(p, 100);
}
#endif

class CountingAllocator final : public Allocator {
 public:
  void* allocate(size_t bytes, DeviceIndex index, void** context) override {
    ++live;
    last_index = index;
    *context = this;
    return ::operator new(bytes, std::align_val_t{64});
  }
  void deallocate(void* data, size_t, DeviceIndex, void* context) noexcept override {
    --live;
    EXPECT_EQ(context, this);
    ::operator delete(data, std::align_val_t{64});
  }
  int live = 0;
  DeviceIndex last_index = -2;
};

TEST(Allocator, CanBeReplaced) {
  CountingAllocator counting;
  TensorBase old = floats({4});
  Allocator* before = set_allocator(kCPU, &counting);
  TensorBase fresh = floats({4});
  EXPECT_EQ(counting.live, 1);
  EXPECT_EQ(get_allocator(kCPU), &counting);
  set_allocator(kCPU, nullptr);
  EXPECT_EQ(get_allocator(kCPU), before);
  fresh.reset();  // freed by the allocator that made it
  EXPECT_EQ(counting.live, 0);
}

TEST(Allocator, ServesOtherDevices) {
  CountingAllocator counting;
  set_allocator(DeviceType::PrivateUse1, &counting);
  {
    TensorBase t = make_empty({4}, kFloat, Device(kPrivateUse1, 2));
    EXPECT_EQ(counting.live, 1);
    EXPECT_EQ(counting.last_index, 2);
    EXPECT_EQ(t.device(), Device("privateuseone:2"));
    EXPECT_EQ(t.key_set(), default_key_set(kPrivateUse1));
  }
  EXPECT_EQ(counting.live, 0);
  set_allocator(DeviceType::PrivateUse1, nullptr);
  EXPECT_THROW(make_empty({4}, kFloat, kPrivateUse1), NotImplementedError);
}

}  // namespace
