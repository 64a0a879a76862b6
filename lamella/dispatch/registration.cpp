// Adds and removes registrations: definitions, kernels, derivatives and fallbacks.
#include <algorithm>

#include "lamella/core/code.h"
#include "lamella/core/warning_hook.h"
#include "lamella/dispatch/policy.h"
#include "lamella/dispatch/registry.h"
#include "lamella/dispatch/side_effects.h"
#include "lamella/dispatch/signatures.h"
#include "lamella/schema/alias_check.h"
#include "lamella/schema/parser.h"

namespace lamella {
namespace {

// A thread that leaves a kernel within this time is waited for when the kernel is deregistered.
constexpr int kWaitMilliseconds = 5000;

std::atomic<bool> has_side_effects{false};

std::shared_ptr<KernelEntry> kernel_of(const KernelRow& row, const char* file, uint32_t declared) {
  auto kernel = std::make_shared<KernelEntry>();
  kernel->typed = row.typed;
  kernel->boxed = row.boxed;
  kernel->context = const_cast<char*>(row.name);
  kernel->file = file;
  kernel->line = declared + static_cast<uint32_t>(row.line);
  return kernel;
}

}  // namespace

bool side_effects_declared() noexcept { return has_side_effects.load(std::memory_order_relaxed); }
void note_side_effects() noexcept { has_side_effects.store(true, std::memory_order_relaxed); }

const char Registry::kOwn = 0;

void Registry::claim_namespace(const std::string& name_space, const void* owner,
                               const Origin& origin) {
  std::lock_guard lock(mutex_);
  auto [at, fresh] = namespaces_.emplace(name_space, origin);
  if (!fresh) {
    throw Error("namespace '" + name_space + "' is already claimed at " + at->second.where() +
                ", so it cannot be claimed again at " + origin.where() +
                "; add to it with LAMELLA_LIBRARY_FRAGMENT");
  }
  namespace_owners_[name_space] = owner;
}

void Registry::define(const void* owner, const std::string& name_space, std::string_view schema,
                      std::string_view inferred_signature, std::vector<std::string> tags,
                      const Origin& origin) {
  std::string text(schema);
  if (!inferred_signature.empty()) text += schema_of_signature(inferred_signature);
  size_t end = text.find('(');
  std::string full = text.substr(0, end);
  std::unique_ptr<FunctionSchema> parsed;
  if (end != std::string::npos) {
    parsed = std::make_unique<FunctionSchema>(parse_schema(text));
    full = parsed->name.str();  // without the spaces that may stand around it
  }
  if (full.find("::") == std::string::npos) {
    full = name_space + "::" + full;
  } else if (full.substr(0, full.find("::")) != name_space) {
    throw Error("def: expected an operator of namespace '" + name_space + "', got '" + full +
                "' (" + origin.where() + ")");
  }
  if (parsed == nullptr) {
    throw Error("def: expected a schema such as '" + text +
                "(Tensor self) -> Tensor', got only a name (" + origin.where() + ")");
  }
  std::vector<SchemaProblem> problems = check_alias_rules(*parsed);
  if (!problems.empty()) {
    SchemaProblem first = locate(text, problems[0].message, problems[0].offset);
    throw SchemaError(text, first);
  }
  check_policies(full, tags, *parsed, origin.where());
  auto [name, overload] = split_overload(full);
  {
    std::lock_guard lock(mutex_);
    OperatorEntry* op = find_or_add(name, overload);
    if (op->defined()) {
      throw Error(op->full_name() + ": is already defined at " + op->file + ":" +
                  std::to_string(op->line) + ", so it cannot be defined again at " +
                  origin.where());
    }
    // The holder of a typed handle calls with the signature that it was checked against.
    if (op->current != nullptr && signature_of(op->current->schema) != signature_of(*parsed)) {
      op = table_.succeed(op);
    }
    op->schema = nullptr;
    op->schema_text = text;
    op->tags = std::move(tags);
    if (op->has_tag("side_effect")) note_side_effects();
    op->doc = nullptr;
    Origin before{op->file, op->line};
    op->file = origin.file;
    op->line = origin.line;
    op->owner = owner;
    try {
      read_schema(op);
      for (const auto& [key, list] : op->kernels) {
        for (const auto& kernel : list) check_kernel(*op, *kernel);
      }
    } catch (...) {
      op->owner = nullptr;
      op->schema = nullptr;
      op->schema_text.clear();
      op->file = before.file;
      op->line = before.line;
      throw;
    }
    if (op->resolved) slots_.fill(op);
    op->publish(true);
    published(op, OperatorChange::kDefined);
  }
  reclaim::collect();
}

OperatorEntry* Registry::find_or_add(std::string_view name, std::string_view overload) {
  if (OperatorRows::Operator* rows = rows_.find(name, overload)) return enter(rows);
  return table_.find_or_add(name, overload);
}

void Registry::watch(const Watcher& watcher) {
  std::lock_guard lock(mutex_);
  watchers_.push_back(watcher);
}
void Registry::unwatch(void* context) {
  std::lock_guard lock(mutex_);
  std::erase_if(watchers_, [=](const Watcher& watcher) { return watcher.context == context; });
}

void Registry::published(OperatorEntry* op, OperatorChange change) {
  if (change == OperatorChange::kDefined || change == OperatorChange::kUndefined) {
    for (const Watcher& watcher : watchers_) {
      watcher.changed(watcher.context, op, change == OperatorChange::kDefined);
    }
  }
  PlanKind::drop_all(op, change, table_.all());
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

void Registry::check_kernel(const OperatorEntry& op, const KernelEntry& kernel) const {
  if (kernel.signature.empty() || op.schema == nullptr || op.owner == nullptr) return;
  std::string expected = signature_of(*op.schema);
  const std::string difference = signature_difference(expected, kernel.signature);
  if (difference.empty()) return;
  throw Error(op.full_name() + ": expected a kernel " + signature_text(expected) +
              " for its schema '" + op.current->canonical + "', got " +
              signature_text(kernel.signature) + " for " + dispatch_key_name(kernel.key) + " (" +
              kernel.where() + "). " + difference);
}

void Registry::implement(const void* owner, std::string_view qualified_name, DispatchKey key,
                         std::shared_ptr<KernelEntry> kernel) {
  auto [name, overload] = split_overload(qualified_name);
  kernel->key = key;
  kernel->owner = owner;
  std::string replaced;
  {
    std::lock_guard lock(mutex_);
    OperatorEntry* op = find_or_add(name, overload);
    if (const KernelEntry* before = op->kernel_for(key);
        before != nullptr && before->owner == owner) {
      replaced = op->full_name() + ": already has a kernel for " + dispatch_key_name(key) +
                 " from this library, registered at " + before->where() +
                 ", which the one registered at " + kernel->where() + " replaces";
    }
    if (!is_runtime_key(key) && !is_alias_key(key)) {
      throw Error(op->full_name() +
                  ": expected a dispatch key to register a kernel for, got number " +
                  std::to_string(static_cast<int>(key)));
    }
    check_kernel(*op, *kernel);
    op->kernels[key].push_front(std::move(kernel));
    if (slots_.add_backend_of(key)) {
      refill_all();
    } else if (op->resolved) {
      slots_.fill(op);
    }
    published(op, OperatorChange::kKernels);
  }
  reclaim::collect();
  if (!replaced.empty()) warn_user(replaced);
}

void Registry::fallback(const void* owner, DispatchKey key, std::shared_ptr<KernelEntry> kernel) {
  kernel->key = key;
  kernel->owner = owner;
  if (kernel->typed != nullptr) {
    throw Error("fallback: expected a boxed kernel for " + dispatch_key_name(key) +
                ", got a typed one (" + kernel->where() + ")");
  }
  {
    std::lock_guard lock(mutex_);
    if (const KernelEntry* before = slots_.fallback_for(key);
        before != nullptr && before->owner == owner) {
      throw Error("fallback: " + dispatch_key_name(key) +
                  " already has one from this library, at " + before->where());
    }
    slots_.fallbacks()[key].push_front(std::move(kernel));
    slots_.add_backend_of(key);
    refill_all();
    generation_.fetch_add(1, std::memory_order_acq_rel);
  }
  reclaim::collect();
}

void Registry::derive(const void* owner, std::string_view qualified_name,
                      const lamella_derivative* derivative, const Origin& origin) {
  auto [name, overload] = split_overload(qualified_name);
  {
    std::lock_guard lock(mutex_);
    OperatorEntry* op = find_or_add(name, overload);
    if (op->derivative != nullptr) {
      throw Error(op->full_name() + ": already has a derivative, registered at " +
                  op->derivative_file + ":" + std::to_string(op->derivative_line) +
                  ", so another cannot be registered at " + origin.where());
    }
    for (uint32_t i = 0; i < derivative->keyed_count; ++i) {
      const char* text = derivative->keyed[i].key;
      const auto key = dispatch_key_from_name(text);
      if (key.has_value() && is_autograd_key(*key)) continue;
      throw Error(op->full_name() +
                  ": expected an autograd key such as AutogradCPU for a derivative, "
                  "got '" +
                  text + "', at " + origin.where());
    }
    op->derivative = derivative;
    op->derivative_file = origin.file;
    op->derivative_line = origin.line;
    op->derivative_owner = owner;
    if (op->resolved) slots_.fill(op);
    published(op, OperatorChange::kDerivative);
  }
  reclaim::collect();
}

void Registry::document(const void* owner, std::string_view qualified_name,
                        std::unique_ptr<const std::string> text) {
  auto [name, overload] = split_overload(qualified_name);
  std::lock_guard lock(mutex_);
  OperatorEntry* op = find_or_add(name, overload);
  if (op->owner != owner) {
    throw Error("document: expected an operator that this library defines, got '" +
                std::string(qualified_name) + "'");
  }
  op->doc = std::move(text);
}

void Registry::define_rows(const char* name_space, const char* file, ArrayRef<SchemaRow> rows) {
  claim_namespace(name_space, &kOwn, {file, 0});
  std::lock_guard lock(mutex_);
  rows_.add_schemas(name_space, file, rows, table_.keep_places(rows.size()));
}

void Registry::implement_rows(DispatchKey key, const char* file, ArrayRef<KernelRow> rows) {
  std::lock_guard lock(mutex_);
  if (!rows.empty() && slots_.add_backend_of(key)) refill_all();
  for (const KernelRow& row : rows) {
    if (rows_.add_kernel(key, file, row)) continue;
    const auto [name, overload] = split_overload(row.name);
    OperatorEntry* op = find_or_add(name, overload);
    implement(&kOwn, row.name, key, kernel_of(row, file, op->line));
  }
}

void Registry::derive_rows(const char* file, ArrayRef<DerivativeRow> rows) {
  std::lock_guard lock(mutex_);
  for (const DerivativeRow& row : rows) {
    if (rows_.add_derivative(file, row)) continue;
    derive(&kOwn, row.name, row.derivative, {file, row.line});
  }
}

OperatorEntry* Registry::enter(OperatorRows::Operator* rows) {
  std::string qualified(rows->name_space);
  qualified.append("::").append(rows->name);
  auto op = std::make_unique<OperatorEntry>(std::move(qualified), std::string(rows->overload));
  op->schema_text = rows->schema->schema;
  op->tags = split_tags(rows->schema->tags);
  op->file = rows->file;
  op->line = rows->schema->line;
  op->owner = &kOwn;
  for (uint32_t at = rows->first_kernel; at != OperatorRows::kNone; at = rows_.kernel(at).next) {
    const OperatorRows::Kernel& one = rows_.kernel(at);
    std::shared_ptr<KernelEntry> kernel = kernel_of(*one.row, one.file, op->line);
    kernel->key = one.key;
    kernel->owner = &kOwn;
    op->kernels[one.key].push_front(std::move(kernel));
  }
  if (rows->derivative != nullptr) {
    op->derivative = rows->derivative->derivative;
    op->derivative_file = rows->derivative_file;
    op->derivative_line = rows->derivative->line;
    op->derivative_owner = &kOwn;
  }
  op->publish(true);
  OperatorEntry* entered = table_.add(std::move(op), rows->place);
  rows_.set_entered(rows);
  return entered;
}

void Registry::enter_all() {
  for (OperatorRows::Operator* rows : rows_.all()) enter(rows);
}

void register_schemas(const char* name_space, const char* file, ArrayRef<SchemaRow> rows) {
  Registry::get().define_rows(name_space, file, rows);
}
void register_kernels(DispatchKey key, const char* file, ArrayRef<KernelRow> rows) {
  Registry::get().implement_rows(key, file, rows);
}
void register_derivatives(const char* file, ArrayRef<DerivativeRow> rows) {
  Registry::get().derive_rows(file, rows);
}

void Registry::drop(std::shared_ptr<KernelEntry> kernel) {
  slots_.forget(kernel.get());
  struct Dropped {
    code::Use code;
    std::shared_ptr<KernelEntry> kernel;  // ends first
  };
  const void* code = code::address_of(kernel->boxed);
  reclaim::retire([](void* p) { delete static_cast<Dropped*>(p); },
                  new Dropped{code::Use(code), std::move(kernel)});
}

bool Registry::remove(const void* owner, Parked* parked) {
  std::vector<Parked::Kernel> dropped;
  bool changed_any = false;
  {
    std::lock_guard lock(mutex_);
    bool fallbacks_changed = false;
    auto take = [&](const OperatorEntry* op, DispatchKey key, KernelList& list) {
      bool any = false;
      for (auto it = list.begin(); it != list.end();) {
        if ((*it)->owner == owner) {
          dropped.push_back({op != nullptr ? op->full_name() : "", key, std::move(*it)});
          it = list.erase(it);
          any = true;
        } else {
          ++it;
        }
      }
      return any;
    };
    for (auto& [key, list] : slots_.fallbacks()) fallbacks_changed |= take(nullptr, key, list);
    for (OperatorEntry* op : table_.all()) {
      bool kernels = false;
      for (auto it = op->kernels.begin(); it != op->kernels.end();) {
        kernels |= take(op, it->first, it->second);
        it = it->second.empty() ? op->kernels.erase(it) : std::next(it);
      }
      bool derivative = op->derivative != nullptr && op->derivative_owner == owner;
      if (derivative) {
        if (parked != nullptr) {
          parked->derivatives.push_back(
              {op->full_name(), op->derivative, {op->derivative_file, op->derivative_line}});
        }
        op->derivative = nullptr;
        op->derivative_owner = nullptr;
      }
      bool definition = op->owner == owner;
      if (definition) {
        if (parked != nullptr) {
          parked->definitions.push_back({op->name_storage.substr(0, op->name_storage.find("::")),
                                         op->schema_text,
                                         op->tags,
                                         {op->file, op->line},
                                         op->full_name(),
                                         std::move(op->doc)});
        }
        op->publish(false);
        op->owner = nullptr;
      }
      if (!kernels && !derivative && !definition) continue;
      changed_any = true;
      if (op->resolved) slots_.fill(op);
      if (kernels) published(op, OperatorChange::kKernels);
      if (derivative) published(op, OperatorChange::kDerivative);
      if (definition) published(op, OperatorChange::kUndefined);
    }
    if (fallbacks_changed) {
      refill_all();
      generation_.fetch_add(1, std::memory_order_acq_rel);
    }
    changed_any |= fallbacks_changed;
    for (auto it = namespace_owners_.begin(); it != namespace_owners_.end();) {
      if (it->second == owner) {
        auto at = namespaces_.find(it->first);
        if (parked != nullptr) parked->namespaces.emplace_back(at->first, at->second);
        namespaces_.erase(at);
        it = namespace_owners_.erase(it);
      } else {
        ++it;
      }
    }
  }
  if (!changed_any) return true;
  const bool gone = reclaim::wait_for_readers(kWaitMilliseconds);
  if (parked != nullptr) {
    std::move(dropped.begin(), dropped.end(), std::back_inserter(parked->kernels));
  } else {
    std::lock_guard lock(mutex_);
    for (auto& one : dropped) drop(std::move(one.kernel));
  }
  reclaim::collect();
  return gone;
}

void Registry::resume(const void* owner, Parked& parked) {
  // The registration that throws, and those after it, stay parked.
  auto each = [](auto& list, auto&& again) {
    for (; !list.empty(); list.erase(list.begin())) again(list.front());
  };
  each(parked.namespaces, [&](auto& one) { claim_namespace(one.first, owner, one.second); });
  each(parked.definitions, [&](auto& one) {
    define(owner, one.name_space, one.schema_text, "", one.tags, one.origin);
    if (one.doc != nullptr) document(owner, one.name, std::move(one.doc));
  });
  each(parked.derivatives, [&](auto& one) { derive(owner, one.name, one.table, one.origin); });
  each(parked.kernels, [&](auto& one) {
    if (one.name.empty()) {
      fallback(owner, one.key, one.kernel);
    } else {
      implement(owner, one.name, one.key, one.kernel);
    }
  });
}

}  // namespace lamella
