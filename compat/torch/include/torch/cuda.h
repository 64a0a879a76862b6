// torch::cuda: device availability and count.
#pragma once
#include <ATen/Context.h>

namespace torch::cuda {
inline size_t device_count() {
  return static_cast<size_t>(lamella_device_count(static_cast<uint8_t>(c10::DeviceType::CUDA)));
}
inline bool is_available() { return device_count() > 0; }
inline bool cudnn_is_available() { return false; }
inline void manual_seed(uint64_t seed) { at::manual_seed(seed); }
inline void manual_seed_all(uint64_t seed) { at::manual_seed(seed); }
}  // namespace torch::cuda
