// The modes of a thread: grad mode, inference mode, forward mode, anomaly mode. Internal;
// lamella/layers/autograd/grad_mode.h has the guards for users.
#pragma once
#include <utility>

#include "lamella/abi/autograd.h"

namespace lamella::autograd {

inline bool grad_enabled() { return (lamella_thread.modes & LAMELLA_MODE_NO_GRAD) == 0; }

// Sets mode bits for as long as it lives.
class ModeGuard {
 public:
  ModeGuard(uint32_t which, uint32_t value)
      : which_(which), before_(lamella_set_modes(which, value)) {}
  ~ModeGuard() { lamella_set_modes(which_, before_); }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  uint32_t which_;
  uint32_t before_;
};
// Replaces the functionalities that the thread excludes, for as long as it lives.
class ExcludedKeysGuard {
 public:
  explicit ExcludedKeysGuard(uint64_t excluded)
      : before_(std::exchange(lamella_thread.excluded, excluded)) {}
  ~ExcludedKeysGuard() { lamella_thread.excluded = before_; }
  ExcludedKeysGuard(const ExcludedKeysGuard&) = delete;
  ExcludedKeysGuard& operator=(const ExcludedKeysGuard&) = delete;

 private:
  uint64_t before_;
};
class GradGuard : ModeGuard {
 public:
  explicit GradGuard(bool enabled)
      : ModeGuard(LAMELLA_MODE_NO_GRAD, enabled ? 0 : LAMELLA_MODE_NO_GRAD) {}
};

}  // namespace lamella::autograd
