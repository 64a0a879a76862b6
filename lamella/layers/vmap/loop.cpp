// The fallback for operators without a rule: a loop that calls the operator for each example.
#include <mutex>
#include <set>

#include "lamella/core/fork.h"
#include "lamella/core/warning_hook.h"
#include "lamella/dispatch/registry.h"
#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {
namespace {

fork::Held<std::mutex> told_mutex{fork::Level::kLayers};

// Warns once for each operator that the loop is slow.
void tell(const BatchingPlan& plan) {
  static auto* told = new std::set<std::string>;
  std::string name = plan.op->full_name();
  {
    std::lock_guard lock(told_mutex);
    if (!told->insert(name).second) return;
  }
  warn_user(
      str("vmap: ", name,
          " has no batching rule, so it is called once for each example, which is slow; state one "
          "where it is defined (batching=\"pointwise\", ...), or register one with "
          "lamella.library.register_vmap"));
}

// The value of one argument for example b. What it owns is added to `kept`.
lamella_value example_of(const BatchedCall& call, uint32_t i, int64_t b,
                         std::vector<IValue>& kept) {
  if (!call.is_batched(i)) return call.value(i);
  if (call.value(i).tag == LAMELLA_TENSOR) {
    kept.emplace_back(call.tensor(i).select(0, b));
  } else {
    std::vector<Tensor> list;
    for (uint32_t k = 0; k < call.value(i).size; ++k) {
      Tensor t = call.tensor(i, k);
      list.push_back(call.is_batched(i, k) ? t.select(0, b) : t);
    }
    kept.emplace_back(list);
  }
  return kept.back().value();
}

[[noreturn]] void throw_differs(const BatchedCall& call, const char* what) {
  throw Error(str(call.plan().name, ": expected the same ", what,
                  " from each example under vmap, got different ones"));
}

bool same_value(const IValue& a, const IValue& b) {
  if (a.tag() != b.tag()) return false;
  switch (a.tag()) {
    case LAMELLA_NONE:
      return true;
    case LAMELLA_INT:
    case LAMELLA_BOOL:
    case LAMELLA_DEVICE:
      return a.value().as.i == b.value().as.i;
    case LAMELLA_DOUBLE:
      return a.value().as.d == b.value().as.d;
    case LAMELLA_STRING:
      return a.toStringView() == b.toStringView();
    case LAMELLA_INT_LIST:
      return a.toIntList() == b.toIntList();
    default:
      return false;
  }
}

Tensor stacked(const BatchedCall& call, const std::vector<std::vector<IValue>>& results, uint32_t r,
               int64_t k) {
  std::vector<Tensor> all;
  for (const std::vector<IValue>& one : results) {
    const lamella_value& value = one[r].value();
    lamella_tensor* t =
        k < 0 ? value.as.tensor : static_cast<lamella_tensor* const*>(value.as.pointer)[k];
    all.emplace_back(TensorBase::borrow(t));
    if (all.back().defined() != all.front().defined()) throw_differs(call, "undefined tensors");
    if (all.back().defined() && all.back().sizes() != all.front().sizes()) {
      throw_differs(call, "shape of the result");
    }
  }
  return all.front().defined() ? stack(all, 0) : Tensor();
}

}  // namespace

void loop_rule(BatchedCall& call) {
  const BatchingPlan& plan = call.plan();
  tell(plan);
  LAMELLA_CHECK(call.batch_size() > 0, plan.name,
                ": expected a batch of at least one example, because the operator has no batching "
                "rule and is called for each");
  const lamella_operator* op = call.op();
  std::vector<std::vector<IValue>> results;
  for (int64_t b = 0; b < call.batch_size(); ++b) {
    std::vector<IValue> kept;
    kept.reserve(plan.arguments.size());
    std::vector<lamella_value> values;
    for (uint32_t i = 0; i < plan.arguments.size(); ++i) {
      values.push_back(example_of(call, i, b, kept));
    }
    std::vector<lamella_value> made(op->return_count);
    lamella::detail::check(
        lamella_call_boxed(op, values.data(), op->argument_count, made.data(), op->return_count));
    results.emplace_back();
    for (const lamella_value& value : made) results.back().push_back(IValue::adopt(value));
  }
  for (uint32_t r = 0; r < op->return_count; ++r) {
    const IValue& first = results.front()[r];
    if (plan.facts->returns[r].written >= 0) {
      call.give_value(r, IValue());
    } else if (first.isTensor()) {
      call.give(r, stacked(call, results, r, -1));
    } else if (first.isTensorList()) {
      std::vector<Tensor> list;
      for (const std::vector<IValue>& one : results) {
        if (one[r].value().size != first.value().size) throw_differs(call, "number of tensors");
      }
      for (int64_t k = 0; k < static_cast<int64_t>(first.value().size); ++k) {
        list.push_back(stacked(call, results, r, k));
      }
      call.give(r, list);
    } else {
      for (const std::vector<IValue>& one : results) {
        if (!same_value(one[r], first)) throw_differs(call, "value");
      }
      call.give_value(r, first);
    }
  }
}

}  // namespace lamella::vmap
