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
template <class Self, class T, class Null>
class CountedPointer;
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
  // Whether values that hold these objects, of one class, are equal.
  virtual bool equal_to(const intrusive_ptr_target& other) const { return this == &other; }
  // A further value with an object that a value holds already.
  IValue boxed_again() {
    lamella_value value{{0}, 0, LAMELLA_OBJECT, 0, 0};
    value.as.pointer = &object;
    __atomic_fetch_add(&object.references, 1, __ATOMIC_RELAXED);
    return IValue::adopt(value);
  }
  // The object of a value that holds one of a registered class.
  static const intrusive_ptr_target& of(const IValue& value) {
    return *of(static_cast<lamella_object*>(value.value().as.pointer));
  }

 protected:
  // Called when the last strong reference ends. The object is freed with the last weak one.
  virtual void release_resources() {}
  // The object as a generator with these keys, which take the place of a class name.
  lamella_object* as_generator(uint64_t keys) {
    object.reserved = LAMELLA_OBJECT_OF_GENERATOR;
    static_assert(sizeof(class_name) == sizeof(keys));
    __builtin_memcpy(&class_name, &keys, sizeof(keys));
    return &object;
  }
  static intrusive_ptr_target* of(lamella_object* object) {
    return static_cast<intrusive_ptr_target*>(reinterpret_cast<lamella_class_object*>(object));
  }

 private:
  template <class Self, class T, class Null>
  friend class detail::CountedPointer;
  template <class T, class Null>
  friend class intrusive_ptr;
  template <class T, class Null>
  friend class weak_intrusive_ptr;
  static void end(lamella_object* object) {
    intrusive_ptr_target* target = of(object);
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

namespace detail {
// The name of the class of a value's object.
inline const char* class_of(const IValue& value) {
  return static_cast<lamella_class_object*>(value.value().as.pointer)->class_name;
}
// What strong and weak pointers have alike: Self::retain() and Self::drop() count its references.
template <class Self, class T, class Null>
class CountedPointer {
 public:
  using element_type = T;
  CountedPointer(const CountedPointer& other) : object_(other.object_) {
    if (exists()) Self::retain(target());
  }
  CountedPointer(CountedPointer&& other) noexcept : object_(other.release()) {}
  CountedPointer& operator=(CountedPointer other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~CountedPointer() {
    if (exists()) Self::drop(target());
  }
  // Takes over a reference that release() returned.
  static Self reclaim(T* object) {
    CountedPointer pointer;
    pointer.object_ = object;
    return Self(std::move(pointer));
  }
  // A further reference to an object that pointers share already.
  static Self reclaim_copy(T* object) {
    Self pointer = reclaim(object);
    if (pointer.exists()) Self::retain(pointer.target());
    return pointer;
  }
  // Transfers the reference to the caller.
  T* release() noexcept { return std::exchange(object_, Null::singleton()); }
  void reset() noexcept { *this = CountedPointer(); }
  void swap(Self& other) noexcept { std::swap(object_, other.object_); }
  friend void swap(Self& a, Self& b) noexcept { a.swap(b); }
  uint32_t use_count() const noexcept {
    return exists() ? __atomic_load_n(&target()->object.references, __ATOMIC_RELAXED) : 0;
  }
  uint32_t weak_use_count() const noexcept {
    return exists() ? __atomic_load_n(&target()->weak_references_, __ATOMIC_RELAXED) : 0;
  }
  // Only to compare: the object of a weak pointer may have ended.
  T* _unsafe_get_target() const noexcept { return object_; }
  template <class S, class U, class N>
  bool operator==(const CountedPointer<S, U, N>& other) const {
    return object_ == other._unsafe_get_target();
  }
  template <class S, class U, class N>
  bool operator<(const CountedPointer<S, U, N>& other) const {
    return object_ < other._unsafe_get_target();
  }

 protected:
  constexpr CountedPointer() = default;
  bool exists() const noexcept { return object_ != Null::singleton(); }
  intrusive_ptr_target* target() const {
    return const_cast<intrusive_ptr_target*>(static_cast<const intrusive_ptr_target*>(object_));
  }
  T* object_ = Null::singleton();
};
}  // namespace detail

// Shares one object of T, which derives from intrusive_ptr_target.
template <class T, class Null>
class intrusive_ptr : public detail::CountedPointer<intrusive_ptr<T, Null>, T, Null> {
  using Base = detail::CountedPointer<intrusive_ptr, T, Null>;
  friend Base;

 public:
  constexpr intrusive_ptr() = default;
  constexpr intrusive_ptr(std::nullptr_t) {}  // NOLINT: implicit
  intrusive_ptr(const intrusive_ptr&) = default;
  intrusive_ptr(intrusive_ptr&&) noexcept = default;
  intrusive_ptr& operator=(const intrusive_ptr&) & noexcept = default;
  intrusive_ptr& operator=(intrusive_ptr&&) & noexcept = default;
  // Converts from a pointer to a class that derives from T, or from non-const to const.
  template <class U, class N>
    requires std::is_convertible_v<U*, T*>
  intrusive_ptr(intrusive_ptr<U, N> other)  // NOLINT: implicit
      : intrusive_ptr(Base::reclaim(other.defined() ? other.release() : Null::singleton())) {}
  // Takes over what a std::unique_ptr owns.
  template <class Owner>
    requires requires { typename Owner::deleter_type; }
  explicit intrusive_ptr(Owner object) : intrusive_ptr(owned(object.release())) {}

  // Makes the object; its one reference is the pointer's.
  template <class... A>
  static intrusive_ptr make(A&&... arguments) {
    return owned(new T(std::forward<A>(arguments)...));
  }
  static intrusive_ptr unsafe_reclaim_from_nonowning(T* object) {
    return Base::reclaim_copy(object);
  }
  static intrusive_ptr unsafe_steal_from_new(T* object) { return owned(object); }
  // An object with `references` references, none of which is counted yet.
  static intrusive_ptr unsafe_adapt_non_heap_allocated(T* object, uint32_t references) {
    intrusive_ptr pointer = owned(object);
    pointer.target()->object.references = references;
    pointer.target()->weak_references_ = references;
    return pointer;
  }

  T* get() const noexcept { return this->object_; }
  T& operator*() const noexcept { return *get(); }
  T* operator->() const noexcept { return get(); }
  explicit operator bool() const noexcept { return defined(); }
  bool defined() const noexcept { return this->exists(); }
  bool unique() const noexcept { return this->use_count() == 1; }
  using Base::operator==;
  bool operator==(std::nullptr_t) const { return get() == nullptr; }

  // The object as a value of its registered class, which must be known. None for no object.
  IValue boxed() const {
    if (!defined()) return {};
    const char* name = detail::known_class_name<std::remove_const_t<T>>();
    __atomic_store_n(&this->target()->class_name, name, __ATOMIC_RELAXED);
    return this->target()->boxed_again();
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
    return Base::reclaim_copy(static_cast<T*>(static_cast<intrusive_ptr_target*>(of_class)));
  }

 private:
  explicit intrusive_ptr(Base&& base) : Base(std::move(base)) {}
  static intrusive_ptr owned(T* object) {
    intrusive_ptr pointer = Base::reclaim_copy(object);
    if (pointer.defined()) pointer.target()->weak_references_ = 1;
    return pointer;
  }
  static void retain(intrusive_ptr_target* target) {
    __atomic_fetch_add(&target->object.references, 1, __ATOMIC_RELAXED);
  }
  static void drop(intrusive_ptr_target* target) {
    if (__atomic_fetch_sub(&target->object.references, 1, __ATOMIC_ACQ_REL) == 1) {
      target->object.destroy(&target->object);
    }
  }
};

// A reference that does not keep the object alive: lock() returns a pointer while it lives.
template <class T, class Null>
class weak_intrusive_ptr : public detail::CountedPointer<weak_intrusive_ptr<T, Null>, T, Null> {
  using Base = detail::CountedPointer<weak_intrusive_ptr, T, Null>;
  friend Base;

 public:
  using Pointer = intrusive_ptr<T, Null>;

  explicit weak_intrusive_ptr(const Pointer& pointer)
      : weak_intrusive_ptr(Base::reclaim_copy(pointer.get())) {}
  weak_intrusive_ptr(const weak_intrusive_ptr&) = default;
  weak_intrusive_ptr(weak_intrusive_ptr&&) noexcept = default;
  weak_intrusive_ptr& operator=(const weak_intrusive_ptr&) & noexcept = default;
  weak_intrusive_ptr& operator=(weak_intrusive_ptr&&) & noexcept = default;
  template <class U, class N>
    requires std::is_convertible_v<U*, T*>
  weak_intrusive_ptr(weak_intrusive_ptr<U, N> other)  // NOLINT: implicit
      : weak_intrusive_ptr(Base::reclaim(
            other._unsafe_get_target() == N::singleton() ? Null::singleton() : other.release())) {}
  weak_intrusive_ptr& operator=(const Pointer& pointer) & noexcept {
    return *this = weak_intrusive_ptr(pointer);
  }

  // Null where the object has ended.
  Pointer lock() const noexcept {
    if (!this->exists()) return Pointer();
    uint32_t* references = &this->target()->object.references;
    uint32_t count = __atomic_load_n(references, __ATOMIC_RELAXED);
    while (count != 0) {
      if (__atomic_compare_exchange_n(references, &count, count + 1, true, __ATOMIC_ACQUIRE,
                                      __ATOMIC_RELAXED)) {
        return Pointer::reclaim(this->object_);
      }
    }
    return Pointer();
  }
  bool expired() const noexcept { return this->use_count() == 0; }

 private:
  explicit weak_intrusive_ptr(Base&& base) : Base(std::move(base)) {}
  static void retain(intrusive_ptr_target* target) {
    __atomic_fetch_add(&target->weak_references_, 1, __ATOMIC_RELAXED);
  }
  static void drop(intrusive_ptr_target* target) { target->drop_weak(); }
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
#define LAMELLA_RAW_POINTER(Pointer, count)                                     \
  namespace raw::Pointer {                                                      \
  template <class T>                                                            \
  void incref(T* object) {                                                      \
    if (object != nullptr) lamella::Pointer<T>::reclaim_copy(object).release(); \
  }                                                                             \
  template <class T>                                                            \
  void decref(T* object) {                                                      \
    lamella::Pointer<T>::reclaim(object);                                       \
  }                                                                             \
  template <class T>                                                            \
  uint32_t use_count(T* object) {                                               \
    auto pointer = lamella::Pointer<T>::reclaim(object);                        \
    const uint32_t references = pointer.count();                                \
    pointer.release();                                                          \
    return references;                                                          \
  }                                                                             \
  }
LAMELLA_RAW_POINTER(intrusive_ptr, use_count)
LAMELLA_RAW_POINTER(weak_intrusive_ptr, weak_use_count)
#undef LAMELLA_RAW_POINTER
namespace raw::intrusive_ptr {
template <class T>
T* make_weak(T* object) {
  return lamella::weak_intrusive_ptr<T>(lamella::intrusive_ptr<T>::reclaim_copy(object)).release();
}
}  // namespace raw::intrusive_ptr
namespace raw::weak_intrusive_ptr {
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
template <class T>
bool IValue::holds() const {
  return isCustomClass() && detail::class_name<T> != nullptr &&
         __builtin_strcmp(detail::class_of(*this), detail::class_name<T>) == 0;
}

}  // namespace lamella

template <class T, class N>
struct std::hash<lamella::weak_intrusive_ptr<T, N>> {
  size_t operator()(const auto& pointer) const {
    return reinterpret_cast<size_t>(pointer._unsafe_get_target()) >> 4;
  }
};
template <class T, class N>
struct std::hash<lamella::intrusive_ptr<T, N>> : std::hash<lamella::weak_intrusive_ptr<T, N>> {};
