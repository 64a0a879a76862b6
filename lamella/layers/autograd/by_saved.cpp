// Derivatives and tangents for bridges: Note [A derivative by what it saves] in
// lamella/abi/operators.h.
#include "lamella/abi/operators.h"

#include <optional>
#include <utility>
#include <vector>

#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/reclaim.h"
#include "lamella/layers/autograd/mode.h"
#include "lamella/layers/autograd/record.h"
#include "lamella/layers/autograd/variable.h"

namespace lamella::autograd {
namespace {

uint32_t entries(const lamella_value& value) {
  uint32_t count = 0;
  each_tensor(value, [&](lamella_tensor*) { ++count; });
  return count;
}

// Where the results of each slot begin, and the end.
std::vector<uint32_t> places(const RecordPlan* plan, const lamella_value* arguments, uint32_t count,
                             const char* what) {
  std::vector<uint32_t> first{0};
  for (const SlotPlan& slot : plan->slots) {
    first.push_back(first.back() + (slot.is_list ? entries(arguments[slot.argument]) : 1));
  }
  LAMELLA_CHECK(first.back() == count, plan->op->full_name(), ": expected ", first.back(), " ",
                what, ", one for each tensor that its derivative is for, got ", count);
  return first;
}

void backward(const lamella_operator* op, const lamella_value* arguments,
              const lamella_value* returns, lamella_tensor* const* grads, uint32_t grad_count,
              uint64_t needs, lamella_tensor** results, uint32_t result_count) {
  const RecordPlan* plan = plan_of(op);
  const lamella_derivative* d = plan->derivative.load(std::memory_order_acquire);
  if (d == nullptr || d->backward == nullptr || plan->not_differentiable) {
    throw NotImplementedError(str(plan->op->full_name(),
                                  ": has no derivative (the operator was registered at ",
                                  plan->where, ")"));
  }
  const std::vector<uint32_t> first = places(plan, arguments, result_count, "results");
  std::vector<Saved> saved(d->saved_count);
  std::vector<lamella_value> values(d->saved_count + 1);
  {
    // What is kept until the formula has run is not saved for backward.
    ModeGuard no_hooks(LAMELLA_MODE_SAVED_HOOKS, 0u);
    for (uint32_t k = 0; k < d->saved_count; ++k) {
      const lamella_saved& one = d->saved[k];
      if ((one.used_by & needs) == 0) continue;
      const lamella_value& from = one.is_return ? returns[one.index] : arguments[one.index];
      if (one.what == LAMELLA_SAVE_VALUE) {
        values[k] = from;
        continue;
      }
      keep(from, one.what, -1, &saved[k]);
      values[k] = saved[k].value;
      if (one.what == LAMELLA_SAVE_META && !saved[k].tensor.is_empty()) {
        values[k].tag = LAMELLA_TENSOR;
        values[k].as.tensor = saved[k].tensor.unchanged();
      }
    }
  }
  std::vector<lamella_tensor*> made(result_count + 1, nullptr);
  lamella_backward call{};
  call.saved = values.data();
  call.grads = grads;
  call.grad_count = grad_count;
  call.slot_count = d->slot_count;
  call.needs = needs;
  call.first = first.data();
  call.results = made.data();
  lamella_status status = d->backward(&call);
  if (status != LAMELLA_OK) {
    for (lamella_tensor* one : made) {
      if (one != nullptr) detail::release(one);
    }
    detail::check(status);
  }
  std::copy(made.begin(), made.end() - 1, results);
}

// The value with its tensors replaced by aliases, which `holder` keeps.
lamella_value aliased(const lamella_value& value, std::vector<TensorBase>& holder,
                      std::vector<std::vector<lamella_tensor*>>& lists) {
  if (value.tag != LAMELLA_TENSOR && value.tag != LAMELLA_TENSOR_LIST) return value;
  auto alias = [&](lamella_tensor* t) -> lamella_tensor* {
    if (t == nullptr) return nullptr;
    holder.push_back(Tensor(TensorBase::borrow(t)).alias());
    return holder.back().impl();
  };
  lamella_value made = value;
  made.flags = 0;
  if (value.tag == LAMELLA_TENSOR) {
    made.as.tensor = alias(value.as.tensor);
    return made;
  }
  lists.emplace_back();
  each_tensor(value, [&](lamella_tensor* t) { lists.back().push_back(alias(t)); });
  made.as.pointer = lists.back().data();
  return made;
}

void forward(const lamella_operator* op, const lamella_value* arguments,
             const lamella_value* returns, lamella_tensor* const* tangents, uint32_t tangent_count,
             lamella_tensor** results, uint32_t result_count) {
  const RecordPlan* plan = plan_of(op);
  const std::vector<uint32_t> first = places(plan, arguments, tangent_count, "tangents");
  LAMELLA_CHECK_NOT_IMPLEMENTED(plan->written.empty(), plan->op->full_name(),
                                ": writes its arguments, so its tangents need a call of it");
  std::vector<TensorBase> holder;
  std::vector<std::vector<lamella_tensor*>> lists;
  std::vector<lamella_value> primals, results_of;
  for (uint32_t i = 0; i < op->argument_count; ++i) {
    primals.push_back(aliased(arguments[i], holder, lists));
  }
  for (uint32_t r = 0; r < op->return_count; ++r) {
    results_of.push_back(aliased(returns[r], holder, lists));
  }
  for (size_t s = 0; s < plan->slots.size(); ++s) {
    uint32_t i = first[s];
    each_tensor(primals[plan->slots[s].argument], [&](lamella_tensor* t) {
      if (t != nullptr && tangents[i] != nullptr) set_tangent(t, TensorBase::borrow(tangents[i]));
      ++i;
    });
  }
  detail::check(propagate_tangents(plan, op, primals.data(), primals.data(), results_of.data()));
  std::vector<TensorBase> made;
  for (uint32_t r = 0; r < op->return_count; ++r) {
    each_tensor(results_of[r], [&](lamella_tensor* t) {
      made.push_back(t != nullptr ? tangent(t) : TensorBase());
    });
  }
  LAMELLA_CHECK(made.size() == result_count, plan->op->full_name(), ": expected ", made.size(),
                " results, one for each return, got ", result_count);
  for (uint32_t i = 0; i < result_count; ++i) results[i] = made[i].unsafe_release();
}

}  // namespace
}  // namespace lamella::autograd

extern "C" {

lamella_status lamella_call_backward(const lamella_operator* op, const lamella_value* arguments,
                                     const lamella_value* returns, lamella_tensor* const* grads,
                                     uint32_t grad_count, uint64_t needs, lamella_tensor** results,
                                     uint32_t result_count) noexcept {
  return lamella::detail::guarded([&] {
    lamella::reclaim::Reading reading;
    lamella::autograd::backward(op, arguments, returns, grads, grad_count, needs, results,
                                result_count);
  });
}

lamella_status lamella_call_forward(const lamella_operator* op, const lamella_value* arguments,
                                    const lamella_value* returns, lamella_tensor* const* tangents,
                                    uint32_t tangent_count, lamella_tensor** results,
                                    uint32_t result_count) noexcept {
  return lamella::detail::guarded([&] {
    lamella::reclaim::Reading reading;
    lamella::autograd::forward(op, arguments, returns, tangents, tangent_count, results,
                               result_count);
  });
}

lamella_status lamella_forward_mode(int32_t begins) noexcept {
  return lamella::detail::guarded([&] {
    begins != 0 ? lamella::autograd::begin_forward_level() : lamella::autograd::end_forward_level();
  });
}

lamella_status lamella_tensor_set_tangent(lamella_tensor* tensor,
                                          lamella_tensor* tangent) noexcept {
  return lamella::detail::guarded(
      [&] { lamella::autograd::set_tangent(tensor, lamella::TensorBase::borrow(tangent)); });
}

lamella_tensor* lamella_tensor_tangent(const lamella_tensor* tensor) noexcept {
  return lamella::autograd::tangent(tensor).unsafe_release();
}

}  // extern "C"
