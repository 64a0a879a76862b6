// Batched tensors: made, brought up to date, and carried across levels.
#include <memory>

#include "lamella/api/functions.h"
#include "lamella/core/dual_hook.h"
#include "lamella/core/error.h"
#include "lamella/layers/vmap/vmap.h"

namespace lamella::vmap {
namespace {

// Flags that a batched tensor shows of what it wraps.
constexpr uint32_t kShown = LAMELLA_TENSOR_CONJ | LAMELLA_TENSOR_NEG |
                            LAMELLA_TENSOR_REQUIRES_GRAD | LAMELLA_TENSOR_INFERENCE |
                            LAMELLA_TENSOR_TANGENT;

uint64_t keys_over(const lamella_tensor* value) {
  return (value->key_set & ~kGradientBits) | kBatchedBit;
}
IntArrayRef example_sizes(const lamella_tensor* value) {
  return {value->sizes + 1, static_cast<size_t>(value->ndim - 1)};
}
IntArrayRef example_strides(const lamella_tensor* value) {
  return {value->strides + 1, static_cast<size_t>(value->ndim - 1)};
}
// Dimensions 0 and 1 exchanged.
Tensor swapped(const Tensor& t) { return t.transpose(0, 1); }

// ---- Hooks of Note [Batched tensors, seen from elsewhere] ----

Level as_level(const std::pair<uint32_t, int64_t>& level) {
  Level made;
  made.number = level.first;
  made.size = level.second;
  return made;
}
TensorBase expose_levels(const TensorBase& t, const BatchLevels& levels) {
  TensorBase result = t;
  for (const auto& level : levels) result = expose(result, as_level(level));
  return result;
}
TensorBase hide_levels(const TensorBase& t, const BatchLevels& levels) {
  TensorBase result = t;
  for (size_t i = levels.size(); i-- > 0;) result = hide(result, levels[i].first);
  return result;
}
TensorBase sum_levels(const TensorBase& t, const BatchLevels& levels) {
  TensorBase result = t;
  for (const auto& level : levels) {
    const int64_t batch[] = {0};
    result = Tensor(expose(result, as_level(level))).sum(IntArrayRef(batch, 1));
  }
  return result;
}

using Entered = std::vector<std::unique_ptr<Reentry>>;
void* enter_levels(const BatchLevels& levels) {
  auto entered = std::make_unique<Entered>();
  for (size_t i = levels.size(); i-- > 0;) {
    entered->push_back(std::make_unique<Reentry>(levels[i].first, levels[i].second));
  }
  return entered.release();
}
void leave_levels(void* entered) {
  std::unique_ptr<Entered> owned(static_cast<Entered*>(entered));
  while (!owned->empty()) owned->pop_back();
}

}  // namespace

void set_hooks() {
  set_batching_hooks({&expose_levels, &hide_levels, &sum_levels, &enter_levels, &leave_levels});
}

TensorBase make_batched(TensorBase value, uint32_t level) {
  lamella_tensor* v = value.impl();
  LAMELLA_INTERNAL_ASSERT(v != nullptr && v->ndim >= 1, "a batched tensor without a batch");
  TensorBase made =
      make_wrapper(example_sizes(v), example_strides(v), static_cast<ScalarType>(v->scalar_type),
                   Device(static_cast<DeviceType>(v->device_type), v->device_index), keys_over(v));
  auto* t = TensorImpl::of(made);
  t->layout = v->layout;
  t->flags |= v->flags & kShown;
  t->reserved = level;
  t->base = static_cast<TensorImpl*>(value.unsafe_release());
  return made;
}

void refresh(lamella_tensor* tensor) {
  auto* t = static_cast<TensorImpl*>(tensor);
  lamella_tensor* v = t->base;
  if (is_batched(v)) refresh(v);
  auto dims = static_cast<size_t>(t->ndim);
  if (v->ndim != t->ndim + 1 || !example_sizes(v).equals({t->sizes, dims}) ||
      !example_strides(v).equals({t->strides, dims})) {
    set_sizes_and_strides(t, example_sizes(v), example_strides(v), 0);
  }
  t->scalar_type = v->scalar_type;
  t->flags = (t->flags & ~kShown) | (v->flags & kShown);
  t->key_set = keys_over(v);
}

void replace(lamella_tensor* tensor, TensorBase value) {
  auto* t = static_cast<TensorImpl*>(tensor);
  TensorBase before = TensorBase::adopt(t->base);
  t->base = static_cast<TensorImpl*>(value.unsafe_release());
  refresh(t);
}

bool has_level(const lamella_tensor* t, uint32_t level) {
  while (is_batched(t)) {
    if (level_number(t) == level) return true;
    t = wrapped(t);
  }
  return false;
}

TensorBase expose(const TensorBase& t, const Level& level) {
  lamella_tensor* impl = t.impl();
  if (is_batched(impl)) {
    TensorBase value = TensorBase::borrow(wrapped(impl));
    if (level_number(impl) == level.number) return value;
    if (level_number(impl) > level.number) {
      return make_batched(swapped(Tensor(expose(value, level))), level_number(impl));
    }
  }
  if ((impl->flags & LAMELLA_TENSOR_TANGENT) != 0) {
    if (TensorBase dual = expose_dual()(t, {level.number, level.size}); dual.defined()) return dual;
  }
  std::vector<int64_t> sizes{level.size};
  sizes.insert(sizes.end(), impl->sizes, impl->sizes + impl->ndim);
  return Tensor(t).expand(sizes);
}

TensorBase hide(const TensorBase& t, uint32_t level) {
  lamella_tensor* impl = t.impl();
  if (is_batched(impl) && level_number(impl) > level) {
    Tensor value{TensorBase::borrow(wrapped(impl))};
    return make_batched(hide(swapped(value), level), level_number(impl));
  }
  return make_batched(t, level);
}

TensorBase batch_over_all(const TensorBase& t) {
  TensorBase result = t;
  for (Level* level = innermost(); level != nullptr; level = level->outer) {
    if (has_level(result.impl(), level->number)) continue;
    result = hide(expose(result, *level), level->number);
  }
  return result;
}

}  // namespace lamella::vmap
