// MaybeOwned: a value that is either owned or borrowed.
#pragma once
#include <optional>
#include <utility>

#include "lamella/core/error.h"

namespace lamella {

// A borrowing object and its copies must not outlive the value that they borrow.
template <class T>
class MaybeOwned {
 public:
  MaybeOwned() : own_(T()) {}
  static MaybeOwned borrowed(const T& value) { return MaybeOwned(&value); }
  static MaybeOwned borrowed(T&&) = delete;
  static MaybeOwned owned(T value) { return MaybeOwned(std::move(value)); }
  template <class... A>
  static MaybeOwned owned(std::in_place_t, A&&... args) {
    return MaybeOwned(T(std::forward<A>(args)...));
  }
  const T& operator*() const& { return own_.has_value() ? *own_ : *lent_; }
  T operator*() && { return own_.has_value() ? std::move(*own_) : *lent_; }
  const T* operator->() const { return &**this; }
  bool unsafeIsBorrowed() const { return !own_.has_value(); }

 private:
  explicit MaybeOwned(const T* lent) : lent_(lent) {}
  explicit MaybeOwned(T&& own) : own_(std::move(own)) {}

  std::optional<T> own_;
  const T* lent_ = nullptr;
};

}  // namespace lamella
