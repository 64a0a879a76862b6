// Policies: from tags or from a definition's own words, derived, and refused.
#include "lamella/dispatch/policy.h"

#include <gtest/gtest.h>

#include "lamella/abi/policy.h"
#include "tests/dispatch/helpers.h"

namespace lamella {
namespace {

using T = TensorBase;

const lamella_operator* handle(const char* name) { return lamella_lookup_operator(name, "", 1); }
std::string policy(const char* name, const char* which) {
  const char* word = lamella_operator_policy(handle(name), which);
  return word != nullptr ? word : "(none)";
}

TEST(Policy, IsReadFromTags) {
  Library m = fragment("pol_tags");
  m.def("f(Tensor self) -> Tensor", "core, autocast:float32, batching:loop, hlo:add");
  EXPECT_EQ(policy("pol_tags::f", "autocast"), "float32");
  EXPECT_EQ(policy("pol_tags::f", "batching"), "loop");
  EXPECT_EQ(policy("pol_tags::f", "hlo"), "add");
  EXPECT_EQ(policy("pol_tags::f", "core"), "(none)");
  m.def("g(Tensor self) -> Tensor");
  EXPECT_EQ(policy("pol_tags::g", "autocast"), "(none)");
  EXPECT_EQ(policy("pol_tags::g", "batching"), "(none)");
  EXPECT_EQ(policy("pol_tags::g", "hlo"), "(none)");
}

TEST(Policy, HasATypedSpelling) {
  Library m = fragment("pol_typed");
  m.def("f(Tensor self) -> Tensor", {.autocast = AutocastClass::kLowerPrecision,
                                     .batching = "my_rule",
                                     .hlo = "exponential",
                                     .tags = "core"});
  EXPECT_EQ(policy("pol_typed::f", "autocast"), "lower_precision");
  EXPECT_EQ(policy("pol_typed::f", "batching"), "my_rule");
  EXPECT_EQ(policy("pol_typed::f", "hlo"), "exponential");
  m.def("g", [](const T& self) { return self; }, {.autocast = AutocastClass::kNone});
  EXPECT_EQ(policy("pol_typed::g", "autocast"), "none");
}

TEST(Policy, StandBesideATextForReaders) {
  auto doc = [](const char* name) {
    const char* text = lamella_operator_doc(lamella_lookup_operator(name, "", 0));
    return std::string(text != nullptr ? text : "(none)");
  };
  Library m = fragment("pol_doc");
  m.def("f (Tensor self) -> Tensor", {.batching = "loop", .doc = "It, gives self."});
  m.def("g", [](const T& self) { return self; }, {.doc = "Gives \"self\"."});
  m.def("h(Tensor self) -> Tensor", {.batching = "loop"});
  EXPECT_EQ(doc("pol_doc::f"), "It, gives self.");
  EXPECT_EQ(policy("pol_doc::f", "batching"), "loop");
  EXPECT_EQ(doc("pol_doc::g"), "Gives \"self\".");
  EXPECT_EQ(doc("pol_doc::h"), "(none)");
  m.reset();
  EXPECT_EQ(doc("pol_doc::f"), "(none)");
  Library again = fragment("pol_doc");
  again.def("f(Tensor self) -> Tensor");
  EXPECT_EQ(doc("pol_doc::f"), "(none)");
}

TEST(Policy, TextsAreOfTheirOwnLibrary) {
  Library m = fragment("pol_doc_of");
  m.def("f(Tensor self) -> Tensor");
  lamella_library* other = nullptr;
  ASSERT_EQ(lamella_library_open(LAMELLA_LIBRARY_FRAGMENT, "pol_doc_of", 0xffff, "here", 1, &other),
            LAMELLA_OK);
  EXPECT_NE(lamella_library_document(other, "f", "A text."), LAMELLA_OK);
  EXPECT_STREQ(lamella_error_text(),
               "document: expected an operator that this library defines, got 'pol_doc_of::f'");
  lamella_library_close(other);
}

TEST(Policy, OfADeviceGoesFirst) {
  Library m = fragment("pol_device");
  m.def("f(Tensor self) -> Tensor", "autocast:float32,autocast.cuda:none");
  EXPECT_EQ(policy("pol_device::f", "autocast"), "float32");
  EXPECT_EQ(policy("pol_device::f", "autocast.cpu"), "float32");
  EXPECT_EQ(policy("pol_device::f", "autocast.cuda"), "none");
  auto* op = static_cast<const OperatorEntry*>(handle("pol_device::f"));
  EXPECT_EQ(autocast_class(*op, DispatchKey::AutocastCUDA), "none");
  EXPECT_EQ(autocast_class(*op, DispatchKey::AutocastPrivateUse1), "float32");
  EXPECT_EQ(autocast_class(*op, DispatchKey::AutogradCUDA), "");
}

TEST(Policy, OfBatchingFollowsFromTagsAndKernels) {
  Library m = fragment("pol_derived");
  m.def("p(Tensor self) -> Tensor", "pointwise");
  m.def("r(Tensor self) -> Tensor", "reduction");
  m.def("said(Tensor self) -> Tensor", "pointwise,batching:loop");
  m.def("c", [](const T& self) { return self; });
  m.def("both", [](const T& self) { return self; });
  Library cpu = implementation("pol_derived", DispatchKey::CPU);
  cpu.impl("both", [](const T& self) { return self; });
  EXPECT_EQ(policy("pol_derived::p", "batching"), "pointwise");
  EXPECT_EQ(policy("pol_derived::r", "batching"), "reduction");
  EXPECT_EQ(policy("pol_derived::said", "batching"), "loop");
  EXPECT_EQ(policy("pol_derived::c", "batching"), "composite");
  EXPECT_EQ(policy("pol_derived::both", "batching"), "(none)");
}

TEST(Policy, UnknownWordsAreRefused) {
  Library m = fragment("pol_bad");
  auto refuses = [&](const char* tags, const std::string& text) {
    expect_error([&] { m.def("f(Tensor self) -> Tensor", tags); }, text);
    EXPECT_EQ(handle("pol_bad::f"), nullptr);
  };
  refuses("autocast:half",
          "pol_bad::f: 'autocast' expects lower_precision, float32, float32_set_dtype, widest, "
          "banned or none, got 'half' (test.cpp:1)");
  refuses("autocast.cuda:floa32",
          "pol_bad::f: 'autocast.cuda' expects lower_precision, float32, float32_set_dtype, "
          "widest, banned or none, got 'floa32'; did you mean 'float32'? (test.cpp:1)");
  refuses("batching:reducton",
          "pol_bad::f: 'batching' expects pointwise, reduction, composite, loop or the name of a "
          "rule, got 'reducton'; did you mean 'reduction'? (test.cpp:1)");
  refuses("hlo:multipl",
          "pol_bad::f: 'hlo' expects an HLO opcode such as add, got 'multipl'; did you mean "
          "'multiply'? (test.cpp:1)");
  refuses("hlo:", "pol_bad::f: 'hlo' expects an HLO opcode such as add, got nothing (test.cpp:1)");
  refuses("autocst:float32",
          "pol_bad::f: unknown policy 'autocst' in tag 'autocst:float32'; did you mean "
          "'autocast'? (test.cpp:1)");
  refuses("batching.cpu:loop",
          "pol_bad::f: tag 'batching.cpu:loop' expects no device type: only autocast has one "
          "(test.cpp:1)");
  refuses("autocast:float32,autocast:widest",
          "pol_bad::f: expected one word for a policy, got 'autocast:float32' and "
          "'autocast:widest' (test.cpp:1)");
}

TEST(Policy, OfAWriterIsItsBatchingRuleAlone) {
  Library m = fragment("pol_write");
  m.def("f_(Tensor(a!) self) -> Tensor(a!)", "batching:pointwise,autocast:none");
  expect_error([&] { m.def("g_(Tensor(a!) self) -> Tensor(a!)", "autocast:float32"); },
               "pol_write::g_: expected 'autocast:float32' on an operator that writes no argument, "
               "got 'g_(Tensor(a!) self) -> Tensor(a!)' (test.cpp:1)");
  expect_error([&] { m.def("g_(Tensor(a!) self) -> Tensor(a!)", "hlo:add"); },
               "pol_write::g_: expected 'hlo:add' on an operator that writes no argument, got "
               "'g_(Tensor(a!) self) -> Tensor(a!)' (test.cpp:1)");
}

}  // namespace
}  // namespace lamella
