// PyTorch's names: each is the same entity as Lamella's, through whichever namespace it is found.
#include <ATen/Dimname.h>
#include <ATen/Dispatch.h>
#include <ATen/core/DeprecatedTypeProperties.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/SymInt.h>
#include <c10/util/Metaprogramming.h>
#include <c10/util/irange.h>
#include <c10/util/string_view.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <iterator>
#include <string>
#include <vector>

#include "lamella/dispatch/library.h"

namespace {

template <class A, class B>
inline constexpr bool same = std::is_same_v<A, B>;

static_assert(same<at::ScalarType, lamella::ScalarType> && same<c10::ScalarType, at::ScalarType>);
static_assert(same<torch::Device, c10::Device> && same<c10::Device, lamella::Device>);
static_assert(same<at::TensorBase, lamella::TensorBase>);
static_assert(same<torch::Library, lamella::Library>);
static_assert(std::is_base_of_v<torch::CppFunction, c10::KernelFunction>);
static_assert(std::is_base_of_v<lamella::OperatorId, c10::OperatorName>);
static_assert(same<c10::FunctionSchema, lamella::OperatorSchema>);
static_assert(same<torch::jit::Stack, lamella::Stack> && same<torch::jit::IValue, c10::IValue>);
static_assert(same<c10::impl::ExcludeDispatchKeyGuard, lamella::ExcludeDispatchKeyGuard>);
static_assert(
    same<at::AutoDispatchBelowADInplaceOrView, lamella::AutoDispatchBelowADInplaceOrView>);
static_assert(same<c10::optional<int>, std::optional<int>>);
static_assert(same<c10::string_view, std::string_view> && same<c10::SymInt, int64_t>);
static_assert(same<at::IntArrayRef, c10::ArrayRef<int64_t>>);
static_assert(same<c10::Error, lamella::Error> && same<at::Half, c10::Half>);
static_assert(at::kFloat == c10::ScalarType::Float && torch::kInt64 == at::kLong);
static_assert(c10::kCUDA == at::DeviceType::CUDA && at::kStrided == c10::Layout::Strided);

// Code that opens all of PyTorch's namespaces meets no ambiguity.
namespace opened {
using namespace at;
using namespace c10;
using namespace torch;
static_assert(same<decltype(kFloat), const ScalarType>);
static_assert(same<IntArrayRef, lamella::IntArrayRef> && same<DispatchKey, lamella::DispatchKey>);
}  // namespace opened

TEST(Names, StridesOfMemoryFormats) {
  using Ints = std::vector<int64_t>;
  EXPECT_EQ(c10::get_channels_last_strides_2d({2, 3, 4, 5}), (Ints{60, 1, 15, 3}));
  EXPECT_EQ(c10::get_channels_last_strides_2d({3, 4, 5}), (Ints{1, 15, 3}));
  EXPECT_EQ(c10::get_channels_last_strides_3d({2, 3, 4, 5, 6}), (Ints{360, 1, 90, 18, 3}));
  EXPECT_EQ(c10::get_channels_last_strides_3d({3, 4, 5, 6}), (Ints{1, 90, 18, 3}));
  auto error_of = [](auto function) {
    try {
      function();
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  EXPECT_EQ(error_of([] { c10::get_channels_last_strides_2d({1, 2}); }),
            "channels_last: expected 3 or 4 dimensions, got 2");
  EXPECT_EQ(error_of([] { c10::get_channels_last_strides_3d({1, 2}); }),
            "channels_last_3d: expected 4 or 5 dimensions, got 2");
}

TEST(Names, ConditionalsAndTypeLists) {
  EXPECT_EQ(c10::guts::if_constexpr<true>([] { return 1; }, [] { return std::string("2"); }), 1);
  EXPECT_EQ(c10::guts::if_constexpr<false>([] { return 1; }, [] { return std::string("2"); }), "2");
  auto lambda = [](int a, double) { return a; };
  using Traits = c10::guts::infer_function_traits_t<decltype(lambda)>;
  static_assert(same<Traits::return_type, int> && Traits::number_of_parameters == 2);
  static_assert(same<Traits::parameter_types, c10::guts::typelist::typelist<int, double>>);
  static_assert(c10::guts::is_functor<decltype(lambda)>::value &&
                !c10::guts::is_functor<int>::value);
  static_assert(same<c10::invoke_result_t<decltype(lambda), int, double>, int>);
}

// A dtype by the type of C++ that a macro names otherwise than scalar_t.
std::string dtype_by_hint(at::ScalarType type) {
  return AT_DISPATCH_SWITCH(::detail::scalar_type(type), "dtype_by_hint",
                            AT_PRIVATE_CASE_TYPE_USING_HINT(at::kFloat, out_t, [] {
                              return std::string(toString(c10::CppTypeToScalarType<out_t>()));
                            }) AT_PRIVATE_CASE_TYPE_USING_HINT(at::kByte, out_t, [] {
                              return std::string(toString(c10::CppTypeToScalarType<out_t>()()));
                            }));
}
TEST(Names, TypesByName) {
  static_assert(torch::kF64 == at::kDouble && torch::kU8 == at::kByte);
  EXPECT_EQ(dtype_by_hint(at::kFloat), "Float");
  EXPECT_EQ(dtype_by_hint(at::kByte), "Byte");
  EXPECT_THROW(dtype_by_hint(at::kLong), c10::Error);
  const at::DeprecatedTypeProperties kind(at::kFloat, at::kCPU);
  EXPECT_EQ(kind.toScalarType(at::kByte).toString(), "CPUByteType");
  EXPECT_EQ(at::empty({2}, kind.cpu().options()).scalar_type(), at::kFloat);
  EXPECT_EQ(c10::getTypePtr<std::vector<int64_t>>()->str(), "int[]");
  EXPECT_EQ(c10::getTypePtr<std::string>(), c10::IValue("text").type());
  torch::Deleter none = [](void*) {};
  none(nullptr);
}

TEST(Names, ArgumentsOfSchemas) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::add_", "Tensor");
  const std::vector<c10::Argument> arguments = op.schema().arguments();
  EXPECT_EQ(arguments[1].type()->str(), "Tensor");
  EXPECT_EQ(arguments[1].type(), c10::getTypePtr<at::Tensor>());
  EXPECT_TRUE(arguments[0].alias_info()->isWrite());
  EXPECT_EQ(arguments[1].alias_info(), nullptr);
}

TEST(Names, NamespacesOfOperators) {
  c10::OperatorName plain("add", "Tensor"), full("aten::add", "");
  EXPECT_FALSE(plain.getNamespace().has_value());
  EXPECT_TRUE(plain.setNamespaceIfNotSet("mine"));
  EXPECT_EQ(plain, c10::OperatorName("mine::add", "Tensor"));
  EXPECT_EQ(*plain.getNamespace(), "mine");
  EXPECT_FALSE(full.setNamespaceIfNotSet("mine"));
  EXPECT_EQ(full.name, "aten::add");
}

TEST(Names, ValuesOfAnyType) {
  const c10::IValue pair = c10::ivalue::Tuple::create(int64_t{1}, "a");
  EXPECT_EQ(pair.type()->str(), "(int, str)");
  EXPECT_EQ(pair.toTuple()->size(), 2);
  EXPECT_EQ(pair.toTupleRef().elements()[1].toString()->string(), "a");
  EXPECT_TRUE(pair == c10::IValue(c10::ivalue::Tuple::create(int64_t{1}, "a")));
  EXPECT_FALSE(pair == c10::IValue(c10::ivalue::Tuple::create(1.0, "a")));
  EXPECT_EQ(c10::IValue(std::vector<int64_t>{3, 4}).toListRef()[1].toInt(), 4);
  const c10::IValue dict = c10::IValue::dict({"k", 2.5});
  EXPECT_EQ(dict.toGenericDict().at("k").toDouble(), 2.5);
  EXPECT_EQ(dict.type()->str(), "Dict(str, float)");
  for (const c10::IValue& wrong : {c10::IValue(1), c10::IValue("text")}) {
    EXPECT_THROW(wrong.toTuple(), c10::Error);
    EXPECT_THROW(wrong.toGenericDict(), c10::Error);
    EXPECT_THROW(wrong.toListRef(), c10::Error);
  }
}

TEST(Names, Ranges) {
  std::vector<int64_t> seen;
  for (auto i : c10::irange(int64_t{3})) seen.push_back(i);
  for (auto i : c10::irange(5, int64_t{7})) seen.push_back(i);
  for (auto i : c10::irange(4, 2)) seen.push_back(i);
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 5, 6}));
}

TEST(Names, DeviceGuards) {
  c10::DeviceGuard guard(c10::Device("cpu"));
  EXPECT_EQ(guard.current_device().str(), "cpu:0");
  c10::OptionalDeviceGuard none(c10::nullopt);
  EXPECT_FALSE(none.current_device().has_value());
  EXPECT_FALSE(at::device_of(at::TensorBase()).has_value());
  try {
    c10::DeviceGuard second(c10::Device("cuda:1"));
    FAIL() << "expected an error";
  } catch (const c10::Error& error) {
    EXPECT_STREQ(error.what(),
                 "DeviceGuard: expected the only device of its type, cuda:0, got cuda:1");
  }
}

// The size of the type that a macro picks, or 0 where it has none for `type`.
template <class F>
size_t picked(F&& f) {
  try {
    return f();
  } catch (const c10::NotImplementedError&) {
    return 0;
  }
}
#define SIZE_OF_SCALAR [&]() -> size_t { return sizeof(scalar_t); }
#define PICK(group, type) picked([&] { return AT_DISPATCH_##group(type, "pick", SIZE_OF_SCALAR); })
#define PICK_AND(group, more, type) \
  picked([&] { return AT_DISPATCH_##group(more, type, "pick", SIZE_OF_SCALAR); })

TEST(Dispatch, GroupsOfTypes) {
  EXPECT_EQ(PICK(FLOATING_TYPES, at::kFloat), 4u);
  EXPECT_EQ(PICK(FLOATING_TYPES, at::kHalf), 0u);
  EXPECT_EQ(PICK(FLOATING_TYPES_AND_HALF, at::kHalf), 2u);
  EXPECT_EQ(picked([] {
              return AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, at::kBFloat16,
                                                     "pick", SIZE_OF_SCALAR);
            }),
            2u);
  EXPECT_EQ(PICK(INTEGRAL_TYPES, at::kLong), 8u);
  EXPECT_EQ(PICK(INTEGRAL_TYPES, at::kBool), 0u);
  EXPECT_EQ(PICK_AND(INTEGRAL_TYPES_AND, at::kBool, at::kBool), 1u);
  EXPECT_EQ(PICK(ALL_TYPES, at::kByte), 1u);
  EXPECT_EQ(PICK(ALL_TYPES, at::kDouble), 8u);
  EXPECT_EQ(PICK(ALL_TYPES, at::kComplexFloat), 0u);
  EXPECT_EQ(PICK(ALL_TYPES_AND_COMPLEX, at::kComplexDouble), 16u);
  EXPECT_EQ(picked([] {
              return AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(at::kBool, at::kHalf, at::kBFloat16,
                                                            at::kBool, "pick", SIZE_OF_SCALAR);
            }),
            1u);
  EXPECT_EQ(PICK(COMPLEX_TYPES, at::kComplexFloat), 8u);
  EXPECT_EQ(PICK_AND(FLOATING_AND_COMPLEX_TYPES_AND1, at::kHalf, at::kHalf), 2u);
}

TEST(Dispatch, SwitchOfSingleTypes) {
  auto name = [](at::ScalarType type) {
    return AT_DISPATCH_SWITCH(
        type, "named", AT_DISPATCH_CASE(at::kFloat, [&] {
          return std::string("float");
        }) AT_DISPATCH_CASE_INTEGRAL_TYPES([&] { return std::string("whole"); }));
  };
  EXPECT_EQ(name(at::kFloat), "float");
  EXPECT_EQ(name(at::kShort), "whole");
  try {
    name(at::kDouble);
    FAIL() << "expected an error";
  } catch (const c10::NotImplementedError& error) {
    EXPECT_STREQ(error.what(), "named: expected a dtype that it has a kernel for, got float64");
  }
  size_t bytes = AT_DISPATCH_INDEX_TYPES(at::kInt, "index", [&] { return sizeof(index_t); });
  EXPECT_EQ(bytes, 4u);
}

TEST(Spellings, ScalarTypes) {
  static_assert(c10::elementSize(at::kComplexFloat) == 8 && c10::elementSize(at::kBool) == 1);
  static_assert(c10::isFloatingType(at::kBFloat16) && !c10::isFloatingType(at::kLong));
  static_assert(c10::isComplexType(at::kComplexDouble) && !c10::isComplexType(at::kDouble));
  static_assert(c10::isIntegralType(at::kBool, true) && !c10::isIntegralType(at::kBool, false));
  static_assert(c10::is_reduced_floating_point(at::kHalf) &&
                !c10::is_reduced_floating_point(at::kFloat));
  static_assert(c10::isSignedType(at::kChar) && !c10::isSignedType(at::kByte));
  static_assert(c10::canCast(at::kLong, at::kFloat) && !c10::canCast(at::kFloat, at::kLong));
  EXPECT_EQ(c10::toComplexType(at::kHalf), at::kComplexHalf);
  EXPECT_EQ(c10::promoteTypes(at::kLong, at::kHalf), at::kHalf);
}

TEST(Spellings, Numbers) {
  static_assert(!c10::Scalar(1).isSymbolic());
  EXPECT_EQ(static_cast<float>(c10::Scalar(1.00390625).toBFloat16()), 1.0f);
}

TEST(Spellings, Options) {
  const at::TensorOptions none, all = at::TensorOptions(at::kHalf)
                                          .device(at::kCUDA, 1)
                                          .layout(at::kStrided)
                                          .requires_grad(true)
                                          .pinned_memory(true);
  EXPECT_EQ(none.dtype_opt(), std::nullopt);
  EXPECT_EQ(none.device_opt(), std::nullopt);
  EXPECT_EQ(none.layout_opt(), std::nullopt);
  EXPECT_EQ(none.requires_grad_opt(), std::nullopt);
  EXPECT_EQ(none.pinned_memory_opt(), std::nullopt);
  EXPECT_EQ(all.dtype_opt(), at::kHalf);
  EXPECT_EQ(all.device_opt(), at::Device("cuda:1"));
  EXPECT_EQ(all.layout_opt(), at::kStrided);
  EXPECT_EQ(all.requires_grad_opt(), true);
  EXPECT_EQ(all.pinned_memory_opt(), true);
  EXPECT_EQ(none.merge_memory_format(std::nullopt), none);
  EXPECT_EQ(none.merge_memory_format(at::MemoryFormat::ChannelsLast).memory_format_opt(),
            at::MemoryFormat::ChannelsLast);
}

TEST(Spellings, DevicesAndLayouts) {
  EXPECT_TRUE(at::Device(at::DeviceType::PrivateUse1).is_privateuseone());
  EXPECT_FALSE(at::Device("cpu").is_privateuseone());
  const std::vector<int64_t> sizes{2, 3, 4, 5}, last{60, 1, 15, 3}, first{60, 20, 5, 1};
  EXPECT_TRUE(c10::is_channels_last_strides_2d(sizes, last));
  EXPECT_FALSE(c10::is_channels_last_strides_2d(sizes, first));
  const std::vector<int64_t> deep{2, 3, 4, 5, 6}, deep_last{360, 1, 90, 18, 3};
  EXPECT_TRUE(c10::is_channels_last_strides_3d(deep, deep_last));
  EXPECT_FALSE(c10::is_channels_last_strides_3d(sizes, last));
}

TEST(Spellings, KeySets) {
  const c10::DispatchKeySet both({c10::DispatchKey::CPU, c10::DispatchKey::AutogradCPU});
  EXPECT_TRUE(both.isSupersetOf(c10::DispatchKeySet(c10::DispatchKey::CPU)));
  EXPECT_FALSE(both.isSupersetOf(c10::DispatchKeySet(c10::DispatchKey::CUDA)));
  EXPECT_FALSE(both.remove_backend(c10::BackendComponent::CPUBit)
                   .has_backend(c10::BackendComponent::CPUBit));
}

TEST(Spellings, KeysOfASetInTurn) {
  using c10::DispatchKey, c10::DispatchKeySet;
  const DispatchKeySet keys =
      DispatchKeySet({c10::BackendComponent::CPUBit, c10::BackendComponent::CUDABit}) |
      DispatchKeySet({DispatchKey::Dense, DispatchKey::Functionalize, DispatchKey::Sparse});
  EXPECT_EQ(std::vector<DispatchKey>(keys.begin(), keys.end()),
            (std::vector{DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::SparseCPU,
                         DispatchKey::SparseCUDA, DispatchKey::Functionalize}));
  EXPECT_EQ(c10::highestPriorityBackendTypeId(keys), DispatchKey::SparseCUDA);
  // Bits that share the slots of another functionality give no key twice.
  const DispatchKeySet shared({DispatchKey::AutogradCPU, DispatchKey::AutogradRequired});
  EXPECT_EQ(std::vector<DispatchKey>(shared.begin(), shared.end()),
            std::vector{DispatchKey::AutogradCPU});
  EXPECT_EQ(*DispatchKeySet().begin(), DispatchKey::EndOfFunctionalityKeys);
  const DispatchKeySet full(DispatchKeySet::FULL);
  EXPECT_EQ(std::distance(full.begin(), full.end()), c10::num_runtime_entries - 1);
  const uint64_t bits = full.raw_repr();
  try {
    DispatchKeySet::iterator(&bits, 65);
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_STREQ(error.what(), "DispatchKeySet: expected an iterator up to bit 64, got 65");
  }
  EXPECT_EQ(c10::toFunctionalityKey(DispatchKey::SparseCUDA), DispatchKey::Sparse);
  EXPECT_EQ(c10::toFunctionalityKey(DispatchKey::Tracer), DispatchKey::Tracer);
  EXPECT_EQ(c10::getAutogradKeyFromBackend(c10::BackendComponent::CUDABit),
            DispatchKey::AutogradCUDA);
  EXPECT_STREQ(toString(c10::BackendComponent::EndOfBackendKeys), "MetaBit");
}

TEST(Spellings, NamesOfDimensions) {
  const auto named = [](const char* name) {
    return at::Dimname::fromSymbol(c10::Symbol::dimname(name));
  };
  EXPECT_EQ(named("a").unify(at::Dimname::wildcard()), named("a"));
  EXPECT_EQ(at::Dimname::wildcard().unify(named("a")), named("a"));
  EXPECT_FALSE(named("a").matches(named("b")));
  EXPECT_EQ(named("*").type(), at::NameType::WILDCARD);
  try {
    named("1a");
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_STREQ(error.what(), "Dimname: expected an identifier, got '1a'");
  }
}

TEST(Spellings, Values) {
  using c10::IValue;
  const IValue text("t"), device(at::Device("cpu")), ints(std::vector<int64_t>{1, 2}),
      doubles(std::vector<double>{0.5}), tuple = IValue::tuple({text}), list = IValue::list({text}),
                                         dict = IValue::dict({text, text});
  EXPECT_STREQ(text.tagKind(), "str");
  EXPECT_TRUE(text.isString() && !ints.isString());
  EXPECT_TRUE(device.isDevice() && !text.isDevice());
  EXPECT_TRUE(ints.isIntList() && !doubles.isIntList());
  EXPECT_TRUE(doubles.isDoubleList() && !ints.isDoubleList());
  EXPECT_TRUE(tuple.isTuple() && !list.isTuple());
  EXPECT_TRUE(list.isList() && ints.isList() && !tuple.isList());
  EXPECT_TRUE(dict.isGenericDict() && !list.isGenericDict());
  EXPECT_FALSE(text.isBoolList() || text.isGenerator() || text.isObject());
  EXPECT_EQ(IValue(at::kHalf).toScalarType(), at::kHalf);
  EXPECT_EQ(IValue(at::kStrided).toLayout(), at::kStrided);
  EXPECT_EQ(ints.toSymIntVector(), (std::vector<int64_t>{1, 2}));
  const IValue same = ints;
  EXPECT_EQ(same.internalToPointer(), ints.internalToPointer());
  EXPECT_TRUE(ints.isPtrType() && !device.isPtrType() && !IValue().isPtrType());
  EXPECT_EQ(ints.use_count(), 2U);
  EXPECT_EQ(IValue(int64_t{1}).use_count(), 1U);
}

int twice(int x) { return 2 * x; }
TEST(Spellings, CompileTimeFunctions) { EXPECT_EQ(decltype(TORCH_FN(twice))::func_ptr()(4), 8); }

}  // namespace
