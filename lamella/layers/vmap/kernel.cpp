// The kernel of the key Batched, which handles calls on batched tensors: Note [Batched tensors and
// levels] in vmap.h.
#include "lamella/core/dual_hook.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/layer_fallback.h"
#include "lamella/dispatch/registry.h"
#include "lamella/layers/vmap/random.h"
#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {

lamella_status run_call(BatchedCall& call) noexcept;
void set_hooks();

namespace {

// Calls f(tensor, argument) for each tensor of a call.
template <class F>
LAMELLA_ALWAYS_INLINE void each_tensor(const BatchingPlan& plan, const lamella_value* arguments,
                                       F&& f) {
  for (uint32_t i : plan.facts->tensors) {
    const lamella_value& value = arguments[i];
    if (LAMELLA_LIKELY(value.tag == LAMELLA_TENSOR)) {
      if (value.as.tensor != nullptr) f(value.as.tensor, i);
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t k = 0; k < value.size; ++k) {
        if (list[k] != nullptr) f(list[k], i);
      }
    }
  }
}

// Checks that written arguments are batched, so that they have room for every example.
void check_written(const BatchingPlan& plan, const Level& level, const lamella_value* arguments) {
  each_tensor(plan, arguments, [&](lamella_tensor* t, uint32_t i) {
    if (!plan.facts->arguments[i].is_written || (is_batched(t) && level_number(t) == level.number))
      return;
    std::string who;
    each_tensor(plan, arguments, [&](lamella_tensor* other, uint32_t k) {
      if (who.empty() && is_batched(other) && level_number(other) == level.number) {
        who = plan.arguments[k].name;
      }
    });
    throw Error(str(plan.name, ": expected '", plan.arguments[i].name,
                    "', which is written, to be batched under vmap, because '", who,
                    "' is: one tensor cannot hold a result for each of ", level.size,
                    " examples; use the operator that returns a new tensor, or let vmap batch '",
                    plan.arguments[i].name, "' as well"));
  });
}

// The arguments of a call in which some tensor is not batched at the level but has a tangent that
// is: Note [Tangents of more levels].
class ExposedDuals {
 public:
  ExposedDuals(const BatchingPlan& plan, const Level& level, uint32_t count,
               const lamella_value* arguments)
      : level_(level), values_(arguments, arguments + count) {
    for (uint32_t i : plan.facts->tensors) {
      lamella_value& value = values_[i];
      if (value.tag == LAMELLA_TENSOR) {
        value.as.tensor = exposed(value.as.tensor);
      } else if (value.tag == LAMELLA_TENSOR_LIST) {
        auto* from = static_cast<lamella_tensor* const*>(value.as.pointer);
        std::vector<lamella_tensor*> list;
        for (uint32_t k = 0; k < value.size; ++k) list.push_back(exposed(from[k]));
        lists_.push_back(std::move(list));
        value.as.pointer = lists_.back().data();
        value.flags = 0;
      }
    }
  }
  const lamella_value* arguments() const { return values_.data(); }

  static bool may_be_one(const lamella_tensor* t, const Level& level) {
    return (t->flags & LAMELLA_TENSOR_TANGENT) != 0 &&
           !(is_batched(t) && level_number(t) == level.number);
  }

 private:
  lamella_tensor* exposed(lamella_tensor* t) {
    if (t == nullptr || !may_be_one(t, level_)) return t;
    TensorBase dual = expose_dual()(TensorBase::borrow(t), {level_.number, level_.size});
    if (!dual.defined()) return t;
    kept_.push_back(make_batched(std::move(dual), level_.number));
    return kept_.back().impl();
  }

  const Level& level_;
  std::vector<lamella_value> values_;
  std::vector<std::vector<lamella_tensor*>> lists_;
  std::vector<TensorBase> kept_;
};

lamella_status run(const lamella_kernel*, const lamella_operator* op, uint64_t,
                   const lamella_value* arguments, lamella_value* returns) noexcept {
  try {
    const BatchingPlan& plan = plan_of(op);
    uint32_t number = 0;
    const lamella_tensor* highest = nullptr;
    bool tangents = false;
    each_tensor(plan, arguments, [&](lamella_tensor* t, uint32_t) {
      tangents |= (t->flags & LAMELLA_TENSOR_TANGENT) != 0;
      if (is_batched(t) && level_number(t) > number) {
        number = level_number(t);
        highest = t;
      }
    });
    LAMELLA_INTERNAL_ASSERT(highest != nullptr, plan.name, ": met the kernel of batched tensors");
    const Level& level = level_of(highest, plan.name.c_str());
    if (LAMELLA_UNLIKELY(plan.checks_written)) check_written(plan, level, arguments);
    if (LAMELLA_UNLIKELY(tangents)) {
      ExposedDuals exposed(plan, level, op->argument_count, arguments);
      BatchedCall call(plan, op, level, exposed.arguments(), returns);
      return run_call(call);
    }
    BatchedCall call(plan, op, level, arguments, returns);
    return run_call(call);
  } catch (...) {
    return lamella::detail::status_of_current_exception();
  }
}

}  // namespace

void run_composite(BatchedCall& call, const lamella_value* arguments) {
  const OperatorEntry& op = *call.plan().op;
  std::shared_ptr<KernelEntry> kernel;  // kept alive during the call, in case it is unregistered
  {
    std::lock_guard lock(Registry::get().mutex());
    for (DispatchKey key :
         {DispatchKey::CompositeImplicitAutograd, DispatchKey::CompositeExplicitAutograd}) {
      auto found = op.kernels.find(key);
      if (kernel == nullptr && found != op.kernels.end() && !found->second.empty()) {
        kernel = found->second.front();
      }
    }
  }
  LAMELLA_CHECK(kernel != nullptr, op.full_name(),
                ": says that it is batched by its composite kernel, and has none");
  call.run_kernel(kernel.get(), arguments);
}
void composite_rule(BatchedCall& call) { run_composite(call, &call.original(0)); }

void refuse_rule(BatchedCall& call) {
  const BatchingPlan& plan = call.plan();
  if (plan.name == "item" || plan.name == "_local_scalar_dense" || plan.name == "is_nonzero" ||
      plan.name == "equal" || plan.name == "allclose") {
    // Python reads elements with _local_scalar_dense, which users know as item.
    throw Error(str(plan.name == "_local_scalar_dense" ? "item" : plan.name,
                    ": expected a tensor that is not batched, because under vmap each of ",
                    call.batch_size(),
                    " examples has a value of its own and Python code runs once for all; use "
                    "lamella.where in the place of a branch"));
  }
  throw Error(str(plan.name,
                  ": expected a tensor that is not batched, because under vmap the shape of the "
                  "result would be another for each of ",
                  call.batch_size(),
                  " examples; use lamella.where or a mask, which keep the shape"));
}

void register_layer() {
  set_hooks();
  add_slot_rules();
  register_layer_fallback(DispatchKey::Batched, &run, __FILE__, __LINE__);
  register_layer_fallback(DispatchKey::VmapMode, &draw, __FILE__, __LINE__);
}

}  // namespace lamella::vmap
