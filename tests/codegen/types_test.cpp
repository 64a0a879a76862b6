// Every type of the declarations, through generated code: function, dispatcher, kernel and back,
// unboxed and boxed.
#include <gtest/gtest.h>

#include "codegen_types_test/functions.h"
#include "codegen_types_test/native_functions.h"
#include "lamella/lamella.h"

using lamella::ArrayRef;
using lamella::Device;
using lamella::DeviceType;
using lamella::Generator;
using lamella::IntArrayRef;
using lamella::IValue;
using lamella::Layout;
using lamella::MemoryFormat;
using lamella::OptionalIntArrayRef;
using lamella::Scalar;
using lamella::ScalarType;
using lamella::Tensor;
using lamella::TensorList;

namespace types::native {

Tensor tensor(const Tensor& x) { return x; }
Tensor optional_tensor(const std::optional<Tensor>& x) { return x.value_or(Tensor()); }
std::vector<Tensor> tensors(TensorList x) { return x.vec(); }
std::vector<int64_t> optional_tensors(TensorList x) {
  std::vector<int64_t> defined;
  for (const Tensor& t : x) defined.push_back(t.defined());
  return defined;
}
int64_t integer(int64_t x) { return x; }
int64_t optional_int(std::optional<int64_t> x) { return x.value_or(-1); }
int64_t symbolic(int64_t x) { return x; }
double real(double x) { return x; }
double optional_float(std::optional<double> x) { return x.value_or(-1.5); }
bool flag(bool x) { return x; }
int64_t optional_bool(std::optional<bool> x) { return x.has_value() ? *x : -1; }
std::string text(std::string_view x) { return std::string(x); }
std::string optional_str(std::optional<std::string_view> x) {
  return std::string(x.value_or("none"));
}
std::vector<std::string> texts(const std::vector<std::string>& x) { return x; }
Scalar number(const Scalar& x) { return x; }
Scalar optional_scalar(const std::optional<Scalar>& x) { return x.value_or(Scalar(-1)); }
std::vector<Scalar> numbers(ArrayRef<Scalar> x) { return x.vec(); }
std::vector<int64_t> ints(IntArrayRef x) { return x.vec(); }
std::vector<int64_t> pair(IntArrayRef x) { return x.vec(); }
std::vector<int64_t> optional_ints(OptionalIntArrayRef x) {
  return x.has_value() ? x->vec() : std::vector<int64_t>{-1};
}
std::vector<double> floats(ArrayRef<double> x) { return x.vec(); }
std::vector<double> optional_floats(std::optional<ArrayRef<double>> x) {
  return x.has_value() ? x->vec() : std::vector<double>{-1};
}
std::vector<int64_t> flags(std::array<bool, 3> x) { return {x[0], x[1], x[2]}; }
ScalarType dtype(ScalarType x) { return x; }
ScalarType optional_dtype(std::optional<ScalarType> x) { return x.value_or(ScalarType::Undefined); }
Layout layout(Layout x) { return x; }
Device device(Device x) { return x; }
bool optional_device(std::optional<Device> x) { return x.has_value(); }
MemoryFormat format(MemoryFormat x) { return x; }
bool optional_format(std::optional<MemoryFormat> x) { return x.has_value(); }
bool random(std::optional<Generator> generator) { return generator.has_value(); }
int64_t table(const IValue& x) { return x.value().size; }
int calls = 0;
void nothing() { ++calls; }
std::tuple<Tensor, int64_t, std::string, std::vector<Tensor>> several(const Tensor& x, int64_t n,
                                                                      std::string_view s) {
  return {x, n, std::string(s), {x, x}};
}
Tensor& write_(Tensor& self) { return self; }
Tensor& write_out(const Tensor&, Tensor& out) { return out; }
std::tuple<Tensor&, Tensor&> two_out(const Tensor&, Tensor& first, Tensor& second) {
  return {first, second};
}
const Tensor& resize_(const Tensor& self) { return self; }
std::vector<int64_t> options(IntArrayRef size, std::optional<ScalarType> dtype,
                             std::optional<Layout> layout, std::optional<Device> device,
                             std::optional<bool> pin_memory) {
  return {static_cast<int64_t>(size.size()), dtype ? static_cast<int64_t>(*dtype) : -1,
          layout ? static_cast<int64_t>(*layout) : -1,
          device ? static_cast<int64_t>(device->type()) : -1, pin_memory ? *pin_memory : -1};
}

}  // namespace types::native

namespace {

float data[4] = {1, 2, 3, 4};
Tensor sample() { return lamella::from_blob(data, {2, 2}); }

// The operator called boxed with these arguments.
std::vector<IValue> boxed(const char* name, std::vector<IValue> arguments) {
  lamella::OperatorHandle op = lamella::Dispatcher::singleton().findSchemaOrThrow(
      (std::string("types::") + name).c_str(), "");
  lamella::Stack stack;
  for (const IValue& argument : arguments) stack.push_back(argument);
  op.callBoxed(&stack);
  return std::vector<IValue>(stack.begin(), stack.end());
}

TEST(Types, Tensors) {
  Tensor x = sample();
  EXPECT_TRUE(types::tensor(x).is_same(x));
  EXPECT_FALSE(types::tensor(Tensor()).defined());
  EXPECT_FALSE(types::optional_tensor().defined());
  EXPECT_TRUE(types::optional_tensor(x).is_same(x));
  std::vector<Tensor> list = types::tensors({x, x});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_TRUE(list[1].is_same(x));
  EXPECT_EQ(types::optional_tensors({x, Tensor()}), (std::vector<int64_t>{1, 0}));
}

TEST(Types, Numbers) {
  EXPECT_EQ(types::integer(), -7);
  EXPECT_EQ(types::integer(INT64_MAX), INT64_MAX);
  EXPECT_EQ(types::optional_int(), -1);
  EXPECT_EQ(types::optional_int(5), 5);
  EXPECT_EQ(types::symbolic(), 9);
  EXPECT_EQ(types::real(), 2.5);
  EXPECT_EQ(types::optional_float(), -1.5);
  EXPECT_EQ(types::optional_float(0.25), 0.25);
  EXPECT_TRUE(types::flag());
  EXPECT_FALSE(types::flag(false));
  EXPECT_EQ(types::optional_bool(), -1);
  EXPECT_EQ(types::optional_bool(true), 1);
  EXPECT_EQ(types::number().toLong(), 3);
  EXPECT_EQ(types::number(2.5).toDouble(), 2.5);
  EXPECT_TRUE(types::number(true).isBoolean());
  EXPECT_EQ(types::number(lamella::complex<double>(1, 2)).toComplexDouble(),
            lamella::complex<double>(1, 2));
  EXPECT_EQ(types::optional_scalar().toLong(), -1);
  EXPECT_EQ(types::optional_scalar(Scalar(4)).toLong(), 4);
  std::vector<Scalar> numbers = types::numbers({Scalar(1), Scalar(2.5)});
  ASSERT_EQ(numbers.size(), 2u);
  EXPECT_EQ(numbers[1].toDouble(), 2.5);
}

TEST(Types, Texts) {
  EXPECT_EQ(types::text(), "mean");
  EXPECT_EQ(types::text("sum"), "sum");
  EXPECT_EQ(types::optional_str(), "none");
  EXPECT_EQ(types::optional_str("x"), "x");
  EXPECT_EQ(types::texts({"a", "bc"}), (std::vector<std::string>{"a", "bc"}));
}

TEST(Types, Lists) {
  EXPECT_EQ(types::ints(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(types::ints({}), (std::vector<int64_t>{}));
  EXPECT_EQ(types::pair(), (std::vector<int64_t>{5, 5}));
  EXPECT_EQ(types::optional_ints(), (std::vector<int64_t>{-1}));
  EXPECT_EQ(types::optional_ints(IntArrayRef({3, 4})), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(types::floats({0.5, 1.5}), (std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(types::optional_floats(), (std::vector<double>{-1}));
  EXPECT_EQ(types::flags(), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(types::flags({{false, true, false}}), (std::vector<int64_t>{0, 1, 0}));
}

TEST(Types, Kinds) {
  EXPECT_EQ(types::dtype(), ScalarType::Long);
  EXPECT_EQ(types::dtype(lamella::kHalf), ScalarType::Half);
  EXPECT_EQ(types::optional_dtype(), ScalarType::Undefined);
  EXPECT_EQ(types::optional_dtype(lamella::kFloat), ScalarType::Float);
  EXPECT_EQ(types::layout(), Layout::Strided);
  EXPECT_EQ(types::device(Device(DeviceType::CUDA, 1)), Device(DeviceType::CUDA, 1));
  EXPECT_FALSE(types::optional_device());
  EXPECT_TRUE(types::optional_device(Device(DeviceType::CPU)));
  EXPECT_EQ(types::format(), MemoryFormat::ChannelsLast);
  EXPECT_FALSE(types::optional_format());
  EXPECT_TRUE(types::optional_format(MemoryFormat::Contiguous));
  EXPECT_FALSE(types::random());
  EXPECT_EQ(types::table(IValue::dict({IValue("a"), IValue(1)})), 2);
}

TEST(Types, Returns) {
  int before = types::native::calls;
  types::nothing();
  EXPECT_EQ(types::native::calls, before + 1);
  Tensor x = sample();
  auto [first, second, third, rest] = types::several(x, 4, "five");
  EXPECT_TRUE(first.is_same(x));
  EXPECT_EQ(second, 4);
  EXPECT_EQ(third, "five");
  EXPECT_EQ(rest.size(), 2u);
}

TEST(Types, ReturnedReferencesAreTheArguments) {
  Tensor x = sample(), y = sample(), z = sample();
  EXPECT_EQ(&types::write_(x), &x);
  EXPECT_EQ(&types::write_out(y, x), &y);
  EXPECT_EQ(&types::write_outf(x, y), &y);
  std::tuple<Tensor&, Tensor&> both = types::two_out(y, z, x);
  EXPECT_EQ(&std::get<0>(both), &y);
  EXPECT_EQ(&std::get<1>(both), &z);
  EXPECT_EQ(&types::resize_(x), &x);
}

TEST(Types, TensorOptionsGiveTheFourKeywords) {
  EXPECT_EQ(types::options({1}), (std::vector<int64_t>{1, -1, -1, -1, -1}));
  EXPECT_EQ(types::options({1}, lamella::kLong),
            (std::vector<int64_t>{1, static_cast<int64_t>(ScalarType::Long), -1, -1, -1}));
  EXPECT_EQ(
      types::options({1, 2}, lamella::TensorOptions().device(DeviceType::Meta).pinned_memory(true)),
      (std::vector<int64_t>{2, -1, -1, static_cast<int64_t>(DeviceType::Meta), 1}));
  EXPECT_EQ(types::options({}, std::nullopt, Layout::Strided, std::nullopt, false),
            (std::vector<int64_t>{0, -1, 0, -1, 0}));
}

TEST(Types, RedispatchSkipsNothingElse) {
  lamella::DispatchKeySet keys(lamella::DispatchKey::CPU);
  EXPECT_EQ(types::redispatch::integer(keys, 11), 11);
  Tensor x = sample(), y = sample();
  EXPECT_EQ(&types::redispatch::write_outf(keys, x, y), &y);
}

TEST(Types, BoxedCallsReachTheSameKernels) {
  EXPECT_EQ(boxed("integer", {IValue(12)})[0].toInt(), 12);
  EXPECT_EQ(boxed("optional_int", {IValue()})[0].toInt(), -1);
  EXPECT_EQ(boxed("real", {IValue(1.5)})[0].toDouble(), 1.5);
  EXPECT_EQ(boxed("text", {IValue("abc")})[0].toStringRef(), "abc");
  EXPECT_EQ(boxed("optional_str", {IValue()})[0].toStringRef(), "none");
  EXPECT_EQ(boxed("ints", {IValue(std::vector<int64_t>{4, 5})})[0].toIntVector(),
            (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(boxed("optional_ints", {IValue()})[0].toIntVector(), (std::vector<int64_t>{-1}));
  EXPECT_EQ(boxed("number", {IValue(2.5)})[0].toDouble(), 2.5);
  EXPECT_EQ(boxed("device", {IValue(Device(DeviceType::CUDA, 1))})[0].toDevice(),
            Device(DeviceType::CUDA, 1));
  EXPECT_TRUE(boxed("nothing", {}).empty());
  Tensor x = sample();
  std::vector<IValue> several = boxed("several", {IValue(x), IValue(4), IValue("five")});
  ASSERT_EQ(several.size(), 4u);
  EXPECT_TRUE(several[0].toTensor().is_same(x));
  EXPECT_EQ(several[3].toTensorVector().size(), 2u);
  EXPECT_TRUE(boxed("write_", {IValue(x)})[0].toTensor().is_same(x));
}

TEST(Types, BoxedArgumentsOfTheWrongKindAreNamed) {
  try {
    boxed("ints", {IValue("no list")});
    FAIL();
  } catch (const lamella::Error& error) {
    EXPECT_EQ(error.msg(), "types::ints: expected 'x' to be a int[], got str");
  }
}

}  // namespace
