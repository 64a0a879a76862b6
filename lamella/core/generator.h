// Generator: a handle to a source of random numbers. The implementation depends on the device; see
// lamella/core/generator_impl.h for the CPU's.
#pragma once
#include <utility>

#include "lamella/core/object_ref.h"

namespace lamella {

class GeneratorObject;
template <class T, class Null>
class intrusive_ptr;

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

  // The generator with PyTorch's members, which Generator has as well. These need the
  // header that defines it.
  GeneratorObject* unsafeGetGeneratorImpl() const;
  template <class T, class Null>
  explicit Generator(const intrusive_ptr<T, Null>& object) : Generator(object->handle()) {}
  template <class T>
  T* get() const {
    return static_cast<T*>(unsafeGetGeneratorImpl());
  }
  LAMELLA_LAZY auto& mutex() const { return members<lazy_>().mutex_; }
  LAMELLA_LAZY auto device() const { return members<lazy_>().device(); }
  LAMELLA_LAZY auto key_set() const { return members<lazy_>().key_set(); }
  LAMELLA_LAZY Generator clone() const { return members<lazy_>().clone()->handle(); }
  LAMELLA_LAZY uint64_t seed() const { return members<lazy_>().seed(); }
  LAMELLA_LAZY uint64_t current_seed() const { return members<lazy_>().current_seed(); }
  LAMELLA_LAZY void set_current_seed(uint64_t to) const { members<lazy_>().set_current_seed(to); }
  LAMELLA_LAZY uint64_t get_offset() const { return members<lazy_>().get_offset(); }
  LAMELLA_LAZY void set_offset(uint64_t to) const { members<lazy_>().set_offset(to); }
  LAMELLA_LAZY auto get_state() const { return members<lazy_>().state(); }
  LAMELLA_LAZY void set_state(const auto& to) const {
    members<lazy_>().set_state(*to.unsafeGetTensorImpl());
  }

 private:
  template <int lazy_>
  detail::Lazily<lazy_, GeneratorObject>& members() const {
    return *unsafeGetGeneratorImpl();
  }
  ObjectRef<> object_;
};

}  // namespace lamella
