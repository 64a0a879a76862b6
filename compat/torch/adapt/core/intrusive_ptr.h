// Objects that count their references themselves, and pointers that share them. Classes that are
// registered with class_ (lamella/dispatch/custom_class.h) derive from intrusive_ptr_target.
#pragma once
#include <cstddef>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "lamella/core/ivalue.h"

namespace lamella {

// What a pointer to nothing holds. PyTorch lets code choose an object of its own for it.
namespace detail {
template <class T>
struct intrusive_target_default_null_type {
  static constexpr T* singleton() noexcept { return nullptr; }
};
}  // namespace detail
template <class T, class Null = detail::intrusive_target_default_null_type<T>>
class weak_intrusive_ptr;

// The base of classes whose objects operators take and return. An object that intrusive_ptr made
// is destroyed with its last pointer; any other object has count 0 and belongs to its owner.
class intrusive_ptr_target : private lamella_class_object {
 public:
  intrusive_ptr_target() : lamella_class_object{{0, LAMELLA_OBJECT_OF_CLASS, &end}, nullptr} {}
  // A copy is another object, with references of its own.
  intrusive_ptr_target(const intrusive_ptr_target&) : intrusive_ptr_target() {}
  intrusive_ptr_target& operator=(const intrusive_ptr_target&) { return *this; }
  virtual ~intrusive_ptr_target() = default;

 protected:
  // Called when the last strong reference ends. The object is freed with the last weak one.
  virtual void release_resources() {}

 private:
  template <class T, class Null>
  friend class intrusive_ptr;
  template <class T, class Null>
  friend class weak_intrusive_ptr;
  static void end(lamella_object* object) {
    auto* target =
        static_cast<intrusive_ptr_target*>(reinterpret_cast<lamella_class_object*>(object));
    target->release_resources();
    target->drop_weak();
  }
  void drop_weak() {
    if (__atomic_fetch_sub(&weak_references_, 1, __ATOMIC_ACQ_REL) == 1) delete this;
  }

  // All strong references together count as one weak reference. 0 for an object that no pointer
  // owns.
  uint32_t weak_references_ = 0;
};
using CustomClassHolder = intrusive_ptr_target;

namespace detail {
// "__torch__.torch.classes.ns.Name" of a registered class; NULL before.
template <class T>
inline const char* class_name = nullptr;
[[noreturn]] LAMELLA_COLD inline void throw_class(const char* expected, const char* got) {
  throw TypeError(str("expected an object of class ", expected, ", got ", got));
}
template <class T>
const char* known_class_name() {
  LAMELLA_CHECK(class_name<T> != nullptr, "expected a class that is registered with class_, got ",
                typeid(T).name());
  return class_name<T>;
}
}  // namespace detail

// Shares one object of T, which derives from intrusive_ptr_target.
template <class T, class Null>
class intrusive_ptr {
 public:
  using element_type = T;

  constexpr intrusive_ptr() = default;
  constexpr intrusive_ptr(std::nullptr_t) {}  // NOLINT: implicit
  intrusive_ptr(const intrusive_ptr& other) : object_(other.object_) { retain(); }
  intrusive_ptr(intrusive_ptr&& other) noexcept : object_(other.release()) {}
  // Converts from a pointer to a class that derives from T, or from non-const to const.
  template <class U, class N>
    requires std::is_convertible_v<U*, T*>
  intrusive_ptr(intrusive_ptr<U, N> other)  // NOLINT: implicit
      : object_(other.defined() ? other.release() : Null::singleton()) {}
  // Takes over what a std::unique_ptr owns.
  template <class Owner>
    requires requires { typename Owner::deleter_type; }
  explicit intrusive_ptr(Owner object) : intrusive_ptr(owned(object.release())) {}
  intrusive_ptr& operator=(const intrusive_ptr& other) & noexcept {
    return *this = intrusive_ptr(other);
  }
  intrusive_ptr& operator=(intrusive_ptr&& other) & noexcept {
    intrusive_ptr taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~intrusive_ptr() { drop(); }

  // Makes the object; its one reference is the pointer's.
  template <class... A>
  static intrusive_ptr make(A&&... arguments) {
    return owned(new T(std::forward<A>(arguments)...));
  }
  // Takes over a reference that release() returned.
  static intrusive_ptr reclaim(T* object) {
    intrusive_ptr pointer;
    pointer.object_ = object;
    return pointer;
  }
  // A further reference to an object that pointers share already.
  static intrusive_ptr reclaim_copy(T* object) { return retained(object); }
  static intrusive_ptr unsafe_reclaim_from_nonowning(T* object) { return retained(object); }
  static intrusive_ptr unsafe_steal_from_new(T* object) { return owned(object); }
  // An object with `references` references, none of which is counted yet.
  static intrusive_ptr unsafe_adapt_non_heap_allocated(T* object, uint32_t references) {
    intrusive_ptr pointer = owned(object);
    pointer.header()->references = references;
    pointer.target()->weak_references_ = references;
    return pointer;
  }
  // Transfers the reference to the caller.
  T* release() noexcept { return std::exchange(object_, Null::singleton()); }

  void reset() noexcept { *this = intrusive_ptr(); }
  void swap(intrusive_ptr& other) noexcept { std::swap(object_, other.object_); }
  friend void swap(intrusive_ptr& a, intrusive_ptr& b) noexcept { a.swap(b); }
  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return defined(); }
  bool defined() const noexcept { return object_ != Null::singleton(); }
  uint32_t use_count() const noexcept {
    return defined() ? __atomic_load_n(&header()->references, __ATOMIC_RELAXED) : 0;
  }
  uint32_t weak_use_count() const noexcept {
    return defined() ? __atomic_load_n(&target()->weak_references_, __ATOMIC_RELAXED) : 0;
  }
  bool unique() const noexcept { return use_count() == 1; }
  template <class U, class N>
  bool operator==(const intrusive_ptr<U, N>& other) const {
    return object_ == other.get();
  }
  bool operator==(std::nullptr_t) const { return object_ == nullptr; }
  template <class U, class N>
  bool operator<(const intrusive_ptr<U, N>& other) const {
    return object_ < other.get();
  }

  // The object as a value of its registered class, which must be known. None for no object.
  IValue boxed() const {
    lamella_value value{{0}, 0, LAMELLA_NONE, 0, 0};
    if (defined()) {
      const char* name = detail::known_class_name<std::remove_const_t<T>>();
      __atomic_store_n(&target()->class_name, name, __ATOMIC_RELAXED);
      value.tag = LAMELLA_OBJECT;
      value.as.pointer = header();
      retain();
    }
    return IValue::adopt(value);
  }
  // The object of such a value. TypeError where it is of another class.
  static intrusive_ptr unboxed(const IValue& value) {
    if (value.isNone()) return nullptr;
    const char* expected = detail::known_class_name<std::remove_const_t<T>>();
    auto* object = static_cast<lamella_object*>(value.value().as.pointer);
    if (!value.isObject() || object->reserved != LAMELLA_OBJECT_OF_CLASS) {
      detail::throw_class(expected, value.tagKind());
    }
    auto* of_class = reinterpret_cast<lamella_class_object*>(object);
    if (__builtin_strcmp(of_class->class_name, expected) != 0) {
      detail::throw_class(expected, of_class->class_name);
    }
    return retained(static_cast<T*>(static_cast<intrusive_ptr_target*>(of_class)));
  }

 private:
  template <class U, class N>
  friend class weak_intrusive_ptr;
  static intrusive_ptr retained(T* object) {
    intrusive_ptr pointer = reclaim(object);
    pointer.retain();
    return pointer;
  }
  static intrusive_ptr owned(T* object) {
    intrusive_ptr pointer = retained(object);
    if (pointer.defined()) pointer.target()->weak_references_ = 1;
    return pointer;
  }
  intrusive_ptr_target* target() const {
    return const_cast<intrusive_ptr_target*>(static_cast<const intrusive_ptr_target*>(object_));
  }
  lamella_object* header() const { return &target()->object; }
  void retain() const {
    if (defined()) __atomic_fetch_add(&header()->references, 1, __ATOMIC_RELAXED);
  }
  void drop() {
    if (defined() && __atomic_fetch_sub(&header()->references, 1, __ATOMIC_ACQ_REL) == 1) {
      header()->destroy(header());
    }
  }

  T* object_ = Null::singleton();
};

// A reference that does not keep the object alive: lock() returns a pointer while it lives.
template <class T, class Null>
class weak_intrusive_ptr {
 public:
  using element_type = T;
  using Pointer = intrusive_ptr<T, Null>;

  explicit weak_intrusive_ptr(const Pointer& pointer) : object_(pointer.get()) { retain(); }
  weak_intrusive_ptr(const weak_intrusive_ptr& other) : object_(other.object_) { retain(); }
  weak_intrusive_ptr(weak_intrusive_ptr&& other) noexcept : object_(other.release()) {}
  template <class U, class N>
    requires std::is_convertible_v<U*, T*>
  weak_intrusive_ptr(weak_intrusive_ptr<U, N> other)  // NOLINT: implicit
      : object_(other._unsafe_get_target() == N::singleton() ? Null::singleton()
                                                             : other.release()) {}
  weak_intrusive_ptr& operator=(const weak_intrusive_ptr& other) & noexcept {
    return *this = weak_intrusive_ptr(other);
  }
  weak_intrusive_ptr& operator=(weak_intrusive_ptr&& other) & noexcept {
    weak_intrusive_ptr taken(std::move(other));
    swap(taken);
    return *this;
  }
  weak_intrusive_ptr& operator=(const Pointer& pointer) & noexcept {
    return *this = weak_intrusive_ptr(pointer);
  }
  ~weak_intrusive_ptr() {
    if (defined()) target()->drop_weak();
  }

  // Null where the object has ended.
  Pointer lock() const noexcept {
    if (!defined()) return Pointer();
    uint32_t* references = &target()->object.references;
    uint32_t count = __atomic_load_n(references, __ATOMIC_RELAXED);
    while (count != 0) {
      if (__atomic_compare_exchange_n(references, &count, count + 1, true, __ATOMIC_ACQUIRE,
                                      __ATOMIC_RELAXED)) {
        return Pointer::reclaim(object_);
      }
    }
    return Pointer();
  }
  bool expired() const noexcept { return use_count() == 0; }
  uint32_t use_count() const noexcept {
    return defined() ? __atomic_load_n(&target()->object.references, __ATOMIC_RELAXED) : 0;
  }
  uint32_t weak_use_count() const noexcept {
    return defined() ? __atomic_load_n(&target()->weak_references_, __ATOMIC_RELAXED) : 0;
  }
  void reset() noexcept { *this = weak_intrusive_ptr(Pointer()); }
  void swap(weak_intrusive_ptr& other) noexcept { std::swap(object_, other.object_); }
  friend void swap(weak_intrusive_ptr& a, weak_intrusive_ptr& b) noexcept { a.swap(b); }
  // Transfers the weak reference to the caller, and takes it back.
  T* release() noexcept { return std::exchange(object_, Null::singleton()); }
  static weak_intrusive_ptr reclaim(T* object) {
    weak_intrusive_ptr pointer((Pointer()));
    pointer.object_ = object;
    return pointer;
  }
  static weak_intrusive_ptr reclaim_copy(T* object) {
    weak_intrusive_ptr pointer = reclaim(object);
    pointer.retain();
    return pointer;
  }
  // Only to compare: the object may have ended.
  T* _unsafe_get_target() const noexcept { return object_; }
  template <class U, class N>
  bool operator==(const weak_intrusive_ptr<U, N>& other) const {
    return object_ == other._unsafe_get_target();
  }
  template <class U, class N>
  bool operator<(const weak_intrusive_ptr<U, N>& other) const {
    return object_ < other._unsafe_get_target();
  }

 private:
  bool defined() const { return object_ != Null::singleton(); }
  intrusive_ptr_target* target() const {
    return const_cast<intrusive_ptr_target*>(static_cast<const intrusive_ptr_target*>(object_));
  }
  void retain() const {
    if (defined()) __atomic_fetch_add(&target()->weak_references_, 1, __ATOMIC_RELAXED);
  }

  T* object_ = Null::singleton();
};

template <class T, class Null = detail::intrusive_target_default_null_type<T>, class... A>
intrusive_ptr<T, Null> make_intrusive(A&&... arguments) {
  return intrusive_ptr<T, Null>::make(std::forward<A>(arguments)...);
}
template <class T, class U>
intrusive_ptr<T> static_intrusive_pointer_cast(intrusive_ptr<U> pointer) {
  return intrusive_ptr<T>::reclaim(static_cast<T*>(pointer.release()));
}
template <class T, class U>
intrusive_ptr<T> dynamic_intrusive_pointer_cast(const intrusive_ptr<U>& pointer) {
  T* object = dynamic_cast<T*>(pointer.get());
  return object != nullptr ? intrusive_ptr<T>::reclaim_copy(object) : nullptr;
}
// References of an object by its address, as code that keeps bare pointers counts them.
namespace raw::intrusive_ptr {
template <class T>
void incref(T* object) {
  if (object != nullptr) lamella::intrusive_ptr<T>::reclaim_copy(object).release();
}
template <class T>
void decref(T* object) {
  lamella::intrusive_ptr<T>::reclaim(object);
}
template <class T>
uint32_t use_count(T* object) {
  auto pointer = lamella::intrusive_ptr<T>::reclaim(object);
  uint32_t count = pointer.use_count();
  pointer.release();
  return count;
}
template <class T>
T* make_weak(T* object) {
  return lamella::weak_intrusive_ptr<T>(lamella::intrusive_ptr<T>::reclaim_copy(object)).release();
}
}  // namespace raw::intrusive_ptr
namespace raw::weak_intrusive_ptr {
template <class T>
void incref(T* object) {
  lamella::weak_intrusive_ptr<T>::reclaim_copy(object).release();
}
template <class T>
void decref(T* object) {
  lamella::weak_intrusive_ptr<T>::reclaim(object);
}
template <class T>
uint32_t use_count(T* object) {
  auto pointer = lamella::weak_intrusive_ptr<T>::reclaim(object);
  uint32_t count = pointer.weak_use_count();
  pointer.release();
  return count;
}
template <class T>
T* lock(T* object) {
  auto pointer = lamella::weak_intrusive_ptr<T>::reclaim(object);
  T* locked = pointer.lock().release();
  pointer.release();
  return locked;
}
}  // namespace raw::weak_intrusive_ptr

template <class T>
IValue::IValue(const intrusive_ptr<T>& object) : IValue(object.boxed()) {}
template <class T>
intrusive_ptr<T> IValue::toCustomClass() const {
  return intrusive_ptr<T>::unboxed(*this);
}

}  // namespace lamella

template <class T, class N>
struct std::hash<lamella::intrusive_ptr<T, N>> {
  size_t operator()(const lamella::intrusive_ptr<T, N>& pointer) const {
    return reinterpret_cast<size_t>(pointer.get()) >> 4;
  }
};
template <class T, class N>
struct std::hash<lamella::weak_intrusive_ptr<T, N>> {
  size_t operator()(const lamella::weak_intrusive_ptr<T, N>& pointer) const {
    return reinterpret_cast<size_t>(pointer._unsafe_get_target()) >> 4;
  }
};
