// Looks operators up, and parses their declarations.
#include "lamella/dispatch/registry.h"

#include <algorithm>

#include "lamella/core/fork.h"
#include "lamella/dispatch/loading.h"
#include "lamella/schema/parser.h"
#include "lamella/schema/type_lock.h"

namespace lamella {

namespace {
constexpr std::string_view kOwnNamespace = "aten::";
}  // namespace

Registry::Registry() {
  fork::hold(fork::Level::kRegistry, &mutex_);
  fork::hold(fork::Level::kCore, &type_table_lock());
}

// Never destroyed: libraries deregister themselves after static destruction has begun.
std::atomic<uint64_t> Registry::generation_{1};

Registry& Registry::get() {
  static Registry* registry = new Registry;
  return *registry;
}

OperatorEntry* Registry::lookup_rows(std::string_view name, std::string_view overload) {
  {
    std::lock_guard lock(mutex_);
    if (OperatorRows::Operator* rows = rows_.find(name, overload)) return enter(rows);
    // Another thread may have entered it meanwhile.
    if (OperatorEntry* op = table_.lookup(name, overload)) return op;
  }
  if (!name.starts_with(kOwnNamespace) || !load_families()) return nullptr;
  return table_.lookup(name, overload);
}

std::vector<OperatorEntry*> Registry::entries() {
  load_families();
  std::lock_guard lock(mutex_);
  enter_all();
  return table_.in_order();
}

std::vector<OperatorEntry*> Registry::overloads(std::string_view name) {
  auto found = [&] {
    std::lock_guard lock(mutex_);
    for (OperatorRows::Operator* rows : rows_.family(name)) enter(rows);
    return table_.overloads(name);
  };
  std::vector<OperatorEntry*> result = found();
  if (result.empty() && name.starts_with(kOwnNamespace) && load_families()) result = found();
  for (OperatorEntry* op : result) resolve(op);
  return result;
}

OperatorEntry* Registry::find(std::string_view name, std::string_view overload) {
  OperatorEntry* op = lookup(name, overload);
  if (op != nullptr && op->is_published()) [[likely]] {
    resolve(op);  // takes the lock only the first time
    return op;
  }
  load_families();
  std::lock_guard lock(mutex_);
  if (op != nullptr && op->is_published()) {  // defined meanwhile
    resolve(op);
    return op;
  }
  enter_all();
  std::string text = table_.why_unknown(name, overload);
  if (name.starts_with(kOwnNamespace) && families_are_missing()) {
    text +=
        "; this build has no liblamella_more.so, which holds families of operators: `make build`";
  }
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
  slots_.fill(op);
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
  return slots_.find(*op, key);
}

void Registry::add_slot_rule(const SlotRule& rule) {
  std::lock_guard lock(mutex_);
  slots_.add_rule(rule);
  refill_all();
}

void Registry::set_gate(SlotGate gate) {
  std::lock_guard lock(mutex_);
  slots_.set_gate(gate);
  refill_all();
}

void Registry::refill_all() {
  for (OperatorEntry* op : table_.all()) {
    if (op->resolved) slots_.fill(op);
  }
}

void Registry::set_trace(bool on) {
  std::lock_guard lock(mutex_);
  slots_.set_trace(on);
  refill_all();
}

}  // namespace lamella
