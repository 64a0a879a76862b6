#include "lamella/dispatch/operator_table.h"

#include <algorithm>
#include <utility>

#include "lamella/dispatch/loading.h"
#include "lamella/schema/suggest.h"

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

OperatorEntry* OperatorTable::lookup(std::string_view name, std::string_view overload) const {
  OperatorEntry* const* head = &buckets_[bucket_of(name, overload, kBuckets)];
  for (OperatorEntry* op = __atomic_load_n(head, __ATOMIC_ACQUIRE); op != nullptr; op = op->next) {
    if (op->name_storage == name && op->overload_storage == overload) return op;
  }
  return nullptr;
}

OperatorEntry* OperatorTable::find_or_add(std::string_view name, std::string_view overload) {
  if (OperatorEntry* op = lookup(name, overload)) return op;
  OperatorEntry* op = new OperatorEntry(std::string(name), std::string(overload));
  OperatorEntry** head = &buckets_[bucket_of(name, overload, kBuckets)];
  op->next = *head;
  order_.push_back(op);
  __atomic_store_n(head, op, __ATOMIC_RELEASE);
  return op;
}

OperatorEntry* OperatorTable::succeed(OperatorEntry* op) {
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

std::vector<OperatorEntry*> OperatorTable::overloads(std::string_view name) const {
  std::vector<OperatorEntry*> result;
  for (OperatorEntry* op : order_) {
    if (op->name_storage == name && op->defined()) result.push_back(op);
  }
  return result;
}

std::string OperatorTable::why_unknown(std::string_view name, std::string_view overload) const {
  std::string full = std::string(name);
  if (!overload.empty()) full += "." + std::string(overload);
  const OperatorEntry* op = lookup(name, overload);
  if (op != nullptr && !op->file.empty()) {
    return full + ": was defined at " + op->file + ":" + std::to_string(op->line) +
           ", in a library that is not loaded any more";
  }
  if (op != nullptr && !op->kernels.empty()) {
    return full + ": has kernels but no definition; load the library that declares it";
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
  for (const std::string& failure : load_failures()) {
    text += "\n  a library failed to load: " + failure;
  }
  return text;
}

}  // namespace lamella
