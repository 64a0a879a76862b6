// Types of handlers' states and user data: their numbers by name, and their deleters.
#pragma once
#include <cstdint>
#include <string_view>

#include "lamella/graph/custom_call/ffi/abi.h"

namespace lamella::hlo::ffi {

using Deleter = void (*)(void* object);

// Registers a type. If *id is 0, the name must be new, and *id receives its number. Any other *id
// must be the name's number already, or both must be unused. Throws an Error otherwise.
// Thread-safe.
void register_type(std::string_view name, int64_t* id, Deleter deleter);
// False if there is no type of this number.
bool find_type(int64_t id, Deleter* deleter);

// An owned object of a registered type.
class State {
 public:
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (object_ != nullptr && deleter_ != nullptr) deleter_(object_);
  }
  bool is_set() const { return is_set_; }
  int64_t type() const { return type_; }
  void* object() const { return object_; }
  void set(int64_t type, void* object, Deleter deleter) {
    is_set_ = true;
    type_ = type;
    object_ = object;
    deleter_ = deleter;
  }

 private:
  bool is_set_ = false;
  int64_t type_ = 0;
  void* object_ = nullptr;
  Deleter deleter_ = nullptr;
};

}  // namespace lamella::hlo::ffi
