// OperatorEntry and KernelEntry: the records of the operator table. Internal to Lamella.
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
#include "lamella/schema/operator_facts.h"

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
  kDerivative,  // a layer's rule; calls that need no gradients pass it by
  kLayer,       // a layer's rule
};

struct Slot {
  const lamella_kernel* kernel = nullptr;
  const KernelEntry* entry = nullptr;  // null where the kernel is one of Lamella's own
  SlotOrigin origin = SlotOrigin::kMissing;
  const struct SlotRule* rule = nullptr;  // the layer's that found it
};

// How a layer serves keys of operators that have no kernel for them. See Note [How a slot is
// filled].
struct SlotRule {
  // A slot without a kernel where the rule has none for the key. Runs under the registry's mutex.
  Slot (*find)(const OperatorEntry& op, DispatchKey key);
  // What a kernel of kLayer does, for explanations: "casts the arguments, then goes on".
  std::string (*describe)(const OperatorEntry& op, DispatchKey key);
  bool before_fallbacks;
};
// A kernel that decides whether the kernel in its context runs. See Note [How a slot is filled].
struct SlotGate {
  bool (*applies)(DispatchKey key) = nullptr;
  lamella_boxed_function run = nullptr;
};

// A parsed schema, the facts derived from it, and its texts for the C ABI.
struct Declared {
  FunctionSchema schema;
  OperatorFacts facts;
  std::string text;       // as it was given
  std::string canonical;  // as it prints
  std::vector<std::string> argument_types;
  std::vector<std::string> return_types;
};

struct OperatorEntry : lamella_operator {
  std::string name_storage;       // "aten::add"
  std::string overload_storage;   // "Tensor"
  OperatorEntry* next = nullptr;  // in its bucket of the registry; set before it is published
  uint32_t place = 0;             // in the order of first registration

  // Everything below is guarded by the registry's mutex, except that `schema` of a resolved
  // operator may be read without it while the operator is kept defined.
  bool resolved = false;  // the header's counts, mask and slots are filled in
  std::string schema_text;
  // The parsed schema; null: not parsed yet. Parsed schemas are never freed, since readers may
  // still use one after the operator was redefined.
  const Declared* current = nullptr;
  const FunctionSchema* schema = nullptr;  // of `current`
  std::vector<std::unique_ptr<const Declared>> declared;
  std::vector<std::string> tags;
  std::unique_ptr<const std::string> doc;  // what it computes, in words; null: not said
  std::string file;
  uint32_t line = 0;
  const void* owner = nullptr;  // the library that defined it; null: undefined
  std::map<DispatchKey, std::list<std::shared_ptr<KernelEntry>>> kernels;  // newest first
  // How the operator is differentiated, and where that was registered. Null: not said.
  const lamella_derivative* derivative = nullptr;
  std::string derivative_file;
  uint32_t derivative_line = 0;
  const void* derivative_owner = nullptr;
  OperatorPlan* plans[PlanKind::kMaxKinds] = {};  // atomic; null: not made yet. Note [Plans]

  OperatorEntry(std::string name, std::string overload);
  bool defined() const { return owner != nullptr; }
  const OperatorPlan* plan(const PlanKind& kind) const {
    return __atomic_load_n(&plans[kind.index()], __ATOMIC_ACQUIRE);
  }
  bool has_tag(std::string_view tag) const;
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

// Operators of the C ABI are entries.
inline OperatorEntry* entry_of(const lamella_operator* op) {
  return const_cast<OperatorEntry*>(static_cast<const OperatorEntry*>(op));
}

// Lamella's own kernels.
const lamella_kernel* missing_kernel();      // reports that nothing serves the key
const lamella_kernel* undefined_kernel();    // reports that the operator was never defined, or is
                                             // not any more
const lamella_kernel* fallthrough_kernel();  // goes on below its key
const lamella_kernel* thread_init_kernel();  // Note [Deregistering while others call]
const lamella_kernel* ambiguous_kernel();    // AutogradOther with kernels of several kinds below

}  // namespace lamella
