// OperatorEntry and KernelEntry: what the table of operators holds. Internal to Lamella.
//
// Note [How a slot is filled]
//   For each run-time key, in this order:
//     1. a kernel registered for the key itself;
//     2. for a backend's key, one for CompositeExplicitAutogradNonFunctional, then
//        CompositeExplicitAutograd;
//     3. one for CompositeImplicitAutograd (or its NestedTensor form): for a backend's key always;
//        for an autograd key only where the backend has no kernel of its own or from 2, because
//        then the composite is what runs and its parts record the gradient;
//     4. an alias: Autograd, Autocast, FuncTorchBatchedDecomposition; for Batched the composite
//        kernel, where that is the operator's batching rule; kernels at autocast keys run where
//        autocast is on for the device alone (autocast_gate);
//     5. the fallback registered for the key; VmapMode's serves operators that draw random numbers;
//     6. for an autograd key of a backend, the kernel that records gradients: by the operator's
//        derivative, or, where it has none, a node that raises in backward;
//     7. for an autocast key, the kernel that casts, where the operator's policy says so for the
//        device type (policy.h) and some kernel was registered for that backend, so that what is
//        cast on other devices alone costs nothing;
//     8. nothing: a backend's key reports the missing kernel, any other key falls through.
//   A key whose slots all fall through is taken out of the operator's mask, so that calls do not
//   see it at all. Where autograd is number 6 for all backends, calls without a tensor that
//   requires gradients do not see it either: only AutogradRequired and AutogradTangent are in the
//   mask.
#pragma once
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lamella/abi/autograd.h"
#include "lamella/core/macros.h"
#include "lamella/dispatch/keys.h"
#include "lamella/dispatch/operator_plan.h"
#include "lamella/schema/schema.h"

namespace lamella {

struct OperatorEntry;

// A registered kernel. Immutable once it is in a table; ends through reclaim::retire.
struct KernelEntry : lamella_kernel {
  DispatchKey key = DispatchKey::Undefined;
  std::string signature;  // of the typed form; empty if boxed only or not known
  std::string file;
  uint32_t line = 0;
  void (*dispose)(void*) = nullptr;
  bool fallthrough = false;
  const void* owner = nullptr;  // the lamella_library it came with

  KernelEntry() : lamella_kernel{nullptr, nullptr, nullptr} {}
  ~KernelEntry() {
    if (dispose != nullptr) dispose(context);
  }
  std::string where() const { return file + ":" + std::to_string(line); }
};

// Where a slot's kernel came from.
enum class SlotOrigin : uint8_t {
  kKernel,
  kAlias,
  kFallback,
  kMissing,
  kFallthrough,
  kAmbiguous,
  kDerivative,  // the kernel that records gradients
  kPolicy,      // the kernel that casts, by the operator's autocast class
};

struct Slot {
  const lamella_kernel* kernel = nullptr;
  const KernelEntry* entry = nullptr;  // null where the kernel is one of Lamella's own
  SlotOrigin origin = SlotOrigin::kMissing;
};

// A schema that was read, and its texts for the C ABI.
struct Declared {
  FunctionSchema schema;
  std::string text;       // as it was given
  std::string canonical;  // as it prints
  std::vector<std::string> argument_types;
  std::vector<std::string> return_types;
};

struct OperatorEntry : lamella_operator {
  std::string name_storage;       // "aten::add"
  std::string overload_storage;   // "Tensor"
  OperatorEntry* next = nullptr;  // in its bucket of the registry; set before it is published

  // Everything below is guarded by the registry's mutex, except that `schema` of a resolved
  // operator may be read by those who keep it defined.
  bool resolved = false;  // the header's counts, mask and slots are filled in
  std::string schema_text;
  // What was read of the text; null: nothing yet. All that ever was stays as long as the process:
  // who read a schema may still look at it when the operator has become another one.
  const Declared* current = nullptr;
  const FunctionSchema* schema = nullptr;  // of `current`
  std::vector<std::unique_ptr<const Declared>> declared;
  std::vector<std::string> tags;
  std::string file;
  uint32_t line = 0;
  const void* owner = nullptr;  // the library that defined it; null: undefined
  std::map<DispatchKey, std::list<std::shared_ptr<KernelEntry>>> kernels;  // newest first
  // How the operator is differentiated, and where that was registered. Null: not said.
  const lamella_derivative* derivative = nullptr;
  std::string derivative_file;
  uint32_t derivative_line = 0;
  const void* derivative_owner = nullptr;
  OperatorPlan* plans[kPlanKinds] = {};  // atomic; null: not made yet. Note [Plans]

  OperatorEntry(std::string name, std::string overload);
  bool defined() const { return owner != nullptr; }
  const OperatorPlan* plan(PlanKind kind) const {
    return __atomic_load_n(&plans[static_cast<size_t>(kind)], __ATOMIC_ACQUIRE);
  }
  // Defined, and all that follows from it is in place. Atomic, so that look-ups need no lock.
  bool published = false;
  bool is_published() const { return __atomic_load_n(&published, __ATOMIC_ACQUIRE); }
  void publish(bool on) { __atomic_store_n(&published, on, __ATOMIC_RELEASE); }
  std::string full_name() const {
    return overload_storage.empty() ? name_storage : name_storage + "." + overload_storage;
  }
  const KernelEntry* kernel_for(DispatchKey key) const;
  bool has_backend_kernel(DispatchKey key) const;
  bool has_any_backend_kernel() const;
};

// The boxed kernel that records gradients for any operator; set once, by the autograd layer, before
// the first operator is called. NULL: none.
LAMELLA_PRIVATE_API extern const lamella_kernel* record_kernel;
// The boxed kernel that casts the arguments of any operator of an autocast class; NULL for a class
// that casts nothing. Set once, by the autocast layer, before the first operator is called. NULL:
// none.
LAMELLA_PRIVATE_API extern const lamella_kernel* (*cast_kernel)(std::string_view autocast_class);
// Runs the kernel that is its context where autocast is on for the device of the call, and what is
// below where it is not: one key says that autocast is on for some device. In front of kernels that
// others registered for autocast keys. Set with `cast_kernel`.
LAMELLA_PRIVATE_API extern lamella_boxed_function autocast_gate;

// Lamella's own kernels.
const lamella_kernel* missing_kernel();      // reports that nothing serves the key
const lamella_kernel* undefined_kernel();    // reports that the operator was never defined, or is
                                             // not any more
const lamella_kernel* fallthrough_kernel();  // goes on below its key
const lamella_kernel* thread_init_kernel();  // Note [Deregistering while others call]
const lamella_kernel* ambiguous_kernel();    // AutogradOther with kernels of several kinds below

}  // namespace lamella
