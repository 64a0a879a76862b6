// Vectors of several parts, masks of their lanes, vectors of quantized elements, and functions of
// the elements of several tensors.
#include <ATen/ATen.h>
#include <ATen/CPUApplyUtils.h>
#include <ATen/ParallelFuture.h>
#include <ATen/core/jit_type.h>
#include <ATen/core/type_ptr.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/util/qint32.h>
#include <gtest/gtest.h>

namespace {

using at::vec::VecMask;
using at::vec::Vectorized;
using at::vec::VectorizedN;

template <class T, int N>
std::vector<T> lanes(const VectorizedN<T, N>& vectors) {
  std::vector<T> values(vectors.size());
  vectors.store(values.data());
  return values;
}
template <class T, int N>
VectorizedN<T, N> counted(T step) {
  std::vector<T> values(VectorizedN<T, N>::size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i) * step;
  return VectorizedN<T, N>::loadu(values.data());
}

TEST(Vectors, PartsAreComputedAsOneVector) {
  const auto x = counted<float, 3>(0.5f), y = VectorizedN<float, 3>(2.0f);
  const int last = x.size() - 1;
  EXPECT_EQ(lanes(x * y - y)[last], static_cast<float>(last) - 2);
  EXPECT_EQ(lanes(at::vec::fmadd(x, y, y))[last], static_cast<float>(last) + 2);
  EXPECT_EQ(lanes(at::vec::clamp(x, VectorizedN<float, 3>(1), y))[0], 1);
  EXPECT_EQ(lanes(at::vec::clamp(x, VectorizedN<float, 3>(1), y))[last], 2);
  EXPECT_EQ(lanes(y.neg().abs().pow(y))[last], 4);
  EXPECT_EQ(lanes(x.lt(y))[3], 1);
  EXPECT_EQ(lanes(x.lt(y))[4], 0);
  EXPECT_EQ(lanes(VectorizedN<float, 3>::set(x, y, 2))[1], 2);
  EXPECT_EQ(lanes(VectorizedN<float, 3>::loadu(lanes(y).data(), 4))[4], 0);
  EXPECT_EQ(y[2][0], 2);
}

TEST(Vectors, ConversionsKeepTheLanesThatBothTypesHave) {
  const auto narrow = at::vec::convert<int16_t, 1, double, 4>(counted<double, 4>(-1.75));
  EXPECT_EQ(lanes(narrow)[3], -5);  // -5.25, towards zero
  const Vectorized<double> wide = at::vec::convert<double>(Vectorized<int32_t>(7));
  EXPECT_EQ(wide[Vectorized<double>::size() - 1], 7);
  const Vectorized<int8_t> padded = at::vec::convert<int8_t>(Vectorized<double>(3));
  EXPECT_EQ(padded[Vectorized<double>::size()], 0);
}

TEST(Vectors, MasksChooseLanes) {
  const auto odd = VecMask<int32_t, 2>::from(counted<int32_t, 2>(1) & VectorizedN<int32_t, 2>(1));
  EXPECT_TRUE(odd.is_masked(1) && !odd.is_masked(2));
  EXPECT_FALSE(odd.all_zero() || odd.all_masked());
  EXPECT_TRUE((VecMask<float, 1>::from(1).all_masked()));
  EXPECT_TRUE((VecMask<float, 1>::from(0).all_zero()));
  const auto from = counted<double, 4>(1);
  EXPECT_EQ((lanes(odd.loadu<double, 4>(lanes(from).data()))),
            (lanes(from * odd.cast<double, 4>().to<double, 4>())));
}

// round(x / scale) + zero_point within the range of the integers, and back.
TEST(Vectors, QuantizedElementsAreRoundedIntegers) {
  using Vec = Vectorized<c10::quint8>;
  typename Vec::float_vec_return_type floats(2.5f);
  floats[0][1] = 1000;
  floats[0][2] = -1000;
  const Vec quantized = Vec::quantize(floats, 0.5f, 10, 2.0f);
  EXPECT_EQ(int{quantized[0]}, 15);
  EXPECT_EQ(int{quantized[1]}, 255);
  EXPECT_EQ(int{quantized[2]}, 0);
  EXPECT_EQ(quantized.dequantize(0.5f, 10.0f)[0][0], 2.5f);
  EXPECT_EQ(quantized.widening_subtract(Vec(c10::quint8(20)))[0][2], -20);
  EXPECT_EQ(int{quantized.relu6(Vec(c10::quint8(20)), Vec(c10::quint8(30)))[1]}, 30);
  const auto whole = Vectorized<c10::qint32>::requantize_from_int(
      Vectorized<c10::qint32>::int_vec_return_type(7), 0.5f, -1);
  EXPECT_EQ(whole[0], 3);  // 3.5 is rounded to 4, the even neighbour
}

TEST(Elements, FunctionsWriteTheFirstTensor) {
  at::Tensor x = at::arange(6, at::kFloat).view({2, 3}), out = at::zeros({3, 2}, at::kDouble).t();
  at::CPU_tensor_apply2<double, float>(out, x, [](double& y, float v) { y = 2 * v; });
  EXPECT_TRUE(out.equal(x.to(at::kDouble) * 2));
  at::CPU_tensor_apply4<float, float, float, double>(
      x, x, x, out,
      [](float& y, float a, float b, double c) { y = a + b + static_cast<float>(c); });
  EXPECT_TRUE(x.equal(at::arange(6, at::kFloat).view({2, 3}) * 4));
}

TEST(Elements, LaunchedTasksAreDone) {
  int value = 0;
  auto future = at::intraop_launch_future([&] { value = 3; });
  future->wait();
  EXPECT_TRUE(future->completed());
  EXPECT_EQ(value, 3);
}

TEST(Types, ArePointersToOneObjectForEachText) {
  EXPECT_EQ(c10::IntType::get(), c10::getTypePtr<int64_t>());
  EXPECT_NE(c10::IntType::get(), c10::StringType::get());
  EXPECT_EQ(c10::ListType::create(c10::TensorType::get())->str(), "Tensor[]");
  EXPECT_EQ(c10::OptionalType::create(c10::FloatType::get())->str(), "float?");
  const auto dict = c10::DictType::create(c10::StringType::get(), c10::BoolType::get());
  EXPECT_EQ(dict, (c10::getTypePtr<c10::Dict<std::string, bool>>()));
  auto shared = std::make_shared<int>(4);
  c10::SingletonOrSharedTypePtr<int> pointer(shared), empty;
  EXPECT_EQ(pointer, shared);
  EXPECT_EQ(empty, nullptr);
}

}  // namespace
