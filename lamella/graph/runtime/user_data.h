// UserData: objects of the caller that typed handlers find in their execution context.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace lamella::hlo {

// At most one object of each type; types are numbers from XLA_FFI_Type_Register. The caller owns
// the objects, which must live as long as modules run with them. Must not be changed during a run.
class UserData {
 public:
  // Sets the object of a type, replacing the previous one.
  void set(int64_t type, void* object) {
    for (auto& [of, what] : objects_) {
      if (of == type) {
        what = object;
        return;
      }
    }
    objects_.emplace_back(type, object);
  }
  // The object of a type, or NULL.
  void* find(int64_t type) const {
    for (const auto& [of, what] : objects_) {
      if (of == type) return what;
    }
    return nullptr;
  }

 private:
  std::vector<std::pair<int64_t, void*>> objects_;
};

}  // namespace lamella::hlo
