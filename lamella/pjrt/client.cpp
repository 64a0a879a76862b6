// Clients, devices and memories: PJRT's functions on them.
#include "lamella/pjrt/client.h"

#include <algorithm>
#include <cstring>

#include "lamella/core/allocator.h"
#include "lamella/graph/execute/code_cache.h"
#include "lamella/graph/execute/digest.h"
#include "lamella/pjrt/array_type.h"
#include "lamella/pjrt/compile_options.h"
#include "lamella/pjrt/extensions.h"
#include "lamella/pjrt/functions.h"
#include "lamella/pjrt/workers.h"

namespace lamella::pjrt {
namespace {

const std::string kPlatform = "cpu";

constexpr MemoryTable kMemoryTable = {
    sizeof(MemoryTable), nullptr, sizeof(Memory),
    [](Memory* memory, const void* key) -> void* {
      std::lock_guard<std::mutex> lock(memory->mutex);
      auto found = memory->user_data.find(key);
      return found == memory->user_data.end() ? nullptr : found->second.data;
    },
    [](Memory* memory, const void* key, void* data, void (*free)(void*)) {
      std::lock_guard<std::mutex> lock(memory->mutex);
      memory->user_data[key] = {data, free};
    }};

int64_t device_count_of(const List<const NamedValue>& options) {
  int64_t count = 1;
  for (size_t i = 0; i < options.size; ++i) {
    const NamedValue& option = options.data[i];
    if (text_of(option.name) != "num_devices") continue;
    require(option.kind == ValueKind::Int64 && option.integer >= 1 && option.integer <= 4096,
            "lamella: expected the option num_devices to be an integer from 1 to 4096");
    count = option.integer;
  }
  return count;
}
void describe(DeviceDescription& description, int id) {
  description.id = id;
  description.text = str("LamellaDevice(id=", id, ")");
}

}  // namespace

Memory::Memory() : table(&kMemoryTable) {}
Memory::~Memory() {
  for (auto& [key, kept] : user_data) {
    if (kept.free != nullptr) kept.free(kept.data);
  }
}

Client::Client(int64_t device_count) {
  for (int id = 0; id < static_cast<int>(device_count); ++id) {
    Device* device = owned_devices.emplace_back(std::make_unique<Device>()).get();
    device->client = this;
    describe(device->description, id);
    for (const char* kind : kMemoryKinds) {
      Memory* memory = owned_memories.emplace_back(std::make_unique<Memory>()).get();
      memory->id = static_cast<int>(memories.size());
      memory->kind_id = static_cast<int>(device->memories.size());
      memory->kind = kind;
      memory->text = str("LamellaMemory(kind=", kind, ", device=", id, ")");
      memory->device = device;
      device->memories.push_back(memory);
      device->description.memories.push_back(memory);
      memories.push_back(memory);
    }
    devices.push_back(device);
    topology.descriptions.push_back(&device->description);
  }
}
Device* Client::device(int64_t id) const {
  require(id >= 0 && id < static_cast<int64_t>(devices.size()),
          "lamella: expected a device from 0 to ", devices.size() - 1, ", got ", id);
  return devices[static_cast<size_t>(id)];
}
Memory* Client::place(Device* device, Memory* memory) const {
  if (memory != nullptr) return memory;
  return (device != nullptr ? device : devices[0])->default_memory();
}

const std::string& platform_version() {
  static const std::string text =
      str("lamella " LAMELLA_VERSION " ", hlo::digest(hlo::surroundings()).substr(0, 16));
  return text;
}

// ---- Clients ----------------------------------------------------------------------------------

void client_create(ClientCreateArgs& args) {
  args.client = new Client(device_count_of(args.options));
}
void client_destroy(ClientDestroyArgs& args) {
  finish_work();
  delete args.client;
}
void client_platform_name(ClientPlatformNameArgs& args) { args.text = borrow(kPlatform); }
void client_platform_version(ClientPlatformVersionArgs& args) {
  args.text = borrow(platform_version());
}
void client_process_index(ClientProcessIndexArgs& args) { args.process_index = 0; }
void client_topology_description(ClientTopologyDescriptionArgs& args) {
  args.topology = &args.client->topology;
}
void client_devices(ClientDevicesArgs& args) {
  args.devices = {args.client->devices.data(), args.client->devices.size()};
}
void client_addressable_devices(ClientAddressableDevicesArgs& args) { client_devices(args); }
void client_lookup_device(ClientLookupDeviceArgs& args) {
  args.device = args.client->device(args.id);
}
void client_lookup_addressable_device(ClientLookupAddressableDeviceArgs& args) {
  client_lookup_device(args);
}
void client_update_global_process_info(ClientUpdateGlobalProcessInfoArgs& /*args*/) {}
void client_addressable_memories(ClientAddressableMemoriesArgs& args) {
  args.memories = {args.client->memories.data(), args.client->memories.size()};
}
void client_default_device_assignment(ClientDefaultDeviceAssignmentArgs& args) {
  int64_t wanted = int64_t{args.replicas} * args.partitions;
  require(wanted >= 1 && wanted <= static_cast<int64_t>(args.client->devices.size()) &&
              wanted <= static_cast<int64_t>(args.size),
          "lamella: expected at most ", args.client->devices.size(), " devices, got ",
          args.replicas, " replicas of ", args.partitions, " partitions");
  for (int64_t i = 0; i < wanted; ++i) args.assignment[i] = static_cast<int>(i);
}
// All memory is the host's, so there is nothing to map.
void client_dma_map(ClientDmaMapArgs& /*args*/) {}
void client_dma_unmap(ClientDmaUnmapArgs& /*args*/) {}

// ---- Devices ----------------------------------------------------------------------------------

void device_description_id(DeviceDescriptionIdArgs& args) { args.id = args.description->id; }
void device_description_process_index(DeviceDescriptionProcessIndexArgs& args) {
  args.process_index = 0;
}
void device_description_attributes(DeviceDescriptionAttributesArgs& args) {
  args.count = 0;
  args.attributes = nullptr;
}
void device_description_kind(DeviceDescriptionKindArgs& args) {
  args.text = borrow(args.description->kind);
}
void device_description_debug_string(DeviceDescriptionDebugStringArgs& args) {
  args.text = borrow(args.description->text);
}
void device_description_to_string(DeviceDescriptionToStringArgs& args) {
  args.text = borrow(args.description->text);
}
void device_get_description(DeviceGetDescriptionArgs& args) {
  args.description = &args.device->description;
}
void device_is_addressable(DeviceIsAddressableArgs& args) { args.is_addressable = true; }
void device_local_hardware_id(DeviceLocalHardwareIdArgs& args) {
  args.id = args.device->description.id;
}
void device_addressable_memories(DeviceAddressableMemoriesArgs& args) {
  args.memories = {args.device->memories.data(), args.device->memories.size()};
}
void device_default_memory(DeviceDefaultMemoryArgs& args) {
  args.memory = args.device->default_memory();
}
void device_memory_stats(DeviceMemoryStatsArgs& args) {
  CpuMemoryStatistics now = cpu_memory_statistics();
  args.bytes_in_use = now.bytes_in_use;
  for (OptionalBytes* one = &args.peak_bytes_in_use; one <= &args.peak_allocated_bytes; ++one) {
    if (has(&args, one)) one->is_set = false;
  }
  args.allocations = {static_cast<int64_t>(now.system_allocations), true};
  args.pool_bytes = {now.bytes_in_use + now.bytes_cached, true};
}
void device_clear_memory_stats(DeviceClearMemoryStatsArgs& /*args*/) {
  fail(Code::Unimplemented, "PJRT_Device_ClearMemoryStats: peaks of memory are not recorded");
}
void device_poison_execution(DevicePoisonExecutionArgs& args) { args.poisoned = false; }
void device_get_attributes(DeviceGetAttributesArgs& args) {
  args.attributes = {nullptr, 0};
  args.holder = nullptr;
  args.free = [](void*) {};
}
void device_create_async_tracking_event(DeviceCreateAsyncTrackingEventArgs& args) {
  args.event = nullptr;
}
void async_tracking_event_destroy(AsyncTrackingEventDestroyArgs& /*args*/) {}

// ---- Memories ---------------------------------------------------------------------------------

void memory_id(MemoryIdArgs& args) { args.id = args.memory->id; }
void memory_kind_id(MemoryKindIdArgs& args) { args.id = args.memory->kind_id; }
void memory_kind(MemoryKindArgs& args) { args.text = borrow(args.memory->kind); }
void memory_debug_string(MemoryDebugStringArgs& args) { args.text = borrow(args.memory->text); }
void memory_to_string(MemoryToStringArgs& args) { args.text = borrow(args.memory->text); }
void memory_addressable_by_devices(MemoryAddressableByDevicesArgs& args) {
  args.devices = {&args.memory->device, 1};
}

// ---- Topologies -------------------------------------------------------------------------------

namespace {

Topology* make_topology(int64_t device_count) {
  auto topology = std::make_unique<Topology>();
  for (int id = 0; id < static_cast<int>(device_count); ++id) {
    describe(*topology->owned.emplace_back(std::make_unique<DeviceDescription>()), id);
    topology->descriptions.push_back(topology->owned.back().get());
  }
  return topology.release();
}
constexpr std::string_view kTopology = "lamella topology of devices: ";

}  // namespace

void topology_create(TopologyCreateArgs& args) {
  args.topology = make_topology(device_count_of(args.options));
}
void topology_destroy(TopologyDestroyArgs& args) {
  // A client's own topology has no descriptions of its own.
  if (args.topology != nullptr && !args.topology->owned.empty()) delete args.topology;
}
void topology_platform_name(TopologyPlatformNameArgs& args) { args.text = borrow(kPlatform); }
void topology_platform_version(TopologyPlatformVersionArgs& args) {
  args.text = borrow(platform_version());
}
void topology_get_device_descriptions(TopologyGetDeviceDescriptionsArgs& args) {
  args.descriptions = {args.topology->descriptions.data(), args.topology->descriptions.size()};
}
void topology_serialize(TopologySerializeArgs& args) {
  hand_out(str(kTopology, args.topology->descriptions.size(), "; ", platform_version()), args);
}
void topology_deserialize(TopologyDeserializeArgs& args) {
  std::string text = text_of(args.bytes);
  require(text.starts_with(kTopology),
          "PJRT_TopologyDescription_Deserialize: expected a topology of lamella");
  args.topology =
      make_topology(std::max(1L, std::strtol(text.c_str() + kTopology.size(), nullptr, 10)));
}
void topology_attributes(TopologyAttributesArgs& args) { args.attributes = {nullptr, 0}; }
void topology_fingerprint(TopologyFingerprintArgs& args) {
  std::string digits = hlo::digest(str(platform_version(), args.topology->descriptions.size()));
  args.fingerprint = std::strtoull(digits.substr(0, 16).c_str(), nullptr, 16);
}
void topology_make_canonical_shape_for_memory_space(
    TopologyMakeCanonicalShapeForMemorySpaceArgs& args) {
  // A ShapeProto: element_type = 2, dimensions = 3, layout = 5 {minor_to_major = 1}.
  ArrayTypePointer type = array_type(args.type, args.dims, args.layout);
  std::string shape, layout;
  add_number(shape, 2, static_cast<uint64_t>(type->shape().element_type()));
  for (int64_t size : type->shape().dimensions()) add_number(shape, 3, static_cast<uint64_t>(size));
  for (int64_t d : type->minor_to_major()) add_number(layout, 1, static_cast<uint64_t>(d));
  add_bytes(shape, 5, layout);
  char* made = new char[shape.size()];
  std::memcpy(made, shape.data(), shape.size());
  args.shape = {made, shape.size()};
  args.free = [](const char* text) { delete[] text; };
}
void topology_get_memory_space_kind_ids(TopologyGetMemorySpaceKindIdsArgs& args) {
  static const int kinds[] = {0, 1, 2};
  static_assert(std::size(kinds) == std::size(kMemoryKinds));
  args.kinds = {kinds, std::size(kinds)};
}

// ---- The extension of memory descriptions ------------------------------------------------------

namespace {

void memories_of(MemoryDescriptionsArgs& args) {
  const std::vector<const Memory*>& memories = args.description->memories;
  args.memories = {memories.data(), memories.size()};
  args.default_index = 0;
}
void kind_of(MemoryDescriptionKindArgs& args) {
  args.kind = borrow(args.memory->kind);
  args.kind_id = args.memory->kind_id;
}

}  // namespace

MemoryDescriptionsExtension memory_descriptions_extension() {
  return {{sizeof(MemoryDescriptionsExtension), ExtensionType::MemoryDescriptions, nullptr},
          called<MemoryDescriptionsArgs, memories_of>,
          called<MemoryDescriptionKindArgs, kind_of>};
}

}  // namespace lamella::pjrt
