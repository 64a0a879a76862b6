// Libraries that are unloaded while objects with their code live: Note [Unloading] in
// lamella/abi/loading.h.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "lamella/dispatch/load_library.h"
#include "lamella/lamella.h"

namespace lamella {
namespace {

namespace fs = std::filesystem;

bool is_mapped(const char* path = LAMELLA_TEST_LINGERING) {
  void* handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}
// What is not needed any more goes with the next load or unload.
void load_another() { load_library(LAMELLA_TEST_EXTENSION).close(); }

template <class Signature>
TypedOperatorHandle<Signature> op(const char* name) {
  std::string full_name = "lingering::";
  full_name += name;
  return Dispatcher::singleton().findSchemaOrThrow(full_name.c_str(), "").typed<Signature>();
}
Tensor leaf(double value) { return full({2}, value).requires_grad_(); }
float first(const Tensor& t) { return t.data_ptr<float>()[0]; }
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

TEST(Unloading, NothingLeftUnmapsItAtOnce) {
  LoadedLibrary library = load_library(LAMELLA_TEST_LINGERING);
  op<Tensor(const Tensor&)>("twice").call(leaf(3)).sum().backward();
  EXPECT_TRUE(is_mapped());
  library.close();
  EXPECT_FALSE(is_mapped());
}

TEST(Unloading, ItsNodesStillRun) {
  LoadedLibrary library = load_library(LAMELLA_TEST_LINGERING);
  auto twice = op<Tensor(const Tensor&)>("twice");
  Tensor x = leaf(3);
  Tensor y = twice.call(x);
  library.close();
  EXPECT_EQ(error_of([&] { twice.call(x); }).rfind("lingering::twice: was defined at ", 0), 0u);
  load_another();
  EXPECT_TRUE(is_mapped());
  y.sum().backward();
  EXPECT_EQ(first(x.grad()), 2);
  y = Tensor();
  load_another();
  EXPECT_FALSE(is_mapped());
}

TEST(Unloading, ItsDerivativesAreTakenBackAndTheirPlansEnd) {
  LoadedLibrary library = load_library(LAMELLA_TEST_LINGERING);
  Tensor x = leaf(3);
  Tensor y = op<Tensor(const Tensor&)>("square").call(x);
  y.sum().backward({}, true);
  EXPECT_EQ(first(x.grad()), 6);
  library.close();
  EXPECT_TRUE(is_mapped());
  EXPECT_EQ(error_of([&] { y.sum().backward(); }),
            "lingering::square: its derivative was registered by a library that is not loaded any "
            "more");
  y = Tensor();
  load_another();
  EXPECT_FALSE(is_mapped());
}

TEST(Unloading, ItsDeletersAndHooksStillRun) {
  LoadedLibrary library = load_library(LAMELLA_TEST_LINGERING);
  Tensor t = op<Tensor(int64_t)>("foreign").call(4);
  Tensor x = leaf(3);
  op<void(const Tensor&)>("hooked").call(x);
  library.close();
  (x * 2).sum().backward();
  EXPECT_EQ(first(x.grad()), 20);
  x = Tensor();
  load_another();
  EXPECT_TRUE(is_mapped());
  t = Tensor();
  load_another();
  EXPECT_FALSE(is_mapped());
}

TEST(Unloading, ComesBackWhereItStayed) {
  LoadedLibrary library = load_library(LAMELLA_TEST_LINGERING);
  auto twice = op<Tensor(const Tensor&)>("twice");
  auto foreign = op<Tensor(int64_t)>("foreign");
  Tensor kept = foreign.call(4);
  for (int i = 0; i < 3; ++i) {
    library.close();
    EXPECT_NE(error_of([&] { twice.call(kept); }), "no error");
    library = load_library(LAMELLA_TEST_LINGERING);
    Tensor x = leaf(i);
    twice.call(x).sum().backward();
    EXPECT_EQ(first(x.grad()), 2);
    Tensor z = leaf(3);
    op<Tensor(const Tensor&)>("square").call(z).sum().backward();
    EXPECT_EQ(first(z.grad()), 6);
  }
  const int64_t before = op<int64_t()>("deleted").call();
  kept = Tensor();
  EXPECT_EQ(op<int64_t()>("deleted").call(), before + 1);
  library.close();
  EXPECT_FALSE(is_mapped());
}

TEST(Unloading, CountsItsLoads) {
  LoadedLibrary one = load_library(LAMELLA_TEST_LINGERING);
  LoadedLibrary two = load_library(LAMELLA_TEST_LINGERING);
  one.close();
  EXPECT_EQ(op<int64_t()>("deleted").call(), 0);
  two.close();
  EXPECT_FALSE(is_mapped());
  EXPECT_EQ(error_of([] { detail::check(lamella_unload_library(nullptr)); }),
            "unload_library: expected a handle, got NULL");
}

// A library that was built anew while the old one is still needed.
TEST(Unloading, AnotherFileOfTheSameNameIsAnotherLibrary) {
  fs::path folder = fs::temp_directory_path() / ("lamella_unloading_" + std::to_string(getpid()));
  fs::create_directory(folder);
  fs::path path = folder / "library.so", fresh = folder / "fresh.so";
  fs::copy_file(LAMELLA_TEST_LINGERING, path);
  LoadedLibrary library = load_library(path.string());
  Tensor x = leaf(3);
  Tensor y = op<Tensor(const Tensor&)>("twice").call(x);
  library.close();
  fs::copy_file(LAMELLA_TEST_EXTENSION, fresh);
  fs::rename(fresh, path);
  LoadedLibrary other = load_library(path.string());
  EXPECT_TRUE(Dispatcher::singleton().findSchema({"abi_extension::scale", ""}).has_value());
  EXPECT_FALSE(Dispatcher::singleton().findSchema({"lingering::twice", ""}).has_value());
  y.sum().backward();
  EXPECT_EQ(first(x.grad()), 2);
  other.close();
  EXPECT_FALSE(Dispatcher::singleton().findSchema({"abi_extension::scale", ""}).has_value());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace lamella
