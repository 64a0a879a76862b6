// Generator: a handle to a source of random numbers. The implementation depends on the device; see
// lamella/core/generator_impl.h for the CPU's.
#pragma once
#include <utility>

#include "lamella/core/object_ref.h"

namespace lamella {

class Generator {
 public:
  constexpr Generator() = default;
  explicit Generator(ObjectRef<> object) : object_(std::move(object)) {}
  static Generator adopt(lamella_object* object) { return Generator(ObjectRef<>::adopt(object)); }
  static Generator borrow(lamella_object* object) { return Generator(ObjectRef<>::borrow(object)); }
  bool defined() const { return static_cast<bool>(object_); }
  lamella_object* get() const { return object_.get(); }
  lamella_object* unsafe_release() { return object_.unsafe_release(); }
  bool operator==(const Generator& other) const = default;

 private:
  ObjectRef<> object_;
};

}  // namespace lamella
