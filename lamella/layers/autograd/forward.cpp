// Forward mode: tangents of the results of a call.
//
// Note [Tangents]
//   Formulas see the arguments as they were before the call, and run with tangents switched off, so
//   that they compute with the primal values. Gradients stay as they are: a tangent may itself be
//   differentiated. A result that is a view gets a view of the tangent; one that was written in
//   place has its tangent written in place, so that views of both stay in step.
#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "lamella/api/functions.h"
#include "lamella/core/dual_hook.h"
#include "lamella/core/error.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/layers/autograd/mode.h"
#include "lamella/layers/autograd/record.h"
#include "lamella/layers/autograd/variable.h"

namespace lamella::autograd {
namespace {

// Switches tangents off for its lifetime; autograd keys are as outside of the recorded call.
struct WithoutTangents {
  ModeGuard mode{LAMELLA_MODE_NO_FORWARD, LAMELLA_MODE_NO_FORWARD};
};

Tensor zeros_like_of(lamella_tensor* t) {
  return zeros_like(Tensor(TensorBase::borrow(t)).detach());
}

// ---- Views ----

// Views of tensors without tangents that were made while the level is open, by their base.
struct Views {
  std::mutex mutex;
  std::unordered_map<const lamella_tensor*, std::vector<WeakTensorRef>> of;
  size_t count = 0;
  size_t sweep_at = 256;

  void sweep() {
    count = 0;
    for (auto it = of.begin(); it != of.end();) {
      std::vector<WeakTensorRef>& list = it->second;
      auto gone = [](const WeakTensorRef& weak) { return weak.expired(); };
      list.erase(std::remove_if(list.begin(), list.end(), gone), list.end());
      count += list.size();
      it = list.empty() ? of.erase(it) : std::next(it);
    }
    sweep_at = std::max<size_t>(256, 2 * count);
  }
};
Views& views() {
  static Views* all = new Views;
  return *all;
}
void remember_view(const TensorBase& view) {
  const auto* t = static_cast<const TensorImpl*>(view.impl());
  if (t->base == nullptr || (t->base->flags & LAMELLA_TENSOR_TANGENT) != 0 ||
      t->scalar_type != t->base->scalar_type || !is_differentiable_dtype(t) ||
      (lamella_thread.excluded & kTangentBits) != 0) {
    return;
  }
  Views& all = views();
  std::lock_guard lock(all.mutex);
  if (all.count >= all.sweep_at) all.sweep();
  all.of[t->base].emplace_back(view);
  ++all.count;
}

// The part of a base's tangent that belongs to a view of it.
Tensor part_for(const lamella_tensor* view, const TensorBase& whole) {
  auto n = static_cast<size_t>(view->ndim);
  const TensorImpl* base = static_cast<const TensorImpl*>(view)->base;
  return Tensor(whole).as_strided(
      {view->sizes, n}, {view->strides, n},
      view->storage_offset - base->storage_offset + behind_levels(whole.impl())->storage_offset);
}

// When a tensor gets its first tangent, gives each of its views the matching part.
void share_with_views(lamella_tensor* base) {
  std::vector<WeakTensorRef> made;
  {
    Views& all = views();
    std::lock_guard lock(all.mutex);
    auto found = all.of.find(base);
    if (found == all.of.end()) return;
    made.swap(found->second);
    all.count -= made.size();
    all.of.erase(found);
  }
  constexpr uint32_t bits = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG | LAMELLA_TENSOR_TANGENT;
  for (const WeakTensorRef& weak : made) {
    TensorBase view = weak.lock();
    if (!view.defined() || static_cast<TensorImpl*>(view.impl())->base != base ||
        (view.impl()->flags & bits) != (base->flags & bits & ~LAMELLA_TENSOR_TANGENT)) {
      continue;
    }
    set_tangent(view.impl(), part_for(view.impl(), tangent(base)));
  }
}

// Gives a result its tangent, in place where it was written.
void assign(lamella_tensor* t, Tensor value, bool written) {
  if (!value.defined()) {
    // Writing a value without a tangent zeroes the tangent, also through a view.
    if (written) {
      if (TensorBase there = tangent(t); there.defined()) Tensor(there).zero_();
    }
    return;
  }
  auto* impl = static_cast<TensorImpl*>(t);
  IntArrayRef sizes(t->sizes, static_cast<size_t>(t->ndim));
  if (!value.sizes().equals(sizes)) value = value.expand(sizes);
  auto dtype = static_cast<ScalarType>(t->scalar_type);
  if (value.scalar_type() != dtype) {
    if (value.is_complex() && !is_complex(dtype)) value = lamella::real(value);
    value = value.to(dtype);
  }
  if (written) {
    TensorBase there = tangent(t);
    // transpose_ and the like change the shape: their tangent is another view.
    if (there.defined() && there.sizes().equals(sizes)) {
      if (!there.is_same(value)) Tensor(there).copy_(value);
      return;
    }
    if (!there.defined() && impl->base != nullptr) {
      // From here on the base has a tangent as well.
      TensorBase whole = tangent(impl->base);
      if (!whole.defined()) {
        whole = zeros_over(impl->base, levels_of(value.impl()));
        set_tangent(impl->base, whole);
        share_with_views(impl->base);
        if (tangent(t).defined()) {
          Tensor(tangent(t)).copy_(value);
          return;
        }
      }
      Tensor part = part_for(t, whole);
      part.copy_(value);
      set_tangent(t, part);
      return;
    }
    if (!there.defined() && (t->flags & LAMELLA_TENSOR_DENSE) != 0) {
      set_tangent(t, value);
      return share_with_views(t);
    }
  }
  set_tangent(t, value);
}

struct ForwardCall {
  const RecordPlan* plan;
  const lamella_operator* op;
  const lamella_value* originals;
  lamella_value* returns;
  std::vector<uint32_t> first;
  std::vector<Tensor> tangents;  // by slot and entry; undefined: none
  uint64_t with = 0;             // slots that have one
};

[[noreturn, gnu::cold, gnu::noinline]] void throw_unimplemented(const RecordPlan* plan,
                                                                uint64_t slots) {
  const SlotPlan& slot = plan->slots[static_cast<size_t>(__builtin_ctzll(slots))];
  std::string name = plan->op->name_storage.substr(plan->op->name_storage.find("::") + 2);
  throw NotImplementedError(str(name, ": the derivative for '", plan->argument_names[slot.argument],
                                "' is not implemented"));
}

// The levels at which tangents are batched, highest first.
BatchLevels levels_of_tangents(const ForwardCall& call) {
  BatchLevels all;
  for (const Tensor& tangent : call.tangents) {
    if (!tangent.defined()) continue;
    for (const auto& level : levels_of(tangent.impl())) {
      if (std::find(all.begin(), all.end(), level) != all.end()) continue;
      all.insert(std::upper_bound(all.begin(), all.end(), level, std::greater<>()), level);
    }
  }
  return all;
}

// The operator applied to the tangents, with zeros for missing ones. Arguments that have no formula
// are passed unchanged: the operator is not linear in them.
std::vector<Tensor> linear(const ForwardCall& call, const lamella_derivative* d) {
  std::vector<lamella_value> arguments(call.originals, call.originals + call.op->argument_count);
  std::vector<Tensor> holder;
  std::vector<std::vector<lamella_tensor*>> lists;
  const bool writes = !call.plan->written.empty();
  const BatchLevels levels = writes ? levels_of_tangents(call) : BatchLevels();
  for (size_t s = 0; s < call.plan->slots.size(); ++s) {
    if (((d->unimplemented >> s) & 1) != 0) continue;
    const SlotPlan& slot = call.plan->slots[s];
    lamella_value& value = arguments[slot.argument];
    std::vector<lamella_tensor*> entries;
    uint32_t i = call.first[s];
    each_tensor(call.originals[slot.argument], [&](lamella_tensor* t) {
      Tensor tangent = call.tangents[i++];
      if (!tangent.defined() && t != nullptr) {
        tangent = writes ? zeros_over(t, levels) : zeros_like_of(t);
      }
      entries.push_back(tangent.impl());
      holder.push_back(tangent);
    });
    if (slot.is_list) {
      lists.push_back(std::move(entries));
      value.as.pointer = lists.back().data();
      value.flags = 0;
    } else if (value.tag == LAMELLA_TENSOR) {
      value.as.tensor = entries[0];
    }
  }
  std::vector<lamella_value> returns(call.op->return_count + 1);
  detail::check(lamella_call_boxed(call.op, arguments.data(), call.op->argument_count,
                                   returns.data(), call.op->return_count));
  std::vector<Tensor> results;
  for (uint32_t r = 0; r < call.op->return_count; ++r) {
    IValue owner = IValue::adopt(returns[r]);
    if (!call.plan->returns[r].is_tensor) {
      results.emplace_back();
      continue;
    }
    each_tensor(owner.value(),
                [&](lamella_tensor* t) { results.emplace_back(TensorBase::borrow(t)); });
  }
  return results;
}

// conj(backward(conj(tangent))), summed over the slots.
Tensor elementwise(const ForwardCall& call, const lamella_derivative* d) {
  std::vector<Saved> saved(d->saved_count);
  std::vector<lamella_value> values(d->saved_count + 1);
  // Values kept until the formula has run are not saved for backward.
  std::optional<ModeGuard> no_hooks(std::in_place, LAMELLA_MODE_SAVED_HOOKS, 0u);
  for (uint32_t k = 0; k < d->saved_count; ++k) {
    const lamella_saved& one = d->saved[k];
    if ((one.used_by & call.with) == 0) continue;
    const lamella_value& from = one.is_return ? call.returns[one.index] : call.originals[one.index];
    keep(from, one.what, -1, &saved[k]);
    if (one.what == LAMELLA_SAVE_VALUE) {
      values[k] = from;
    } else {
      values[k] = saved[k].value;
    }
  }
  no_hooks.reset();
  Tensor sum;
  for (size_t s = 0; s < call.plan->slots.size(); ++s) {
    if (((call.with >> s) & 1) == 0) continue;
    const Tensor& tangent = call.tangents[call.first[s]];
    Tensor in = tangent.is_complex() ? tangent.conj_physical() : tangent;
    std::vector<lamella_tensor*> results(call.first.back() + 1, nullptr);
    lamella_tensor* grad = in.impl();
    lamella_backward b{};
    b.saved = values.data();
    b.grads = &grad;
    b.grad_count = 1;
    b.slot_count = d->slot_count;
    b.needs = uint64_t{1} << s;
    b.first = call.first.data();
    b.results = results.data();
    lamella_status status = d->backward(&b);
    Tensor part{TensorBase::adopt(std::exchange(results[call.first[s]], nullptr))};
    for (lamella_tensor* other : results) {
      if (other != nullptr) detail::release(other);
    }
    detail::check(status);
    if (!part.defined()) continue;
    if (part.is_complex()) part = part.conj_physical();
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

}  // namespace

void begin_forward_level() { watch_views(&remember_view); }
void forget_views() {
  watch_views(nullptr);
  Views& all = views();
  std::lock_guard lock(all.mutex);
  all.of.clear();
  all.count = 0;
}

TensorBase expose_with_tangent(const TensorBase& t, const std::pair<uint32_t, int64_t>& level) {
  TensorBase along = tangent(t.impl());
  if (!along.defined()) return TensorBase();
  const BatchLevels levels = levels_of(along.impl());
  if (std::find(levels.begin(), levels.end(), level) == levels.end()) return TensorBase();
  std::vector<int64_t> sizes{level.second};
  sizes.insert(sizes.end(), t.sizes().begin(), t.sizes().end());
  Tensor made;
  {
    WithoutTangents guard;
    made = Tensor(t).expand(sizes);
  }
  set_tangent(made.impl(), batching_hooks().expose(along, {level}));
  return made;
}

bool has_tangent(const RecordPlan* plan, const lamella_value* arguments) {
  bool any = false;
  for (const SlotPlan& slot : plan->slots) {
    each_tensor(arguments[slot.argument], [&](lamella_tensor* t) {
      any |= t != nullptr && (t->flags & LAMELLA_TENSOR_TANGENT) != 0;
    });
  }
  for (uint16_t i : plan->written) {
    each_tensor(arguments[i], [&](lamella_tensor* t) {
      any |= t != nullptr && (t->flags & LAMELLA_TENSOR_TANGENT) != 0;
    });
  }
  return any;
}

lamella_status propagate_tangents(const RecordPlan* plan, const lamella_operator* op,
                                  const lamella_value* originals, const lamella_value*,
                                  lamella_value* returns) {
  try {
    const lamella_derivative* d = plan->derivative.load(std::memory_order_acquire);
    const uint64_t differentiable = differentiable_returns(d, originals);
    bool any_differentiable = false;
    for (size_t r = 0; r < plan->returns.size(); ++r) {
      if (!plan->returns[r].differentiable || !has_return(differentiable, r)) continue;
      each_tensor(returns[r], [&](lamella_tensor* t) {
        any_differentiable |= t != nullptr && is_differentiable_dtype(t);
      });
    }
    if (!any_differentiable) return LAMELLA_OK;
    ForwardCall call{plan, op, originals, returns, {}, {}, 0};
    for (size_t s = 0; s < plan->slots.size(); ++s) {
      call.first.push_back(static_cast<uint32_t>(call.tangents.size()));
      each_tensor(originals[plan->slots[s].argument], [&](lamella_tensor* t) {
        Tensor one;
        if (t != nullptr) one = Tensor(tangent(t));
        if (one.defined()) call.with |= uint64_t{1} << s;
        call.tangents.push_back(std::move(one));
      });
    }
    call.first.push_back(static_cast<uint32_t>(call.tangents.size()));

    if (d != nullptr && (call.with & d->unimplemented) != 0) {
      throw_unimplemented(plan, call.with & d->unimplemented);
    }

    WithoutTangents guard;
    std::vector<Tensor> results;
    if (call.with == 0) {
      // No slot has a tangent, only an argument that is written.
    } else if (d != nullptr && (d->flags & LAMELLA_FORWARD_LINEAR) != 0) {
      results = linear(call, d);
    } else if (d != nullptr && (d->flags & LAMELLA_FORWARD_ELEMENTWISE) != 0) {
      results.push_back(elementwise(call, d));
    } else {
      if (d == nullptr || d->forward == nullptr) {
        throw NotImplementedError(str(plan->op->full_name(),
                                      ": has no forward-mode derivative (the operator was "
                                      "registered at ",
                                      plan->where, ")"));
      }
      size_t count = 0;
      for (size_t r = 0; r < plan->returns.size(); ++r) {
        count += plan->returns[r].is_list ? returns[r].size : 1;
      }
      std::vector<lamella_tensor*> raw(count + 1, nullptr);
      std::vector<lamella_tensor*> tangents;
      for (const Tensor& one : call.tangents) tangents.push_back(one.impl());
      lamella_forward f{};
      f.arguments = originals;
      f.returns = returns;
      f.tangents = tangents.data();
      f.first = call.first.data();
      f.slot_count = static_cast<uint32_t>(plan->slots.size());
      f.return_count = static_cast<uint32_t>(count);
      f.results = raw.data();
      lamella_status status = d->forward(&f);
      for (size_t i = 0; i < count; ++i) results.emplace_back(TensorBase::adopt(raw[i]));
      detail::check(status);
    }
    size_t next = 0;
    for (size_t r = 0; r < plan->returns.size(); ++r) {
      const ReturnPlan& what = plan->returns[r];
      if (!what.is_tensor) {
        ++next;
        continue;
      }
      each_tensor(returns[r], [&](lamella_tensor* t) {
        Tensor value = next < results.size() ? results[next] : Tensor();
        ++next;
        if (t == nullptr || !what.differentiable || !has_return(differentiable, r) ||
            !is_differentiable_dtype(t)) {
          return;
        }
        assign(t, std::move(value), what.written >= 0);
      });
    }
    return LAMELLA_OK;
  } catch (...) {
    return detail::status_of_current_exception();
  }
}

}  // namespace lamella::autograd
