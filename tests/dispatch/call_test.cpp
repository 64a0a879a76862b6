// Calls through the dispatcher: typed, boxed, redispatched, with every form of kernel.
#include <gtest/gtest.h>

#include "lamella/dispatch/library.h"
#include "tests/dispatch/helpers.h"

namespace lamella {
namespace {

using T = TensorBase;

T identity(const T& self) { return self; }
T second(const T& self, const T& other) { return other; }
T& write_self(T& self, const T&) { return self; }
std::tuple<T, int64_t> with_rank(const T& self) { return {self, self.dim()}; }
std::vector<T> twice(const T& self) { return {self, self}; }
int64_t everything(int64_t i, double d, bool b, std::string_view s, IntArrayRef list,
                   std::optional<int64_t> none, std::optional<ScalarType> type,
                   const Scalar& scalar, const std::optional<T>& tensor) {
  EXPECT_EQ(d, 2.5);
  EXPECT_TRUE(b);
  EXPECT_EQ(s, "text");
  EXPECT_EQ(list, IntArrayRef({1, 2, 3}));
  EXPECT_FALSE(none.has_value());
  EXPECT_EQ(type, ScalarType::Float);
  EXPECT_EQ(scalar.toLong(), 7);
  EXPECT_FALSE(tensor.has_value());
  return i + 1;
}

TEST(TypedCall, ReachesTheBackendKernel) {
  Library m = fragment("call_typed");
  m.def("second(Tensor self, Tensor other) -> Tensor");
  Library impl = implementation("call_typed", DispatchKey::CPU);
  impl.impl("second", LAMELLA_FN(second));
  auto op = find("call_typed::second").typed<T(const T&, const T&)>();
  T a = make_tensor({2}), b = make_tensor({3});
  EXPECT_TRUE(op.call(a, b).is_same(b));
  EXPECT_EQ(b.use_count(), 1u);
}

TEST(TypedCall, CarriesEveryKindOfArgument) {
  Library m = fragment("call_kinds");
  m.def(
      "everything(int i, float d, bool b, str s, int[] list, int? none, ScalarType? type, "
      "Scalar scalar, Tensor? tensor) -> int",
      &everything);
  auto op = find("call_kinds::everything").typed<decltype(everything)>();
  EXPECT_EQ(
      op.call(41, 2.5, true, "text", {1, 2, 3}, std::nullopt, ScalarType::Float, 7, std::nullopt),
      42);
  Stack stack;
  push(stack, int64_t{41}, 2.5, true, "text", IntArrayRef({1, 2, 3}), IValue(), ScalarType::Float,
       Scalar(7), IValue());
  find("call_kinds::everything").callBoxed(&stack);
  ASSERT_EQ(stack.size(), 1u);
  EXPECT_EQ(stack[0].toInt(), 42);
}

TEST(TypedCall, CarriesOptionalsOfEveryKind) {
  using Kinds = std::tuple<std::optional<int64_t>, std::optional<double>, std::optional<bool>,
                           std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>,
                           std::optional<MemoryFormat>>;
  static Kinds wanted;
  auto same = [](std::optional<int64_t> i, std::optional<double> d, std::optional<bool> b,
                 std::optional<ScalarType> t, std::optional<Layout> l, std::optional<Device> v,
                 std::optional<MemoryFormat> m) { return Kinds(i, d, b, t, l, v, m) == wanted; };
  Library m = fragment("call_optionals");
  m.def(
      "same(int? i, float? d, bool? b, ScalarType? t, Layout? l, Device? v, MemoryFormat? m) "
      "-> bool",
      same);
  auto op = find("call_optionals::same")
                .typed<bool(std::optional<int64_t>, std::optional<double>, std::optional<bool>,
                            std::optional<ScalarType>, std::optional<Layout>, std::optional<Device>,
                            std::optional<MemoryFormat>)>();
  const Kinds given(-3, -0.5, false, ScalarType::Byte, Layout::Strided, Device(kCUDA, -1),
                    MemoryFormat::ChannelsLast);
  const Kinds others(INT64_MIN, 0, true, ScalarType::Bool, Layout::Sparse, Device(kMeta, 7),
                     MemoryFormat::Contiguous);
  for (const Kinds& kinds : {Kinds(), given, others}) {
    wanted = kinds;
    EXPECT_TRUE(std::apply([&](const auto&... one) { return op.call(one...); }, kinds));
    Stack stack;
    std::apply(
        [&](const auto&... one) { (push(stack, one.has_value() ? IValue(*one) : IValue()), ...); },
        kinds);
    op.callBoxed(&stack);
    EXPECT_TRUE(stack[0].toBool());
  }
}

TEST(TypedCall, ReturnsReferencesTuplesAndLists) {
  Library m = fragment("call_returns");
  m.def("write_(Tensor(a!) self, Tensor other) -> Tensor(a!)", &write_self);
  m.def("with_rank(Tensor self) -> (Tensor, int)", &with_rank);
  m.def("twice(Tensor self) -> Tensor[]", &twice);
  T a = make_tensor({2, 3}), b = make_tensor({1});
  T& same = find("call_returns::write_").typed<T&(T&, const T&)>().call(a, b);
  EXPECT_EQ(&same, &a);
  auto [tensor, rank] =
      find("call_returns::with_rank").typed<std::tuple<T, int64_t>(const T&)>().call(a);
  EXPECT_TRUE(tensor.is_same(a));
  EXPECT_EQ(rank, 2);
  EXPECT_EQ(find("call_returns::twice").typed<std::vector<T>(const T&)>().call(a).size(), 2u);
  Stack stack;
  push(stack, a, b);
  find("call_returns::write_").callBoxed(&stack);
  ASSERT_EQ(stack.size(), 1u);
  EXPECT_TRUE(stack[0].toTensor<T>().is_same(a));
  stack.clear();
  push(stack, a);
  find("call_returns::twice").callBoxed(&stack);
  EXPECT_EQ(stack[0].toTensorVector<T>().size(), 2u);
}

TEST(BoxedCall, ReachesTypedAndBoxedKernels) {
  Library m = fragment("call_boxed");
  m.def("f(Tensor self, Tensor other) -> Tensor");
  Library impl = implementation("call_boxed", DispatchKey::CPU);
  int calls = 0;
  impl.impl("f", [&calls](const OperatorHandle& op, Stack* stack) {
    ++calls;
    IValue other = pop(stack);
    drop(stack, 1);
    push(stack, other);
  });
  T a = make_tensor({2}), b = make_tensor({3});
  EXPECT_TRUE(find("call_boxed::f").typed<T(const T&, const T&)>().call(a, b).is_same(b));
  Stack stack{a, b};
  find("call_boxed::f").callBoxed(&stack);
  EXPECT_TRUE(stack[0].toTensor<T>().is_same(b));
  EXPECT_EQ(calls, 2);
  stack.clear();
  EXPECT_EQ(a.use_count(), 1u);
  EXPECT_EQ(b.use_count(), 1u);
}

TEST(BoxedCall, NamesTheArgumentOfTheWrongKind) {
  Library m = fragment("call_wrong");
  m.def("f(Tensor self, int[] size) -> Tensor", [](const T& self, IntArrayRef) { return self; });
  Stack stack{make_tensor({2}), 3.5};
  expect_error([&] { find("call_wrong::f").callBoxed(&stack); },
               "call_wrong::f: expected 'size' to be a int[], got float");
  Stack shorter{make_tensor({2})};
  expect_error([&] { find("call_wrong::f").callBoxed(&shorter); },
               "call_wrong::f: expected 2 arguments on the stack, got 1");
}

TEST(Redispatch, GoesToTheNextLayer) {
  Library m = fragment("call_layers");
  m.def("f(Tensor self) -> Tensor");
  Library cpu = implementation("call_layers", DispatchKey::CPU);
  cpu.impl("f", &identity);
  static int autograd_calls;
  autograd_calls = 0;
  Library autograd = implementation("call_layers", DispatchKey::Autograd);
  autograd.impl("f", [](DispatchKeySet keys, const T& self) {
    ++autograd_calls;
    static auto op = find("call_layers::f").typed<T(const T&)>();
    return op.redispatch(keys & after_autograd_keyset, self);
  });
  T a = make_tensor({2});
  auto op = find("call_layers::f").typed<T(const T&)>();
  EXPECT_TRUE(op.call(a).is_same(a));
  EXPECT_EQ(autograd_calls, 1);
  {
    AutoDispatchBelowAutograd guard;
    op.call(a);
  }
  EXPECT_EQ(autograd_calls, 1);
  op.call(a);
  EXPECT_EQ(autograd_calls, 2);
}

TEST(Redispatch, BoxedFallbackSeesEveryOperator) {
  Library m = fragment("call_fallback");
  m.def("f(Tensor self) -> Tensor", &identity);
  static int seen;
  seen = 0;
  T a = make_tensor({2});
  auto op = find("call_fallback::f").typed<T(const T&)>();
  {
    Library fallback = implementation("_", DispatchKey::TESTING_ONLY_GenericMode);
    fallback.fallback(
        CppFunction::makeFromBoxedFunction([](const OperatorHandle& op, DispatchKeySet keys,
                                              ArgumentSpan arguments, ReturnSpan returns) {
          ++seen;
          op.redispatchBoxed(keys.remove(DispatchKey::TESTING_ONLY_GenericMode), arguments,
                             returns);
        }));
    op.call(a);
    EXPECT_EQ(seen, 0);
    IncludeDispatchKeyGuard guard(DispatchKey::TESTING_ONLY_GenericMode);
    EXPECT_TRUE(op.call(a).is_same(a));
    EXPECT_EQ(seen, 1);
    Library through = implementation("call_fallback", DispatchKey::TESTING_ONLY_GenericMode);
    through.impl("f", CppFunction::makeFallthrough());
    op.call(a);
    EXPECT_EQ(seen, 1);
  }
  IncludeDispatchKeyGuard guard(DispatchKey::TESTING_ONLY_GenericMode);
  EXPECT_TRUE(op.call(a).is_same(a));
  EXPECT_EQ(seen, 1);
}

TEST(Factories, GoToTheDeviceOfTheArgument) {
  Library m = fragment("call_factory");
  m.def("f(int size, *, Device? device=None) -> int");
  Library cpu = implementation("call_factory", DispatchKey::CPU);
  cpu.impl("f", [](int64_t, std::optional<Device>) -> int64_t { return 1; });
  Library meta = implementation("call_factory", DispatchKey::Meta);
  meta.impl("f", [](int64_t, std::optional<Device>) -> int64_t { return 2; });
  auto op = find("call_factory::f").typed<int64_t(int64_t, std::optional<Device>)>();
  EXPECT_EQ(op.call(4, std::nullopt), 1);
  EXPECT_EQ(op.call(4, Device(DeviceType::Meta)), 2);
}

TEST(Errors, CrossTheAbiWithTheirKind) {
  Library m = fragment("call_errors");
  m.def("index(int i) -> int",
        [](int64_t i) -> int64_t { throw IndexError("index: out of range"); });
  m.def("foreign(int i) -> int", [](int64_t i) -> int64_t { throw 3; });
  auto index = find("call_errors::index").typed<int64_t(int64_t)>();
  EXPECT_THROW(index.call(1), IndexError);
  expect_error([&] { index.call(1); }, "index: out of range");
  EXPECT_THROW(find("call_errors::foreign").typed<int64_t(int64_t)>().call(1), Error);
}

// ---- What kernels do with arguments that are theirs ----

// Calls typed and boxed, many times; no reference may be lost or kept.
template <class... A>
void expect_counts_kept(OperatorHandle op, const A&... arguments) {
  for (int i = 0; i < 1000; ++i) {
    Stack stack;
    push(stack, arguments...);
    op.callBoxed(&stack);
  }
}

TEST(OwnArguments, AreMovedFromResetAndAssigned) {
  Library m = fragment("call_own");
  static T kept;
  auto define = [&](const char* schema, auto f) { m.def(schema, f); };
  define("value(Tensor a) -> Tensor", [](T a) { return a; });
  define("rvalue(Tensor a) -> Tensor", [](T&& a) -> T {
    T taken = std::move(a);
    return taken;
  });
  define("optional(Tensor? a) -> Tensor", [](std::optional<T> a) { return std::move(*a); });
  define("optional_rvalue(Tensor? a) -> Tensor",
         [](std::optional<T>&& a) { return std::move(a).value(); });
  define("optional_reference(Tensor? a, Tensor b) -> Tensor", [](std::optional<T>& a, const T& b) {
    a = b;
    return *std::move(a);
  });
  define("optional_reset(Tensor? a) -> ()", [](std::optional<T> a) { a.reset(); });
  define("optional_kept(Tensor? a) -> ()", [](std::optional<T> a) { kept = std::move(a).value(); });
  define("list(Tensor[] a) -> Tensor[]", [](std::vector<T> a) { return a; });
  define("list_rvalue(Tensor[] a) -> Tensor", [](std::vector<T>&& a) { return std::move(a[0]); });
  define("assigned(Tensor(a!) a, Tensor b) -> ()", [](T& a, const T& b) { a = b; });
  define("text(str a, Scalar b, int[] c, float[] d) -> str",
         [](std::string a, Scalar b, std::vector<int64_t> c, std::vector<double>&& d) {
           std::vector<int64_t> moved = std::move(c);
           return std::move(a) + std::to_string(b.toLong() + moved[0] + std::move(d).size());
         });
  define("value_of_any(Any a) -> Any", [](IValue a) { return a; });

  const T a = make_tensor({2}), b = make_tensor({3});
  for (const char* name : {"value", "rvalue", "optional", "optional_rvalue"}) {
    expect_counts_kept(find((std::string("call_own::") + name).c_str()), a);
  }
  expect_counts_kept(find("call_own::optional_reference"), a, b);
  expect_counts_kept(find("call_own::optional_reset"), a);
  expect_counts_kept(find("call_own::optional_kept"), a);
  expect_counts_kept(find("call_own::list"), std::vector<T>{a, b});
  expect_counts_kept(find("call_own::list_rvalue"), std::vector<T>{a, b});
  expect_counts_kept(find("call_own::assigned"), a, b);
  expect_counts_kept(find("call_own::value_of_any"), a);
  expect_counts_kept(find("call_own::text"), "a text that is too long to be kept inline", Scalar(3),
                     IntArrayRef({1, 2}), ArrayRef<double>({0.5}));
  kept = T();

  auto value = find("call_own::value").typed<T(T)>();
  auto rvalue = find("call_own::rvalue").typed<T(const T&)>();
  auto optional = find("call_own::optional").typed<T(const std::optional<T>&)>();
  auto reference =
      find("call_own::optional_reference").typed<T(const std::optional<T>&, const T&)>();
  auto list = find("call_own::list").typed<std::vector<T>(ArrayRef<T>)>();
  auto assigned = find("call_own::assigned").typed<void(T&, const T&)>();
  for (int i = 0; i < 1000; ++i) {
    T same = a;
    ASSERT_TRUE(value.call(a).is_same(a));
    ASSERT_TRUE(rvalue.call(a).is_same(a));
    ASSERT_TRUE(optional.call(a).is_same(a));
    ASSERT_TRUE(reference.call(a, b).is_same(b));
    ASSERT_TRUE(list.call({a, b})[1].is_same(b));
    assigned.call(same, b);  // the caller's handle stays
    ASSERT_TRUE(same.is_same(a));
  }
  EXPECT_EQ(a.use_count(), 1u);
  EXPECT_EQ(b.use_count(), 1u);
}

}  // namespace
}  // namespace lamella
