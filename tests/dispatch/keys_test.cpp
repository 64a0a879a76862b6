// Dispatch keys and key sets: priorities, slots, names, sets of alias keys.
#include <gtest/gtest.h>

#include "lamella/dispatch/keys.h"

namespace lamella {
namespace {

TEST(DispatchKeySet, TheHighestKeyWins) {
  DispatchKeySet keys({DispatchKey::CUDA, DispatchKey::ADInplaceOrView, DispatchKey::AutogradCUDA});
  EXPECT_EQ(keys.highestPriorityTypeId(), DispatchKey::AutogradCUDA);
  keys = keys - DispatchKeySet(DispatchKey::AutogradCUDA);
  EXPECT_EQ(keys.highestPriorityTypeId(), DispatchKey::ADInplaceOrView);
  keys = keys.remove(DispatchKey::ADInplaceOrView);
  EXPECT_EQ(keys.highestPriorityTypeId(), DispatchKey::CUDA);
  EXPECT_EQ(DispatchKeySet().highestPriorityTypeId(), DispatchKey::Undefined);
}

TEST(DispatchKeySet, EachRuntimeKeyIsItsOwnHighest) {
  for (DispatchKey key : runtime_keys()) {
    EXPECT_EQ(DispatchKeySet(key).highestPriorityTypeId(), key) << dispatch_key_name(key);
    EXPECT_EQ(dispatch_key_from_name(dispatch_key_name(key)), key);
  }
  EXPECT_GT(runtime_keys().size(), 200u);
}

TEST(DispatchKeySet, OrderOfTheLayers) {
  DispatchKey order[] = {
      DispatchKey::CPU,           DispatchKey::BackendSelect,   DispatchKey::Python,
      DispatchKey::Functionalize, DispatchKey::Conjugate,       DispatchKey::ADInplaceOrView,
      DispatchKey::AutogradCPU,   DispatchKey::Tracer,          DispatchKey::AutocastCPU,
      DispatchKey::Batched,       DispatchKey::PythonDispatcher};
  DispatchKeySet keys;
  for (DispatchKey key : order) {
    keys = keys.add(key);
    EXPECT_EQ(keys.highestPriorityTypeId(), key) << dispatch_key_name(key);
  }
  EXPECT_EQ(to_string(keys),
            "{PythonDispatcher, Batched, AutocastCPU, Tracer, AutogradCPU, ADInplaceOrView, "
            "Conjugate, Functionalize, Python, BackendSelect, CPU}");
}

TEST(DispatchKeySet, GradientsLeadToTheSameSlot) {
  DispatchKeySet plain({DispatchKey::CPU, DispatchKey::AutogradCPU});
  EXPECT_EQ(plain.add(DispatchKey::AutogradRequired).highestPriorityTypeId(),
            DispatchKey::AutogradCPU);
}

TEST(DispatchKeys, AliasesCoverTheirKeys) {
  EXPECT_TRUE(alias_includes(DispatchKey::CompositeExplicitAutograd, DispatchKey::Meta));
  EXPECT_FALSE(alias_includes(DispatchKey::CompositeExplicitAutograd, DispatchKey::AutogradCPU));
  EXPECT_TRUE(alias_includes(DispatchKey::CompositeImplicitAutograd, DispatchKey::AutogradMeta));
  EXPECT_TRUE(alias_includes(DispatchKey::Autograd, DispatchKey::AutogradPrivateUse16));
  EXPECT_TRUE(alias_includes(DispatchKey::Autocast, DispatchKey::AutocastCUDA));
  EXPECT_EQ(dispatch_key_from_name("FuncTorchBatched"), DispatchKey::Batched);
  EXPECT_EQ(dispatch_key_from_name("nonsense"), std::nullopt);
}

}  // namespace
}  // namespace lamella
