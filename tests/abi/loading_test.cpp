// Separately built libraries: loaded, called, unloaded, loaded again, and refused.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "lamella/dispatch/library.h"
#include "lamella/dispatch/load_library.h"

namespace lamella {
namespace {

TensorBase tensor_of(float* data, int64_t size) {
  lamella_tensor* tensor = nullptr;
  detail::check(lamella_tensor_from_blob(data, 1, &size, nullptr,
                                         static_cast<uint8_t>(ScalarType::Float), 0, -1, nullptr,
                                         nullptr, &tensor));
  return TensorBase::adopt(tensor);
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(Loading, CallUnloadCallAgain) {
  float numbers[2] = {1.5f, -2};
  TensorBase self = tensor_of(numbers, 2);
  LoadedLibrary library = load_library(LAMELLA_TEST_EXTENSION);
  auto op = Dispatcher::singleton()
                .findSchemaOrThrow("abi_extension::scale", "")
                .typed<TensorBase(const TensorBase&, const Scalar&)>();
  TensorBase result = op.call(self, Scalar(2));
  EXPECT_EQ(result.data_ptr<float>()[0], 3.0f);
  EXPECT_EQ(result.data_ptr<float>()[1], -4.0f);

  library.close();
  std::string text = error_of([&] { op.call(self, Scalar(2)); });
  EXPECT_EQ(text.rfind("abi_extension::scale: was defined at ", 0), 0u) << text;
  EXPECT_NE(text.find("extension.cpp:50, in a library that is not loaded any more"),
            std::string::npos)
      << text;
  EXPECT_FALSE(op.hasSchema());
  // What the kernel returned stays: it belongs to the caller.
  EXPECT_EQ(result.data_ptr<float>()[1], -4.0f);

  LoadedLibrary again = load_library(LAMELLA_TEST_EXTENSION);
  EXPECT_EQ(op.call(self, Scalar(4)).data_ptr<float>()[0], 6.0f);
  again.close();
}

TEST(Loading, EveryKindOfSignature) {
  LoadedLibrary library = load_library(LAMELLA_TEST_EXTENSION);
  auto find = [](const char* name) { return Dispatcher::singleton().findSchemaOrThrow(name, ""); };
  auto total = find("abi_extension::total")
                   .typed<int64_t(IntArrayRef, std::optional<int64_t>, std::string_view)>();
  EXPECT_EQ(total.call({1, 2, 3}, 10, "ab"), 18);
  EXPECT_EQ(total.call({}, std::nullopt, ""), 0);

  float one = 1, two = 2;
  TensorBase a = tensor_of(&one, 1), b = tensor_of(&two, 1);
  auto both =
      find("abi_extension::both")
          .typed<std::tuple<TensorBase, TensorBase>(const TensorBase&, const TensorBase&)>();
  auto [first, second] = both.call(a, b);
  EXPECT_TRUE(first.is_same(b) && second.is_same(a));

  auto count = find("abi_extension::count").typed<int64_t(const TensorBase&, int64_t, double)>();
  EXPECT_EQ(count.call(a, 2, 3.0), 3);

  auto scale = find("abi_extension::scale");
  EXPECT_EQ(toString(scale.schema()), "abi_extension::scale(Tensor self, Scalar factor) -> Tensor");
  EXPECT_NE(error_of([&] { scale.typed<int64_t(const TensorBase&)>(); }), "no error");
  Stack stack{IValue(a), IValue(int64_t{3})};
  scale.callBoxed(&stack);
  ASSERT_EQ(stack.size(), 1u);
  EXPECT_EQ(stack[0].toTensor<TensorBase>().data_ptr<float>()[0], 3.0f);

  lamella_tensor* strided = nullptr;
  float four[4] = {1, 2, 3, 4};
  int64_t size = 2, step = 2;
  detail::check(lamella_tensor_from_blob(four, 1, &size, &step,
                                         static_cast<uint8_t>(ScalarType::Float), 0, -1, nullptr,
                                         nullptr, &strided));
  Stack gaps{IValue(TensorBase::adopt(strided)), IValue(int64_t{3})};
  EXPECT_EQ(error_of([&] { scale.callBoxed(&gaps); }), "scale: expected 'self' to be contiguous");
  library.close();
}

TEST(Loading, CallsFromOtherThreadsWhileItComesAndGoes) {
  float number = 1;
  TensorBase self = tensor_of(&number, 1);
  bool stop = false;
  int called = 0, refused = 0;
  const lamella_operator* op = nullptr;
  {
    LoadedLibrary first = load_library(LAMELLA_TEST_EXTENSION);
    op = Dispatcher::singleton().findSchemaOrThrow("abi_extension::scale", "").impl();
    first.close();
  }
  std::thread caller([&] {
    TypedOperatorHandle<TensorBase(const TensorBase&, const Scalar&)> handle(op);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
      try {
        called += handle.call(self, Scalar(3)).data_ptr<float>()[0] == 3.0f;
      } catch (const Error&) {
        ++refused;
      }
    }
  });
  for (int i = 0; i < 30; ++i) {
    LoadedLibrary library = load_library(LAMELLA_TEST_EXTENSION);
    std::this_thread::yield();
    library.close();
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
  caller.join();
  EXPECT_GT(called + refused, 0);
}

TEST(Loading, RefusesALaterVersion) {
  std::string text = error_of([] { load_library(LAMELLA_TEST_NEWER_EXTENSION); });
  EXPECT_NE(text.find("newer_extension.cpp: was built for Lamella ABI 1.77, this is 1.1; build it "
                      "again with this version's headers"),
            std::string::npos)
      << text;
  EXPECT_FALSE(Dispatcher::singleton().findSchema({"abi_newer::nothing", ""}).has_value());
}

TEST(Loading, SaysWhatIsNotThere) {
  std::string text = error_of([] { load_library("/nowhere/libnothing.so"); });
  EXPECT_EQ(text.rfind("load_library: /nowhere/libnothing.so: ", 0), 0u) << text;
}

TEST(Loading, ANamespaceIsClaimedOnce) {
  LoadedLibrary library = load_library(LAMELLA_TEST_EXTENSION);
  std::string text = error_of(
      [] { Library second(Library::DEF, "abi_extension", std::nullopt, "other.cpp", 12); });
  EXPECT_NE(text.find("abi_extension"), std::string::npos) << text;
  EXPECT_NE(text.find("extension.cpp"), std::string::npos) << text;
  library.close();
  // Free again.
  Library third(Library::DEF, "abi_extension", std::nullopt, "other.cpp", 13);
}

}  // namespace
}  // namespace lamella
