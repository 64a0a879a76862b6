// Nodes of recorded calls: what they keep, and how their formulas are run.
#include <algorithm>
#include <cstring>

#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/core/memory_pool.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/reclaim.h"
#include "lamella/layers/autograd/record.h"
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

// The saved values that a formula gets: up to kMaxInlineSaved on the stack, more and lists on the
// heap.
constexpr uint32_t kMaxInlineSaved = 8;
struct Held {
  lamella_tensor* tensors[kMaxInlineSaved];
  uint32_t count = 0;
  ~Held() {
    for (uint32_t i = 0; i < count; ++i) detail::release(tensors[i]);
  }
};
struct Many {
  std::vector<lamella_value> values;
  std::vector<TensorBase> tensors;
  std::vector<std::unique_ptr<lamella_tensor*[]>> lists;
};

}  // namespace

RecordNode* RecordNode::make(const RecordPlan* plan, const lamella_derivative* derivative,
                             uint32_t edges) {
  uint32_t saved = derivative != nullptr ? derivative->saved_count : 0;
  size_t slots = plan->has_list_slot ? plan->slots.size() + 1 : 0;
  size_t bytes =
      sizeof(RecordNode) + edges * sizeof(Edge) + saved * sizeof(Saved) + slots * sizeof(uint32_t);
  void* block = bytes <= detail::kPoolSmall ? detail::pool_allocate(detail::pool_class(bytes))
                                            : ::operator new(bytes);
  auto* edge_list = reinterpret_cast<Edge*>(static_cast<char*>(block) + sizeof(RecordNode));
  auto* saved_list = reinterpret_cast<Saved*>(edge_list + edges);
  // Empty edges and saved values are all zeros.
  std::memset(static_cast<void*>(edge_list), 0, bytes - sizeof(RecordNode));
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
  if (LAMELLA_UNLIKELY(!plan_->stays)) plan_->release();
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

// None, an empty list, or a number where the operator takes a tensor.
static bool is_left_out(const lamella_value& value) {
  if (value.tag == LAMELLA_TENSOR) {
    return value.as.tensor != nullptr &&
           (value.as.tensor->flags & LAMELLA_TENSOR_WRAPPED_NUMBER) != 0;
  }
  return value.tag == LAMELLA_NONE || (value.tag == LAMELLA_INT_LIST && value.size == 0);
}

void RecordNode::save(const lamella_value* values, bool returns) {
  if (plan_->without >= 0 && !returns) is_without_ = is_left_out(values[plan_->without]);
  for (uint32_t k = 0; k < saved_count_; ++k) {
    const lamella_saved& one = derivative_->saved[k];
    if ((one.is_return != 0) != returns || (one.used_by & needs_) == 0) continue;
    if (one.what == LAMELLA_SAVE_VALUE && !returns) {
      const auto& name = plan_->argument_names[one.index];
      each_tensor(values[one.index], [&](lamella_tensor* t) {
        if (LAMELLA_UNLIKELY(t != nullptr && (t->flags & LAMELLA_TENSOR_INFERENCE) != 0)) {
          const std::string& op = plan_->op->name_storage;
          check_savable(op.c_str() + op.find("::") + 2, name.c_str(), t);
        }
      });
    }
    int output = -1;
    // A return without a gradient does not refer to the node, and is unpacked without a history.
    if (returns && plan_->returns[one.index].differentiable) {
      output = 0;
      for (uint16_t r = 0; r < one.index; ++r) {
        output += plan_->returns[r].is_list ? static_cast<int>(values[r].size) : 1;
      }
    }
    keep(values[one.index], one.what, output, &saved_[k]);
  }
}

void RecordNode::save_tangents(const lamella_value* returns) {
  for (uint32_t k = 0; k < saved_count_; ++k) {
    const lamella_saved& one = derivative_->saved[k];
    const lamella_value& value = returns[one.index];
    if (one.is_return == 0 || one.what != LAMELLA_SAVE_VALUE) continue;
    if (value.tag == LAMELLA_TENSOR && value.as.tensor != nullptr) {
      saved_[k].tensor.set_tangent_of(value.as.tensor);
    } else if (value.tag == LAMELLA_TENSOR_LIST && saved_[k].list != nullptr) {
      auto* list = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t i = 0; i < value.size; ++i) {
        if (list[i] != nullptr) (*saved_[k].list)[i].set_tangent_of(list[i]);
      }
    }
  }
}

// Only tensors are released; sizes and numbers stay, so a node that saved no tensors may run again.
bool RecordNode::keeps_something() const noexcept {
  for (uint32_t i = 0; i < saved_count_; ++i) {
    const Saved& saved = saved_[i];
    if (derivative_->saved[i].what == LAMELLA_SAVE_META) continue;
    if (!saved.tensor.is_empty() || (saved.list != nullptr && !saved.list->empty())) return true;
  }
  return false;
}

void RecordNode::release_saved() noexcept {
  released_ = true;
  for (uint32_t i = 0; i < saved_count_; ++i) {
    Saved& saved = saved_[i];
    if (derivative_->saved[i].what == LAMELLA_SAVE_META) continue;
    saved.tensor.reset();
    if (LAMELLA_UNLIKELY(saved.list != nullptr)) saved.list.reset();
  }
}

void throw_given_up(const std::string& name) {
  throw Error(
      name +
      ": what it saved was given up by an earlier backward; pass retain_graph=True to it to "
      "go through the graph again");
}

lamella_status RecordNode::apply(lamella_tensor* const* grads, lamella_tensor** results,
                                 WantedEdges wanted) {
  if (LAMELLA_LIKELY(plan_->stays)) return run_formula(grads, results, wanted);
  // Unregistering the derivative waits until its formula has returned.
  reclaim::Reading reading;
  return run_formula(grads, results, wanted);
}

lamella_status RecordNode::run_formula(lamella_tensor* const* grads, lamella_tensor** results,
                                       WantedEdges wanted) {
  const lamella_derivative* d = derivative_;
  try {
    if (LAMELLA_UNLIKELY(d != plan_->derivative.load(std::memory_order_acquire))) {
      LAMELLA_CHECK(plan_->derivative.load() != nullptr || d == nullptr, plan_->op->full_name(),
                    ": its derivative was registered by a library that is not loaded any more");
    }
    if (LAMELLA_UNLIKELY(plan_->not_differentiable)) return LAMELLA_OK;  // no edges either
    if (LAMELLA_UNLIKELY(d == nullptr || d->backward == nullptr)) {
      throw NotImplementedError(str(plan_->op->full_name(),
                                    ": has no derivative (the operator was registered at ",
                                    plan_->where, "); register one, or call it under no_grad()"));
    }
    if (LAMELLA_UNLIKELY(given_up() || released_)) throw_given_up(name());
    lamella_value inline_values[kMaxInlineSaved];
    std::unique_ptr<Many> many;
    lamella_value* values = inline_values;
    if (LAMELLA_UNLIKELY(saved_count_ > kMaxInlineSaved)) {
      many = std::make_unique<Many>();
      many->values.resize(saved_count_);
      values = many->values.data();
    }
    Held held;  // keeps the values passed to the formula alive
    for (uint32_t k = 0; k < saved_count_; ++k) {
      const Saved& saved = saved_[k];
      const lamella_saved& one = d->saved[k];
      if (one.what != LAMELLA_SAVE_VALUE || (saved.value.tag != LAMELLA_NONE)) {
        values[k] = saved.value;
        continue;
      }
      if (saved.list == nullptr) {
        values[k] = lamella_value{};
        if (saved.tensor.is_empty()) continue;
        if (lamella_tensor* unchanged = saved.tensor.unchanged()) {
          values[k].tag = LAMELLA_TENSOR;
          values[k].as.tensor = unchanged;
          continue;
        }
      }
      const std::string& what =
          one.is_return ? plan_->return_names[one.index] : plan_->argument_names[one.index];
      if (saved.list != nullptr) {
        if (many == nullptr) many = std::make_unique<Many>();
        auto& list = many->lists.emplace_back(new lamella_tensor*[saved.list->size()]);
        for (size_t i = 0; i < saved.list->size(); ++i) {
          many->tensors.push_back((*saved.list)[i].unpack(this, what.c_str()));
          list[i] = many->tensors.back().impl();
        }
        values[k] = lamella_value{};
        values[k].tag = LAMELLA_TENSOR_LIST;
        values[k].as.pointer = list.get();
        values[k].size = static_cast<uint32_t>(saved.list->size());
        continue;
      }
      TensorBase tensor = saved.tensor.unpack(this, what.c_str());
      if (!tensor.defined()) continue;
      values[k].tag = LAMELLA_TENSOR;
      values[k].as.tensor = tensor.impl();
      if (LAMELLA_LIKELY(held.count < kMaxInlineSaved)) {
        held.tensors[held.count++] = tensor.unsafe_release();
      } else {
        many->tensors.push_back(std::move(tensor));
      }
    }
    uint64_t needs = 0;
    const uint32_t* first = first_ != nullptr ? first_ : kIdentity.values;
    for (uint32_t s = 0; s < d->slot_count; ++s) {
      for (uint32_t i = first[s]; i < first[s + 1]; ++i) {
        if (this->needs(i) && wanted[i]) needs |= uint64_t{1} << s;
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
  reclaim::Reading reading;
  if (plan_->derivative.load(std::memory_order_acquire) == nullptr) return names;
  for (uint32_t k = 0; k < saved_count_; ++k) {
    const lamella_saved& one = derivative_->saved[k];
    static constexpr const char* kSuffix[] = {"",         "_sizes", "_strides", "_dtype",
                                              "_device",  "_dim",   "_numel",   "_storage_offset",
                                              "_defined", "_count", "_meta"};
    const std::string& of =
        one.is_return ? plan_->return_names[one.index] : plan_->argument_names[one.index];
    names.push_back(of + kSuffix[one.what]);
  }
  return names;
}

lamella_status RecordNode::find_saved(const char* name, lamella_value* value, bool* found) {
  *found = false;
  std::vector<std::string> names = saved_names();
  try {
    for (uint32_t k = 0; k < names.size(); ++k) {
      if (names[k] != name) continue;
      *found = true;
      *value = lamella_value{};
      const bool stays =
          derivative_->saved[k].what != LAMELLA_SAVE_VALUE || saved_[k].value.tag != LAMELLA_NONE;
      if (!stays && (given_up() || released_)) throw_given_up(this->name());
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

std::vector<SavedTensor*> RecordNode::saved_tensors(const char* name, bool* is_list) {
  std::vector<SavedTensor*> found;
  *is_list = false;
  std::vector<std::string> names = saved_names();
  for (uint32_t k = 0; k < names.size(); ++k) {
    if (names[k] != name || derivative_->saved[k].what != LAMELLA_SAVE_VALUE) continue;
    if (saved_[k].value.tag != LAMELLA_NONE) continue;
    if (given_up() || released_) throw_given_up(this->name());
    *is_list = saved_[k].list != nullptr;
    if (!*is_list) return {&saved_[k].tensor};
    for (SavedTensor& one : *saved_[k].list) found.push_back(&one);
  }
  return found;
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
    saved->tensor.save(
        make_empty_strided({t->sizes, n}, {t->strides, n}, static_cast<ScalarType>(t->scalar_type),
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

}  // namespace lamella::autograd
