// OperatorPlan: data that a layer derives from an operator once and keeps with it. Internal to
// Lamella.
//
// Note [Plans]
//   A layer reads an operator's schema, tags and kernels once, and stores the data derived from
//   them, a plan, with the operator. A plan is made under the registry's mutex, so it never sees
//   half of a change. Code that changes operators publishes the change first and then, still under
//   the mutex, drops the outdated plans and advances the generation (which validates data cached
//   elsewhere: it is kept with the generation read before it was made). A request after a
//   registration has returned therefore gets the new plan; a request during it gets the old or the
//   new one. Dispatch depends on no layer: each layer has its own kind of plan and states which
//   changes end it.
//   Inside a dispatched call a plan may be read without a reference: a dropped plan is destroyed
//   through reclaim.h, after all calls that may have found it. Code that keeps a plan longer holds
//   a reference.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lamella/core/macros.h"

namespace lamella {

struct OperatorEntry;
class OperatorPlan;

// Changes of an operator.
enum class OperatorChange : uint8_t {
  kKernels = 1,     // some came or went
  kDerivative = 2,  // was set or taken back
  kDefined = 4,
  kUndefined = 8,
};

// The place that plans of one layer have with each operator. For static storage alone.
class LAMELLA_PRIVATE_API PlanKind {
 public:
  static constexpr size_t kMaxKinds = 8;
  // `ended_by`: the changes of its operator that end a plan, joined with |. `reads_family`: a plan
  // also ends where any operator is defined or undefined.
  explicit PlanKind(unsigned ended_by, bool reads_family = false);
  PlanKind(const PlanKind&) = delete;
  size_t index() const { return index_; }
  // Under the registry's mutex. The operator has no plan of the kind yet.
  void keep(OperatorEntry* op, const OperatorPlan* plan);
  // Drops the plans of all kinds that a change of `op` ends, those of the other operators included
  // that read its family. Under the registry's mutex, when the change can be seen.
  static void drop_all(OperatorEntry* op, OperatorChange change,
                       const std::vector<OperatorEntry*>& all);

 private:
  void drop(OperatorEntry* op);

  size_t family_plans_ = 0;  // those there are, where the kind reads families
  size_t index_;
  unsigned ended_by_;
  bool reads_family_;
};
constexpr unsigned operator|(OperatorChange a, OperatorChange b) {
  return static_cast<unsigned>(a) | static_cast<unsigned>(b);
}
constexpr unsigned operator|(unsigned a, OperatorChange b) { return a | static_cast<unsigned>(b); }

class OperatorPlan {
 public:
  OperatorPlan() = default;
  OperatorPlan(const OperatorPlan&) = delete;
  OperatorPlan& operator=(const OperatorPlan&) = delete;
  virtual ~OperatorPlan() = default;
  // Runs once, under the registry's mutex, when the plan is dropped.
  virtual void retire() const {}
  void retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  mutable std::atomic<int64_t> references_{1};
};

// A reference to a plan of type P.
template <class P>
class PlanRef {
 public:
  PlanRef() = default;
  explicit PlanRef(const P* plan) : plan_(plan) {
    if (plan_ != nullptr) plan_->retain();
  }
  PlanRef(const PlanRef& other) : PlanRef(other.plan_) {}
  PlanRef(PlanRef&& other) noexcept : plan_(detail::take(other.plan_)) {}
  PlanRef& operator=(PlanRef other) noexcept {
    detail::swap_plain(plan_, other.plan_);
    return *this;
  }
  ~PlanRef() {
    if (plan_ != nullptr) plan_->release();
  }
  const P& operator*() const { return *plan_; }
  const P* operator->() const { return plan_; }
  explicit operator bool() const { return plan_ != nullptr; }

 private:
  const P* plan_ = nullptr;
};

}  // namespace lamella
