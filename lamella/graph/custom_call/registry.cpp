// The table of targets. One mutex guards it, because it is read only when modules are compiled.
#include "lamella/graph/custom_call/registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "lamella/core/error.h"

namespace lamella::hlo {
namespace {

struct Key {
  std::string platform;
  std::string name;
  TargetKind kind;
  bool operator<(const Key& other) const {
    return std::tie(platform, name, kind) < std::tie(other.platform, other.name, other.kind);
  }
};
struct TargetEntry {
  TargetPointer target;
  int64_t count = 0;
};
struct TargetRegistry {
  std::mutex mutex;
  std::map<Key, TargetEntry> registered;
  std::map<Key, TargetEntry> built_in;
};

// Never destroyed, because libraries unregister their targets during process exit.
TargetRegistry& registry() {
  static TargetRegistry& one = *new TargetRegistry;
  return one;
}

void check(const Target& target) {
  LAMELLA_CHECK(!target.name.empty(), "hlo: expected a custom-call target to have a name, got ''");
  LAMELLA_CHECK(target.function != nullptr, "hlo: expected the custom-call target '", target.name,
                "' to be a function, got NULL");
}
std::string place(const Target& target) {
  if (!target.where.empty()) return target.where;
  Dl_info info;
  if (dladdr(target.function, &info) != 0 && info.dli_fname != nullptr) return info.dli_fname;
  return "an unknown place";
}

void put(Target target, bool replace) {
  target.platform = canonical_platform(target.platform);
  check(target);
  Key key{target.platform, target.name, target.kind};
  TargetRegistry& r = registry();
  TargetPointer before;  // destroyed after the mutex is released: it may hold a Python object
  std::lock_guard<std::mutex> lock(r.mutex);
  TargetEntry& entry = (target.built_in ? r.built_in : r.registered)[key];
  if (entry.target != nullptr && !replace) {
    LAMELLA_CHECK(entry.target->same_functions(target), "hlo: expected the custom-call target '",
                  target.name, "' to be registered for ", target.platform, " once; registered at ",
                  place(*entry.target), " and, another function, at ", place(target));
    ++entry.count;
    return;
  }
  before = std::move(entry.target);
  entry.target = std::make_shared<const Target>(std::move(target));
  entry.count = 1;
}

}  // namespace

Pin::Pin(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return;
  // For the main program this fails and leaves handle_ null; it is never unloaded.
  handle_ = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}
Pin::~Pin() {
  if (handle_ != nullptr) dlclose(handle_);
}

std::string canonical_platform(std::string_view platform) {
  std::string lower(platform);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (lower == "host" || lower == "cpu") return "Host";
  if (lower == "cuda" || lower == "gpu") return "CUDA";
  if (lower == "rocm") return "ROCM";
  return std::string(platform);
}

void register_target(Target target) { put(std::move(target), false); }
void replace_target(Target target) { put(std::move(target), true); }

bool remove_target(std::string_view name, std::string_view platform, TargetKind kind,
                   const void* function) {
  TargetRegistry& r = registry();
  TargetPointer before;
  std::lock_guard<std::mutex> lock(r.mutex);
  auto found = r.registered.find(Key{canonical_platform(platform), std::string(name), kind});
  if (found == r.registered.end()) return false;
  if (function != nullptr) {
    if (found->second.target->function != function) return false;
    if (--found->second.count != 0) return true;
  }
  before = std::move(found->second.target);
  r.registered.erase(found);
  return true;
}

TargetPointer find_target(std::string_view name, std::string_view platform, TargetKind kind) {
  Key key{canonical_platform(platform), std::string(name), kind};
  TargetRegistry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  for (const auto* table : {&r.registered, &r.built_in}) {
    auto found = table->find(key);
    if (found != table->end()) return found->second.target;
  }
  return nullptr;
}

std::vector<TargetPointer> list_targets() {
  TargetRegistry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  std::map<Key, TargetEntry> all = r.registered;
  all.insert(r.built_in.begin(), r.built_in.end());
  std::vector<TargetPointer> targets;
  for (const auto& [key, entry] : all) targets.push_back(entry.target);
  return targets;
}

}  // namespace lamella::hlo
