// UserData: objects of the caller that typed handlers find in their execution context.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace lamella::hlo {

// At most one object of each type; types are numbers that XLA_FFI_Type_Register gives. The objects
// belong to the caller and must live as long as modules run with them. Not written during a run.
class UserData {
 public:
  // Replaces what there was of the type.
  void set(int64_t type, void* object) {
    for (auto& [of, what] : objects_) {
      if (of == type) {
        what = object;
        return;
      }
    }
    objects_.emplace_back(type, object);
  }
  // NULL if there is none.
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
