// ObjectRef: an owning reference to a lamella_object or to a type that begins with one.
#pragma once
#include <cstdint>
#include <utility>

#include "lamella/abi/abi.h"
#include "lamella/core/macros.h"
#include "lamella/core/reference_count.h"

namespace lamella {

template <class T = lamella_object>
class ObjectRef {
 public:
  constexpr ObjectRef() = default;
  constexpr ObjectRef(std::nullptr_t) {}  // NOLINT
  ObjectRef(const ObjectRef& other) : object_(other.object_) { retain(); }
  ObjectRef(ObjectRef&& other) noexcept : object_(other.unsafe_release()) {}
  ObjectRef& operator=(ObjectRef other) noexcept {
    detail::swap_plain(object_, other.object_);
    return *this;
  }
  ~ObjectRef() { release(); }

  // Takes over one reference from the caller.
  static ObjectRef adopt(T* object) { return ObjectRef(object); }
  // Adds a reference; the caller keeps its own.
  static ObjectRef borrow(T* object) {
    ObjectRef ref(object);
    ref.retain();
    return ref;
  }
  // Transfers the reference to the caller.
  T* unsafe_release() { return detail::take(object_); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const ObjectRef& other) const { return object_ == other.object_; }
  uint32_t use_count() const {
    return object_ ? __atomic_load_n(&header()->references, __ATOMIC_RELAXED) : 0;
  }

 private:
  explicit ObjectRef(T* object) : object_(object) {}
  lamella_object* header() const { return static_cast<lamella_object*>(object_); }
  void retain() {
    if (object_) detail::count_up(&header()->references);
  }
  void release() {
    if (object_ && detail::count_down(&header()->references) == 0) header()->destroy(header());
  }

  T* object_ = nullptr;
};

}  // namespace lamella
