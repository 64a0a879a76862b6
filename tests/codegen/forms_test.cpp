// Generated forms of operators: results, errors, and which writes are counted.
#include <gtest/gtest.h>

#include "codegen_forms_test/functions.h"
#include "codegen_forms_test/native_functions.h"
#include "codegen_forms_test/structured_kernels.h"
#include "codegen_forms_test/tensor.h"
#include "lamella/lamella.h"

using lamella::IntArrayRef;
using lamella::Tensor;
using lamella::TensorList;

namespace {

int kernel_calls = 0;

Tensor vector_of(std::vector<float> values) {
  Tensor t = lamella::empty({static_cast<int64_t>(values.size())}, lamella::kFloat);
  for (size_t i = 0; i < values.size(); ++i) t.data_ptr<float>()[i] = values[i];
  return t;
}
std::vector<float> values(const Tensor& t) {
  std::vector<float> list;
  for (int64_t i = 0; i < t.numel(); ++i) list.push_back(t.data_ptr<float>()[i * t.stride(0)]);
  return list;
}
using Values = std::vector<float>;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const lamella::Error& error) {
    return error.msg();
  }
  return "no error";
}

}  // namespace

namespace forms {
namespace meta {
LAMELLA_META_FUNC(scale)(const Tensor& self, double) {
  set_output_raw_strided(0, self.sizes(), {}, self.options());
}
LAMELLA_META_FUNC2(widen, Tensor)(const Tensor& self) {
  set_output_raw_strided(0, {self.size(0) + 1}, {}, self.options());
}
LAMELLA_META_FUNC(strict)(const Tensor& self) {
  set_output_contiguous(0, self.sizes(), self.options());
}
LAMELLA_META_FUNC(window)(const Tensor& self, IntArrayRef span) {
  set_output_raw_strided(0, {span[1] - span[0]}, {}, self.options());
  return LAMELLA_PRECOMPUTE_STRUCT(window)()
      .set_first(static_cast<int>(span[0]))
      .set_last(static_cast<int>(span[1]));
}
LAMELLA_META_FUNC(ends)(const Tensor& self) {
  set_output_raw_strided(0, {1}, {}, self.options());
  set_output_raw_strided(1, {1}, {}, self.options());
}
}  // namespace meta

namespace native {
LAMELLA_IMPL_FUNC(scale_cpu)(const Tensor& self, double factor, const Tensor& out) {
  ++kernel_calls;
  for (int64_t i = 0; i < self.numel(); ++i) {
    out.data_ptr<float>()[i * out.stride(0)] =
        self.data_ptr<float>()[i] * static_cast<float>(factor);
  }
}
LAMELLA_IMPL_FUNC(widen_cpu)(const Tensor& self, const Tensor& out) {
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.data_ptr<float>()[i] = i < self.numel() ? self.data_ptr<float>()[i] : 0;
  }
}
LAMELLA_IMPL_FUNC(strict_cpu)(const Tensor& self, const Tensor& out) {
  EXPECT_TRUE(out.is_contiguous());
  for (int64_t i = 0; i < self.numel(); ++i) {
    out.data_ptr<float>()[i] = self.data_ptr<float>()[i] + 1;
  }
}
LAMELLA_IMPL_FUNC(window_cpu)(const Tensor& self, int first, int last, const Tensor& out) {
  for (int i = first; i < last; ++i) out.data_ptr<float>()[i - first] = self.data_ptr<float>()[i];
}
LAMELLA_IMPL_FUNC(ends_cpu)(const Tensor& self, const Tensor& low, const Tensor& high) {
  low.data_ptr<float>()[0] = self.data_ptr<float>()[0];
  high.data_ptr<float>()[0] = self.data_ptr<float>()[self.numel() - 1];
}

Tensor halve_cpu(const Tensor& self) {
  Values half = values(self);
  for (float& x : half) x /= 2;
  return vector_of(half);
}
std::vector<Tensor> parts_cpu(const Tensor& self) {
  std::vector<Tensor> list;
  for (float x : values(self)) list.push_back(vector_of({x}));
  return list;
}
std::tuple<Tensor, int64_t> count_cpu(const Tensor& self) {
  return {vector_of({static_cast<float>(self.numel())}), self.numel()};
}
Tensor& negate_cpu_(Tensor& self) {
  for (int64_t i = 0; i < self.numel(); ++i) self.data_ptr<float>()[i] *= -1;
  return self;
}
Tensor take_cpu(Tensor& counter, const Tensor& self) {
  counter.data_ptr<float>()[0] += 1;
  return vector_of({counter.data_ptr<float>()[0] * self.data_ptr<float>()[0]});
}
Tensor join(const Tensor& self, const std::optional<Tensor>&, TensorList) { return self; }
}  // namespace native
}  // namespace forms

namespace {

TEST(Structured, FunctionalAllocates) {
  Tensor x = vector_of({1, 2});
  Tensor y = forms::scale(x, 3);
  EXPECT_EQ(values(y), (Values{3, 6}));
  EXPECT_EQ(values(x), (Values{1, 2}));
  EXPECT_EQ(y.use_count(), 1u);
  EXPECT_EQ(y._version(), 0u);
}

TEST(Structured, InPlaceWritesSelfAndCounts) {
  Tensor x = vector_of({1, 2});
  uint32_t before = x._version();
  Tensor& y = forms::scale_(x, 3);
  EXPECT_EQ(&y, &x);
  EXPECT_EQ(values(x), (Values{3, 6}));
  EXPECT_EQ(x._version(), before + 1);
}

TEST(Structured, OutIsWrittenAndCounted) {
  Tensor x = vector_of({1, 2}), out = vector_of({0, 0});
  uint32_t before = out._version();
  void* memory = out.data_ptr();
  EXPECT_EQ(&forms::scale_out(out, x, 3), &out);
  EXPECT_EQ(values(out), (Values{3, 6}));
  EXPECT_EQ(out.data_ptr(), memory);
  EXPECT_EQ(out._version(), before + 1);
}

TEST(Structured, OutTakesTheShapeOfTheResult) {
  Tensor x = vector_of({1, 2}), out = lamella::empty({0}, lamella::kFloat);
  forms::scale_out(out, x, 2);
  EXPECT_EQ(values(out), (Values{2, 4}));
}

TEST(Structured, OutKeepsItsStrides) {
  float memory[4] = {0, 9, 0, 9};
  Tensor out = lamella::from_blob(memory, {2}, IntArrayRef({2}));
  forms::scale_out(out, vector_of({1, 2}), 2);
  EXPECT_EQ(memory[0], 2);
  EXPECT_EQ(memory[1], 9);
  EXPECT_EQ(memory[2], 4);
}

TEST(Structured, StridesThatDoNotFitGoThroughATemporary) {
  float memory[4] = {0, 9, 0, 9};
  Tensor out = lamella::from_blob(memory, {2}, IntArrayRef({2}));
  uint32_t before = out._version();
  EXPECT_EQ(&forms::strict_out(out, vector_of({1, 2})), &out);
  EXPECT_EQ(memory[0], 2);
  EXPECT_EQ(memory[1], 9);
  EXPECT_EQ(memory[2], 3);
  EXPECT_EQ(out._version(), before + 1);
}

TEST(Structured, ErrorsNameTheFormAndTheArgument) {
  Tensor x = vector_of({1, 2});
  Tensor wrong = lamella::empty({2}, lamella::kLong);
  EXPECT_EQ(error_of([&] { forms::scale_out(wrong, x, 2); }),
            "scale: expected 'out' to have dtype float32, got int64");
  Tensor undefined;
  EXPECT_EQ(error_of([&] { forms::scale_out(undefined, x, 2); }),
            "scale: expected 'out' to be a tensor, got an undefined one");
  EXPECT_EQ(error_of([&] { forms::widen_(x); }),
            "widen_: expected 'self' to have the shape of the result, [3], got [2]");
}

TEST(Structured, TheMetaBackendComputesShapesOnly) {
  Tensor x = lamella::empty({4}, lamella::TensorOptions().device(lamella::kMeta));
  int before = kernel_calls;
  EXPECT_EQ(forms::widen(x).sizes(), IntArrayRef({5}));
  EXPECT_TRUE(forms::scale(x, 2).is_meta());
  EXPECT_TRUE(forms::scale_(x, 2).is_same(x));
  Tensor out = lamella::empty({0}, lamella::TensorOptions().device(lamella::kMeta));
  forms::widen_out(out, x);
  EXPECT_EQ(out.sizes(), IntArrayRef({5}));
  EXPECT_EQ(kernel_calls, before);
}

TEST(Structured, PrecomputedValuesReachTheKernel) {
  EXPECT_EQ(values(forms::window(vector_of({1, 2, 3, 4}), {1, 3})), (Values{2, 3}));
  Tensor out = lamella::empty({0}, lamella::kFloat);
  forms::window_out(out, vector_of({1, 2, 3, 4}), {0, 1});
  EXPECT_EQ(values(out), (Values{1}));
}

TEST(Structured, SeveralOutputs) {
  auto [low, high] = forms::ends(vector_of({1, 2, 3}));
  EXPECT_EQ(values(low), (Values{1}));
  EXPECT_EQ(values(high), (Values{3}));
  Tensor a = vector_of({0}), b = vector_of({0});
  std::tuple<Tensor&, Tensor&> both = forms::ends_out(a, b, vector_of({4, 5}));
  EXPECT_EQ(&std::get<1>(both), &b);
  EXPECT_EQ(values(a), (Values{4}));
  EXPECT_EQ(values(b), (Values{5}));
}

TEST(Structured, MethodsOfAnotherLibrary) {
  forms::methods::Tensor x = vector_of({1, 2});
  EXPECT_EQ(values(x.scale(2)), (Values{2, 4}));
  x.scale_(5);
  EXPECT_EQ(values(x), (Values{5, 10}));
}

TEST(Autogen, FromAFunctionalForm) {
  Tensor x = vector_of({2, 4});
  uint32_t before = x._version();
  EXPECT_EQ(&forms::halve_(x), &x);
  EXPECT_EQ(values(x), (Values{1, 2}));
  EXPECT_EQ(x._version(), before + 1);
  Tensor out = lamella::empty({5}, lamella::kFloat);
  EXPECT_EQ(&forms::halve_out(out, x), &out);
  EXPECT_EQ(values(out), (Values{0.5, 1}));
  Tensor wide = lamella::empty({2}, lamella::kDouble);
  forms::halve_out(wide, x);
  EXPECT_EQ(wide.data_ptr<double>()[0], 0.5);
}

TEST(Autogen, ResultsMustFitTheirTarget) {
  Tensor x = vector_of({2, 4});
  Tensor integers = lamella::empty({2}, lamella::kLong);
  EXPECT_EQ(error_of([&] { forms::halve_out(integers, x); }),
            "halve: expected 'out' to have a dtype that float32 can be cast to, got int64");
}

TEST(Autogen, ListsAndNumbers) {
  std::vector<Tensor> outs = {vector_of({0}), vector_of({0})};
  forms::parts_out(outs, vector_of({7, 8}));
  EXPECT_EQ(values(outs[0]), (Values{7}));
  EXPECT_EQ(values(outs[1]), (Values{8}));
  EXPECT_EQ(error_of([&] { forms::parts_out(outs, vector_of({1, 2, 3})); }),
            "parts: expected 'out' to hold 3 tensors, got 2");
  Tensor count = vector_of({0});
  EXPECT_EQ(forms::count_out(count, vector_of({7, 8})), 2);
  EXPECT_EQ(values(count), (Values{2}));
}

TEST(Autogen, FromAnInPlaceForm) {
  Tensor x = vector_of({1, 2});
  EXPECT_EQ(values(forms::negate(x)), (Values{-1, -2}));
  EXPECT_EQ(values(x), (Values{1, 2}));
  EXPECT_EQ(x._version(), 0u);
  Tensor out = lamella::empty({0}, lamella::kFloat);
  forms::negate_out(out, x);
  EXPECT_EQ(values(out), (Values{-1, -2}));
  EXPECT_EQ(values(x), (Values{1, 2}));
  forms::negate_(x);
  EXPECT_EQ(x._version(), 1u);
}

TEST(Autogen, FromOneThatWritesBesideItsResult) {
  Tensor counter = vector_of({1}), x = vector_of({10});
  auto [result, written] = forms::take_functional(counter, x);
  EXPECT_EQ(values(result), (Values{20}));
  EXPECT_EQ(values(written), (Values{2}));
  EXPECT_EQ(values(counter), (Values{1}));
  Tensor out = lamella::empty({0}, lamella::kFloat);
  forms::take_out(out, counter, x);
  EXPECT_EQ(values(out), (Values{20}));
  EXPECT_EQ(values(counter), (Values{2}));
}

TEST(DeviceCheck, NamesTheArgumentsThatDisagree) {
  Tensor meta = lamella::empty({2}, lamella::TensorOptions().device(lamella::kMeta));
  Tensor cpu = vector_of({1, 2});
  EXPECT_EQ(error_of([&] { forms::join(meta, cpu, {}); }),
            "join: expected all tensors to be on one device, got 'self' on meta and 'other' on "
            "cpu");
  EXPECT_EQ(error_of([&] { forms::join(meta, std::nullopt, {meta, cpu}); }),
            "join: expected all tensors to be on one device, got 'self' on meta and 'more' on cpu");
  // So does a number, which only a TensorIterator reads beside any device.
  Tensor number = lamella::empty({}, lamella::kFloat);
  EXPECT_EQ(error_of([&] { forms::join(meta, number, {}); }),
            "join: expected all tensors to be on one device, got 'self' on meta and 'other' on "
            "cpu");
  EXPECT_TRUE(forms::join(cpu, std::nullopt, {cpu}).is_same(cpu));
}

}  // namespace
