// The program that functionalization dispatches, as a layer above observes it.
#include "lamella/layers/functionalize/functionalize.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lamella/api/functions.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/guards.h"
#include "lamella/dispatch/library.h"

namespace lamella {
namespace {

std::vector<std::string>* calls = nullptr;

// Notes each call at the Tracer key and goes on below.
lamella_status note_call(const lamella_kernel*, const lamella_operator* op, uint64_t keys,
                         const lamella_value* arguments, lamella_value* returns) {
  std::string name = std::string(op->name).substr(6);
  if (op->overload[0] != '\0') name += "." + std::string(op->overload);
  calls->push_back(name);
  constexpr uint64_t below =
      DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::Tracer).raw_repr();
  ExcludeDispatchKeyGuard without(DispatchKey::Tracer);
  return lamella_redispatch_boxed(op, keys & below, arguments, returns);
}

class Functionalize : public ::testing::Test {
 protected:
  Functionalize() {
    lamella_library* library = nullptr;
    auto key = static_cast<uint16_t>(DispatchKey::Tracer);
    lamella_kernel_description kernel = {};
    kernel.boxed = &note_call;
    kernel.file = __FILE__;
    detail::check(
        lamella_library_open(LAMELLA_LIBRARY_IMPL, "_", key, __FILE__, __LINE__, &library));
    detail::check(lamella_library_fallback(library, key, &kernel));
    library_ = library;
    calls = &seen;
  }
  ~Functionalize() override { lamella_library_close(library_); }

  // The calls of `f` on wrappers of `inputs`, as the noting layer around sees them.
  template <class F>
  std::vector<std::string> calls_of(std::vector<TensorBase> inputs, bool copies, F&& f) {
    seen.clear();
    IncludeDispatchKeyGuard with(DispatchKey::Tracer);
    functionalize::Session* session = functionalize::begin(copies);
    try {
      std::vector<TensorBase> wrappers = functionalize::wrap_arguments(session, inputs);
      std::vector<Tensor> given(wrappers.begin(), wrappers.end());
      std::vector<Tensor> outputs = f(given);
      results = functionalize::finish(session, {outputs.begin(), outputs.end()});
    } catch (...) {
      functionalize::end(session);
      throw;
    }
    functionalize::end(session);
    return seen;
  }

  std::vector<std::string> seen;
  std::vector<TensorBase> results;

 private:
  lamella_library* library_;
};

using Names = std::vector<std::string>;
using Tensors = std::vector<Tensor>;

TEST_F(Functionalize, WritesBecomePureOperatorsAndOneCopy) {
  Tensor x = ones({2, 3});
  Names names = calls_of({x}, false, [](const Tensors& in) {
    Tensor w = in[0];
    w.add_(1).mul_(2);
    return Tensors{w.relu()};
  });
  EXPECT_EQ(names, (Names{"add.Scalar", "mul.Scalar", "relu", "copy_"}));
  EXPECT_EQ(x.sum().item().toDouble(), 24);
}

TEST_F(Functionalize, WritesThroughViewsScatter) {
  Tensor x = zeros({2, 3});
  auto program = [](const Tensors& in) {
    Tensor row = in[0].select(0, 1);
    row.add_(1);
    row.add_(1);
    in[0].t().slice(0, 0, 2).zero_();
    return Tensors{};
  };
  Names names = calls_of({x}, true, program);
  for (const std::string& name : names) {
    EXPECT_TRUE(name == "copy_" || name.back() != '_') << name;
    EXPECT_NE(name, "select.int");
    EXPECT_NE(name, "slice.Tensor");
    EXPECT_NE(name, "t");
  }
  EXPECT_EQ(std::count(names.begin(), names.end(), "select_scatter"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "slice_scatter"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "copy_"), 1);
  EXPECT_EQ(x.sum().item().toDouble(), 2);
}

TEST_F(Functionalize, ReadsCostNothingButViews) {
  Tensor x = ones({4});
  Names names =
      calls_of({x}, false, [](const Tensors& in) { return Tensors{in[0].slice(0, 1, 3).exp()}; });
  EXPECT_EQ(names, (Names{"slice.Tensor", "exp"}));
  names =
      calls_of({x}, true, [](const Tensors& in) { return Tensors{in[0].slice(0, 1, 3).exp()}; });
  EXPECT_EQ(names, (Names{"slice_copy.Tensor", "exp"}));
}

TEST_F(Functionalize, WrappersHaveNoMemory) {
  Tensor x = ones({2, 3}).t();
  calls_of({x}, false, [&](const Tensors& in) {
    const Tensor& w = in[0];
    EXPECT_TRUE(functionalize::is_functional(w.impl()));
    EXPECT_FALSE(functionalize::is_functional(x.impl()));
    EXPECT_EQ(w.impl()->data, nullptr);
    EXPECT_NE(w.impl()->flags & LAMELLA_TENSOR_WRAPPER, 0u);
    EXPECT_EQ(w.strides(), x.strides());
    EXPECT_EQ(w.dtype(), x.dtype());
    Tensor view = w.select(0, 1);
    EXPECT_EQ(view.impl()->storage, w.impl()->storage);
    EXPECT_EQ(view.storage_offset(), 1);
    EXPECT_TRUE(functionalize::is_functional(view.impl()));
    uint32_t version = lamella_tensor_version(w.impl());
    view.zero_();
    EXPECT_GT(lamella_tensor_version(w.impl()), version);
    return Tensors{};
  });
}

TEST_F(Functionalize, OutputsAreWhatTheFunctionReturned) {
  Tensor x = ones({2, 3});
  calls_of({x}, false, [](const Tensors& in) {
    Tensor made = zeros({2});
    return Tensors{in[0].view({-1}), in[0], made, made.slice(0, 1)};
  });
  EXPECT_EQ(results[0].impl()->storage, x.impl()->storage);
  EXPECT_TRUE(results[1].is_same(x));
  EXPECT_EQ(results[2].impl()->storage, results[3].impl()->storage);
}

TEST_F(Functionalize, KernelOfAnAuthorForTheKeyIsCalled) {
  Library library(Library::DEF, "functionalized_by_hand", std::nullopt, "test.cpp", 1);
  library.def("f(Tensor x) -> Tensor");
  library.impl("f", dispatch(DispatchKey::CPU, [](const Tensor& x) { return x.add(1); }));
  library.impl("f",
               dispatch(DispatchKey::Functionalize, [](const Tensor& x) { return x.mul(10); }));
  auto f = Dispatcher::singleton()
               .findSchemaOrThrow("functionalized_by_hand::f", "")
               .typed<Tensor(const Tensor&)>();
  calls_of({ones({2})}, false, [&](const Tensors& in) { return Tensors{f.call(in[0])}; });
  EXPECT_EQ(Tensor(results[0]).sum().item().toDouble(), 20);
}

}  // namespace
}  // namespace lamella
