// Autocast in C++: regions, and the casts that a kernel for the key Autocast makes by hand. Public,
// inline over lamella/abi/autocast.h. What autocast does by itself for operators with an autocast
// class is in lamella/layers/autocast/cast.cpp, Note [Autocast classes].
//
//   Tensor blend_autocast(const Tensor& a, const Tensor& b) {
//     ExcludeDispatchKeyGuard no_autocast(DispatchKey::Autocast);
//     auto dtype = autocast::promote_type(kBFloat16, DeviceType::CPU, a, b);
//     return blend(autocast::cached_cast(dtype, a, DeviceType::CPU),
//                  autocast::cached_cast(dtype, b, DeviceType::CPU));
//   }
//   LAMELLA_LIBRARY_IMPL(mine, Autocast, m) { m.impl("blend", blend_autocast); }
#pragma once
#include <optional>
#include <vector>

#include "lamella/abi/autocast.h"
#include "lamella/api/tensor.h"
#include "lamella/dispatch/guards.h"

namespace lamella::autocast {

// ---- The state of this thread, by device type ---------------------------------------------------

// False below a guard that excludes the key Autocast as well.
inline bool is_autocast_enabled(DeviceType device) {
  return lamella_autocast_enabled(static_cast<uint8_t>(device)) != 0;
}
inline void set_autocast_enabled(DeviceType device, bool enabled) {
  lamella_autocast_set_enabled(static_cast<uint8_t>(device), enabled);
}
// The dtype of lower precision: bfloat16 for cpu, float16 for cuda, where nothing else was set.
inline ScalarType get_autocast_dtype(DeviceType device) {
  return static_cast<ScalarType>(lamella_autocast_dtype(static_cast<uint8_t>(device)));
}
inline void set_autocast_dtype(DeviceType device, ScalarType dtype) {
  lamella_autocast_set_dtype(static_cast<uint8_t>(device), static_cast<uint8_t>(dtype));
}
// Whether casts of weights are kept: Note [Casts of weights] in lamella/abi/autocast.h.
inline bool is_autocast_cache_enabled() { return lamella_autocast_cache_enabled() != 0; }
inline void set_autocast_cache_enabled(bool enabled) {
  lamella_autocast_set_cache_enabled(enabled);
}
inline void clear_cache() { lamella_autocast_clear_cache(); }
// The depth of nested regions on this thread; on return to 0 the kept casts are released.
inline int increment_nesting() { return lamella_autocast_nesting(1); }
inline int decrement_nesting() { return lamella_autocast_nesting(-1); }

// A region: autocast on (or off) for a device type while it lives, with the dtype of lower
// precision given or as it is. Regions nest.
class Region {
 public:
  LAMELLA_LAZY explicit Region(DeviceType device, std::optional<ScalarType> dtype = std::nullopt,
                               bool enabled = true)
      : device_(device),
        was_enabled_(is_autocast_enabled(device)),
        dtype_before_(get_autocast_dtype(device)) {
    if (dtype) set_autocast_dtype(device, *dtype);
    set_autocast_enabled(device, enabled);
    increment_nesting();
  }
  ~Region() {
    decrement_nesting();
    set_autocast_enabled(device_, was_enabled_);
    set_autocast_dtype(device_, dtype_before_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  DeviceType device_;
  bool was_enabled_;
  ScalarType dtype_before_;
};

// ---- Casts ------------------------------------------------------------------------------------

// Whether casts apply: defined, on the device type, floating-point, not float64.
inline bool is_eligible(const Tensor& arg, DeviceType device = DeviceType::CUDA) {
  if (!arg.defined()) return false;
  const DeviceType here = arg.device().type();
  const bool there = here == device || (device == DeviceType::CUDA && here == DeviceType::XLA) ||
                     (device == DeviceType::CPU && here == DeviceType::MKLDNN);
  return there && is_floating_point(arg.scalar_type()) && arg.scalar_type() != ScalarType::Double;
}

// `arg` as `to_type` if it is eligible, else `arg` itself. Casts of weights to the lower-precision
// dtype are kept.
inline Tensor cached_cast(ScalarType to_type, const Tensor& arg,
                          DeviceType device = DeviceType::CUDA) {
  lamella_tensor* made = nullptr;
  detail::check(lamella_autocast_cast(arg.impl(), static_cast<uint8_t>(to_type),
                                      static_cast<uint8_t>(device), &made));
  return Tensor(TensorBase::adopt(made));
}
LAMELLA_LAZY inline std::optional<Tensor> cached_cast(ScalarType to_type,
                                                      const std::optional<Tensor>& arg,
                                                      DeviceType device = DeviceType::CUDA) {
  if (!arg) return std::nullopt;
  return cached_cast(to_type, *arg, device);
}
LAMELLA_LAZY inline std::vector<Tensor> cached_cast(ScalarType to_type, TensorList args,
                                                    DeviceType device = DeviceType::CUDA) {
  std::vector<Tensor> made;
  made.reserve(args.size());
  for (const Tensor& arg : args) made.push_back(cached_cast(to_type, arg, device));
  return made;
}
LAMELLA_LAZY inline std::vector<Tensor> cached_cast(ScalarType to_type,
                                                    const std::vector<Tensor>& args,
                                                    DeviceType device = DeviceType::CUDA) {
  return cached_cast(to_type, TensorList(args), device);
}
// Arguments that are not tensors are returned unchanged.
template <class T>
T cached_cast(ScalarType, T arg, DeviceType = DeviceType::CUDA) {
  return arg;
}

// The wider of `current` and the dtype of what is eligible: float32, unless all are of lower
// precision.
LAMELLA_LAZY inline ScalarType prioritize(ScalarType current, const Tensor& arg,
                                          DeviceType device = DeviceType::CUDA) {
  LAMELLA_CHECK(
      current != ScalarType::Double,
      "promote_type: expected 'current' to be a dtype that autocast casts to, got float64");
  if (!is_eligible(arg, device)) return current;
  return arg.scalar_type() == current ? current : ScalarType::Float;
}
LAMELLA_LAZY inline ScalarType prioritize(ScalarType current, TensorList args,
                                          DeviceType device = DeviceType::CUDA) {
  for (const Tensor& arg : args) current = prioritize(current, arg, device);
  return current;
}
LAMELLA_LAZY inline ScalarType prioritize(ScalarType current, const std::vector<Tensor>& args,
                                          DeviceType device = DeviceType::CUDA) {
  return prioritize(current, TensorList(args), device);
}
LAMELLA_LAZY inline ScalarType prioritize(ScalarType current, const std::optional<Tensor>& arg,
                                          DeviceType device = DeviceType::CUDA) {
  return arg ? prioritize(current, *arg, device) : current;
}
template <class T>
ScalarType prioritize(ScalarType current, const T&, DeviceType = DeviceType::CUDA) {
  return current;
}

// The widest dtype of `current` and the eligible tensors among `args`; other arguments are
// ignored. Without a device type, tensors on CUDA are considered.
template <class... Args>
ScalarType promote_type(ScalarType current, DeviceType device, const Args&... args) {
  ((current = prioritize(current, args, device)), ...);
  return current;
}
template <class First, class... Args>
  requires(!std::is_same_v<First, DeviceType>)
ScalarType promote_type(ScalarType current, const First& first, const Args&... args) {
  return promote_type(current, DeviceType::CUDA, first, args...);
}

}  // namespace lamella::autocast
