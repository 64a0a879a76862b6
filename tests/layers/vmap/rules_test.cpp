// The batching rule of each built-in operator.
#include <gtest/gtest.h>

#include "lamella/dispatch/registry.h"
#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {
namespace {

TEST(VmapRules, EveryBuiltInOperatorHasOneThatIsNotTheLoop) {
  int seen = 0;
  for (OperatorEntry* entry : Registry::get().entries()) {
    if (!entry->defined() || !entry->name_storage.starts_with("aten::")) continue;
    Registry::get().resolve(entry);
    const BatchingPlan& plan =
        plan_of(entry);  // throws where there is no rule of the name that is stated
    if (plan.facts->tensors.empty()) continue;
    EXPECT_NE(plan.rule, &loop_rule) << entry->full_name();
    ++seen;
  }
  EXPECT_GT(seen, 1000);
}

}  // namespace
}  // namespace lamella::vmap
