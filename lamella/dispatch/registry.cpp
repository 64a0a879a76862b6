// The table of operators: look-ups, registrations, and the filling of slots.
#include "lamella/dispatch/registry.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lamella/dispatch/policy.h"
#include "lamella/dispatch/reclaim.h"
#include "lamella/schema/alias_check.h"
#include "lamella/schema/parser.h"
#include "lamella/schema/suggest.h"

namespace lamella {
namespace {

// A thread that leaves a kernel within this time is waited for when the kernel is deregistered.
constexpr int kWaitMilliseconds = 5000;

size_t bucket_of(std::string_view name, std::string_view overload, size_t buckets) {
  uint64_t hash = 1469598103934665603ull;
  auto mix = [&hash](std::string_view text) {
    for (unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
    hash = (hash ^ '.') * 1099511628211ull;
  };
  mix(name);
  mix(overload);
  return (hash ^ (hash >> 32)) % buckets;
}

bool variable_is_on(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

std::pair<std::string, std::string> split_overload(std::string_view name) {
  size_t from = name.find("::");
  size_t dot = name.find('.', from == std::string_view::npos ? 0 : from + 2);
  if (dot == std::string_view::npos) return {std::string(name), ""};
  return {std::string(name.substr(0, dot)), std::string(name.substr(dot + 1))};
}

}  // namespace

OperatorEntry::OperatorEntry(std::string name, std::string overload)
    : lamella_operator{}, name_storage(std::move(name)), overload_storage(std::move(overload)) {
  this->name = name_storage.c_str();
  this->overload = overload_storage.c_str();
  mask = ~uint64_t{0};
  for (const lamella_kernel*& slot : slots) slot = undefined_kernel();
}

const KernelEntry* OperatorEntry::kernel_for(DispatchKey key) const {
  auto found = kernels.find(key);
  return found == kernels.end() || found->second.empty() ? nullptr : found->second.front().get();
}

bool OperatorEntry::has_backend_kernel(DispatchKey key) const {
  return kernel_for(key) != nullptr ||
         kernel_for(DispatchKey::CompositeExplicitAutograd) != nullptr ||
         kernel_for(DispatchKey::CompositeExplicitAutogradNonFunctional) != nullptr;
}

bool OperatorEntry::has_any_backend_kernel() const {
  for (const auto& [key, list] : kernels) {
    if (!list.empty() && (is_backend_key(key) || key == DispatchKey::CompositeExplicitAutograd)) {
      return true;
    }
  }
  return false;
}

const lamella_kernel* record_kernel = nullptr;
const lamella_kernel* (*cast_kernel)(std::string_view autocast_class) = nullptr;

Registry::Registry() : buckets_(kBuckets) {
  trace_ =
      variable_is_on("LAMELLA_SHOW_DISPATCH_TRACE") || variable_is_on("TORCH_SHOW_DISPATCH_TRACE");
}

// Never destroyed: libraries deregister themselves after static destruction has begun.
std::atomic<uint64_t> Registry::generation_{1};

Registry& Registry::get() {
  static Registry* registry = new Registry;
  return *registry;
}

OperatorEntry* Registry::lookup(std::string_view name, std::string_view overload) const {
  OperatorEntry* const* head = &buckets_[bucket_of(name, overload, kBuckets)];
  for (OperatorEntry* op = __atomic_load_n(head, __ATOMIC_ACQUIRE); op != nullptr; op = op->next) {
    if (op->name_storage == name && op->overload_storage == overload) return op;
  }
  return nullptr;
}

OperatorEntry* Registry::find_or_add(std::string_view name, std::string_view overload) {
  if (OperatorEntry* op = lookup(name, overload)) return op;
  OperatorEntry* op = new OperatorEntry(std::string(name), std::string(overload));
  OperatorEntry** head = &buckets_[bucket_of(name, overload, kBuckets)];
  op->next = *head;
  order_.push_back(op);
  __atomic_store_n(head, op, __ATOMIC_RELEASE);
  return op;
}

std::vector<OperatorEntry*> Registry::entries() const {
  std::lock_guard lock(mutex_);
  return order_;
}

std::vector<OperatorEntry*> Registry::overloads(std::string_view name) {
  std::lock_guard lock(mutex_);
  std::vector<OperatorEntry*> result;
  for (OperatorEntry* op : order_) {
    if (op->name_storage == name && op->defined()) result.push_back(op);
  }
  for (OperatorEntry* op : result) resolve(op);
  return result;
}

OperatorEntry* Registry::find(std::string_view name, std::string_view overload) {
  OperatorEntry* op = lookup(name, overload);
  if (op != nullptr && op->is_published()) [[likely]] {
    resolve(op);  // takes the lock only the first time
    return op;
  }
  std::lock_guard lock(mutex_);
  if (op != nullptr && op->is_published()) {  // defined meanwhile
    resolve(op);
    return op;
  }
  std::string full = std::string(name);
  if (!overload.empty()) full += "." + std::string(overload);
  if (op != nullptr && !op->file.empty()) {
    throw Error(full + ": was defined at " + op->file + ":" + std::to_string(op->line) +
                ", in a library that is not loaded any more");
  }
  if (op != nullptr && !op->kernels.empty()) {
    throw Error(full + ": has kernels but no definition; load the library that declares it");
  }
  std::string text = "unknown operator '" + full + "'";
  std::vector<std::string> same, names;
  for (OperatorEntry* other : order_) {
    if (!other->defined()) continue;
    if (other->name_storage == name) same.push_back(other->full_name());
    names.push_back(other->full_name());
  }
  if (!same.empty()) {
    text += "; its overloads are ";
    for (size_t i = 0; i < same.size(); ++i) text += (i ? ", '" : "'") + same[i] + "'";
  } else {
    std::vector<std::string_view> views(names.begin(), names.end());
    text += did_you_mean(full, views);
  }
  for (const std::string& failure : failures_) text += "\n  a library failed to load: " + failure;
  throw Error(text);
}

void Registry::read_schema(OperatorEntry* op) {
  if (op->schema != nullptr || op->schema_text.empty()) return;
  auto schema = std::make_unique<FunctionSchema>(parse_schema(op->schema_text));
  for (const Argument& argument : schema->arguments) {
    op->argument_types.push_back(argument.type_str());
  }
  for (const Argument& result : schema->returns) op->return_types.push_back(result.type_str());
  schema->name.ns.clear();
  op->canonical = op->name_storage.substr(0, op->name_storage.find("::") + 2) + schema->str();
  op->argument_count = static_cast<uint32_t>(schema->arguments.size());
  op->return_count = static_cast<uint32_t>(schema->returns.size());
  op->schema = std::move(schema);
}

void Registry::resolve(OperatorEntry* op) {
  if (__atomic_load_n(&op->resolved, __ATOMIC_ACQUIRE)) return;
  std::lock_guard lock(mutex_);
  if (op->resolved) return;
  read_schema(op);
  if (op->schema != nullptr) {
    for (const auto& [key, list] : op->kernels) {
      for (const auto& kernel : list) check_kernel(*op, *kernel);
    }
  }
  refill(op);
  __atomic_store_n(&op->resolved, true, __ATOMIC_RELEASE);
}

const FunctionSchema& Registry::schema(OperatorEntry* op) {
  resolve(op);
  std::lock_guard lock(mutex_);
  LAMELLA_CHECK(op->schema != nullptr, op->full_name(), ": is not defined");
  return *op->schema;
}

Slot Registry::slot(OperatorEntry* op, DispatchKey key) {
  resolve(op);
  std::lock_guard lock(mutex_);
  return compute(op, key);
}

const KernelEntry* Registry::fallback_for(DispatchKey key) const {
  auto found = fallbacks_.find(key);
  return found == fallbacks_.end() || found->second.empty() ? nullptr : found->second.front().get();
}

namespace {
bool has_tag(const OperatorEntry& op, std::string_view name) {
  return std::find(op.tags.begin(), op.tags.end(), name) != op.tags.end();
}
// The composite kernel of an operator that batched tensors go straight through.
const KernelEntry* batching_composite(const OperatorEntry& op) {
  const KernelEntry* kernel = op.kernel_for(DispatchKey::CompositeImplicitAutograd);
  if (kernel == nullptr || policy_of(op, Policy::kBatching) != "composite") return nullptr;
  bool refused = has_tag(op, "data_dependent_output") || has_tag(op, "dynamic_output_shape");
  return refused && !has_tag(op, "batching:composite") ? nullptr : kernel;
}
}  // namespace

namespace {
// Of a backend whose autograd key is AutogradOther: all but the dense ones.
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
Slot Registry::compute(const OperatorEntry* op, DispatchKey key) const {
  auto use = [](const KernelEntry* kernel, SlotOrigin origin) {
    if (kernel->fallthrough) {
      return Slot{fallthrough_kernel(), kernel, SlotOrigin::kFallthrough};
    }
    return Slot{kernel, kernel, origin};
  };
  if (key == DispatchKey::ThreadInit) {
    return {thread_init_kernel(), nullptr, SlotOrigin::kFallback};
  }
  if (!op->defined()) return {undefined_kernel(), nullptr, SlotOrigin::kMissing};
  if (const KernelEntry* own = op->kernel_for(key)) return use(own, SlotOrigin::kKernel);
  for (DispatchKey alias : {DispatchKey::CompositeExplicitAutogradNonFunctional,
                            DispatchKey::CompositeExplicitAutograd}) {
    const KernelEntry* kernel = op->kernel_for(alias);
    if (kernel != nullptr && alias_includes(alias, key)) return use(kernel, SlotOrigin::kAlias);
  }
  for (DispatchKey alias : {DispatchKey::CompositeImplicitAutogradNestedTensor,
                            DispatchKey::CompositeImplicitAutograd}) {
    const KernelEntry* kernel = op->kernel_for(alias);
    if (kernel == nullptr || !alias_includes(alias, key)) continue;
    if (!is_autograd_key(key)) return use(kernel, SlotOrigin::kAlias);
    if (key == DispatchKey::AutogradOther) {
      if (op->kernel_for(DispatchKey::CompositeExplicitAutograd) != nullptr) continue;
      if (!has_kernel_below_autograd_other(*op)) return use(kernel, SlotOrigin::kAlias);
      return {ambiguous_kernel(), nullptr, SlotOrigin::kAmbiguous};
    }
    if (!op->has_backend_kernel(backend_of_autograd(key))) return use(kernel, SlotOrigin::kAlias);
  }
  for (DispatchKey alias :
       {DispatchKey::Autograd, DispatchKey::Autocast, DispatchKey::FuncTorchBatchedDecomposition}) {
    const KernelEntry* kernel = op->kernel_for(alias);
    if (kernel != nullptr && alias_includes(alias, key)) return use(kernel, SlotOrigin::kAlias);
  }
  if (key == DispatchKey::Batched) {
    if (const KernelEntry* kernel = batching_composite(*op)) return use(kernel, SlotOrigin::kAlias);
  }
  if (key == DispatchKey::VmapMode && !has_tag(*op, "nondeterministic_seeded")) {
    return {fallthrough_kernel(), nullptr, SlotOrigin::kFallthrough};
  }
  if (const KernelEntry* kernel = fallback_for(key)) return use(kernel, SlotOrigin::kFallback);
  for (DispatchKey alias : {DispatchKey::Autograd, DispatchKey::Autocast}) {
    const KernelEntry* kernel = fallback_for(alias);
    if (kernel != nullptr && alias_includes(alias, key)) return use(kernel, SlotOrigin::kFallback);
  }
  if (record_kernel != nullptr && is_autograd_key(key) &&
      static_cast<uint16_t>(key) >= detail::kSplitBase) {
    return {record_kernel, nullptr, SlotOrigin::kDerivative};
  }
  if (cast_kernel != nullptr && is_autocast_key(key) && has_backend(split_key(key)->backend)) {
    if (const lamella_kernel* kernel = cast_kernel(autocast_class(*op, key))) {
      return {kernel, nullptr, SlotOrigin::kPolicy};
    }
  }
  if (is_backend_key(key) || key == DispatchKey::Undefined) {
    return {missing_kernel(), nullptr, SlotOrigin::kMissing};
  }
  return {fallthrough_kernel(), nullptr, SlotOrigin::kFallthrough};
}

bool Registry::has_backend(int backend) const { return (backends_ >> backend) & 1; }

bool Registry::add_backend_of(DispatchKey key) {
  const std::optional<SplitKey> split = split_key(key);
  if (!split || !is_backend_key(key) || key == DispatchKey::Meta) return false;
  const uint64_t before = backends_;
  backends_ |= uint64_t{1} << split->backend;
  return backends_ != before;
}

const lamella_kernel* Registry::traced(const lamella_kernel* kernel) {
  if (!trace_ || kernel == thread_init_kernel() || kernel == fallthrough_kernel()) return kernel;
  lamella_kernel*& shim = shims_[kernel];
  if (shim == nullptr) shim = make_trace_kernel(kernel);
  return shim;
}

void Registry::refill(OperatorEntry* op) {
  const lamella_kernel* next[LAMELLA_SLOTS];
  constexpr uint64_t autograd_when_needed =
      detail::functionality_bit(detail::Functionality::AutogradRequired) |
      detail::functionality_bit(detail::Functionality::AutogradTangent);
  uint64_t mask = detail::kBackendMask;
  for (const lamella_kernel*& slot : next) slot = missing_kernel();
  for (DispatchKey key : runtime_keys()) {
    Slot slot = compute(op, key);
    next[static_cast<size_t>(key)] = traced(slot.kernel);
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
  // A key leaves the mask before its slots change and enters after: in between, calls see the
  // operator as it was.
  __atomic_store_n(&op->mask, op->mask & mask, __ATOMIC_RELEASE);
  for (size_t i = 0; i < LAMELLA_SLOTS; ++i) {
    __atomic_store_n(&op->slots[i], next[i], __ATOMIC_RELEASE);
  }
  __atomic_store_n(&op->mask, mask, __ATOMIC_RELEASE);
  __atomic_store_n(&op->always, always, __ATOMIC_RELEASE);
}

void Registry::refill_all() {
  for (OperatorEntry* op : order_) {
    if (op->resolved) refill(op);
  }
}

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
                      const Origin& origin, bool trusted) {
  generation_.fetch_add(1, std::memory_order_acq_rel);
  std::string text(schema);
  if (!inferred_signature.empty()) text += schema_of_signature(inferred_signature);
  size_t end = text.find('(');
  std::string full = text.substr(0, end);
  if (full.find("::") == std::string::npos) {
    full = name_space + "::" + full;
  } else if (full.substr(0, full.find("::")) != name_space) {
    throw Error("def: expected an operator of namespace '" + name_space + "', got '" + full +
                "' (" + origin.where() + ")");
  }
  std::unique_ptr<FunctionSchema> parsed;
  if (!trusted) {
    if (end == std::string::npos) {
      throw Error("def: expected a schema such as '" + text +
                  "(Tensor self) -> Tensor', got only a name (" + origin.where() + ")");
    }
    parsed = std::make_unique<FunctionSchema>(parse_schema(text));
    std::vector<SchemaProblem> problems = check_alias_rules(*parsed);
    if (!problems.empty()) {
      SchemaProblem first = locate(text, problems[0].message, problems[0].offset);
      throw SchemaError(text, first);
    }
    check_policies(full, tags, *parsed, origin.where());
  }
  auto [name, overload] = split_overload(full);
  std::lock_guard lock(mutex_);
  OperatorEntry* op = find_or_add(name, overload);
  if (op->defined()) {
    throw Error(op->full_name() + ": is already defined at " + op->file + ":" +
                std::to_string(op->line) + ", so it cannot be defined again at " + origin.where());
  }
  op->schema.reset();
  op->argument_types.clear();
  op->return_types.clear();
  op->schema_text = text;
  op->tags = std::move(tags);
  Origin before{op->file, op->line};
  op->file = origin.file;
  op->line = origin.line;
  op->owner = owner;
  try {
    if (!trusted) {
      read_schema(op);
      for (const auto& [key, list] : op->kernels) {
        for (const auto& kernel : list) check_kernel(*op, *kernel);
      }
    }
  } catch (...) {
    op->owner = nullptr;
    op->schema.reset();
    op->schema_text.clear();
    op->file = before.file;
    op->line = before.line;
    throw;
  }
  if (op->resolved) {
    read_schema(op);
    refill(op);
  }
  op->publish(true);
}

void Registry::check_kernel(const OperatorEntry& op, const KernelEntry& kernel) const {
  if (kernel.signature.empty() || op.schema == nullptr) return;
  std::string expected = signature_of(*op.schema);
  if (signature_fits(expected, kernel.signature)) return;
  throw Error(op.full_name() + ": expected a kernel " + signature_text(expected) +
              " for its schema '" + op.canonical + "', got " + signature_text(kernel.signature) +
              " for " + dispatch_key_name(kernel.key) + " (" + kernel.where() + ")");
}

void Registry::implement(const void* owner, std::string_view qualified_name, DispatchKey key,
                         std::shared_ptr<KernelEntry> kernel) {
  auto [name, overload] = split_overload(qualified_name);
  kernel->key = key;
  kernel->owner = owner;
  std::lock_guard lock(mutex_);
  OperatorEntry* op = find_or_add(name, overload);
  if (const KernelEntry* before = op->kernel_for(key);
      before != nullptr && before->owner == owner) {
    throw Error(op->full_name() + ": already has a kernel for " + dispatch_key_name(key) +
                " from this library, registered at " + before->where() +
                ", so another cannot be registered at " + kernel->where());
  }
  if (!is_runtime_key(key) && !is_alias_key(key)) {
    throw Error(op->full_name() +
                ": expected a dispatch key to register a kernel for, got number " +
                std::to_string(static_cast<int>(key)));
  }
  check_kernel(*op, *kernel);
  op->kernels[key].push_front(std::move(kernel));
  if (add_backend_of(key)) {
    refill_all();
  } else if (op->resolved) {
    refill(op);
  }
}

void Registry::fallback(const void* owner, DispatchKey key, std::shared_ptr<KernelEntry> kernel) {
  kernel->key = key;
  kernel->owner = owner;
  if (kernel->typed != nullptr) {
    throw Error("fallback: expected a boxed kernel for " + dispatch_key_name(key) +
                ", got a typed one (" + kernel->where() + ")");
  }
  std::lock_guard lock(mutex_);
  if (const KernelEntry* before = fallback_for(key); before != nullptr && before->owner == owner) {
    throw Error("fallback: " + dispatch_key_name(key) + " already has one from this library, at " +
                before->where());
  }
  fallbacks_[key].push_front(std::move(kernel));
  add_backend_of(key);
  refill_all();
}

// Nodes recorded by the plan find that its derivative is gone.
void Registry::retire_plan(OperatorEntry* op) {
  if (op->record_plan == nullptr) return;
  op->record_plan->retire();
  retired_plans_.push_back(op->record_plan);
  __atomic_store_n(&op->record_plan, nullptr, __ATOMIC_RELEASE);
}

void Registry::derive(const void* owner, std::string_view qualified_name,
                      const lamella_derivative* derivative, const Origin& origin) {
  auto [name, overload] = split_overload(qualified_name);
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
  retire_plan(op);
  if (op->resolved) refill(op);
}

void Registry::drop(std::shared_ptr<KernelEntry> kernel) {
  auto shim = shims_.find(kernel.get());
  if (shim != shims_.end()) {
    reclaim::retire([](void* p) { delete static_cast<lamella_kernel*>(p); }, shim->second);
    shims_.erase(shim);
  }
  reclaim::retire([](void* p) { delete static_cast<std::shared_ptr<KernelEntry>*>(p); },
                  new std::shared_ptr<KernelEntry>(std::move(kernel)));
}

void Registry::remove(const void* owner) {
  std::vector<std::shared_ptr<KernelEntry>> dropped;
  bool defined_here = false;
  {
    std::lock_guard lock(mutex_);
    bool fallbacks_changed = false;
    auto take = [&](std::list<std::shared_ptr<KernelEntry>>& list) {
      bool any = false;
      for (auto it = list.begin(); it != list.end();) {
        if ((*it)->owner == owner) {
          dropped.push_back(std::move(*it));
          it = list.erase(it);
          any = true;
        } else {
          ++it;
        }
      }
      return any;
    };
    for (auto& [key, list] : fallbacks_) fallbacks_changed |= take(list);
    for (OperatorEntry* op : order_) {
      bool changed = false;
      for (auto it = op->kernels.begin(); it != op->kernels.end();) {
        changed |= take(it->second);
        it = it->second.empty() ? op->kernels.erase(it) : std::next(it);
      }
      if (op->derivative != nullptr && op->derivative_owner == owner) {
        op->derivative = nullptr;
        op->derivative_owner = nullptr;
        retire_plan(op);
        changed = defined_here = true;
      }
      if (op->owner == owner) {
        op->publish(false);
        op->owner = nullptr;
        retire_plan(op);
        changed = defined_here = true;
      }
      if (changed && op->resolved) refill(op);
    }
    if (fallbacks_changed) refill_all();
    for (auto it = namespace_owners_.begin(); it != namespace_owners_.end();) {
      if (it->second == owner) {
        namespaces_.erase(it->first);
        it = namespace_owners_.erase(it);
      } else {
        ++it;
      }
    }
  }
  if (dropped.empty() && !defined_here) return;
  reclaim::wait_for_readers(kWaitMilliseconds);
  std::lock_guard lock(mutex_);
  for (auto& kernel : dropped) drop(std::move(kernel));
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

void Registry::set_trace(bool on) {
  std::lock_guard lock(mutex_);
  trace_ = on;
  refill_all();
}

void Registry::defer_failure(std::string text) {
  std::lock_guard lock(mutex_);
  failures_.push_back(std::move(text));
}

std::vector<std::string> Registry::take_failures() {
  std::lock_guard lock(mutex_);
  std::vector<std::string> taken;
  taken.swap(failures_);
  return taken;
}

std::vector<std::string> Registry::failures() const {
  std::lock_guard lock(mutex_);
  return failures_;
}

}  // namespace lamella
