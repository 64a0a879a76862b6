// The table of operators: look-ups, and the filling of slots.
#include "lamella/dispatch/registry.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "lamella/core/fork.h"
#include "lamella/dispatch/policy.h"
#include "lamella/schema/parser.h"
#include "lamella/schema/suggest.h"
#include "lamella/schema/type_lock.h"

namespace lamella {
namespace {

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

bool OperatorEntry::has_tag(std::string_view tag) const {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

Registry::Registry() : buckets_(kBuckets) {
  trace_ =
      variable_is_on("LAMELLA_SHOW_DISPATCH_TRACE") || variable_is_on("TORCH_SHOW_DISPATCH_TRACE");
  fork::hold(fork::Level::kRegistry, &mutex_);
  fork::hold(fork::Level::kCore, &type_table_lock());
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

OperatorEntry* Registry::succeed(OperatorEntry* op) {
  OperatorEntry* heir = new OperatorEntry(op->name_storage, op->overload_storage);
  heir->file = op->file;
  heir->line = op->line;
  heir->kernels = std::exchange(op->kernels, {});
  heir->derivative = std::exchange(op->derivative, nullptr);
  heir->derivative_owner = std::exchange(op->derivative_owner, nullptr);
  heir->derivative_file = op->derivative_file;
  heir->derivative_line = op->derivative_line;
  std::replace(order_.begin(), order_.end(), op, heir);
  // Look-ups meet the newest entry of a name first.
  OperatorEntry** head = &buckets_[bucket_of(op->name_storage, op->overload_storage, kBuckets)];
  heir->next = *head;
  __atomic_store_n(head, heir, __ATOMIC_RELEASE);
  return heir;
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
  auto known = std::find_if(op->declared.begin(), op->declared.end(),
                            [&](const auto& one) { return one->text == op->schema_text; });
  if (known == op->declared.end()) {
    auto made = std::make_unique<Declared>();
    made->text = op->schema_text;
    made->schema = parse_schema(op->schema_text);
    made->facts = OperatorFacts(made->schema);
    for (const Argument& argument : made->schema.arguments) {
      made->argument_types.push_back(argument.type_str());
    }
    for (const Argument& result : made->schema.returns) {
      made->return_types.push_back(result.type_str());
    }
    made->schema.name.ns.clear();
    made->canonical =
        op->name_storage.substr(0, op->name_storage.find("::") + 2) + made->schema.str();
    known = op->declared.insert(op->declared.end(), std::move(made));
  }
  // Calls of handles that were made before may be reading these.
  auto set = [](uint32_t* count, size_t now) {
    if (*count != now) __atomic_store_n(count, static_cast<uint32_t>(now), __ATOMIC_RELAXED);
  };
  op->current = known->get();
  op->schema = &op->current->schema;
  set(&op->argument_count, op->schema->arguments.size());
  set(&op->return_count, op->schema->returns.size());
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

const Declared& Registry::declared(OperatorEntry* op) {
  resolve(op);
  std::lock_guard lock(mutex_);
  LAMELLA_CHECK(op->schema != nullptr, op->full_name(), ": is not defined");
  return *op->current;
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

void Registry::add_slot_rule(const SlotRule& rule) {
  std::lock_guard lock(mutex_);
  rules_.push_back(&rule);
  refill_all();
}
void Registry::set_gate(SlotGate gate) {
  std::lock_guard lock(mutex_);
  gate_ = gate;
  refill_all();
}

namespace {
// Whether a backend has a kernel whose autograd key is AutogradOther: all but the dense ones.
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
  auto ask = [&](bool before_fallbacks) {
    for (const SlotRule* rule : rules_) {
      if (rule->before_fallbacks != before_fallbacks) continue;
      Slot slot = rule->find(*op, key);
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

const lamella_kernel* Registry::gated(DispatchKey key, const Slot& slot) {
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

void Registry::refill(OperatorEntry* op) {
  const lamella_kernel* next[LAMELLA_SLOTS];
  constexpr uint64_t autograd_when_needed =
      detail::functionality_bit(detail::Functionality::AutogradRequired) |
      detail::functionality_bit(detail::Functionality::AutogradTangent);
  uint64_t mask = detail::kBackendMask;
  for (const lamella_kernel*& slot : next) slot = missing_kernel();
  for (DispatchKey key : runtime_keys()) {
    Slot slot = compute(op, key);
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
