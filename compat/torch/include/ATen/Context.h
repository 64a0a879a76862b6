// at::globalContext(): capabilities and settings of the library, under PyTorch's names.
#pragma once
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/DeprecatedTypeProperties.h>
#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include "lamella/abi/backend.h"
#include "lamella/core/for_each.h"

namespace at {

enum class Float32MatmulPrecision { HIGHEST, HIGH, MEDIUM };

class Context {
 public:
  static bool hasCUDA() { return lamella_device_count(static_cast<uint8_t>(DeviceType::CUDA)) > 0; }
#define LAMELLA_HAS_NOT(name) \
  static bool has##name() { return false; }
  LAMELLA_FOR_EACH(LAMELLA_HAS_NOT, MPS, XPU, HIP, XLA, MKL, OpenMP, MAGMA, CuDNN)
#undef LAMELLA_HAS_NOT
  static bool hasMKLDNN() { return true; }
  static bool hasLAPACK() { return true; }

  // Only stored for callers that read the settings: Lamella's kernels are deterministic.
  bool deterministicAlgorithms() const { return deterministic_; }
  bool deterministicAlgorithmsWarnOnly() const { return warn_only_; }
  void setDeterministicAlgorithms(bool on, bool warn_only = false) {
    deterministic_ = on;
    warn_only_ = warn_only;
  }
  // Called by kernels whose result depends on the order of their threads.
  void alertNotDeterministic(std::string_view caller) const {
    if (!deterministic_) return;
    TORCH_CHECK(warn_only_, caller, ": expected an operator with a deterministic kernel");
    TORCH_WARN(caller, " has no deterministic kernel");
  }
  bool userEnabledCuDNN() const { return false; }
  bool benchmarkCuDNN() const { return false; }
  bool deterministicCuDNN() const { return false; }
  bool allowTF32CuBLAS() const { return false; }
  Float32MatmulPrecision float32MatmulPrecision() const { return Float32MatmulPrecision::HIGHEST; }
  bool allowTF32CuDNN() const { return false; }
  void lazyInitCUDA() const {}

  // The generator that operators on the device use by default.
  Generator defaultGenerator(Device device = DeviceType::CPU) const {
    lamella_object* generator = nullptr;
    lamella::detail::check(
        lamella_generator_default(static_cast<uint8_t>(device.type()), device.index(), &generator));
    return Generator::adopt(generator);
  }

 private:
  bool deterministic_ = false;
  bool warn_only_ = false;
};
// Each library that includes this header has its own.
LAMELLA_HIDDEN inline Context global_context;
inline Context& globalContext() { return global_context; }

// The options of tensors with a dtype, in PyTorch's older spelling for factories, where functions
// take them by reference.
template <DeviceType device>
DeprecatedTypeProperties& kept_kind(ScalarType type) {
  static std::vector<DeprecatedTypeProperties> kinds = [] {
    std::vector<DeprecatedTypeProperties> all;
    for (int i = 0; i < static_cast<int>(ScalarType::NumOptions); ++i)
      all.emplace_back(static_cast<ScalarType>(i), device);
    return all;
  }();
  return kinds[static_cast<size_t>(type)];
}
inline DeprecatedTypeProperties& CPU(ScalarType type) { return kept_kind<DeviceType::CPU>(type); }
inline DeprecatedTypeProperties& CUDA(ScalarType type) { return kept_kind<DeviceType::CUDA>(type); }
inline DeprecatedTypeProperties& MPS(ScalarType type) { return kept_kind<DeviceType::MPS>(type); }

inline DeprecatedTypeProperties getDeprecatedTypeProperties(Backend backend, ScalarType type) {
  return {type, c10::backendToDeviceType(backend)};
}

#define LAMELLA_HAS(name) \
  inline bool has##name() { return Context::has##name(); }
LAMELLA_FOR_EACH(LAMELLA_HAS, CUDA, MPS, XPU, HIP, XLA, MKL, MKLDNN, LAPACK, OpenMP, MAGMA)
#undef LAMELLA_HAS

namespace detail {
inline Generator getDefaultCPUGenerator() { return globalContext().defaultGenerator(); }
inline Generator createCPUGenerator(uint64_t seed = default_rng_seed_val) {
  return make_generator<CPUGeneratorImpl>(seed);
}
}  // namespace detail

// Seeds the default generators of all devices.
inline void manual_seed(uint64_t seed) {
  for (DeviceType type : {DeviceType::CPU, DeviceType::CUDA}) {
    for (int32_t i = 0; i < lamella_device_count(static_cast<uint8_t>(type)); ++i) {
      Device device(type, static_cast<DeviceIndex>(i));
      Generator generator = globalContext().defaultGenerator(device);
      std::lock_guard lock(generator.mutex());
      generator.set_current_seed(seed);
    }
  }
}
}  // namespace at
