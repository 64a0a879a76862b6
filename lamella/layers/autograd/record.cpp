// Records calls: Note [Recording a call] in record.h.
#include "lamella/layers/autograd/record.h"

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

struct Identity {
  uint32_t values[65];
};
constexpr Identity make_identity() {
  Identity table{};
  for (uint32_t i = 0; i < 65; ++i) table.values[i] = i;
  return table;
}
constexpr Identity kIdentity = make_identity();

// Functionalities below autograd.
constexpr uint64_t kBelow = DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::AutogradOther).raw_repr();
constexpr uint64_t kAutograd = autograd_dispatch_keyset.raw_repr();

// Calls f(tensor) for each tensor of a value, undefined ones as NULL.
template <class F>
LAMELLA_ALWAYS_INLINE void each_tensor(const lamella_value& value, F&& f) {
  if (LAMELLA_LIKELY(value.tag == LAMELLA_TENSOR)) {
    f(value.as.tensor);
  } else if (value.tag == LAMELLA_TENSOR_LIST) {
    auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
    for (uint32_t i = 0; i < value.size; ++i) f(list[i]);
  } else if (value.tag == LAMELLA_NONE) {
    f(static_cast<lamella_tensor*>(nullptr));
  }
}
uint32_t tensors_in(const lamella_value& value) {
  return value.tag == LAMELLA_TENSOR_LIST ? value.size : 1;
}

lamella_status go_below(const lamella_operator* op, uint64_t keys, const lamella_value* arguments,
                        lamella_value* returns) {
  uint64_t below = abi::masked(op, keys & kBelow);
  const lamella_kernel* kernel = abi::kernel_of(op, below);
  return kernel->boxed(kernel, op, below, arguments, returns);
}

bool is_differentiable_dtype(const lamella_tensor* t) {
  auto dtype = static_cast<ScalarType>(t->scalar_type);
  return is_floating_point(dtype) || is_complex(dtype);
}

void drop_returns(const lamella_operator* op, lamella_value* returns) {
  for (uint32_t i = 0; i < op->return_count; ++i) IValue::adopt(returns[i]);
}

// Arguments with copies where a write would take what a formula needs.
struct Originals {
  std::vector<lamella_value> values;
  std::vector<TensorBase> copies;
};

TensorBase copy_of(lamella_tensor* t) {
  GradGuard no_grad(false);
  uint64_t excluded = std::exchange(lamella_thread.excluded, lamella_thread.excluded | kAutograd);
  Tensor copy = Tensor(TensorBase::borrow(t)).clone();
  lamella_thread.excluded = excluded;
  return copy;
}

[[gnu::cold, gnu::noinline]] void remember_where(Node* node) {
  NodeExtras& extras = node->extras();
  if (anomaly_hooks().capture != nullptr) extras.anomaly = anomaly_hooks().capture();
  extras.anomaly_parent = NodePtr::borrow(current_node());
}

[[noreturn, gnu::cold, gnu::noinline]] void throw_out(const Plan* plan, const lamella_value* arguments) {
  std::string who;
  for (size_t i = 0; i < plan->argument_names.size() && who.empty(); ++i) {
    if (plan->slot_of[i] < 0) continue;
    each_tensor(arguments[i], [&](lamella_tensor* t) {
      if (t != nullptr && requires_grad(t)) who = plan->argument_names[i];
    });
  }
  throw Error(str(plan->op->name_storage.substr(plan->op->name_storage.find("::") + 2),
                  ": expected no argument to require gradients where the result is written to 'out', "
                  "got '", who, "' that does; call it without 'out', or under no_grad()"));
}

std::string short_name(const Plan* plan) {
  return plan->op->name_storage.substr(plan->op->name_storage.find("::") + 2);
}

// The recorded call itself, once it is known that some argument needs gradients.
lamella_status record_call(const Plan* plan, const lamella_operator* op, uint64_t keys,
                           const lamella_value* arguments, lamella_value* returns, uint64_t needs,
                           uint32_t edge_count) {
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

  uint64_t excluded = lamella_thread.excluded;
  lamella_thread.excluded = excluded | kAutograd;
  lamella_status status = go_below(op, keys, arguments, returns);
  lamella_thread.excluded = excluded;
  if (LAMELLA_UNLIKELY(status != LAMELLA_OK)) return status;

  try {
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
        if (t == nullptr || !what.differentiable || !is_differentiable_dtype(t)) {
          node->add_output(nullptr);
          return;
        }
        LAMELLA_CHECK((t->flags & LAMELLA_TENSOR_REQUIRES_GRAD) == 0, plan->op->full_name(), ": its kernel returned a tensor that has a history "
                      "already, such as an argument; expected its schema to say so, or a new tensor");
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

lamella_status record(const lamella_kernel*, const lamella_operator* op, uint64_t keys,
                      const lamella_value* arguments, lamella_value* returns) noexcept {
  try {
    const Plan* plan = plan_of(op);
    uint64_t needs = 0;
    uint32_t edges = 0;
    if (LAMELLA_LIKELY((lamella_thread.modes & LAMELLA_MODE_NO_GRAD) == 0) && !plan->not_differentiable) {
      for (size_t s = 0; s < plan->slots.size(); ++s) {
        const lamella_value& value = arguments[plan->slots[s].argument];
        if (LAMELLA_LIKELY(value.tag == LAMELLA_TENSOR)) {
          ++edges;
          if (value.as.tensor != nullptr && requires_grad(value.as.tensor)) needs |= uint64_t{1} << s;
          continue;
        }
        each_tensor(value, [&](lamella_tensor* t) {
          ++edges;
          if (t != nullptr && requires_grad(t)) needs |= uint64_t{1} << s;
        });
      }
      // A formula's table may leave arguments out that are written all the same.
      for (uint16_t i : plan->written) {
        if (plan->slot_of[i] >= 0) continue;
        each_tensor(arguments[i], [&](lamella_tensor* t) {
          if (t != nullptr && requires_grad(t)) needs |= uint64_t{1} << 63;
        });
      }
    }
    bool forward = LAMELLA_UNLIKELY((keys & kTangentBits) != 0) && has_tangent(plan, arguments);
    if (needs == 0 && !forward) return go_below(op, keys, arguments, returns);
    if (LAMELLA_LIKELY(!forward)) return record_call(plan, op, keys, arguments, returns, needs, edges);

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
    if (needs != 0) {
      status = record_call(plan, op, keys & ~kTangentBits, arguments, returns, needs, edges);
    } else {
      uint64_t excluded = lamella_thread.excluded;
      lamella_thread.excluded = excluded | kAutograd;
      status = go_below(op, keys, arguments, returns);
      lamella_thread.excluded = excluded;
    }
    if (status != LAMELLA_OK) return status;
    status = propagate_tangents(plan, op, originals.data(), arguments, returns);
    if (status != LAMELLA_OK) drop_returns(op, returns);
    return status;
  } catch (...) {
    return detail::status_of_current_exception();
  }
}

const lamella_kernel kRecord = {nullptr, &record, nullptr};

// detach_ and requires_grad_ change what autograd knows of a tensor, and nothing else.
}  // namespace

// ---- Nodes ----

RecordNode* RecordNode::make(const Plan* plan, const lamella_derivative* derivative, uint32_t edges) {
  uint32_t saved = derivative != nullptr ? derivative->saved_count : 0;
  size_t slots = plan->has_list_slot ? plan->slots.size() + 1 : 0;
  size_t bytes = sizeof(RecordNode) + edges * sizeof(Edge) + saved * sizeof(Saved) +
                 slots * sizeof(uint32_t);
  void* block = bytes <= detail::kPoolSmall ? detail::pool_allocate(detail::pool_class(bytes))
                                            : ::operator new(bytes);
  auto* edge_list = reinterpret_cast<Edge*>(static_cast<char*>(block) + sizeof(RecordNode));
  for (uint32_t i = 0; i < edges; ++i) new (edge_list + i) Edge;
  auto* saved_list = reinterpret_cast<Saved*>(edge_list + edges);
  for (uint32_t i = 0; i < saved; ++i) new (saved_list + i) Saved;
  auto* node = new (block) RecordNode(plan, derivative, edge_list, edges);
  node->saved_ = saved_list;
  node->saved_count_ = saved;
  node->bytes_ = static_cast<uint32_t>(bytes);
  if (slots != 0) node->first_ = reinterpret_cast<uint32_t*>(saved_list + saved);
  return node;
}

RecordNode::~RecordNode() {
  for (uint32_t i = 0; i < saved_count_; ++i) saved_[i].~Saved();
  for (uint32_t i = 0; i < edge_count(); ++i) edge(i).~Edge();
}

void RecordNode::deallocate() noexcept {
  size_t bytes = bytes_;
  this->~RecordNode();
  if (bytes <= detail::kPoolSmall) {
    detail::pool_free(this, detail::pool_class(bytes));
  } else {
    ::operator delete(this);
  }
}

void RecordNode::save(const lamella_value* values, bool returns) {
  for (uint32_t k = 0; k < saved_count_; ++k) {
    const lamella_saved& one = derivative_->saved[k];
    if ((one.is_return != 0) != returns || (one.used_by & needs_) == 0) continue;
    int output = -1;
    if (returns) {
      output = 0;
      for (uint16_t r = 0; r < one.index; ++r) {
        output += plan_->returns[r].is_list ? static_cast<int>(values[r].size) : 1;
      }
    }
    keep(values[one.index], one.what, output, &saved_[k]);
  }
}

void RecordNode::release_saved() noexcept {
  for (uint32_t i = 0; i < saved_count_; ++i) {
    saved_[i].tensor.reset();
    if (LAMELLA_UNLIKELY(saved_[i].list != nullptr)) saved_[i].list.reset();
    if (saved_[i].value.tag != LAMELLA_NONE) lamella_value_release(&saved_[i].value);
  }
  released_ = saved_count_ != 0;
}

lamella_status RecordNode::apply(lamella_tensor* const* grads, lamella_tensor** results) {
  const lamella_derivative* d = derivative_;
  try {
    if (LAMELLA_UNLIKELY(d != plan_->derivative.load(std::memory_order_acquire))) {
      LAMELLA_CHECK(plan_->derivative.load() != nullptr || d == nullptr, plan_->op->full_name(),
                    ": its derivative was registered by a library that is not loaded any more");
    }
    if (LAMELLA_UNLIKELY(d == nullptr || d->backward == nullptr)) {
      throw NotImplementedError(
          str(plan_->op->full_name(), ": has no derivative (the operator was registered at ",
              plan_->where, "); register one, or call it under no_grad()"));
    }
    LAMELLA_CHECK(!released_, name(),
                  ": what it saved was given up by an earlier backward; pass retain_graph=True to "
                  "it to go through the graph again");
    constexpr uint32_t kMost = 8;
    lamella_value inline_values[kMost];
    std::vector<lamella_value> many;
    lamella_value* values = inline_values;
    if (saved_count_ > kMost) {
      many.resize(saved_count_);
      values = many.data();
    }
    // Keep what is handed out alive; on the heap only where there are many.
    TensorBase inline_holder[kMost];
    uint32_t held = 0;
    std::vector<TensorBase> more;
    std::vector<std::unique_ptr<lamella_tensor*[]>> lists;
    for (uint32_t k = 0; k < saved_count_; ++k) {
      const Saved& saved = saved_[k];
      const lamella_saved& one = d->saved[k];
      if (one.what != LAMELLA_SAVE_VALUE || (saved.value.tag != LAMELLA_NONE)) {
        values[k] = saved.value;
        continue;
      }
      const std::string& what = one.is_return ? plan_->return_names[one.index]
                                              : plan_->argument_names[one.index];
      if (saved.list != nullptr) {
        auto& list = lists.emplace_back(new lamella_tensor*[saved.list->size()]);
        for (size_t i = 0; i < saved.list->size(); ++i) {
          more.push_back((*saved.list)[i].unpack(this, what.c_str()));
          list[i] = more.back().impl();
        }
        values[k] = lamella_value{};
        values[k].tag = LAMELLA_TENSOR_LIST;
        values[k].as.pointer = list.get();
        values[k].size = static_cast<uint32_t>(saved.list->size());
        continue;
      }
      values[k] = lamella_value{};
      TensorBase tensor = saved.tensor.unpack(this, what.c_str());
      if (!tensor.defined()) continue;
      values[k].tag = LAMELLA_TENSOR;
      values[k].as.tensor = tensor.impl();
      if (LAMELLA_LIKELY(held < kMost)) {
        inline_holder[held++] = std::move(tensor);
      } else {
        more.push_back(std::move(tensor));
      }
    }
    uint64_t needs = 0;
    const uint32_t* first = first_ != nullptr ? first_ : kIdentity.values;
    for (uint32_t s = 0; s < d->slot_count; ++s) {
      for (uint32_t i = first[s]; i < first[s + 1]; ++i) {
        if (this->needs(i)) needs |= uint64_t{1} << s;
      }
    }
    lamella_backward call{};
    call.saved = values;
    call.grads = grads;
    call.grad_count = output_count();
    call.slot_count = d->slot_count;
    call.needs = needs;
    call.first = first;
    call.results = results;
    return d->backward(&call);
  } catch (...) {
    return detail::status_of_current_exception();
  }
}

std::vector<std::string> RecordNode::saved_names() const {
  std::vector<std::string> names;
  for (uint32_t k = 0; k < saved_count_; ++k) {
    const lamella_saved& one = derivative_->saved[k];
    static constexpr const char* kSuffix[] = {"",       "_sizes", "_strides",        "_dtype",
                                              "_device", "_dim",   "_numel",          "_storage_offset",
                                              "_defined", "_count", "_meta"};
    const std::string& of = one.is_return ? plan_->return_names[one.index] : plan_->argument_names[one.index];
    names.push_back(of + kSuffix[one.what]);
  }
  return names;
}

lamella_status RecordNode::saved_value(const char* name, lamella_value* value, bool* found) {
  *found = false;
  std::vector<std::string> names = saved_names();
  try {
    for (uint32_t k = 0; k < saved_count_; ++k) {
      if (names[k] != name) continue;
      *found = true;
      *value = lamella_value{};
      LAMELLA_CHECK(!released_, this->name(),
                    ": what it saved was given up by an earlier backward; pass retain_graph=True to "
                    "it to go through the graph again");
      if (saved_[k].list != nullptr) {
        std::vector<TensorBase> tensors;
        for (const SavedTensor& one : *saved_[k].list) tensors.push_back(one.unpack(this, name));
        lamella_value list{};
        detail::check(lamella_value_allocate(LAMELLA_TENSOR_LIST, tensors.size(), &list));
        auto* to = static_cast<lamella_tensor**>(list.as.pointer);
        for (size_t i = 0; i < tensors.size(); ++i) to[i] = tensors[i].unsafe_release();
        *value = list;
        return LAMELLA_OK;
      }
      TensorBase tensor = saved_[k].tensor.unpack(this, name);
      if (tensor.defined()) {
        value->tag = LAMELLA_TENSOR;
        value->as.tensor = tensor.unsafe_release();
        return LAMELLA_OK;
      }
      return lamella_value_copy(&saved_[k].value, value);
    }
    return LAMELLA_OK;
  } catch (...) {
    return detail::status_of_current_exception();
  }
}

// ---- What is kept ----

namespace {
lamella_value int_list(const int64_t* values, size_t n) {
  lamella_value list{};
  detail::check(lamella_value_allocate(LAMELLA_INT_LIST, n, &list));
  std::copy(values, values + n, static_cast<int64_t*>(list.as.pointer));
  return list;
}
lamella_value integer(int64_t i) {
  lamella_value value{};
  value.tag = LAMELLA_INT;
  value.as.i = i;
  return value;
}
lamella_value of_tensor(const lamella_tensor* t, uint8_t what) {
  switch (what) {
    case LAMELLA_SAVE_SIZES:
      return int_list(t->sizes, static_cast<size_t>(t->ndim));
    case LAMELLA_SAVE_STRIDES:
      return int_list(t->strides, static_cast<size_t>(t->ndim));
    case LAMELLA_SAVE_DTYPE:
      return integer(t->scalar_type);
    case LAMELLA_SAVE_DEVICE: {
      lamella_value value{};
      value.tag = LAMELLA_DEVICE;
      value.as.i = static_cast<uint8_t>(t->device_type) |
                   static_cast<int64_t>(static_cast<uint8_t>(t->device_index)) << 8;
      return value;
    }
    case LAMELLA_SAVE_DIM:
      return integer(t->ndim);
    case LAMELLA_SAVE_NUMEL:
      return integer(t->numel);
    case LAMELLA_SAVE_STORAGE_OFFSET:
      return integer(t->storage_offset);
    default:
      LAMELLA_INTERNAL_ASSERT(false, "nothing of a tensor is saved as ", static_cast<int>(what));
  }
  return {};
}
}  // namespace

void keep(const lamella_value& value, uint8_t what, int output, Saved* saved) {
  if (LAMELLA_LIKELY(what == LAMELLA_SAVE_VALUE)) {
    if (LAMELLA_LIKELY(value.tag == LAMELLA_TENSOR)) {
      const auto& tensor = reinterpret_cast<const TensorBase&>(value.as.tensor);
      saved->tensor.save(tensor, output);
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      saved->list = std::make_unique<std::vector<SavedTensor>>();
      each_tensor(value, [&](lamella_tensor* t) {
        saved->list->emplace_back(TensorBase::borrow(t), output < 0 ? -1 : output++);
      });
    } else {
      detail::check(lamella_value_copy(&value, &saved->value));
    }
    return;
  }
  if (what == LAMELLA_SAVE_DEFINED) {
    saved->value.tag = LAMELLA_BOOL;
    saved->value.as.i = value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr;
    return;
  }
  if (what == LAMELLA_SAVE_COUNT) {
    saved->value = integer(value.tag == LAMELLA_NONE ? 0 : value.size);
    return;
  }
  if (what == LAMELLA_SAVE_META) {
    if (value.tag != LAMELLA_TENSOR || value.as.tensor == nullptr) return;
    const lamella_tensor* t = value.as.tensor;
    auto n = static_cast<size_t>(t->ndim);
    saved->tensor.save(make_empty_strided({t->sizes, n}, {t->strides, n},
                                          static_cast<ScalarType>(t->scalar_type),
                                          Device(DeviceType::Meta)),
                       -1);
    return;
  }
  if (value.tag == LAMELLA_TENSOR_LIST) {
    auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
    if (what == LAMELLA_SAVE_DTYPE) {
      std::vector<int64_t> dtypes;
      for (uint32_t i = 0; i < value.size; ++i) {
        dtypes.push_back(list[i] != nullptr ? list[i]->scalar_type : 0);
      }
      saved->value = int_list(dtypes.data(), dtypes.size());
      return;
    }
    lamella_value all{};
    detail::check(lamella_value_allocate(LAMELLA_LIST, value.size, &all));
    saved->value = all;
    auto* items = static_cast<lamella_value*>(all.as.pointer);
    for (uint32_t i = 0; i < value.size; ++i) {
      if (list[i] != nullptr) items[i] = of_tensor(list[i], what);
    }
    return;
  }
  if (value.tag != LAMELLA_TENSOR || value.as.tensor == nullptr) return;
  saved->value = of_tensor(value.as.tensor, what);
}

void register_layer() {
  record_kernel = &kRecord;
  register_tensor_hooks();
}

}  // namespace lamella::autograd

void lamella::register_layers() { autograd::register_layer(); }
