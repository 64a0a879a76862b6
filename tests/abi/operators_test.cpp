// Operators of a loaded library, and derivatives by what they save: lamella/abi/operators.h.
#include "lamella/abi/operators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "lamella/abi/loading.h"
#include "lamella/abi/vmap.h"
#include "lamella/lamella.h"
#include "lamella/parallel.h"

namespace lamella {
namespace {

lamella_status note(void* context, const lamella_operator* op) {
  static_cast<std::vector<std::string>*>(context)->push_back(op->name);
  return LAMELLA_OK;
}
lamella_status refuse(void* context, const lamella_operator*) {
  ++*static_cast<int*>(context);
  return lamella_fail(LAMELLA_VALUE_ERROR, "enough", 6);
}

TEST(OperatorsOfALibrary, AreVisitedInOrder) {
  void* handle = nullptr;
  ASSERT_EQ(lamella_load_library(LAMELLA_TEST_EXTENSION, &handle), LAMELLA_OK);
  std::vector<std::string> names;
  ASSERT_EQ(lamella_visit_operators(handle, &note, &names), LAMELLA_OK);
  EXPECT_EQ(names, (std::vector<std::string>{"abi_extension::scale", "abi_extension::total",
                                             "abi_extension::both", "abi_extension::count"}));
  int calls = 0;
  EXPECT_EQ(lamella_visit_operators(handle, &refuse, &calls), LAMELLA_VALUE_ERROR);
  EXPECT_EQ(calls, 1);
  EXPECT_STREQ(lamella_error_text(), "enough");
  EXPECT_EQ(lamella_unload_library(handle), LAMELLA_OK);
  EXPECT_EQ(lamella_visit_operators(nullptr, &note, &names), LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(),
               "visit_operators: expected the handle of a library that is loaded");
}

const lamella_operator* find(const char* name, const char* overload) {
  const lamella_operator* op = nullptr;
  detail::check(lamella_find_operator(name, overload, &op));
  return op;
}
lamella_value value_of(const Tensor& t) {
  lamella_value value = {};
  value.tag = LAMELLA_TENSOR;
  value.as.tensor = t.impl();
  return value;
}
Tensor of(std::vector<double> numbers) {
  Tensor made = lamella::empty({static_cast<int64_t>(numbers.size())}, lamella::kDouble);
  std::copy(numbers.begin(), numbers.end(), made.mutable_data_ptr<double>());
  return made;
}
Tensor owned(lamella_tensor* t) { return Tensor(TensorBase::adopt(t)); }

TEST(DerivativeBySaved, OfTwoArguments) {
  const lamella_operator* mul = find("aten::mul", "Tensor");
  ASSERT_NE(lamella_operator_derivative(mul), nullptr);
  Tensor x = of({1.0, 2.0}), y = of({3.0, 5.0});
  Tensor grad = of({1.0, 10.0});
  const lamella_value arguments[] = {value_of(x), value_of(y)};
  const lamella_value nothing = {};
  lamella_tensor* grads[] = {grad.impl()};
  lamella_tensor* results[2] = {};
  ASSERT_EQ(lamella_call_backward(mul, arguments, &nothing, grads, 1, 3, results, 2), LAMELLA_OK);
  EXPECT_TRUE(owned(results[0]).equal(of({3.0, 50.0})));
  EXPECT_TRUE(owned(results[1]).equal(of({1.0, 20.0})));

  Tensor product_kept = x * y;
  const lamella_value returned = value_of(product_kept);
  lamella_tensor* tangents[] = {grad.impl(), nullptr};
  lamella_tensor* tangent = nullptr;
  ASSERT_EQ(lamella_call_forward(mul, arguments, &returned, tangents, 2, &tangent, 1), LAMELLA_OK)
      << lamella_error_text();
  EXPECT_TRUE(owned(tangent).equal(of({3.0, 50.0})));
}

TEST(DerivativeBySaved, OfAResultAlone) {
  const lamella_operator* exp = find("aten::exp", "");
  Tensor y = of({2.0}), grad = of({3.0});
  const lamella_value nothing = {}, returned = value_of(y);
  lamella_tensor* grads[] = {grad.impl()};
  lamella_tensor* result = nullptr;
  ASSERT_EQ(lamella_call_backward(exp, &nothing, &returned, grads, 1, 1, &result, 1), LAMELLA_OK);
  EXPECT_EQ(owned(result).item<double>(), 6.0);
}

TEST(DerivativeBySaved, IsRecorded) {
  const lamella_operator* exp = find("aten::exp", "");
  Tensor y = of({2.0}), grad = of({3.0});
  grad.requires_grad_();
  const lamella_value nothing = {}, returned = value_of(y);
  lamella_tensor* grads[] = {grad.impl()};
  lamella_tensor* result = nullptr;
  ASSERT_EQ(lamella_call_backward(exp, &nothing, &returned, grads, 1, 1, &result, 1), LAMELLA_OK);
  EXPECT_TRUE(owned(result).requires_grad());
}

TEST(DerivativeBySaved, IsRefusedByName) {
  Tensor x = of({1.0});
  const lamella_value argument = value_of(x), nothing = {};
  lamella_tensor* grads[] = {x.impl()};
  lamella_tensor* results[2] = {};
  const lamella_operator* floor = find("aten::argsort", "");
  EXPECT_NE(lamella_call_backward(floor, &argument, &nothing, grads, 1, 1, results, 1), LAMELLA_OK);
  EXPECT_EQ(std::string(lamella_error_text()).rfind("aten::argsort: has no derivative", 0), 0u)
      << lamella_error_text();
  const lamella_operator* exp = find("aten::exp", "");
  EXPECT_EQ(lamella_call_backward(exp, &argument, &nothing, grads, 1, 1, results, 2),
            LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(),
               "aten::exp: expected 1 results, one for each tensor that its derivative is for, "
               "got 2");
}

// ---- Loops on another program's threads ----

struct Host {
  std::vector<int32_t> tasks;
  bool is_threaded = false;
};
const lamella_host_threads* host_of(Host& host, lamella_host_threads& made) {
  made.run = [](void* context, int32_t tasks, void (*task)(void*, int32_t), void* job) {
    static_cast<Host*>(context)->tasks.push_back(tasks);
    std::vector<std::thread> threads;
    for (int32_t n = 0; n < tasks; ++n) {
      if (static_cast<Host*>(context)->is_threaded) {
        threads.emplace_back(task, job, n);
      } else {
        task(job, n);
      }
    }
    for (std::thread& one : threads) one.join();
  };
  made.count = [](void*) -> int32_t { return 3; };
  made.context = &host;
  return &made;
}

TEST(HostThreads, RunTheLoopsOfTheThreadThatSetsThem) {
  for (bool is_threaded : {false, true}) {
    Host host;
    host.is_threaded = is_threaded;
    lamella_host_threads threads = {};
    EXPECT_EQ(lamella_set_host_threads(host_of(host, threads)), nullptr);
    std::vector<std::atomic<int>> seen(1000);
    struct Loop {
      std::vector<std::atomic<int>>& seen;
      std::atomic<int> nested{0}, most{0};
    } loop{seen};
    auto body = [](void* context, int64_t from, int64_t to) {
      auto& loop = *static_cast<Loop*>(context);
      for (int64_t i = from; i < to; ++i) ++loop.seen[static_cast<size_t>(i)];
      loop.nested += lamella_in_parallel_loop();
      if (lamella_thread_number() > loop.most) loop.most = lamella_thread_number();
    };
    EXPECT_EQ(lamella_parallel_for(0, 1000, 10, body, &loop), LAMELLA_OK);
    EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }));
    EXPECT_EQ(host.tasks, std::vector<int32_t>{3});
    EXPECT_GE(loop.nested, 3);
    EXPECT_LT(loop.most, 3);
    EXPECT_EQ(lamella_in_parallel_loop(), 0);
    // A loop without work for two, one of another thread, and one after the end.
    EXPECT_EQ(lamella_parallel_for(0, 5, 10, body, &loop), LAMELLA_OK);
    std::thread([&] { lamella_parallel_for(0, 1000, 10, body, &loop); }).join();
    EXPECT_EQ(lamella_set_host_threads(nullptr), &threads);
    EXPECT_EQ(lamella_parallel_for(0, 1000, 10, body, &loop), LAMELLA_OK);
    EXPECT_EQ(host.tasks.size(), 1u);
  }
}

TEST(HostThreads, HandErrorsToTheCaller) {
  Host host;
  host.is_threaded = true;
  lamella_host_threads threads = {};
  lamella_set_host_threads(host_of(host, threads));
  auto loop = [](int64_t from, int64_t) { LAMELLA_CHECK_VALUE(from == 0, "loop: too far"); };
  EXPECT_THROW(parallel_for(0, 1000, 10, loop), ValueError);
  lamella_set_host_threads(nullptr);
}

// Memory that counts what it gives and takes back.
struct CountedMemory {
  static inline int given = 0, taken = 0;
  static void* allocate(void* context, size_t bytes, void** owner) {
    if (bytes > *static_cast<size_t*>(context)) return nullptr;
    ++given;
    return *owner = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  static void release(void* owner) {
    ++taken;
    std::free(owner);
  }
};

TEST(MemoryOfTheHost, HoldsNewTensors) {
  size_t most = 1 << 20;
  const lamella_host_memory memory = {&CountedMemory::allocate, &CountedMemory::release, &most};
  EXPECT_EQ(lamella_set_host_memory(&memory), nullptr);
  Tensor kept = lamella::ones({1 << 16});
  Tensor part = kept.narrow(0, 5, 10);
  Tensor large = lamella::ones({1 << 19});  // more than it gives
  EXPECT_EQ(lamella_set_host_memory(nullptr), &memory);
  Tensor other = lamella::ones({1 << 16});
  EXPECT_EQ(CountedMemory::given, 1);
  EXPECT_EQ(lamella_tensor_host_memory(kept.impl(), &memory), kept.mutable_data_ptr<float>());
  EXPECT_EQ(lamella_tensor_host_memory(part.impl(), &memory), kept.mutable_data_ptr<float>());
  EXPECT_EQ(lamella_tensor_host_memory(large.impl(), &memory), nullptr);
  EXPECT_EQ(lamella_tensor_host_memory(other.impl(), &memory), nullptr);
  EXPECT_EQ(kept.sum().item<float>(), 65536);
  kept = Tensor();
  EXPECT_EQ(CountedMemory::taken, 0);
  std::thread([&] { part = Tensor(); }).join();
  EXPECT_EQ(CountedMemory::taken, 1);
}

TEST(TensorsOfBlobs, MoveWhereNothingElseRefersToThem) {
  float first[2] = {1, 2}, second[2] = {3, 4};
  const int64_t size = 2;
  lamella_tensor* made = nullptr;
  ASSERT_EQ(lamella_tensor_from_blob(first, 1, &size, nullptr, 6, 0, -1, nullptr, nullptr, &made),
            LAMELLA_OK);
  Tensor t(TensorBase::borrow(made));
  EXPECT_EQ(lamella_tensor_move_blob(made, second), 0);  // two references
  t = Tensor();
  EXPECT_EQ(lamella_tensor_move_blob(made, second), 1);
  {
    Tensor view = Tensor(TensorBase::borrow(made)).narrow(0, 1, 1);
    EXPECT_EQ(view.item<float>(), 4);
    EXPECT_EQ(lamella_tensor_move_blob(made, first), 0);  // the memory has a view
  }
  EXPECT_EQ(lamella_tensor_move_blob(made, first), 1);
  t = Tensor(TensorBase::adopt(made));
  EXPECT_EQ(t.sum().item<float>(), 3);
  Tensor plain = lamella::ones({2});
  EXPECT_EQ(lamella_tensor_move_blob(plain.impl(), first), 0);  // memory of Lamella's
}

TEST(Transforms, RunByTheAbi) {
  // Each example of a shared tensor has a gradient of its own.
  Tensor x = of({1, 2, 3}), w = of({5});
  uint32_t level = 0;
  detail::check(lamella_vmap_enter(3, &level));
  lamella_tensor *wrapped = nullptr, *all = nullptr;
  detail::check(lamella_vmap_wrap(x.impl(), level, &wrapped));
  Tensor one = Tensor(TensorBase::adopt(wrapped));
  EXPECT_EQ(one.dim(), 0);
  detail::check(lamella_vmap_wrap_all(w.impl(), &all));
  Tensor shared = Tensor(TensorBase::adopt(all));
  EXPECT_EQ(shared.sizes(), IntArrayRef({1}));
  Tensor product = one * shared;
  lamella_tensor* unwrapped = nullptr;
  detail::check(lamella_vmap_unwrap_all(product.impl(), level, &unwrapped));
  Tensor result = Tensor(TensorBase::adopt(unwrapped));
  lamella_vmap_leave(level);
  lamella_vmap_leave(level);  // which does nothing
  EXPECT_EQ(result.sizes(), IntArrayRef({3, 1}));
  EXPECT_EQ(result.sum().item<double>(), 30);
  EXPECT_NE(lamella_vmap_unwrap_all(x.impl(), level, &unwrapped), LAMELLA_OK);

  detail::check(lamella_forward_mode(1));
  Tensor y = x.alias();
  detail::check(lamella_tensor_set_tangent(y.impl(), of({1, 0, 2}).impl()));
  Tensor squares = y * y;
  lamella_tensor* tangent = lamella_tensor_tangent(squares.impl());
  ASSERT_NE(tangent, nullptr);
  EXPECT_EQ(Tensor(TensorBase::adopt(tangent)).sum().item<double>(), 2 + 12);
  EXPECT_EQ(lamella_tensor_tangent(x.impl()), nullptr);
  EXPECT_NE(lamella_tensor_set_tangent(y.impl(), of({1}).impl()), LAMELLA_OK);
  detail::check(lamella_forward_mode(0));
  EXPECT_EQ(lamella_tensor_tangent(squares.impl()), nullptr);
}

}  // namespace
}  // namespace lamella
