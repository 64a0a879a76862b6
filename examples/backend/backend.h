// The devices of one backend: the functions that Lamella requires (see lamella/core/backend.h), and
// those that the kernels use.
#pragma once
#include <lamella/backend.h>
#include <lamella/lamella.h>

#include <atomic>
#include <memory>
#include <vector>

#include "memory.h"
#include "stream.h"

namespace sim {

using lamella::DeviceIndex;

class Backend {
 public:
  explicit Backend(lamella::DeviceType type, int devices = 2);

  // ---- For Lamella ----
  void* allocate(size_t bytes, DeviceIndex device, void** block);
  void deallocate(void* data, size_t bytes, DeviceIndex device, void* block);
  void copy(lamella_place to, lamella_place from, size_t bytes, bool non_blocking);
  int device_count() { return static_cast<int>(devices_.size()); }
  DeviceIndex current_device();
  void set_device(DeviceIndex device);
  int64_t current_stream(DeviceIndex device);
  void set_stream(DeviceIndex device, int64_t stream);
  int64_t make_stream(DeviceIndex device, int priority);
  bool query_stream(DeviceIndex device, int64_t stream);
  void synchronize_stream(DeviceIndex device, int64_t stream);
  void synchronize_device(DeviceIndex device);
  void* make_event(DeviceIndex device, bool timing);
  void free_event(void* event);
  void record_event(void* event, DeviceIndex device, int64_t stream);
  void wait_event(void* event, DeviceIndex device, int64_t stream);
  bool query_event(void* event);
  void synchronize_event(void* event);
  double elapsed_time(void* start, void* end);

  // ---- For the kernels ----
  // Runs `work` on a device's current stream, asynchronously.
  void launch(DeviceIndex device, std::function<void()> work);
  // The address at which the work reads a tensor's elements.
  template <class T>
  T* elements(const lamella::Tensor& tensor) {
    return device(tensor.device().index()).memory.worker_view(static_cast<T*>(tensor.data_ptr()));
  }

 private:
  struct Device {
    Device();
    Memory memory;
    std::mutex mutex;
    std::vector<std::unique_ptr<Stream>> streams;  // 0: the default one
    std::vector<Stream*> all();
  };
  Device& device(DeviceIndex index) { return *devices_[static_cast<size_t>(index)]; }
  Stream& stream(DeviceIndex device, int64_t stream);
  Stream& current(DeviceIndex device) { return stream(device, current_stream(device)); }

  const lamella::DeviceType type_;
  std::vector<std::unique_ptr<Device>> devices_;
};

// The backend of a device type.
Backend& backend_of(lamella::DeviceType type);
// Registers the native kernels and the fallback for a backend's key.
void register_kernels(lamella::DispatchKey key, std::vector<lamella::Library>& libraries);

}  // namespace sim
