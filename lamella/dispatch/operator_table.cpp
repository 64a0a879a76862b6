// The hash table of operators by name, and splitting of operator names.
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

void sort_by_place(std::vector<OperatorEntry*>& operators) {
  std::sort(operators.begin(), operators.end(),
            [](const OperatorEntry* a, const OperatorEntry* b) { return a->place < b->place; });
}

}  // namespace

std::pair<std::string_view, std::string_view> split_overload(std::string_view full) {
  size_t from = full.find("::");
  size_t dot = full.find('.', from == std::string_view::npos ? 0 : from + 2);
  if (dot == std::string_view::npos) return {full, ""};
  return {full.substr(0, dot), full.substr(dot + 1)};
}

std::vector<std::string> split_tags(const char* tags) {
  std::vector<std::string> result;
  if (tags == nullptr) return result;
  std::string word;
  for (const char* c = tags;; ++c) {
    if (*c == ',' || *c == '\0') {
      if (!word.empty()) result.push_back(word);
      word.clear();
      if (*c == '\0') return result;
    } else if (*c != ' ') {
      word += *c;
    }
  }
}

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
  return add(std::make_unique<OperatorEntry>(std::string(name), std::string(overload)),
             keep_places(1));
}

OperatorEntry* OperatorTable::add(std::unique_ptr<OperatorEntry> op, uint32_t place) {
  OperatorEntry** head = &buckets_[bucket_of(op->name_storage, op->overload_storage, kBuckets)];
  op->next = *head;
  op->place = place;
  all_.push_back(op.get());
  __atomic_store_n(head, op.get(), __ATOMIC_RELEASE);
  return op.release();
}

uint32_t OperatorTable::keep_places(size_t count) {
  const uint32_t first = next_place_;
  next_place_ += static_cast<uint32_t>(count);
  return first;
}

std::vector<OperatorEntry*> OperatorTable::in_order() const {
  std::vector<OperatorEntry*> result = all_;
  sort_by_place(result);
  return result;
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
  heir->place = op->place;
  std::replace(all_.begin(), all_.end(), op, heir);
  // Look-ups meet the newest entry of a name first.
  OperatorEntry** head = &buckets_[bucket_of(op->name_storage, op->overload_storage, kBuckets)];
  heir->next = *head;
  __atomic_store_n(head, heir, __ATOMIC_RELEASE);
  return heir;
}

std::vector<OperatorEntry*> OperatorTable::overloads(std::string_view name) const {
  std::vector<OperatorEntry*> result;
  for (OperatorEntry* op : all_) {
    if (op->name_storage == name && op->defined()) result.push_back(op);
  }
  sort_by_place(result);
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
  for (OperatorEntry* other : in_order()) {
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
