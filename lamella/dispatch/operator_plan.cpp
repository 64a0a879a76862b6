// Stores, drops and replaces the plans of operators: see Note [Plans].
#include "lamella/dispatch/operator_plan.h"

#include <algorithm>
#include <iterator>

#include "lamella/core/error.h"
#include "lamella/dispatch/operator_entry.h"
#include "lamella/dispatch/reclaim.h"

namespace lamella {

namespace {
PlanKind* kinds[PlanKind::kMaxKinds + 1];
}  // namespace

PlanKind::PlanKind(unsigned ended_by, bool reads_family)
    : ended_by_(ended_by), reads_family_(reads_family) {
  index_ = static_cast<size_t>(std::find(std::begin(kinds), std::end(kinds), nullptr) - kinds);
  LAMELLA_INTERNAL_ASSERT(index_ < kMaxKinds, "more kinds of plans than operators have room for");
  kinds[index_] = this;
}

void PlanKind::keep(OperatorEntry* op, const OperatorPlan* plan) {
  if (reads_family_) ++family_plans_;
  __atomic_store_n(&op->plans[index_], const_cast<OperatorPlan*>(plan), __ATOMIC_RELEASE);
}

void PlanKind::drop(OperatorEntry* op) {
  OperatorPlan*& place = op->plans[index_];
  OperatorPlan* plan = place;
  if (plan == nullptr) return;
  __atomic_store_n(&place, nullptr, __ATOMIC_RELEASE);
  if (reads_family_) --family_plans_;
  plan->retire();
  reclaim::retire([](void* p) { static_cast<OperatorPlan*>(p)->release(); }, plan);
}

void PlanKind::drop_all(OperatorEntry* op, OperatorChange change,
                        const std::vector<OperatorEntry*>& all) {
  const bool definition =
      change == OperatorChange::kDefined || change == OperatorChange::kUndefined;
  for (PlanKind* const* at = kinds; *at != nullptr; ++at) {
    PlanKind& kind = **at;
    if ((kind.ended_by_ & static_cast<unsigned>(change)) != 0) kind.drop(op);
    if (!definition || !kind.reads_family_) continue;
    for (size_t i = 0; kind.family_plans_ != 0 && i < all.size(); ++i) kind.drop(all[i]);
  }
}

}  // namespace lamella
