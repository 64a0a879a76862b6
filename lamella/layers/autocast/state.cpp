// The state of a thread, and the casts of weights that it keeps.
#include "lamella/layers/autocast/state.h"

#include <pthread.h>

#include <memory>
#include <unordered_map>

#include "lamella/abi/autograd.h"
#include "lamella/api/functions.h"
#include "lamella/core/tensor_impl.h"

namespace lamella::autocast {
namespace {

constexpr uint64_t kAutocast =
    detail::functionality_bit(detail::Functionality::AutocastFunctionality);
// Layers that do not change a call.
constexpr uint64_t kHarmless = detail::functionality_bit(detail::Functionality::ThreadInit) |
                               detail::functionality_bit(detail::Functionality::PreDispatch);
// Modes on which the result of a cast depends.
constexpr uint32_t kModes = LAMELLA_MODE_NO_GRAD | LAMELLA_MODE_INFERENCE | LAMELLA_MODE_NO_FORWARD;

struct Kept {
  WeakTensorRef weight;  // no other tensor gets its address
  TensorBase cast;
  const void* data;
  uint32_t version;
  uint32_t modes;
};
using Casts = std::unordered_map<const lamella_tensor*, Kept>;

// All zero where nothing was set. The casts are freed by a key of the threads library: a
// thread_local object must not have a destructor here.
struct State {
  uint64_t enabled;   // bit i: device type i
  uint8_t dtype[64];  // plus 1; 0: not set
  int32_t depth;
  bool cache_off;
  bool ended;
  Casts* casts;
};
thread_local State state;

void end_thread(void* casts) {
  state.ended = true;
  state.casts = nullptr;
  delete static_cast<Casts*>(casts);
}

Casts* own_casts() {
  if (state.casts != nullptr || state.ended) return state.casts;
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    LAMELLA_CHECK(pthread_key_create(&made, &end_thread) == 0,
                  "autocast: the process has no key left for data of its threads");
    return made;
  }();
  auto casts = std::make_unique<Casts>();
  if (pthread_setspecific(key, casts.get()) != 0) return nullptr;
  return state.casts = casts.release();
}

bool is_weight(const lamella_tensor* t) {
  constexpr uint32_t other = LAMELLA_TENSOR_WRAPPER | LAMELLA_TENSOR_TANGENT | LAMELLA_TENSOR_NEG |
                             LAMELLA_TENSOR_INFERENCE;
  return (t->flags & LAMELLA_TENSOR_REQUIRES_GRAD) != 0 && (t->flags & other) == 0 &&
         static_cast<ScalarType>(t->scalar_type) == ScalarType::Float &&
         static_cast<const TensorImpl*>(t)->base == nullptr;
}

// True if a layer is active that sees every call: it must see every cast too, so none is reused.
bool is_intercepted() { return (lamella_thread.included & ~(kAutocast | kHarmless)) != 0; }

TensorBase fresh_cast(lamella_tensor* t, ScalarType dtype) {
  Off off;
  return _to_copy(Tensor(TensorBase::borrow(t)), dtype);
}

}  // namespace

TensorBase cast(lamella_tensor* t, ScalarType dtype, DeviceType device) {
  if (static_cast<ScalarType>(t->scalar_type) == dtype) return TensorBase::borrow(t);
  const auto lower = static_cast<ScalarType>(lamella_autocast_dtype(static_cast<uint8_t>(device)));
  if (state.cache_off || dtype != lower || !is_weight(t) || is_intercepted() ||
      !Tensor(TensorBase::borrow(t)).is_leaf()) {
    return fresh_cast(t, dtype);
  }
  Casts* casts = own_casts();
  if (casts == nullptr) return fresh_cast(t, dtype);
  const uint32_t version = lamella_tensor_version(t);
  const uint32_t modes = lamella_thread.modes & kModes;
  if (auto found = casts->find(t); found != casts->end()) {
    const Kept& kept = found->second;
    if (kept.version == version && kept.data == t->data && kept.modes == modes &&
        kept.cast.scalar_type() == dtype) {
      return kept.cast;
    }
    casts->erase(found);
  }
  TensorBase weight = TensorBase::borrow(t);
  TensorBase made = fresh_cast(t, dtype);
  casts->emplace(t, Kept{WeakTensorRef(weight), made, t->data, version, modes});
  return made;
}

}  // namespace lamella::autocast

using namespace lamella;
using autocast::state;

extern "C" {

int32_t lamella_autocast_enabled(uint8_t device_type) noexcept {
  return device_type < 64 && ((state.enabled >> device_type) & 1) != 0 &&
         (lamella_thread.excluded & autocast::kAutocast) == 0;
}

uint64_t lamella_autocast_exchange(uint64_t device_types) noexcept {
  uint64_t before = state.enabled;
  state.enabled = device_types;
  if (device_types != 0) {
    lamella_thread.included |= autocast::kAutocast;
  } else {
    lamella_thread.included &= ~autocast::kAutocast;
  }
  return before;
}

void lamella_autocast_set_enabled(uint8_t device_type, int32_t enabled) noexcept {
  if (device_type >= 64) return;
  const uint64_t bit = uint64_t{1} << device_type;
  lamella_autocast_exchange(enabled != 0 ? state.enabled | bit : state.enabled & ~bit);
}

uint8_t lamella_autocast_dtype(uint8_t device_type) noexcept {
  if (device_type < 64 && state.dtype[device_type] != 0) return state.dtype[device_type] - 1;
  switch (static_cast<DeviceType>(device_type)) {
    case DeviceType::CPU:
    case DeviceType::XLA:
    case DeviceType::HPU:
      return static_cast<uint8_t>(ScalarType::BFloat16);
    default:
      return static_cast<uint8_t>(ScalarType::Half);
  }
}

void lamella_autocast_set_dtype(uint8_t device_type, uint8_t dtype) noexcept {
  if (device_type < 64) state.dtype[device_type] = static_cast<uint8_t>(dtype + 1);
}

int32_t lamella_autocast_cache_enabled(void) noexcept { return !state.cache_off; }
void lamella_autocast_set_cache_enabled(int32_t enabled) noexcept {
  state.cache_off = enabled == 0;
}

void lamella_autocast_clear_cache(void) noexcept {
  if (state.casts == nullptr) return;
  // Destroying a cast may run code that reads autocast's state.
  autocast::Casts gone;
  gone.swap(*state.casts);
}

int32_t lamella_autocast_nesting(int32_t step) noexcept {
  state.depth += step;
  if (state.depth == 0) lamella_autocast_clear_cache();
  return state.depth;
}

lamella_status lamella_autocast_cast(lamella_tensor* tensor, uint8_t dtype, uint8_t device_type,
                                     lamella_tensor** result) noexcept {
  *result = nullptr;
  if (tensor == nullptr) return LAMELLA_OK;
  return lamella::detail::guarded([&] {
    const auto device = static_cast<DeviceType>(device_type);
    TensorBase made = autocast::is_eligible(tensor, device)
                          ? autocast::cast(tensor, static_cast<ScalarType>(dtype), device)
                          : TensorBase::borrow(tensor);
    *result = made.unsafe_release();
  });
}

}  // extern "C"
