// Definitions and kernels: order, duplicates, mismatches, aliases, and the state after
// deregistering.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lamella/core/warning_hook.h"
#include "lamella/dispatch/explain.h"
#include "lamella/dispatch/registry.h"
#include "tests/dispatch/helpers.h"

namespace lamella {
namespace {

using T = TensorBase;
T identity(const T& self) { return self; }

std::string call_error(const char* name, const T& tensor) {
  try {
    find(name).typed<T(const T&)>().call(tensor);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Registration, WorksBeforeTheDefinition) {
  Library cpu = implementation("reg_order", DispatchKey::CPU);
  cpu.impl("f", &identity);
  EXPECT_FALSE(Dispatcher::singleton().findSchema({"reg_order::f", ""}).has_value());
  EXPECT_TRUE(Dispatcher::singleton().findOp({"reg_order::f", ""}).has_value());
  expect_error([] { find("reg_order::f"); },
               "reg_order::f: has kernels but no definition; load the library that declares it");
  Library m = fragment("reg_order");
  m.def("f(Tensor self) -> Tensor");
  EXPECT_EQ(call_error("reg_order::f", make_tensor({2})), "");
}

TEST(Registration, RefusesADuplicate) {
  Library m = fragment("reg_twice");
  m.def("f(Tensor self) -> Tensor");
  Library again(Library::FRAGMENT, "reg_twice", std::nullopt, "again.cpp", 9);
  expect_error([&] { again.def("f(Tensor self) -> Tensor"); },
               "reg_twice::f: is already defined at test.cpp:1, so it cannot be defined again at "
               "again.cpp:9");
  Library cpu = implementation("reg_twice", DispatchKey::CPU);
  cpu.impl("f", &identity);
  static std::string warned;
  set_warning_hook([](const char* text) {
    warned = text;
    return static_cast<lamella_status>(LAMELLA_OK);
  });
  cpu.impl("f", [](const T&) -> T { throw Error("the second"); });
  set_warning_hook(nullptr);
  EXPECT_EQ(warned,
            "reg_twice::f: already has a kernel for CPU from this library, registered at "
            "test.cpp:2, which the one registered at test.cpp:2 replaces");
  EXPECT_EQ(call_error("reg_twice::f", make_tensor({2})), "the second");
}

TEST(Registration, ANamespaceIsClaimedOnce) {
  Library first(Library::DEF, "reg_claimed", std::nullopt, "first.cpp", 3);
  expect_error([] { Library second(Library::DEF, "reg_claimed", std::nullopt, "second.cpp", 4); },
               "namespace 'reg_claimed' is already claimed at first.cpp:3, so it cannot be claimed "
               "again at second.cpp:4; add to it with LAMELLA_LIBRARY_FRAGMENT");
  first.reset();
  EXPECT_NO_THROW(Library(Library::DEF, "reg_claimed", std::nullopt, "second.cpp", 4));
}

TEST(Registration, ChecksTheKernelsSignature) {
  Library m = fragment("reg_mismatch");
  m.def("f(Tensor self, Scalar alpha) -> Tensor");
  Library cpu = implementation("reg_mismatch", DispatchKey::CPU);
  expect_error([&] { cpu.impl("f", &identity); },
               "reg_mismatch::f: expected a kernel (Tensor, Scalar) -> Tensor for its schema "
               "'reg_mismatch::f(Tensor self, Scalar alpha) -> Tensor', got (Tensor) -> Tensor for "
               "CPU (test.cpp:2). The number of arguments is different. 2 vs 1");
  expect_error([&] { cpu.impl("f", [](const T& self, bool) { return self; }); },
               "reg_mismatch::f: expected a kernel (Tensor, Scalar) -> Tensor for its schema "
               "'reg_mismatch::f(Tensor self, Scalar alpha) -> Tensor', got (Tensor, bool) -> "
               "Tensor for CPU (test.cpp:2). Type mismatch in argument 2: Scalar vs bool");
  expect_error([&] { find("reg_mismatch::f").typed<T(const T&, double)>(); },
               "reg_mismatch::f: expected a C++ signature (Tensor, Scalar) -> Tensor from its "
               "schema 'reg_mismatch::f(Tensor self, Scalar alpha) -> Tensor', got (Tensor, float) "
               "-> Tensor. Type mismatch in argument 2: Scalar vs float");
}

TEST(Registration, InfersASchema) {
  Library m = fragment("reg_infer");
  m.def("f", [](const T& self, IntArrayRef, double, std::optional<int64_t>) { return self; });
  EXPECT_EQ(find("reg_infer::f").schema().str(),
            "reg_infer::f(Tensor _0, int[] _1, float _2, int? _3) -> Tensor");
}

TEST(Registration, ReportsASchemaThatCannotBeRead) {
  Library m = fragment("reg_bad");
  EXPECT_THROW(m.def("f(tensor self) -> Tensor"), Error);
  EXPECT_THROW(m.def("f_(Tensor self) -> Tensor"), Error);
  expect_error([&] { m.def("other::f(Tensor self) -> Tensor"); },
               "def: expected an operator of namespace 'reg_bad', got 'other::f' (test.cpp:1)");
}

// A definition in the block's file is named by its own line, and long texts are not cut.
TEST(Registration, NamesTheLineOfADefinition) {
  Library m(Library::FRAGMENT, "reg_line", std::nullopt, __FILE__, 1);
  const std::string name = "other::" + std::string(2000, 'f');
  const std::string file = __FILE__;
  const int line = __LINE__ + 1;
  expect_error([&] { m.def((name + "() -> ()").c_str()); },
               "def: expected an operator of namespace 'reg_line', got '" + name + "' (" + file +
                   ":" + std::to_string(line) + ")");
}

TEST(Registration, RefusesNamesThatNoOperatorCanHave) {
  Library m = fragment("reg_names");
  Library cpu = implementation("reg_names", DispatchKey::CPU);
  auto refuses = [&](const char* name, const std::string& text) {
    expect_error([&] { cpu.impl(name, &identity); },
                 "impl: expected the name of an operator such as 'ns::name.overload', got "
                 "'reg_names::" +
                     text + " (test.cpp:2)");
  };
  refuses("", "': expected an operator's name after '::', got the end of the text");
  refuses("f g", "f g': unexpected 'g' after the operator's name");
  refuses("f ", "f '");
  refuses("f.", "f.': expected an overload name after '.', got the end of the text");
  refuses("f.a.b", "f.a.b': unexpected '.' after the operator's name");
  refuses("f(Tensor x) -> Tensor",
          "f(Tensor x) -> Tensor': unexpected '(' after the operator's name");
  EXPECT_EQ(Registry::get().lookup("reg_names::", ""), nullptr);
  EXPECT_THROW(m.def("(Tensor self) -> Tensor"), Error);
  EXPECT_THROW(m.def("f(Tensor self -> Tensor"), Error);
  EXPECT_THROW(m.def(""), Error);
  EXPECT_THROW(m.def((std::string(1 << 20, 'x') + "(").c_str()), Error);
  m.def(" spaced (Tensor self) -> Tensor");
  cpu.impl("spaced", &identity);
  EXPECT_EQ(call_error("reg_names::spaced", make_tensor({2})), "");
}

TEST(Registration, ABlockThatWasClosedTakesNothing) {
  Library m = fragment("reg_closed");
  m.reset();
  m.reset();
  expect_error([&] { m.def("f(Tensor self) -> Tensor"); },
               "f: expected an open block of registrations, got one that was closed");
  expect_error([&] { m.impl("f", &identity); },
               "f: expected an open block of registrations, got one that was closed");
  expect_error([&] { m.fallback(CppFunction::makeFallthrough()); },
               "fallback: expected an open block of registrations, got one that was closed");
  Library moved = std::move(m);
  expect_error([&] { moved.def("f(Tensor self) -> Tensor"); },
               "f: expected an open block of registrations, got one that was closed");
}

// Many threads define and take back the same names: one at a time has each.
TEST(Registration, OneOfManyThreadsHasAName) {
  std::atomic<int> holders{0}, most{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Library m = fragment("reg_race");
        try {
          m.def("f(Tensor self) -> Tensor", &identity);
        } catch (const Error& error) {
          EXPECT_EQ(std::string(error.what()),
                    "reg_race::f: is already defined at test.cpp:1, so it cannot be defined again "
                    "at test.cpp:1");
          refused.fetch_add(1);
          continue;
        }
        most = std::max(most.load(), holders.fetch_add(1) + 1);
        holders.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most.load(), 1);
  expect_error([] { find("reg_race::f"); },
               "reg_race::f: was defined at test.cpp:1, in a library that is not loaded any more");
}

TEST(Registration, AHandleDoesNotOutliveItsSignature) {
  Library cpu = implementation("reg_anew", DispatchKey::CPU);
  auto define = [](const char* schema) {
    Library m = fragment("reg_anew");
    m.def(schema);
    return m;
  };
  using Unary = T(const T&);
  Library first = define("f(Tensor self) -> Tensor");
  cpu.impl("f", &identity);
  TypedOperatorHandle<Unary> unary = find("reg_anew::f").typed<Unary>();
  T x = make_tensor({2});
  EXPECT_EQ(unary.call(x).impl(), x.impl());
  first.reset();
  expect_error([&] { unary.call(x); },
               "reg_anew::f: was defined at test.cpp:1, in a library that is not loaded any more");
  // Other names of arguments change nothing of a call.
  Library same = define("f(Tensor input) -> Tensor");
  EXPECT_EQ(unary.call(x).impl(), x.impl());
  same.reset();
  cpu.reset();

  Library other = define("f(int i, int j) -> int");
  Library all = implementation("reg_anew", DispatchKey::CompositeExplicitAutograd);
  all.impl("f", +[](int64_t i, int64_t j) -> int64_t { return i * j; });
  expect_error([&] { unary.call(x); },
               "reg_anew::f: was defined anew with another signature; look it up again");
  Stack stack{IValue(x)};
  expect_error([&] { unary.callBoxed(stack); },
               "reg_anew::f: was defined anew with another signature; look it up again");
  EXPECT_EQ((find("reg_anew::f").typed<int64_t(int64_t, int64_t)>().call(6, 7)), 42);
}

TEST(Registration, SuggestsNearNames) {
  Library m = fragment("reg_near");
  m.def("multiply(Tensor self) -> Tensor", &identity);
  m.def("scale.Tensor(Tensor self) -> Tensor", &identity);
  expect_error([] { find("reg_near::multply"); },
               "unknown operator 'reg_near::multply'; did you mean 'reg_near::multiply'?");
  expect_error([] { find("reg_near::scale"); },
               "unknown operator 'reg_near::scale'; its overloads are 'reg_near::scale.Tensor'");
}

TEST(Registration, ANewerKernelHidesAnOlderUntilItGoes) {
  Library m = fragment("reg_hide");
  m.def("f(int i) -> int");
  Library one = implementation("reg_hide", DispatchKey::CPU);
  one.impl("f", [](int64_t) -> int64_t { return 1; });
  auto op = find("reg_hide::f").typed<int64_t(int64_t)>();
  EXPECT_EQ(op.call(0), 1);
  {
    Library two = implementation("reg_hide", DispatchKey::CPU);
    two.impl("f", [](int64_t) -> int64_t { return 2; });
    EXPECT_EQ(op.call(0), 2);
  }
  EXPECT_EQ(op.call(0), 1);
}

TEST(Registration, AnUnloadedOperatorSaysSo) {
  std::optional<OperatorHandle> op;
  {
    Library m(Library::FRAGMENT, "reg_gone", std::nullopt, "gone.cpp", 5);
    m.def("f(Tensor self) -> Tensor", &identity);
    op = find("reg_gone::f");
  }
  expect_error([] { find("reg_gone::f"); },
               "reg_gone::f: was defined at gone.cpp:5, in a library that is not loaded any more");
  Stack stack{make_tensor({2})};
  expect_error([&] { op->callBoxed(&stack); },
               "reg_gone::f: was defined at gone.cpp:5, in a library that is not loaded any more");
}

TEST(Registration, AnEndedDefinitionDoesNotBindLaterKernels) {
  {
    Library m = fragment("reg_ended");
    m.def("f(Tensor self, str text) -> ()");
  }
  Library cpu = implementation("reg_ended", DispatchKey::CPU);
  cpu.impl("f", &identity);
  Library m = fragment("reg_ended");
  m.def("f(Tensor self) -> Tensor");
  EXPECT_EQ(call_error("reg_ended::f", make_tensor({2})), "");
}

TEST(Registration, DestroysAFunctorOnce) {
  static int alive;
  alive = 0;
  struct Functor {
    Functor() { ++alive; }
    Functor(const Functor&) { ++alive; }
    ~Functor() { --alive; }
    int64_t operator()(int64_t i) const { return i; }
  };
  {
    Library m = fragment("reg_functor");
    m.def("f(int i) -> int", Functor());
    EXPECT_EQ(find("reg_functor::f").typed<int64_t(int64_t)>().call(3), 3);
    EXPECT_GE(alive, 1);
    m.impl("f", Functor());
    m.def("g(Tensor x) -> int");
    EXPECT_THROW(m.impl("g", Functor()), Error);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Aliases, FollowTheirPrecedence) {
  auto origin = [](const char* name, DispatchKey key) {
    OperatorEntry* op = Registry::get().lookup(name, "");
    Slot slot = Registry::get().slot(op, key);
    return slot.entry == nullptr ? std::string("none") : dispatch_key_name(slot.entry->key);
  };
  Library m = fragment("reg_alias");
  m.def("f(Tensor self) -> Tensor");
  Library implicit = implementation("reg_alias", DispatchKey::CompositeImplicitAutograd);
  implicit.impl("f", &identity);
  EXPECT_EQ(origin("reg_alias::f", DispatchKey::CPU), "CompositeImplicitAutograd");
  EXPECT_EQ(origin("reg_alias::f", DispatchKey::AutogradCPU), "CompositeImplicitAutograd");
  EXPECT_EQ(origin("reg_alias::f", DispatchKey::Undefined), "CompositeImplicitAutograd");
  Library cpu = implementation("reg_alias", DispatchKey::CPU);
  cpu.impl("f", &identity);
  EXPECT_EQ(origin("reg_alias::f", DispatchKey::CPU), "CPU");
  EXPECT_EQ(origin("reg_alias::f", DispatchKey::AutogradCPU), "none");
  EXPECT_EQ(origin("reg_alias::f", DispatchKey::AutogradCUDA), "CompositeImplicitAutograd");
  Library autograd = implementation("reg_alias", DispatchKey::Autograd);
  autograd.impl("f", &identity);
  EXPECT_EQ(origin("reg_alias::f", DispatchKey::AutogradCPU), "Autograd");
  EXPECT_EQ(origin("reg_alias::f", DispatchKey::AutogradCUDA), "CompositeImplicitAutograd");
  Library explicit_kernel = implementation("reg_alias", DispatchKey::CompositeExplicitAutograd);
  explicit_kernel.impl("f", &identity);
  EXPECT_EQ(origin("reg_alias::f", DispatchKey::CUDA), "CompositeExplicitAutograd");
  EXPECT_EQ(origin("reg_alias::f", DispatchKey::AutogradCUDA), "Autograd");
}

TEST(MissingKernel, IsReportedWithKernelsAndWhatToDo) {
  Library m = fragment("reg_missing");
  m.def("f(Tensor self) -> Tensor");
  Library cpu = implementation("reg_missing", DispatchKey::CPU);
  cpu.impl("f", &identity);
  EXPECT_EQ(call_error("reg_missing::f", make_tensor({2, 3}, DeviceType::Meta)),
            "reg_missing::f: no kernel for Meta\n"
            "  Could not run 'reg_missing::f' with arguments from the 'Meta' backend.\n"
            "  called with 'self' float32[2, 3] on meta\n"
            "  nearest kernel: CPU, registered at test.cpp:2\n"
            "  to do: register one with LAMELLA_LIBRARY_IMPL(reg_missing, Meta, m), or move the "
            "arguments to cpu");
}

TEST(Explain, SaysWhyEachKeyIsSkipped) {
  Library m = fragment("reg_explain");
  m.def("f(Tensor self) -> Tensor");
  Library cpu = implementation("reg_explain", DispatchKey::CPU);
  cpu.impl("f", &identity);
  Stack stack{make_tensor({2})};
  Explanation e = explain(find("reg_explain::f").impl(), &stack[0].value());
  EXPECT_EQ(e.str(),
            "reg_explain::f\n"
            "  schema: reg_explain::f(Tensor self) -> Tensor\n"
            "  keys: {AutogradCPU, ADInplaceOrView, CPU}\n"
            "  AutogradCPU      skipped: no kernel and no fallback: falls through\n"
            "  ADInplaceOrView  skipped: no kernel and no fallback: falls through\n"
            "  CPU              runs: kernel registered at test.cpp:2");
}

TEST(Trace, PrintsEachKernel) {
  Library m = fragment("reg_trace");
  m.def("f(Tensor self) -> Tensor");
  Library cpu = implementation("reg_trace", DispatchKey::CPU);
  cpu.impl("f", &identity);
  Library autograd = implementation("reg_trace", DispatchKey::Autograd);
  autograd.impl("f", [](DispatchKeySet keys, const T& self) {
    return find("reg_trace::f").typed<T(const T&)>().redispatch(keys & after_autograd_keyset, self);
  });
  T a = make_tensor({2});
  auto op = find("reg_trace::f").typed<T(const T&)>();
  op.call(a);
  Registry::get().set_trace(true);
  testing::internal::CaptureStderr();
  op.call(a);
  std::string printed = testing::internal::GetCapturedStderr();
  Registry::get().set_trace(false);
  testing::internal::CaptureStderr();
  op.call(a);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(printed,
            " [call] op=[reg_trace::f], key=[AutogradCPU]\n"
            "  [redispatch] op=[reg_trace::f], key=[CPU]\n");
}

TEST(Handshake, SaysInOneSentenceWhatDoesNotFit) {
  EXPECT_EQ(lamella_handshake(LAMELLA_ABI_MAJOR, LAMELLA_ABI_MINOR, sizeof(lamella_tensor),
                              sizeof(lamella_value), sizeof(lamella_operator), "libx.so"),
            LAMELLA_OK);
  EXPECT_NE(lamella_handshake(99, 0, sizeof(lamella_tensor), sizeof(lamella_value),
                              sizeof(lamella_operator), "libx.so"),
            LAMELLA_OK);
  EXPECT_EQ(std::string(lamella_error_text()),
            "libx.so: was built for Lamella ABI 99.0, this is 1.1; build it again with this "
            "version's headers");
}

}  // namespace
}  // namespace lamella
