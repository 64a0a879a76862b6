// Registry: the operators, kernels and derivatives of the process. Internal to Lamella.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/dispatch/operator_entry.h"
#include "lamella/dispatch/operator_handle.h"
#include "lamella/dispatch/operator_rows.h"
#include "lamella/dispatch/operator_table.h"
#include "lamella/dispatch/reclaim.h"
#include "lamella/dispatch/slot_filler.h"

namespace lamella {

// The origin of a definition or kernel, for messages.
struct Origin {
  std::string file;
  uint32_t line = 0;
  std::string where() const { return file + ":" + std::to_string(line); }
};

// All that one library block registered, while its library is unloaded but still mapped.
struct Parked {
  struct Definition {
    std::string name_space, schema_text;
    std::vector<std::string> tags;
    Origin origin;
    std::string name;                        // "mine::add.Tensor"
    std::unique_ptr<const std::string> doc;  // null: none
  };
  struct Kernel {
    std::string name;  // "aten::add.Tensor"; empty: a fallback
    DispatchKey key;
    std::shared_ptr<KernelEntry> kernel;
  };
  struct Derivative {
    std::string name;
    const lamella_derivative* table;
    Origin origin;
  };
  std::vector<std::pair<std::string, Origin>> namespaces;
  std::vector<Definition> definitions;
  std::vector<Kernel> kernels;
  std::vector<Derivative> derivatives;
};

// Takes registrations and answers queries about operators. Its parts are the table of names, the
// filling of slots and the dropping of plans; it guards them with one mutex and notifies each of
// changes.
class LAMELLA_PRIVATE_API Registry {
 public:
  static Registry& get();
  // Owner of what Lamella itself declares; never removed.
  static const char kOwn;

  // Wait-free but for the first time. Null if nothing was ever registered under the name. `name`:
  // "aten::add".
  OperatorEntry* lookup(std::string_view name, std::string_view overload) {
    OperatorEntry* op = table_.lookup(name, overload);
    return op != nullptr || !rows_.left() ? op : lookup_rows(name, overload);
  }
  // Fills in the header of an operator at its first look-up. Throws SchemaError where the
  // text of a generated definition cannot be read.
  void resolve(OperatorEntry* op);
  // Throws with near names if it is not defined.
  OperatorEntry* find(std::string_view name, std::string_view overload);
  // All entries, in the order of their first registration.
  std::vector<OperatorEntry*> entries();
  // What is called, under the registry's lock, when an operator is defined or undefined.
  struct Watcher {
    void (*changed)(void* context, const lamella_operator* op, int32_t defined);
    void* context;
  };
  void watch(const Watcher& watcher);
  void unwatch(void* context);
  // Overloads of "aten::add" that are defined, in the order of their definition.
  std::vector<OperatorEntry*> overloads(std::string_view name);
  // What the operator was declared with, kept as long as the process. It must be defined.
  const Declared& declared(OperatorEntry* op);
  const FunctionSchema& schema(OperatorEntry* op) { return declared(op).schema; }
  const OperatorFacts& facts(OperatorEntry* op) { return declared(op).facts; }
  // The kernel that currently serves a key.
  Slot slot(OperatorEntry* op, DispatchKey key);

  // Registrations. `owner` identifies the library block.
  void claim_namespace(const std::string& name_space, const void* owner, const Origin& origin);
  void define(const void* owner, const std::string& name_space, std::string_view schema,
              std::string_view inferred_signature, std::vector<std::string> tags,
              const Origin& origin);
  void implement(const void* owner, std::string_view qualified_name, DispatchKey key,
                 std::shared_ptr<KernelEntry> kernel);
  void fallback(const void* owner, DispatchKey key, std::shared_ptr<KernelEntry> kernel);
  // Sets the derivative of an operator, which need not be defined yet. Throws if another library
  // set one.
  void derive(const void* owner, std::string_view qualified_name,
              const lamella_derivative* derivative, const Origin& origin);
  // Sets what an operator of this owner computes, in words. Throws if it is not the owner's.
  void document(const void* owner, std::string_view qualified_name,
                std::unique_ptr<const std::string> text);
  // Registers Lamella's own tables, which a generator checked. See Note [Operators without an
  // entry].
  void define_rows(const char* name_space, const char* file, ArrayRef<SchemaRow> rows);
  void implement_rows(DispatchKey key, const char* file, ArrayRef<KernelRow> rows);
  void derive_rows(const char* file, ArrayRef<DerivativeRow> rows);
  // Undoes everything of an owner, and waits until no other thread can be in its kernels. False if
  // some thread still was after some seconds. Its registrations go to `parked`, if given.
  bool remove(const void* owner, Parked* parked = nullptr);
  // The reverse. Throws what the registrations throw; some may have been done then.
  void resume(const void* owner, Parked& parked);

  // The plan of an operator, made by `build(entry)`, a std::unique_ptr to it, if there is none.
  // Inside of a dispatched call only: Note [Plans].
  template <class Plan, class Build>
  const Plan& plan(const lamella_operator* op, PlanKind& kind, Build build) {
    auto* entry = static_cast<OperatorEntry*>(const_cast<lamella_operator*>(op));
    if (const OperatorPlan* found = entry->plan(kind)) [[likely]] {
      return static_cast<const Plan&>(*found);
    }
    std::lock_guard lock(mutex_);
    const OperatorPlan* found = entry->plan(kind);
    if (found == nullptr) {
      std::unique_ptr<Plan> made = build(entry);
      kind.keep(entry, found = made.release());
    }
    return static_cast<const Plan&>(*found);
  }
  // The same anywhere.
  template <class Plan, class Build>
  PlanRef<Plan> hold_plan(const lamella_operator* op, PlanKind& kind, Build build) {
    reclaim::Reading reading;
    return PlanRef<Plan>(&plan<Plan>(op, kind, build));
  }

  // What layers do for operators: Note [How a slot is filled]. Rules are asked in the order in
  // which they were added. `rule` lives as long as the process.
  void add_slot_rule(const SlotRule& rule);
  void set_gate(SlotGate gate);
  // Whether some kernel was ever registered for the backend. The meta device counts as none: its
  // tensors are not cast.
  bool has_backend(int backend) const { return slots_.has_backend(backend); }

  // Each dispatched call printed to stderr. Initially from the environment variables
  // LAMELLA_SHOW_DISPATCH_TRACE or TORCH_SHOW_DISPATCH_TRACE.
  void set_trace(bool on);
  bool trace() const { return slots_.trace(); }

  // The newest kernel registered as a fallback for the key, or null.
  const KernelEntry* fallback_for(DispatchKey key) const { return slots_.fallback_for(key); }

  // Advances after operators or kernels were added or removed: results of look-ups made under an
  // earlier number may be stale. Note [Plans].
  static uint64_t generation() { return generation_.load(std::memory_order_acquire); }

  // Guards everything that is not wait-free. Recursive: messages print schemas.
  std::recursive_mutex& mutex() const { return mutex_; }

 private:
  Registry();
  void refill_all();
  OperatorEntry* lookup_rows(std::string_view name, std::string_view overload);
  // The next three run under the mutex.
  OperatorEntry* find_or_add(std::string_view name, std::string_view overload);
  OperatorEntry* enter(OperatorRows::Operator* rows);
  void enter_all();
  void check_kernel(const OperatorEntry& op, const KernelEntry& kernel) const;
  void read_schema(OperatorEntry* op);
  void drop(std::shared_ptr<KernelEntry> kernel);
  // Completes every change: drops plans derived from the former state. To be called under the
  // mutex, after the change is visible.
  void published(OperatorEntry* op, OperatorChange change);
  std::vector<Watcher> watchers_;

  mutable std::recursive_mutex mutex_;
  OperatorTable table_;
  OperatorRows rows_;
  SlotFiller slots_;
  std::map<std::string, Origin> namespaces_;
  std::map<std::string, const void*> namespace_owners_;
  static std::atomic<uint64_t> generation_;
};

}  // namespace lamella
