// TORCH_ARG: a member with a function that reads and one that sets it.
#pragma once
#include <utility>

#define TORCH_ARG(T, name)                                 \
 public:                                                   \
  auto name(const T& new_##name) -> decltype(*this) {      \
    this->name##_ = new_##name;                            \
    return *this;                                          \
  }                                                        \
  const T& name() const noexcept { return this->name##_; } \
  T& name() noexcept { return this->name##_; }             \
                                                           \
 private:                                                  \
  T name##_
