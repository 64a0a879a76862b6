// Arguments and results of a batched call: Note [Writing a rule].
#include <algorithm>

#include "lamella/core/tensor_impl.h"
#include "lamella/dispatch/boxed_tensors.h"
#include "lamella/dispatch/registry.h"
#include "lamella/layers/vmap/rule.h"

namespace lamella::vmap {

BatchedCall::BatchedCall(const BatchingPlan& plan, const lamella_operator* op, const Level& level,
                         const lamella_value* arguments, lamella_value* returns)
    : plan_(plan), op_(op), level_(level), originals_(arguments), returns_(returns) {
  uint32_t count = op->argument_count;
  values_ = inline_values_;
  if (LAMELLA_UNLIKELY(count > kInline)) {
    LAMELLA_CHECK(count <= 64, plan.name, ": expected at most 64 arguments under vmap");
    more_values_ = std::make_unique<lamella_value[]>(count);
    values_ = more_values_.get();
  }
  for (uint32_t i = 0; i < count; ++i) lamella::detail::copy_value(values_[i], arguments[i]);
  for (uint32_t i : plan.facts->tensors) {
    lamella_value& value = values_[i];
    if (LAMELLA_LIKELY(value.tag == LAMELLA_TENSOR)) {
      lamella_tensor* t = value.as.tensor;
      if (t != nullptr && vmap::is_batched(t) && level_number(t) == level.number) {
        value.as.tensor = wrapped(t);
        batched_ |= uint64_t{1} << i;
      }
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      unwrap_list(i);
    }
  }
}

BatchedCall::~BatchedCall() { delete kept_; }

void BatchedCall::unwrap_list(uint32_t i) {
  const lamella_value& from = originals_[i];
  auto* list = static_cast<lamella_tensor* const*>(from.as.pointer);
  bool any = false;
  for (uint32_t k = 0; k < from.size; ++k) any |= is_batched(i, k);
  if (!any) return;
  std::vector<TensorBase> plain_list;
  plain_list.reserve(from.size);
  for (uint32_t k = 0; k < from.size; ++k) {
    plain_list.push_back(TensorBase::borrow(is_batched(i, k) ? wrapped(list[k]) : list[k]));
  }
  set_value(i, IValue(plain_list));
  batched_ |= uint64_t{1} << i;
}

bool BatchedCall::is_batched(uint32_t i, uint32_t k) const {
  lamella_tensor* t = static_cast<lamella_tensor* const*>(originals_[i].as.pointer)[k];
  return t != nullptr && vmap::is_batched(t) && level_number(t) == level_.number;
}

Tensor BatchedCall::tensor(uint32_t i, uint32_t k) const {
  return Tensor(TensorBase::borrow(static_cast<lamella_tensor* const*>(values_[i].as.pointer)[k]));
}

namespace {
Tensor expanded(const Tensor& t, int64_t batch) {
  std::vector<int64_t> sizes{batch};
  sizes.insert(sizes.end(), t.sizes().begin(), t.sizes().end());
  return t.expand(sizes);
}
}  // namespace

Tensor BatchedCall::front(uint32_t i) const {
  Tensor t = tensor(i);
  return is_batched(i) || !t.defined() ? t : expanded(t, level_.size);
}
Tensor BatchedCall::front(uint32_t i, uint32_t k) const {
  Tensor t = tensor(i, k);
  return is_batched(i, k) || !t.defined() ? t : expanded(t, level_.size);
}

void BatchedCall::set_value(uint32_t i, IValue value) {
  if (kept_ == nullptr) kept_ = new std::vector<IValue>;
  lamella::detail::copy_value(values_[i], value.value());
  kept_->push_back(std::move(value));
}
void BatchedCall::set(uint32_t i, const Tensor& tensor, bool batched) {
  uint64_t bit = uint64_t{1} << i;
  batched_ = batched ? batched_ | bit : batched_ & ~bit;
  set_value(i, IValue(tensor));
}
void BatchedCall::set(uint32_t i, const std::vector<Tensor>& list) {
  batched_ |= uint64_t{1} << i;
  set_value(i, IValue(list));
}

int64_t BatchedCall::shifted(int64_t dim, int64_t ndim) const {
  int64_t most = ndim > 0 ? ndim : 1;
  LAMELLA_CHECK_INDEX(dim >= -most && dim < most, plan_.name, ": expected a dimension from ", -most,
                      " to ", most - 1, ", got ", dim);
  return (dim < 0 ? dim + most : dim) + 1;
}

void BatchedCall::invoke(const lamella_operator* other, lamella_value* returns) {
  lamella_status status = abi::call_boxed(other, key_set_of_call(other, values_), values_, returns);
  lamella::detail::check(status);
}

void BatchedCall::run(const lamella_operator* other) {
  invoke(other, returns_);
  // From here on all returns are owned; on an error run_call() releases them.
  given_ = op_->return_count;
  for (uint32_t r = 0; r < op_->return_count; ++r) wrap(r, &returns_[r]);
  if (LAMELLA_UNLIKELY(plan_.writes()) && op_->return_count == 0) {
    for (uint32_t i : plan_.facts->tensors) {
      if (!plan_.facts->arguments[i].is_written) continue;
      const lamella_value& from = originals_[i];
      if (from.tag == LAMELLA_TENSOR && is_batched(i)) refresh(from.as.tensor);
      for (uint32_t k = 0; from.tag == LAMELLA_TENSOR_LIST && k < from.size; ++k) {
        if (is_batched(i, k)) refresh(static_cast<lamella_tensor* const*>(from.as.pointer)[k]);
      }
    }
  }
}

void BatchedCall::run_kernel(const lamella_kernel* kernel, const lamella_value* arguments) {
  uint64_t keys = key_set_of_call(op_, arguments) & ~kBatchedBit;
  lamella::detail::check(kernel->boxed(kernel, op_, keys, arguments, returns_));
  given_ = op_->return_count;
}

void BatchedCall::give_written(uint32_t r) {
  const lamella_value& from = originals_[plan_.facts->returns[r].written];
  if (from.tag == LAMELLA_TENSOR && from.as.tensor != nullptr && vmap::is_batched(from.as.tensor)) {
    refresh(from.as.tensor);
  }
  returns_[r] = IValue::from_borrowed(from).unsafe_release();
}

namespace {
// The returns of a call on meta tensors of these shapes, below all layers; none if the operator has
// no kernel for them.
std::vector<IValue> call_on_meta(const lamella_operator* op, const lamella_value* arguments) {
  auto meta = [](const lamella_tensor* t) {
    if (t == nullptr) return TensorBase();
    return make_empty({t->sizes, static_cast<size_t>(t->ndim)},
                      static_cast<ScalarType>(t->scalar_type), Device(DeviceType::Meta));
  };
  std::vector<lamella_value> values(arguments, arguments + op->argument_count);
  std::vector<IValue> kept;
  for (lamella_value& value : values) {
    if (value.tag == LAMELLA_TENSOR) {
      kept.emplace_back(meta(value.as.tensor));
    } else if (value.tag == LAMELLA_TENSOR_LIST) {
      std::vector<TensorBase> list;
      auto* entries = static_cast<lamella_tensor* const*>(value.as.pointer);
      for (uint32_t k = 0; k < value.size; ++k) list.push_back(meta(entries[k]));
      kept.emplace_back(list);
    } else {
      continue;
    }
    lamella::detail::copy_value(value, kept.back().value());
  }
  struct WithoutModes {
    uint64_t included = std::exchange(lamella_thread.included, 0);
    ~WithoutModes() { lamella_thread.included = included; }
  } without;
  std::vector<lamella_value> returns(op->return_count);
  lamella_status status =
      lamella_call_boxed(op, values.data(), op->argument_count, returns.data(), op->return_count);
  if (status == LAMELLA_NOT_IMPLEMENTED) return std::vector<IValue>(op->return_count);
  lamella::detail::check(status);
  std::vector<IValue> owned;
  for (lamella_value& value : returns) owned.push_back(IValue::adopt(value));
  return owned;
}
}  // namespace

// With a batch of size 0, a rule that joined the batch with another dimension cannot recover that
// dimension's size. A call on meta tensors of one example gives it.
TensorBase BatchedCall::in_shape_of_example(uint32_t r, TensorBase result) {
  const IntArrayRef sizes = result.sizes();
  if (std::find(sizes.begin() + 1, sizes.end(), 0) == sizes.end()) return result;
  if (examples_.empty()) examples_ = call_on_meta(op_, originals_);
  if (!examples_[r].isTensor()) return result;
  Tensor example = examples_[r].toTensor();
  if (!example.defined() || example.dim() + 1 != result.dim()) return result;
  std::vector<int64_t> wanted{0};
  wanted.insert(wanted.end(), example.sizes().begin(), example.sizes().end());
  return Tensor(result).reshape(wanted);
}

void BatchedCall::wrap(uint32_t r, lamella_value* result) {
  if (LAMELLA_UNLIKELY(plan_.facts->returns[r].written >= 0)) {
    lamella_value_release(result);
    return give_written(r);
  }
  if (LAMELLA_LIKELY(result->tag == LAMELLA_TENSOR)) {
    lamella_tensor* t = result->as.tensor;
    if (t == nullptr) return;
    LAMELLA_INTERNAL_ASSERT(t->ndim >= 1 && t->sizes[0] == level_.size, plan_.op->full_name(),
                            ": its batching rule gave a result without the batch in front");
    result->as.tensor = nullptr;
    TensorBase made = TensorBase::adopt(t);
    if (LAMELLA_UNLIKELY(level_.size == 0)) made = in_shape_of_example(r, std::move(made));
    result->as.tensor = make_batched(made, level_.number).unsafe_release();
  } else if (result->tag == LAMELLA_TENSOR_LIST) {
    IValue owned = IValue::adopt(*result);
    *result = lamella_value{};
    std::vector<TensorBase> list;
    auto* entries = static_cast<lamella_tensor* const*>(owned.value().as.pointer);
    for (uint32_t k = 0; k < owned.value().size; ++k) {
      lamella_tensor* t = entries[k];
      list.push_back(t == nullptr ? TensorBase()
                                  : make_batched(TensorBase::borrow(t), level_.number));
    }
    *result = IValue(list).unsafe_release();
  }
}

void BatchedCall::give(uint32_t r, const Tensor& result) {
  give_value(r, IValue(result));
  if (plan_.facts->returns[r].written < 0) wrap(r, &returns_[r]);
}
void BatchedCall::give(uint32_t r, const std::vector<Tensor>& list) {
  give_value(r, IValue(list));
  if (plan_.facts->returns[r].written < 0) wrap(r, &returns_[r]);
}
void BatchedCall::give_value(uint32_t r, IValue result) {
  LAMELLA_INTERNAL_ASSERT(r == given_, plan_.name, ": returns are given in their order");
  if (plan_.facts->returns[r].written >= 0) {
    give_written(r);
  } else {
    returns_[r] = result.unsafe_release();
  }
  ++given_;
}

lamella_status run_call(BatchedCall& call) noexcept {
  try {
    call.plan_.rule(call);
    return LAMELLA_OK;
  } catch (...) {
    for (uint32_t r = 0; r < call.given_; ++r) lamella_value_release(&call.returns_[r]);
    return lamella::detail::status_of_current_exception();
  }
}

}  // namespace lamella::vmap
