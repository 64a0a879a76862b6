// Tensors of a trace and the values that they are: Note [Which value a tensor is] in recorder.h.
#include <algorithm>
#include <unordered_map>

#include "lamella/abi/autograd.h"
#include "lamella/api/functions.h"
#include "lamella/core/error.h"
#include "lamella/core/tensor_impl.h"
#include "lamella/layers/trace/recorder.h"

namespace lamella::tracing {
namespace {

const lamella_tensor* base_of(const lamella_tensor* tensor) {
  return static_cast<const TensorImpl*>(tensor)->base;
}

size_t hash_of(const void* address) {
  return static_cast<size_t>((reinterpret_cast<uintptr_t>(address) >> 6) * 0x9E3779B97F4A7C15u);
}

bool same_geometry(const lamella_tensor* a, const lamella_tensor* b) {
  constexpr uint32_t lazy = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG;
  if (a->ndim != b->ndim || a->scalar_type != b->scalar_type ||
      a->storage_offset != b->storage_offset || ((a->flags ^ b->flags) & lazy) != 0) {
    return false;
  }
  for (int32_t d = 0; d < a->ndim; ++d) {
    if (a->sizes[d] != b->sizes[d] || (a->strides[d] != b->strides[d] && a->sizes[d] > 1)) {
      return false;
    }
  }
  return true;
}

lamella_value plain(uint8_t tag, int64_t number = 0) {
  lamella_value value{{0}, 0, tag, 0, 0};
  value.as.i = number;
  return value;
}
lamella_value list_of(const int64_t* numbers, int32_t count) {
  lamella_value value{{0}, static_cast<uint32_t>(count), LAMELLA_INT_LIST, 0, 0};
  value.as.pointer = const_cast<int64_t*>(numbers);
  return value;
}

}  // namespace

const Recorder::Known* Recorder::find(const lamella_tensor* tensor) const {
  size_t mask = known_.size() - 1;
  for (size_t i = hash_of(tensor) & mask;; i = (i + 1) & mask) {
    if (known_[i].tensor == tensor) return &known_[i];
    if (known_[i].tensor == nullptr) return nullptr;
  }
}

void Recorder::know(lamella_tensor* tensor, ValueId id) {
  if (2 * known_count_ >= known_.size()) {
    std::vector<Known> before(known_.size() * 4);
    before.swap(known_);
    for (const Known& entry : before) {
      if (entry.tensor == nullptr) continue;
      size_t i = hash_of(entry.tensor) & (known_.size() - 1);
      while (known_[i].tensor != nullptr) i = (i + 1) & (known_.size() - 1);
      known_[i] = entry;
    }
  }
  size_t i = hash_of(tensor) & (known_.size() - 1);
  while (known_[i].tensor != nullptr && known_[i].tensor != tensor)
    i = (i + 1) & (known_.size() - 1);
  known_count_ += known_[i].tensor == nullptr;
  known_[i] = {tensor, tensor->storage, id};
}

void Recorder::keep(ValueId id, lamella_tensor* tensor, bool depends, bool known) {
  tensors_.push_back(TensorBase::borrow(tensor));
  depends_.push_back(depends);
  ValueId before = kNoValue;
  if (tensor->storage != nullptr && known) {
    auto [at, fresh] = memory_.emplace(tensor->storage, id);
    if (!fresh) before = std::exchange(at->second, id);
  }
  previous_.push_back(before);
  if (known) know(tensor, id);
}

ValueId Recorder::root_of(const lamella_tensor* tensor) const {
  if (tensor->storage == nullptr) {
    const Known* known = find(tensor);
    return known != nullptr ? graph_.value(known->id).root : kNoValue;
  }
  auto found = memory_.find(tensor->storage);
  return found == memory_.end() ? kNoValue : graph_.value(found->second).root;
}

ValueId Recorder::add_result(lamella_tensor* tensor, bool depends) {
  ValueId root = root_of(tensor);
  if (root == kNoValue && tensor->storage != nullptr) fresh_bytes_ += tensor->storage->capacity;
  ValueId id = graph_.add_result(TensorBase::borrow(tensor), root);
  keep(id, tensor, depends);
  return id;
}

bool Recorder::depends(ValueId id) const { return depends_[id] || depends_[graph_.value(id).root]; }

// See Note [Which value a tensor is].
ValueId Recorder::value_of(lamella_tensor* tensor, bool filled) {
  const Known* known = find(tensor);
  if (LAMELLA_LIKELY(known != nullptr && known->storage == tensor->storage)) return known->id;
  ValueId alias = alias_of(tensor);
  if (alias != kNoValue) {
    know(tensor, alias);
    // Kept alive, so that its address is not reused for another tensor.
    named_tensors_.push_back(TensorBase::borrow(tensor));
    return alias;
  }
  return filled && tensor->python_object == nullptr ? add_empty(tensor) : add_from_outside(tensor);
}

ValueId Recorder::alias_of(lamella_tensor* tensor) {
  if (tensor->storage == nullptr) return kNoValue;
  auto found = memory_.find(tensor->storage);
  if (found == memory_.end()) return kNoValue;
  ValueId other = kNoValue;
  for (ValueId id = found->second; id != kNoValue; id = previous_[id]) {
    lamella_tensor* each = tensors_[id].impl();
    if (each->storage != tensor->storage) continue;
    if (same_geometry(each, tensor)) {
      bool detached = (each->flags & LAMELLA_TENSOR_REQUIRES_GRAD) != 0 &&
                      (tensor->flags & LAMELLA_TENSOR_REQUIRES_GRAD) == 0 && grad_enabled();
      return detached ? add_made_node("aten::detach", {}, id, tensor) : id;
    }
    constexpr uint32_t lazy = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG;
    if (each->scalar_type == tensor->scalar_type && ((each->flags ^ tensor->flags) & lazy) == 0) {
      other = id;
    }
  }
  LAMELLA_CHECK(other != kNoValue, "trace: expected tensors over the memory of a traced one to be ",
                "made by operators, got one of ", static_cast<ScalarType>(tensor->scalar_type),
                " that was not");
  return add_made_node(
      "aten::as_strided",
      {list_of(tensor->sizes, tensor->ndim), list_of(tensor->strides, tensor->ndim),
       plain(LAMELLA_INT, tensor->storage_offset)},
      other, tensor);
}

// Adds a node as if `name` had made an existing tensor. `of`: its tensor argument, or kNoValue.
ValueId Recorder::add_made_node(const char* name, std::initializer_list<lamella_value> arguments,
                                ValueId of, lamella_tensor* tensor) {
  const lamella_operator* op = nullptr;
  lamella::detail::check(lamella_find_operator(name, "", &op));
  graph_.begin_node(op);
  if (of != kNoValue) graph_.add_operand(plain(LAMELLA_TENSOR), {of});
  for (const lamella_value& argument : arguments) graph_.add_operand(argument, {});
  ValueId id = add_result(tensor, of != kNoValue && depends(of));
  graph_.add_operand(plain(LAMELLA_TENSOR), {id});
  graph_.end_node(place(), grad_mode());
  return id;
}

ValueId Recorder::add_empty(lamella_tensor* tensor) {
  Device device(static_cast<DeviceType>(tensor->device_type), tensor->device_index);
  return add_made_node(
      "aten::empty_strided",
      {list_of(tensor->sizes, tensor->ndim), list_of(tensor->strides, tensor->ndim),
       plain(LAMELLA_INT, tensor->scalar_type), plain(LAMELLA_NONE),
       plain(LAMELLA_DEVICE, IValue::pack_device(device)), plain(LAMELLA_NONE)},
      kNoValue, tensor);
}

ValueId Recorder::add_from_outside(lamella_tensor* tensor) {
  ValueKind kind = ValueKind::kConstant;
  std::string name;
  auto found = named_.find(tensor);
  if (found != named_.end()) {
    kind = found->second.kind;
    name = found->second.name;
  } else if (lamella_tensor_requires_grad(tensor) != 0) {
    kind = ValueKind::kParameter;
    name = "parameter" + std::to_string(parameters_++);
  } else {
    name = "constant" + std::to_string(constants_++);
  }
  ValueId id = graph_.add_outside(kind, std::move(name), TensorBase::borrow(tensor));
  keep(id, tensor, kind == ValueKind::kParameter);
  return id;
}

std::vector<TensorBase> Recorder::outside() const {
  std::vector<TensorBase> found;
  for (ValueId id = 0; id < graph_.values().size(); ++id) {
    ValueKind kind = graph_.value(id).kind;
    if (kind == ValueKind::kParameter || kind == ValueKind::kConstant) {
      found.push_back(tensors_[id]);
    }
  }
  return found;
}

void Recorder::note_made(const TensorBase& tensor) {
  if (find(tensor.impl()) != nullptr || root_of(tensor.impl()) != kNoValue) return;
  TensorBase copy;
  {
    Pause off;
    copy = Tensor(tensor).clone();
  }
  ValueId constant =
      graph_.add_outside(ValueKind::kConstant, "constant" + std::to_string(constants_++), copy);
  keep(constant, copy.impl(), false);
  add_made_node("aten::clone", {plain(LAMELLA_NONE)}, constant, tensor.impl());
}

// See Note [Memory of a trace]. A tensor that has references outside of the trace has a higher
// reference count than the trace accounts for; so has a storage with views that are unknown here.
void Recorder::release_unreadable() {
  // A search takes time by the number of tensors, so there are fewer of them in a long trace.
  constexpr size_t kLeastBytes = size_t{4} << 20, kLeastBytesOfTensor = 1024;
  if (fresh_bytes_ <
      std::max({kLeastBytes, readable_bytes_ / 4, kLeastBytesOfTensor * tensors_.size()})) {
    return;
  }
  fresh_bytes_ = readable_bytes_ = 0;
  // References that the trace accounts for: its own, and those of views to their bases.
  std::unordered_map<const lamella_tensor*, uint32_t> ours;
  for (const std::vector<TensorBase>* all : {&tensors_, &named_tensors_}) {
    for (const TensorBase& tensor : *all) {
      bool is_first = tensor.defined() && ++ours[tensor.impl()] == 1;
      const lamella_tensor* base = is_first ? base_of(tensor.impl()) : nullptr;
      if (base != nullptr && find(base) != nullptr) ++ours[base];
    }
  }
  struct Owners {
    uint32_t count = 0;
    bool are_ours = true;
  };
  std::unordered_map<lamella_storage*, Owners> storages;
  for (const auto& [tensor, count] : ours) {
    if (tensor->storage == nullptr) continue;
    Owners& owners = storages[tensor->storage];
    owners.count += base_of(tensor) == nullptr ? 1 : 0;
    owners.are_ours = owners.are_ours && tensor->references == count &&
                      tensor->weak_references == 0 && tensor->python_object == nullptr;
  }
  for (const auto& [storage, owners] : storages) {
    if (storage->allocator == nullptr || storage->is_exposed != 0) continue;
    uint32_t references = __atomic_load_n(&storage->references, __ATOMIC_ACQUIRE);
    if (!owners.are_ours || references != owners.count) {
      readable_bytes_ += storage->capacity;
      continue;
    }
    lamella::detail::free_foreign_memory(storage);
    storage->data = nullptr;
    storage->nbytes = storage->capacity = 0;
    storage->allocator = nullptr;
    storage->has_kept_forms = 0;
  }
  for (const auto& [tensor, count] : ours) {
    if (tensor->storage != nullptr && tensor->storage->data == nullptr) {
      const_cast<lamella_tensor*>(tensor)->data = nullptr;
    }
  }
}

// True for a Python number that was passed as a tensor.
bool Recorder::is_number(const lamella_value& value) const {
  return value.tag == LAMELLA_TENSOR &&
         (value.as.tensor->flags & LAMELLA_TENSOR_WRAPPED_NUMBER) != 0 &&
         find(value.as.tensor) == nullptr && root_of(value.as.tensor) == kNoValue;
}

}  // namespace lamella::tracing
