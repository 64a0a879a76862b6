// Finds the kernel for each key of an operator: see Note [How a slot is filled].
#include "lamella/dispatch/slot_filler.h"

#include <cstdlib>
#include <cstring>

#include "lamella/dispatch/reclaim.h"

namespace lamella {
namespace {

bool variable_is_on(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

}  // namespace

SlotFiller::SlotFiller() {
  trace_ =
      variable_is_on("LAMELLA_SHOW_DISPATCH_TRACE") || variable_is_on("TORCH_SHOW_DISPATCH_TRACE");
}

const KernelEntry* SlotFiller::fallback_for(DispatchKey key) const {
  auto found = fallbacks_.find(key);
  return found == fallbacks_.end() || found->second.empty() ? nullptr : found->second.front().get();
}

namespace {
// True if a backend whose autograd key is AutogradOther (all but the dense ones) has a kernel.
bool has_kernel_below_autograd_other(const OperatorEntry& op) {
  for (const auto& [key, list] : op.kernels) {
    if (list.empty() || !is_backend_key(key)) continue;
    auto split = split_key(key);
    if (!split || split->rank != detail::SplitRank::Dense) return true;
  }
  return false;
}
}  // namespace

// See Note [How a slot is filled].
Slot SlotFiller::find(const OperatorEntry& op, DispatchKey key) const {
  auto use = [](const KernelEntry* kernel, SlotOrigin origin) {
    if (kernel->fallthrough) {
      return Slot{fallthrough_kernel(), kernel, SlotOrigin::kFallthrough};
    }
    return Slot{kernel, kernel, origin};
  };
  if (key == DispatchKey::ThreadInit) {
    return {thread_init_kernel(), nullptr, SlotOrigin::kFallback};
  }
  if (!op.defined()) return {undefined_kernel(), nullptr, SlotOrigin::kMissing};
  if (const KernelEntry* own = op.kernel_for(key)) return use(own, SlotOrigin::kKernel);
  for (DispatchKey alias : {DispatchKey::CompositeExplicitAutogradNonFunctional,
                            DispatchKey::CompositeExplicitAutograd}) {
    const KernelEntry* kernel = op.kernel_for(alias);
    if (kernel != nullptr && alias_includes(alias, key)) return use(kernel, SlotOrigin::kAlias);
  }
  for (DispatchKey alias : {DispatchKey::CompositeImplicitAutogradNestedTensor,
                            DispatchKey::CompositeImplicitAutograd}) {
    const KernelEntry* kernel = op.kernel_for(alias);
    if (kernel == nullptr || !alias_includes(alias, key)) continue;
    if (!is_autograd_key(key)) return use(kernel, SlotOrigin::kAlias);
    if (key == DispatchKey::AutogradOther) {
      if (op.kernel_for(DispatchKey::CompositeExplicitAutograd) != nullptr) continue;
      if (!has_kernel_below_autograd_other(op)) return use(kernel, SlotOrigin::kAlias);
      return {ambiguous_kernel(), nullptr, SlotOrigin::kAmbiguous};
    }
    if (!op.has_backend_kernel(backend_of_autograd(key))) return use(kernel, SlotOrigin::kAlias);
  }
  for (DispatchKey alias :
       {DispatchKey::Autograd, DispatchKey::Autocast, DispatchKey::FuncTorchBatchedDecomposition}) {
    const KernelEntry* kernel = op.kernel_for(alias);
    if (kernel != nullptr && alias_includes(alias, key)) return use(kernel, SlotOrigin::kAlias);
  }
  auto ask = [&](bool before_fallbacks) {
    for (const SlotRule* rule : rules_) {
      if (rule->before_fallbacks != before_fallbacks) continue;
      Slot slot = rule->find(op, key);
      slot.rule = rule;
      if (slot.kernel != nullptr) return slot;
    }
    return Slot();
  };
  if (Slot slot = ask(true); slot.kernel != nullptr) return slot;
  if (const KernelEntry* kernel = fallback_for(key)) return use(kernel, SlotOrigin::kFallback);
  for (DispatchKey alias : {DispatchKey::Autograd, DispatchKey::Autocast}) {
    const KernelEntry* kernel = fallback_for(alias);
    if (kernel != nullptr && alias_includes(alias, key)) return use(kernel, SlotOrigin::kFallback);
  }
  if (Slot slot = ask(false); slot.kernel != nullptr) return slot;
  if (is_backend_key(key) || key == DispatchKey::Undefined) {
    return {missing_kernel(), nullptr, SlotOrigin::kMissing};
  }
  return {fallthrough_kernel(), nullptr, SlotOrigin::kFallthrough};
}

bool SlotFiller::add_backend_of(DispatchKey key) {
  const std::optional<SplitKey> split = split_key(key);
  if (!split || !is_backend_key(key) || key == DispatchKey::Meta) return false;
  const uint64_t before = backends_;
  backends_ |= uint64_t{1} << split->backend;
  return backends_ != before;
}

const lamella_kernel* SlotFiller::traced(const lamella_kernel* kernel) {
  if (!trace_ || kernel == thread_init_kernel() || kernel == fallthrough_kernel()) return kernel;
  lamella_kernel*& front = trace_kernels_[kernel];
  if (front == nullptr) front = make_trace_kernel(kernel);
  return front;
}

const lamella_kernel* SlotFiller::gated(DispatchKey key, const Slot& slot) {
  if (slot.entry == nullptr || slot.origin == SlotOrigin::kFallthrough ||
      gate_.applies == nullptr || !gate_.applies(key)) {
    return slot.kernel;
  }
  lamella_kernel*& gate = gates_[slot.kernel];
  if (gate == nullptr) {
    gate = new lamella_kernel{nullptr, gate_.run, const_cast<lamella_kernel*>(slot.kernel)};
  }
  return gate;
}

void SlotFiller::fill(OperatorEntry* op) {
  const lamella_kernel* next[LAMELLA_SLOTS];
  constexpr uint64_t autograd_when_needed =
      detail::functionality_bit(detail::Functionality::AutogradRequired) |
      detail::functionality_bit(detail::Functionality::AutogradTangent);
  uint64_t mask = detail::kBackendMask;
  for (const lamella_kernel*& slot : next) slot = missing_kernel();
  for (DispatchKey key : runtime_keys()) {
    Slot slot = find(*op, key);
    next[static_cast<size_t>(key)] = traced(gated(key, slot));
    if (slot.origin == SlotOrigin::kDerivative) {
      mask |= autograd_when_needed;
    } else if (slot.origin != SlotOrigin::kFallthrough && key != DispatchKey::Undefined) {
      mask |= DispatchKeySet(key).raw_repr() & ~detail::kBackendMask;
    }
  }
  constexpr uint64_t autograd =
      detail::functionality_bit(detail::Functionality::AutogradFunctionality);
  if (mask & autograd) mask |= autograd_when_needed;
  uint64_t always = 0;
  if (op->kernel_for(DispatchKey::BackendSelect) != nullptr) {
    always = DispatchKeySet(DispatchKey::BackendSelect).raw_repr();
  }
  // A removed key leaves the mask before the slots change, and an added key enters it afterwards,
  // so that no call reaches a slot that does not serve its key.
  __atomic_store_n(&op->mask, op->mask & mask, __ATOMIC_RELEASE);
  for (size_t i = 0; i < LAMELLA_SLOTS; ++i) {
    __atomic_store_n(&op->slots[i], next[i], __ATOMIC_RELEASE);
  }
  __atomic_store_n(&op->mask, mask, __ATOMIC_RELEASE);
  __atomic_store_n(&op->always, always, __ATOMIC_RELEASE);
}

void SlotFiller::forget(const lamella_kernel* kernel) {
  // The gate and trace kernels in front of it, including trace kernels in front of its gate.
  std::vector<const lamella_kernel*> in_front{kernel};
  for (auto* table : {&gates_, &trace_kernels_}) {
    for (size_t i = 0; i < in_front.size(); ++i) {
      auto found = table->find(in_front[i]);
      if (found == table->end()) continue;
      in_front.push_back(found->second);
      reclaim::retire([](void* p) { delete static_cast<lamella_kernel*>(p); }, found->second);
      table->erase(found);
    }
  }
}

}  // namespace lamella
