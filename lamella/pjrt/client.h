// The client, its devices and their memories: the host's memory, as JAX sees it.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lamella/pjrt/c_api.h"

namespace lamella::pjrt {

// Note [Devices]
//   All devices of a client are the host: their buffers are ordinary memory, and their number is
//   the client's option num_devices. The platform's name is "cpu", so that JAX takes its lowerings
//   for CPUs. A device has the memory kinds of JAX's own CPU devices, which differ in name only.

struct DeviceDescription {
  int id = 0;
  std::string kind = "cpu";
  std::string text;
  std::vector<const Memory*> memories;  // empty where there is no device, only a description
};

struct Memory {
  const MemoryTable* table;
  int id = 0;
  int kind_id = 0;
  std::string kind;
  std::string text;
  Device* device = nullptr;
  std::mutex mutex;
  struct Kept {
    void* data;
    void (*free)(void*);
  };
  std::map<const void*, Kept> user_data;

  Memory();
  ~Memory();
};

struct Device {
  Client* client = nullptr;
  DeviceDescription description;
  std::vector<Memory*> memories;
  Memory* default_memory() const { return memories[0]; }
};

struct Topology {
  std::vector<DeviceDescription*> descriptions;
  std::vector<std::unique_ptr<DeviceDescription>> owned;
};

struct Client {
  std::vector<std::unique_ptr<Memory>> owned_memories;
  std::vector<std::unique_ptr<Device>> owned_devices;
  std::vector<Device*> devices;
  std::vector<Memory*> memories;
  Topology topology;

  explicit Client(int64_t device_count);
  // Throws if there is no such device.
  Device* device(int64_t id) const;
  // The device or memory that a caller asked for; either may be null.
  Memory* place(Device* device, Memory* memory) const;
};

// The kinds of memory of a device, of which the first is the default.
inline constexpr const char* kMemoryKinds[] = {"device", "pinned_host", "unpinned_host"};
// "lamella 0.1.0": with the machine that code is compiled for, part of JAX's cache keys.
const std::string& platform_version();

}  // namespace lamella::pjrt
