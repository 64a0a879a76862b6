// SlotFiller: which kernel serves each key of an operator. Internal to Lamella.
//
// Note [How a slot is filled]
//   For each run-time key, in this order:
//     1. a kernel registered for the key itself;
//     2. for a backend's key, one for CompositeExplicitAutogradNonFunctional, then
//        CompositeExplicitAutograd;
//     3. one for CompositeImplicitAutograd (or its NestedTensor form): for a backend's key always;
//        for an autograd key only where the backend has no kernel of its own or from 2, because
//        then the composite is what runs and its parts record the gradient;
//     4. an alias: Autograd, Autocast, FuncTorchBatchedDecomposition;
//     5. what a layer's rule says that comes before fallbacks: for Batched the composite kernel,
//        where that is the operator's batching rule; VmapMode leaves out operators that draw no
//        random numbers;
//     6. the fallback registered for the key;
//     7. what a layer's rule says that comes after them: for an autograd key of a backend the
//        kernel that records gradients, by the operator's derivative, or, where it has none, a node
//        that raises in backward; for an autocast key the kernel that casts, where the operator's
//        policy says so for the device type (policy.h) and some kernel was registered for that
//        backend, so that what is cast on other devices alone costs nothing;
//     8. nothing: a backend's key reports the missing kernel, any other key falls through.
//   A key whose slots all fall through is taken out of the operator's mask, so that calls do not
//   see it at all. Where autograd is number 7 for all backends, calls without a tensor that
//   requires gradients do not see it either: only AutogradRequired and AutogradTangent are in the
//   mask. In front of what was registered for some keys a layer may have put a gate: kernels at
//   autocast keys run where autocast is on for the device alone.
#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lamella/core/macros.h"
#include "lamella/dispatch/operator_entry.h"

namespace lamella {

// Kernels registered for one key, newest first.
using KernelList = std::list<std::shared_ptr<KernelEntry>>;

// Holds what serves keys besides an operator's own kernels: fallbacks, the layers' rules, and
// kernels that wrap others (traces, gates). Everything runs under the registry's mutex; after a
// change the caller must fill the operators' slots again. See Note [How a slot is filled].
class LAMELLA_PRIVATE_API SlotFiller {
 public:
  SlotFiller();
  // Rules are asked in the order in which they were added.
  void add_rule(const SlotRule& rule) { rules_.push_back(&rule); }
  void set_gate(SlotGate gate) { gate_ = gate; }
  void set_trace(bool on) { trace_ = on; }
  bool trace() const { return trace_; }
  // True if the key's backend has had no kernel before. The meta device counts as no backend: its
  // tensors are not cast.
  bool add_backend_of(DispatchKey key);
  bool has_backend(int backend) const { return ((backends_ >> backend) & 1) != 0; }
  std::map<DispatchKey, KernelList>& fallbacks() { return fallbacks_; }
  const KernelEntry* fallback_for(DispatchKey key) const;

  Slot find(const OperatorEntry& op, DispatchKey key) const;
  void fill(OperatorEntry* op);
  // Drops the wrappers (trace, gate) of a kernel that was removed from all slots.
  void forget(const lamella_kernel* kernel);

 private:
  const lamella_kernel* traced(const lamella_kernel* kernel);
  const lamella_kernel* gated(DispatchKey key, const Slot& slot);

  std::map<DispatchKey, KernelList> fallbacks_;
  std::unordered_map<const lamella_kernel*, lamella_kernel*> trace_kernels_;
  std::unordered_map<const lamella_kernel*, lamella_kernel*> gates_;  // of `gate_`
  SlotGate gate_;
  std::vector<const SlotRule*> rules_;
  bool trace_ = false;
  uint64_t backends_ = 0;  // bit set of the backends that have kernels
};

// A kernel that prints the call and goes on to `target`; owned by the caller.
lamella_kernel* make_trace_kernel(const lamella_kernel* target);

}  // namespace lamella
