// The modes of a thread.
#include "lamella/layers/autograd/mode.h"

#include "lamella/core/key_set.h"
#include "lamella/dispatch/dispatch_key.h"
#include "lamella/layers/autograd/anomaly.h"
#include "lamella/layers/compliance/compliance.h"

namespace lamella::autograd {
namespace {
AnomalyHooks hooks;
}
void set_anomaly_hooks(const AnomalyHooks& value) { hooks = value; }
const AnomalyHooks& anomaly_hooks() { return hooks; }
}  // namespace lamella::autograd

using namespace lamella;

extern "C" {

uint32_t lamella_modes(void) noexcept { return lamella_thread.modes; }

// Note [Modes and key sets]
//   Without grad mode, AutogradRequired is excluded on the thread, so that calls take no autograd
//   hop; inference mode excludes the bookkeeping below as well. A guard that went below autograd
//   has excluded the same bit for its own reason: then AutogradFunctionality is excluded too, and
//   the bit stays.
uint32_t lamella_set_modes(uint32_t which, uint32_t value) noexcept {
  constexpr uint64_t functionality =
      detail::functionality_bit(detail::Functionality::AutogradFunctionality);
  constexpr uint64_t bookkeeping =
      detail::functionality_bit(detail::Functionality::ADInplaceOrView);
  lamella_thread_state& thread = lamella_thread;
  uint32_t before = thread.modes;
  uint32_t now = (before & ~which) | (value & which);
  thread.modes = now;
  bool below = (thread.excluded & functionality) != 0;
  if ((now & (LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_INFERENCE)) != 0) {
    thread.excluded |= kRequiresGradBits;
  } else if (!below) {
    thread.excluded &= ~kRequiresGradBits;
  }
  if ((now & LAMELLA_MODE_NO_FORWARD) != 0) {
    thread.excluded |= kTangentBits;
  } else if (!below) {
    thread.excluded &= ~kTangentBits;
  }
  if (((before ^ now) & LAMELLA_MODE_INFERENCE) != 0) {
    thread.excluded = (now & LAMELLA_MODE_INFERENCE) != 0 ? thread.excluded | bookkeeping
                                                          : thread.excluded & ~bookkeeping;
  }
  if (((before ^ now) & LAMELLA_MODE_COMPOSITE_CHECK) != 0) {
    compliance::set_on_thread((now & LAMELLA_MODE_COMPOSITE_CHECK) != 0);
  }
  return before;
}

}  // extern "C"
