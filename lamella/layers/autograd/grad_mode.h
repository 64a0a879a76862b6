// GradMode and its guards: whether this thread records gradients. Public, inline over
// lamella/abi/autograd.h.
#pragma once
#include "lamella/abi/autograd.h"

namespace lamella {

namespace detail {
// Sets some of this thread's modes and restores them at the end of its lifetime.
class ModesGuard {
 public:
  ModesGuard(uint32_t which, uint32_t value)
      : which_(which), before_(lamella_set_modes(which, value)) {}
  ~ModesGuard() { lamella_set_modes(which_, before_ & which_); }
  ModesGuard(const ModesGuard&) = delete;
  ModesGuard& operator=(const ModesGuard&) = delete;

 private:
  uint32_t which_;
  uint32_t before_;
};
}  // namespace detail

// Whether gradients are recorded on this thread.
struct GradMode {
  static bool is_enabled() { return (lamella_thread.modes & LAMELLA_MODE_NO_GRAD) == 0; }
  static void set_enabled(bool enabled) {
    lamella_set_modes(LAMELLA_MODE_NO_GRAD, enabled ? 0 : LAMELLA_MODE_NO_GRAD);
  }
};
// Records gradients, or does not, for as long as it lives.
class AutoGradMode : detail::ModesGuard {
 public:
  explicit AutoGradMode(bool enabled)
      : ModesGuard(LAMELLA_MODE_NO_GRAD, enabled ? 0 : LAMELLA_MODE_NO_GRAD) {}
};
class NoGradGuard : AutoGradMode {
 public:
  NoGradGuard() : AutoGradMode(false) {}
};
// The same for the tangents of forward mode.
class AutoFwGradMode : detail::ModesGuard {
 public:
  explicit AutoFwGradMode(bool enabled)
      : ModesGuard(LAMELLA_MODE_NO_FORWARD, enabled ? 0 : LAMELLA_MODE_NO_FORWARD) {}
};

// During its lifetime nothing is recorded, and tensors made then never take part in autograd.
// InferenceMode(false) turns recording on again inside of another one.
class InferenceMode : detail::ModesGuard {
 public:
  explicit InferenceMode(bool enabled = true) : ModesGuard(kModes, enabled ? kModes : 0) {}
  static bool is_enabled() { return (lamella_thread.modes & LAMELLA_MODE_INFERENCE) != 0; }

 private:
  static constexpr uint32_t kModes =
      LAMELLA_MODE_INFERENCE | LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_NO_FORWARD;
};

namespace autograd {

using lamella::AutoGradMode;
using lamella::GradMode;

// Whether nodes remember where they were recorded, and gradients are searched for NaN.
struct AnomalyMode {
  static bool is_enabled() { return (lamella_thread.modes & LAMELLA_MODE_ANOMALY) != 0; }
  static bool should_check_nan() { return (lamella_thread.modes & LAMELLA_MODE_NO_NAN_CHECK) == 0; }
  static void set_enabled(bool enabled, bool check_nan = true) {
    lamella_set_modes(kModes, bits(enabled, check_nan));
  }

 private:
  friend class DetectAnomalyGuard;
  static constexpr uint32_t kModes = LAMELLA_MODE_ANOMALY | LAMELLA_MODE_NO_NAN_CHECK;
  static uint32_t bits(bool enabled, bool check_nan) {
    uint32_t value = 0;
    if (enabled) value |= LAMELLA_MODE_ANOMALY;
    if (!check_nan) value |= LAMELLA_MODE_NO_NAN_CHECK;
    return value;
  }
};
class DetectAnomalyGuard : detail::ModesGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true)
      : ModesGuard(AnomalyMode::kModes, AnomalyMode::bits(true, check_nan)) {}
};

}  // namespace autograd
}  // namespace lamella
