// Records calls: Note [Recording a call] in record.h.
#include "lamella/layers/autograd/record.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/registry.h"

#include <numeric>

#include "lamella/api/functions.h"
#include "lamella/api/operator_tables.h"
#include "lamella/core/error.h"
#include "lamella/core/memory_pool.h"
#include "lamella/layers/autograd/anomaly.h"
#include "lamella/layers/autograd/engine.h"
#include "lamella/layers/autograd/mode.h"
#include "lamella/layers/autograd/variable.h"

namespace lamella::autograd {
namespace {

// Functionalities below autograd.
constexpr uint64_t kBelow =
    DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::AutogradOther).raw_repr();
constexpr uint64_t kAutograd = autograd_dispatch_keyset.raw_repr();

uint32_t tensors_in(const lamella_value& value) {
  return value.tag == LAMELLA_TENSOR_LIST ? value.size : 1;
}

lamella_status go_below(const lamella_operator* op, uint64_t keys, const lamella_value* arguments,
                        lamella_value* returns) {
  uint64_t below = abi::masked(op, keys & kBelow);
  const lamella_kernel* kernel = abi::kernel_of(op, below);
  return kernel->boxed(kernel, op, below, arguments, returns);
}

// The same, and nothing that the kernel calls is recorded.
LAMELLA_ALWAYS_INLINE lamella_status go_below_autograd(const lamella_operator* op, uint64_t keys,
                                                       const lamella_value* arguments,
                                                       lamella_value* returns) {
  ExcludedKeysGuard without(lamella_thread.excluded | kAutograd);
  return go_below(op, keys, arguments, returns);
}

// Note [By parts]
//   A user's operator may have a kernel for a backend but no derivative. Where the kernel calls
//   operators, these are recorded and its results have gradients already. Where it computes in
//   memory itself, the results have none and get a node that raises an error in backward.
bool has_gradients(const RecordPlan* plan, const lamella_value* returns) {
  bool found = false;
  for (size_t r = 0; r < plan->returns.size(); ++r) {
    if (!plan->returns[r].is_tensor) continue;
    each_tensor(returns[r], [&](lamella_tensor* t) { found |= t != nullptr && requires_grad(t); });
  }
  return found;
}

void drop_returns(const lamella_operator* op, lamella_value* returns) {
  for (uint32_t i = 0; i < op->return_count; ++i) IValue::adopt(returns[i]);
}

// The arguments, with copies of those that the call overwrites but a formula needs.
struct Originals {
  std::vector<lamella_value> values;
  std::vector<TensorBase> copies;
};

// Recorded itself, so that a backward may be differentiated through what was saved.
TensorBase copy_of(lamella_tensor* t) { return Tensor(TensorBase::borrow(t)).clone(); }

[[noreturn, gnu::cold, gnu::noinline]] void throw_out(const RecordPlan* plan,
                                                      const lamella_value* arguments) {
  std::string who;
  for (size_t i = 0; i < plan->argument_names.size() && who.empty(); ++i) {
    if (arguments[i].tag != LAMELLA_TENSOR && arguments[i].tag != LAMELLA_TENSOR_LIST) continue;
    each_tensor(arguments[i], [&](lamella_tensor* t) {
      if (t == nullptr) return;
      if (requires_grad(t) || (t->flags & LAMELLA_TENSOR_TANGENT) != 0) {
        who = plan->argument_names[i];
      }
    });
  }
  throw Error(
      str(plan->op->name_storage.substr(plan->op->name_storage.find("::") + 2),
          ": expected no argument to require gradients where the result is written to 'out', "
          "got '",
          who, "' that does; call it without 'out', or under no_grad()"));
}

// Whether a call writes tensors of a floating-point or complex dtype, which can have gradients.
bool writes_fractions(const RecordPlan* plan, const lamella_value* arguments) {
  bool found = false;
  for (uint16_t i : plan->written) {
    each_tensor(arguments[i], [&](lamella_tensor* t) {
      if (t == nullptr) return;
      auto type = static_cast<ScalarType>(t->scalar_type);
      found = found || is_floating_point(type) || is_complex(type);
    });
  }
  return found;
}

std::string short_name(const RecordPlan* plan) {
  return plan->op->name_storage.substr(plan->op->name_storage.find("::") + 2);
}

[[noreturn, gnu::cold, gnu::noinline]] void throw_has_history(const RecordPlan* plan) {
  throw Error(str(plan->op->full_name(),
                  ": its kernel returned a tensor that has a history already, such as an argument; "
                  "expected its schema to say so, or a new tensor"));
}

// Step 4 of a plain call whose result already has metadata: a view, or an argument that the kernel
// returned by mistake.
[[gnu::noinline]] lamella_status finish_plain(const RecordPlan* plan, const lamella_operator* op,
                                              const NodePtr& owned, lamella_value* returns) {
  try {
    lamella_tensor* t = returns[0].as.tensor;
    if ((t->flags & LAMELLA_TENSOR_REQUIRES_GRAD) != 0) throw_has_history(plan);
    // A result whose base is a temporary of its kernel is not treated as a view.
    if (!plan->returns[0].is_view) leave_base(static_cast<TensorImpl*>(t));
    set_history(t, owned);
    if (plan->saves_returns) static_cast<RecordNode*>(owned.get())->save(returns, true);
    return LAMELLA_OK;
  } catch (...) {
    drop_returns(op, returns);
    return detail::status_of_current_exception();
  }
}

// The recorded call itself, once it is known that some argument needs gradients.
lamella_status record_call(const RecordPlan* plan, const lamella_operator* op, uint64_t keys,
                           const lamella_value* arguments, lamella_value* returns, uint64_t needs,
                           uint32_t edge_count, bool by_parts, NodePtr* made = nullptr) {
  const lamella_derivative* d = plan->derivative.load(std::memory_order_acquire);
  if (LAMELLA_UNLIKELY(!plan->written.empty())) {
    if (plan->has_out) throw_out(plan, arguments);
    std::string name = short_name(plan);
    for (uint16_t i : plan->written) {
      each_tensor(arguments[i], [&](lamella_tensor* t) {
        if (t != nullptr) check_inplace(name.c_str(), plan->argument_names[i].c_str(), t);
      });
    }
  }
  NodePtr owned = NodePtr::adopt(RecordNode::make(plan, d, edge_count));
  auto* node = static_cast<RecordNode*>(owned.get());
  if (made != nullptr) *made = owned;
  uint32_t e = 0;
  uint32_t* first = node->first();
  for (size_t s = 0; s < plan->slots.size(); ++s) {
    if (first != nullptr) first[s] = e;
    const lamella_value& value = arguments[plan->slots[s].argument];
    if (((needs >> s) & 1) == 0) {
      e += plan->slots[s].is_list ? tensors_in(value) : 1;
      continue;
    }
    each_tensor(value, [&](lamella_tensor* t) {
      if (t != nullptr) {
        if (Edge edge = gradient_edge(t)) node->set_edge(e, std::move(edge));
      }
      ++e;
    });
  }
  if (first != nullptr) first[plan->slots.size()] = e;
  if (LAMELLA_UNLIKELY(plan->acts)) node->follow_side_effects();
  node->set_needs(needs);
  if (LAMELLA_UNLIKELY((lamella_thread.modes & LAMELLA_MODE_ANOMALY) != 0)) remember_where(node);

  if (d != nullptr && d->saved_count != 0) {
    if (LAMELLA_LIKELY(plan->written.empty())) {
      node->save(arguments, false);
    } else {
      // What is written is saved as a copy of what it was.
      std::vector<lamella_value> before(arguments, arguments + op->argument_count);
      std::vector<TensorBase> copies;
      for (uint16_t i : plan->written) {
        bool saved = false;
        for (uint32_t k = 0; k < d->saved_count; ++k) {
          const lamella_saved& one = d->saved[k];
          saved |= one.what == LAMELLA_SAVE_VALUE && !one.is_return && one.index == i &&
                   (one.used_by & needs) != 0;
        }
        if (saved && before[i].tag == LAMELLA_TENSOR && before[i].as.tensor != nullptr) {
          copies.push_back(copy_of(before[i].as.tensor));
          before[i].as.tensor = copies.back().impl();
        }
      }
      node->save(before.data(), false);
    }
  }

  lamella_status status = LAMELLA_UNLIKELY(by_parts)
                              ? go_below(op, keys, arguments, returns)
                              : go_below_autograd(op, keys, arguments, returns);
  if (LAMELLA_UNLIKELY(status != LAMELLA_OK)) return status;
  if (LAMELLA_UNLIKELY(by_parts) && has_gradients(plan, returns)) return LAMELLA_OK;

  try {
    const uint64_t differentiable = differentiable_returns(d, arguments);
    for (size_t r = 0; r < plan->returns.size(); ++r) {
      const ReturnPlan& what = plan->returns[r];
      if (!what.is_tensor) {
        node->add_output(nullptr);
        continue;
      }
      if (what.written >= 0) {
        int slot = plan->slot_of[static_cast<size_t>(what.written)];
        each_tensor(returns[r], [&](lamella_tensor* t) {
          if (t == nullptr || !is_differentiable_dtype(t)) {
            node->add_output(nullptr);
            return;
          }
          if (slot >= 0 && !what.is_list) {
            uint32_t edge = first != nullptr ? first[slot] : static_cast<uint32_t>(slot);
            rebase_history(t, owned, static_cast<int>(edge));
          } else {
            rebase_history(t, owned, -1);
          }
        });
        continue;
      }
      each_tensor(returns[r], [&](lamella_tensor* t) {
        if (t == nullptr || !what.differentiable || !has_return(differentiable, r) ||
            !is_differentiable_dtype(t)) {
          node->add_output(nullptr);
          return;
        }
        if ((t->flags & LAMELLA_TENSOR_REQUIRES_GRAD) != 0) throw_has_history(plan);
        if (!what.is_view) leave_base(static_cast<TensorImpl*>(t));
        set_history(t, owned);
      });
    }
    if (plan->returns.empty()) {
      for (uint16_t i : plan->written) {
        each_tensor(arguments[i], [&](lamella_tensor* t) {
          if (t != nullptr && is_differentiable_dtype(t)) rebase_history(t, owned, -1);
        });
      }
    }
    if (d != nullptr && d->saved_count != 0) node->save(returns, true);
  } catch (...) {
    drop_returns(op, returns);
    return detail::status_of_current_exception();
  }
  return LAMELLA_OK;
}

// The fast path for one fresh result from single tensors: the same steps with fewer checks.
LAMELLA_ALWAYS_INLINE lamella_status record_plain(const RecordPlan* plan,
                                                  const lamella_operator* op, uint64_t keys,
                                                  const lamella_value* arguments,
                                                  lamella_value* returns, uint64_t needs) {
  const lamella_derivative* d = plan->derivative.load(std::memory_order_acquire);
  auto slots = static_cast<uint32_t>(plan->slots.size());
  RecordNode* node = RecordNode::make(plan, d, slots);
  NodePtr owned = NodePtr::adopt(node);
  for (uint32_t s = 0; s < slots; ++s) {
    if (((needs >> s) & 1) != 0) {
      node->set_edge(s, gradient_edge(arguments[plan->slots[s].argument].as.tensor));
    }
  }
  node->set_needs(needs);
  if (plan->saves_arguments) node->save(arguments, false);
  lamella_status status = go_below_autograd(op, keys, arguments, returns);
  if (LAMELLA_UNLIKELY(status != LAMELLA_OK)) return status;
  lamella_tensor* t = returns[0].as.tensor;
  if (LAMELLA_UNLIKELY(t == nullptr || !plan->returns[0].differentiable ||
                       !is_differentiable_dtype(t))) {
    return LAMELLA_OK;
  }
  if (LAMELLA_UNLIKELY(t->autograd != nullptr || static_cast<TensorImpl*>(t)->base != nullptr ||
                       (t->flags & LAMELLA_TENSOR_REQUIRES_GRAD) != 0)) {
    return finish_plain(plan, op, owned, returns);
  }
  node->add_output(t);
  if (plan->saves_returns) node->save(returns, true);
  attach_bare(t, owned.unsafe_release());
  return LAMELLA_OK;
}

lamella_status record(const lamella_kernel* kernel, const lamella_operator* op, uint64_t keys,
                      const lamella_value* arguments, lamella_value* returns) noexcept {
  try {
    const RecordPlan* plan = plan_of(op)->at(keys);
    uint64_t needs = 0;
    uint32_t edges = 0;
    // An operator without gradients that writes ends the history of what it writes.
    if (LAMELLA_LIKELY((lamella_thread.modes & LAMELLA_MODE_NO_GRAD) == 0) &&
        (!plan->not_differentiable || !plan->written.empty())) {
      for (size_t s = 0; s < plan->slots.size(); ++s) {
        const lamella_value& value = arguments[plan->slots[s].argument];
        if (LAMELLA_LIKELY(value.tag == LAMELLA_TENSOR)) {
          ++edges;
          if (value.as.tensor != nullptr && requires_grad(value.as.tensor))
            needs |= uint64_t{1} << s;
          continue;
        }
        each_tensor(value, [&](lamella_tensor* t) {
          ++edges;
          if (t != nullptr && requires_grad(t)) needs |= uint64_t{1} << s;
        });
      }
      // A derivative may omit arguments that the operator nevertheless writes.
      for (uint16_t i : plan->written) {
        if (plan->slot_of[i] >= 0) continue;
        each_tensor(arguments[i], [&](lamella_tensor* t) {
          if (t != nullptr && requires_grad(t)) needs |= uint64_t{1} << 63;
        });
      }
    }
    if (needs == 0 && grad_enabled()) {
      for (uint16_t i : plan->written) {
        each_tensor(arguments[i], [&](lamella_tensor* t) {
          if (t == nullptr) return;
          // A view may be older than its leaf's wish for gradients.
          TensorImpl* base = static_cast<TensorImpl*>(t)->base;
          if ((t->flags & LAMELLA_TENSOR_NO_GRAD_VIEW) != 0 ||
              (base != nullptr && requires_grad(base) && is_leaf(base))) {
            check_inplace(short_name(plan).c_str(), plan->argument_names[i].c_str(), t);
          }
        });
      }
    }
    bool forward = LAMELLA_UNLIKELY((keys & kTangentBits) != 0) && has_tangent(plan, arguments);
    if ((needs == 0 && !forward) ||
        LAMELLA_UNLIKELY(plan->has_out && !writes_fractions(plan, arguments))) {
      return go_below(op, keys, arguments, returns);
    }
    if (LAMELLA_LIKELY(!forward && plan->plain && lamella_thread.modes == 0)) {
      return record_plain(plan, op, keys, arguments, returns, needs);
    }
    bool by_parts = plan->by_parts && kernel != nullptr;
    if (LAMELLA_LIKELY(!forward))
      return record_call(plan, op, keys, arguments, returns, needs, edges, by_parts);

    // Tangents need the arguments as they were.
    std::vector<lamella_value> originals(arguments, arguments + op->argument_count);
    std::vector<TensorBase> copies;
    if (plan->has_out) throw_out(plan, arguments);
    for (uint16_t i : plan->written) {
      if (originals[i].tag != LAMELLA_TENSOR || originals[i].as.tensor == nullptr) continue;
      TensorBase copy = copy_of(originals[i].as.tensor);
      if (TensorBase t = tangent(originals[i].as.tensor); t.defined()) set_tangent(copy.impl(), t);
      originals[i].as.tensor = copy.impl();
      copies.push_back(std::move(copy));
    }
    lamella_status status;
    NodePtr node;
    if (needs != 0) {
      status = record_call(plan, op, keys & ~kTangentBits, arguments, returns, needs, edges, false,
                           &node);
    } else {
      status = go_below_autograd(op, keys, arguments, returns);
    }
    if (status != LAMELLA_OK) return status;
    status = propagate_tangents(plan, op, originals.data(), arguments, returns);
    if (status != LAMELLA_OK) drop_returns(op, returns);
    if (status == LAMELLA_OK && node) static_cast<RecordNode*>(node.get())->save_tangents(returns);
    return status;
  } catch (...) {
    return detail::status_of_current_exception();
  }
}

Slot recording(const OperatorEntry& op, DispatchKey key) {
  bool is_backends = is_autograd_key(key) && static_cast<uint16_t>(key) >= detail::kSplitBase;
  // The kernel of detach_ ends a history, recorded or not, and writes no element.
  if (op.name_storage == "aten::detach_") return Slot();
  return is_backends ? Slot{&kRecord, nullptr, SlotOrigin::kDerivative} : Slot();
}
constexpr SlotRule kRecording = {&recording, nullptr, false};

// Lamella's own operators count their writes.
Slot counting(const OperatorEntry& op, DispatchKey key) {
  bool writes = key == DispatchKey::ADInplaceOrView &&
                op.schema_text.find('!') != std::string::npos &&
                op.name_storage.rfind("aten::", 0) != 0;
  return writes ? Slot{&kCountWrites, nullptr, SlotOrigin::kLayer} : Slot();
}
constexpr SlotRule kCounting = {&counting,
                                [](const OperatorEntry&, DispatchKey) -> std::string {
                                  return "counts the writes of the schema, then goes on";
                                },
                                false};

}  // namespace

const lamella_kernel kRecord = {nullptr, &record, nullptr};

void register_layer() {
  Registry::get().add_slot_rule(kRecording);
  Registry::get().add_slot_rule(kCounting);
  register_tensor_hooks();
}

}  // namespace lamella::autograd
