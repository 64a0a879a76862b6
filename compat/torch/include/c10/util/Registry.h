// Registries that packages define for themselves: factories of objects by key, registered before
// main().
#pragma once
#include <c10/util/Exception.h>
#include <torch/standard_headers.h>

namespace c10 {

enum RegistryPriority { REGISTRY_FALLBACK = 1, REGISTRY_DEFAULT = 2, REGISTRY_PREFERRED = 3 };

template <class Key, class Object, class... A>
class Registry {
 public:
  using Creator = std::function<Object(A...)>;

  // Error for a key that is registered with the same priority; a higher priority replaces it.
  void Register(const Key& key, Creator creator, RegistryPriority priority = REGISTRY_DEFAULT) {
    Register(key, std::move(creator), "", priority);
  }
  void Register(const Key& key, Creator creator, std::string help,
                RegistryPriority priority = REGISTRY_DEFAULT) {
    std::lock_guard<std::mutex> guard(mutex_);
    auto found = entries_.find(key);
    if (found != entries_.end()) {
      LAMELLA_CHECK(found->second.priority != priority, "Registry: expected a key of its own, got ",
                    key, " again");
      if (found->second.priority > priority) return;
    }
    entries_[key] = {std::move(creator), std::move(help), priority};
  }
  bool Has(const Key& key) const {
    std::lock_guard<std::mutex> guard(mutex_);
    return entries_.count(key) != 0;
  }
  // Null for a key that is not registered.
  Object Create(const Key& key, A... args) const {
    Creator creator;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      auto found = entries_.find(key);
      if (found == entries_.end()) return nullptr;
      creator = found->second.creator;
    }
    return creator(std::forward<A>(args)...);
  }
  std::vector<Key> Keys() const {
    std::lock_guard<std::mutex> guard(mutex_);
    std::vector<Key> keys;
    for (const auto& [key, entry] : entries_) keys.push_back(key);
    return keys;
  }
  const char* HelpMessage(const Key& key) const {
    std::lock_guard<std::mutex> guard(mutex_);
    auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second.help.c_str();
  }
  // An error is always thrown and never ends the program.
  void SetTerminate(bool) {}

 private:
  struct Entry {
    Creator creator;
    std::string help;
    RegistryPriority priority;
  };

  mutable std::mutex mutex_;
  std::unordered_map<Key, Entry> entries_;
};

template <class Key, class Object, class... A>
class Registerer {
 public:
  using Entries = Registry<Key, Object, A...>;
  Registerer(const Key& key, Entries* registry, typename Entries::Creator creator,
             const std::string& help = "") {
    registry->Register(key, std::move(creator), help);
  }
  Registerer(const Key& key, RegistryPriority priority, Entries* registry,
             typename Entries::Creator creator, const std::string& help = "") {
    registry->Register(key, std::move(creator), help, priority);
  }
  template <class Class>
  static Object DefaultCreator(A... args) {
    return Object(new Class(std::forward<A>(args)...));
  }
};

}  // namespace c10

#define C10_DECLARE_TYPED_REGISTRY(name, Key, Object, Pointer, ...)         \
  ::c10::Registry<Key, Pointer<Object> __VA_OPT__(, ) __VA_ARGS__>* name(); \
  using Registerer##name = ::c10::Registerer<Key, Pointer<Object> __VA_OPT__(, ) __VA_ARGS__>;
#define C10_DEFINE_TYPED_REGISTRY(name, Key, Object, Pointer, ...)              \
  ::c10::Registry<Key, Pointer<Object> __VA_OPT__(, ) __VA_ARGS__>* name() {    \
    static auto* registry =                                                     \
        new ::c10::Registry<Key, Pointer<Object> __VA_OPT__(, ) __VA_ARGS__>(); \
    return registry;                                                            \
  }
#define C10_DEFINE_TYPED_REGISTRY_WITHOUT_WARNING(...) C10_DEFINE_TYPED_REGISTRY(__VA_ARGS__)
#define C10_DECLARE_REGISTRY(name, Object, ...) \
  C10_DECLARE_TYPED_REGISTRY(name, ::std::string, Object, ::std::unique_ptr, __VA_ARGS__)
#define C10_DEFINE_REGISTRY(name, Object, ...) \
  C10_DEFINE_TYPED_REGISTRY(name, ::std::string, Object, ::std::unique_ptr, __VA_ARGS__)
#define C10_DEFINE_REGISTRY_WITHOUT_WARNING(...) C10_DEFINE_REGISTRY(__VA_ARGS__)
#define C10_DECLARE_SHARED_REGISTRY(name, Object, ...) \
  C10_DECLARE_TYPED_REGISTRY(name, ::std::string, Object, ::std::shared_ptr, __VA_ARGS__)
#define C10_DEFINE_SHARED_REGISTRY(name, Object, ...) \
  C10_DEFINE_TYPED_REGISTRY(name, ::std::string, Object, ::std::shared_ptr, __VA_ARGS__)
#define C10_DEFINE_SHARED_REGISTRY_WITHOUT_WARNING(...) C10_DEFINE_SHARED_REGISTRY(__VA_ARGS__)

#define LAMELLA_REGISTERER(name) static Registerer##name LAMELLA_UNIQUE_NAME(g_##name)
#define C10_REGISTER_TYPED_CREATOR(name, key, ...) \
  LAMELLA_REGISTERER(name)(key, name(), __VA_ARGS__);
#define C10_REGISTER_TYPED_CREATOR_WITH_PRIORITY(name, key, priority, ...) \
  LAMELLA_REGISTERER(name)(key, priority, name(), __VA_ARGS__);
#define C10_REGISTER_TYPED_CLASS(name, key, ...) \
  LAMELLA_REGISTERER(name)(key, name(), Registerer##name::DefaultCreator<__VA_ARGS__>);
#define C10_REGISTER_TYPED_CLASS_WITH_PRIORITY(name, key, priority, ...) \
  LAMELLA_REGISTERER(name)(key, priority, name(), Registerer##name::DefaultCreator<__VA_ARGS__>);
#define C10_REGISTER_CREATOR(name, key, ...) C10_REGISTER_TYPED_CREATOR(name, #key, __VA_ARGS__)
#define C10_REGISTER_CREATOR_WITH_PRIORITY(name, key, priority, ...) \
  C10_REGISTER_TYPED_CREATOR_WITH_PRIORITY(name, #key, priority, __VA_ARGS__)
#define C10_REGISTER_CLASS(name, key, ...) C10_REGISTER_TYPED_CLASS(name, #key, __VA_ARGS__)
#define C10_REGISTER_CLASS_WITH_PRIORITY(name, key, priority, ...) \
  C10_REGISTER_TYPED_CLASS_WITH_PRIORITY(name, #key, priority, __VA_ARGS__)
