// Values that are computed at their first use.
#pragma once
#include <atomic>
#include <utility>

namespace c10 {

// Threads that come at once may each compute the value; one result is kept. Copies copy the value.
template <class T>
class OptimisticLazy {
 public:
  OptimisticLazy() = default;
  OptimisticLazy(const OptimisticLazy& other) { *this = other; }
  OptimisticLazy(OptimisticLazy&& other) noexcept { *this = std::move(other); }
  ~OptimisticLazy() { reset(); }
  OptimisticLazy& operator=(const OptimisticLazy& other) {
    const T* value = other.value_;
    if (this != &other) delete value_.exchange(value == nullptr ? nullptr : new T(*value));
    return *this;
  }
  OptimisticLazy& operator=(OptimisticLazy&& other) noexcept {
    if (this != &other) delete value_.exchange(other.value_.exchange(nullptr));
    return *this;
  }
  template <class Factory>
  T& ensure(const Factory& factory) {
    if (T* value = value_) return *value;
    T *made = new T(factory()), *first = nullptr;
    if (value_.compare_exchange_strong(first, made)) return *made;
    delete made;
    return *first;
  }
  void reset() { delete value_.exchange(nullptr); }

 private:
  std::atomic<T*> value_ = nullptr;
};

template <class T>
class LazyValue {
 public:
  virtual ~LazyValue() = default;
  virtual const T& get() const = 0;
};
template <class T>
class OptimisticLazyValue : public LazyValue<T> {
 public:
  const T& get() const override {
    return value_.ensure([this] { return compute(); });
  }

 private:
  virtual T compute() const = 0;
  mutable OptimisticLazy<T> value_;
};
template <class T>
class PrecomputedLazyValue : public LazyValue<T> {
 public:
  explicit PrecomputedLazyValue(T value) : value_(std::move(value)) {}
  const T& get() const override { return value_; }

 private:
  T value_;
};

}  // namespace c10
