// The binary interface of PJRT: arguments of functions on executables, and the extensions.
#pragma once
#include "lamella/pjrt/c_api_buffers.h"

namespace lamella::pjrt {

// ---- Executables ------------------------------------------------------------------------------

struct ExecuteContextCreateArgs : Head {
  ExecuteContext* context;  // out
};
struct ExecuteContextDestroyArgs : Head {
  ExecuteContext* context;
};
struct ExecutableDestroyArgs : Head {
  Executable* executable;
};
struct LoadedExecutableDestroyArgs : Head {
  LoadedExecutable* executable;
};
struct LoadedExecutableGetExecutableArgs : Head {
  LoadedExecutable* loaded;
  Executable* executable;  // out
};
struct LoadedExecutableGetDeviceAssignmentArgs : Head {
  LoadedExecutable* executable;
  Text bytes;            // out: a DeviceAssignmentProto
  Bytes* holder;         // out
  void (*free)(Bytes*);  // out
};
struct ExecutableTextArgs : Head {
  Executable* executable;
  Text text;  // out
};
using ExecutableNameArgs = ExecutableTextArgs;
using ExecutableFingerprintArgs = ExecutableTextArgs;
struct LoadedExecutableFingerprintArgs : Head {
  LoadedExecutable* executable;
  Text text;  // out
};
struct ExecutableCountArgs : Head {
  Executable* executable;
  size_t count;  // out
};
using ExecutableNumReplicasArgs = ExecutableCountArgs;
using ExecutableNumPartitionsArgs = ExecutableCountArgs;
using ExecutableNumOutputsArgs = ExecutableCountArgs;
struct ExecutableSizeOfGeneratedCodeInBytesArgs : Head {
  Executable* executable;
  int64_t bytes;  // out
};
struct LogicalDevice {
  int replica;
  int partition;
};
struct LoadedExecutableAddressableDevicesArgs : Head {
  LoadedExecutable* executable;
  List<Device* const> devices;  // out
};
struct LoadedExecutableAddressableDeviceLogicalIdsArgs : Head {
  LoadedExecutable* executable;
  List<const LogicalDevice> ids;  // out
};
struct ExecutableOptimizedProgramArgs : Head {
  Executable* executable;
  ProgramText* program;  // written; the code only where it is not null
};
struct LoadedExecutableDeleteArgs : Head {
  LoadedExecutable* executable;
};
struct LoadedExecutableIsDeletedArgs : Head {
  LoadedExecutable* executable;
  bool is_deleted;  // out
};
struct ExecuteOptions {
  Head head;
  void** send_callbacks;
  void** recv_callbacks;
  size_t send_count;
  size_t recv_count;
  int launch_id;
  List<const int64_t> not_donatable;  // parameters
  ExecuteContext* context;
  // The rest is not read.
};
struct LoadedExecutableExecuteArgs : Head {
  LoadedExecutable* executable;
  ExecuteOptions* options;
  Buffer* const* const* arguments;  // by device
  size_t device_count;
  size_t argument_count;
  Buffer** const* outputs;  // by device; written
  Event** complete;         // by device; written unless null
  Device* device;           // the only one, or null
};
struct ExecutableGetCostAnalysisArgs : Head {
  Executable* executable;
  size_t count;                  // out
  const NamedValue* properties;  // out
};
struct ExecutableGetCompiledMemoryStatsArgs : Head {
  Executable* executable;
  int64_t generated_code;  // out, like all that follow
  int64_t arguments;
  int64_t outputs;
  int64_t aliased;
  int64_t temporary;
  int64_t host_generated_code;
  int64_t host_arguments;
  int64_t host_outputs;
  int64_t host_aliased;
  int64_t host_temporary;
  int64_t peak;
  int64_t total;
  int64_t total_allocation;
  int64_t indefinite_allocations;
  int64_t peak_unpadded_heap;
};
struct ExecutableOutputElementTypesArgs : Head {
  Executable* executable;
  List<const BufferType> types;  // out
};
struct ExecutableOutputDimensionsArgs : Head {
  Executable* executable;
  size_t count;               // out: of the outputs
  const int64_t* dimensions;  // out: of all outputs
  const size_t* ranks;        // out
};
struct ExecutableMemoryKindsArgs : Head {
  Executable* executable;
  size_t count;              // out
  const char* const* kinds;  // out
  const size_t* sizes;       // out
};
using ExecutableParameterMemoryKindsArgs = ExecutableMemoryKindsArgs;
using ExecutableOutputMemoryKindsArgs = ExecutableMemoryKindsArgs;
struct ExecutableBytesArgs : Head {
  Executable* executable;
  Text bytes;            // out
  Bytes* holder;         // out
  void (*free)(Bytes*);  // out
};
using ExecutableSerializeArgs = ExecutableBytesArgs;
using ExecutableGetCompileOptionsArgs = ExecutableBytesArgs;
struct ExecutableDeserializeAndLoadArgs : Head {
  Client* client;
  Text serialized;
  LoadedExecutable* loaded;  // out
  Text options;              // in place of those that were serialized
  void* load_options;
};

// ---- The extensions' structs ------------------------------------------------------------------

struct LayoutDestroyArgs : Head {
  MemoryLayout* layout;
};
struct LayoutSerializeArgs : Head {
  MemoryLayout* layout;
  Text bytes;            // out: "{1,0}"
  Bytes* holder;         // out
  void (*free)(Bytes*);  // out
};
struct LayoutOfBufferArgs : Head {
  Buffer* buffer;
  MemoryLayout* layout;  // out
};
struct LayoutDefaultArgs : Head {
  void* of;  // a client or a topology
  BufferType type;
  List<const int64_t> dims;
  MemoryLayout* layout;  // out
};
struct LayoutsOfExecutableArgs : Head {
  Executable* executable;
  size_t count;            // out
  MemoryLayout** layouts;  // out: they live as long as the executable
};
struct LayoutsExtension {
  Extension base;
  Error* (*destroy)(LayoutDestroyArgs*);
  Error* (*serialize)(LayoutSerializeArgs*);
  Error* (*client_default)(LayoutDefaultArgs*);
  Error* (*of_buffer)(LayoutOfBufferArgs*);
  Error* (*topology_default)(LayoutDefaultArgs*);
  Error* (*of_outputs)(LayoutsOfExecutableArgs*);
  Error* (*of_parameters)(LayoutsOfExecutableArgs*);
};

struct FfiTypeInfo {
  void (*deleter)(void*);
  void (*serialize)();
  void (*deserialize)();
};
struct FfiTypeRegisterArgs : Head {
  Text name;
  int64_t id;  // in and out
  FfiTypeInfo* info;
};
struct FfiUserDataAddArgs : Head {
  ExecuteContext* context;
  int64_t type;
  void* data;
};
struct FfiRegisterHandlerArgs {
  size_t struct_size;
  Text target;
  void* handler;
  Text platform;
  uint32_t traits;
};
struct FfiExtension {
  Extension base;
  Error* (*register_type)(FfiTypeRegisterArgs*);
  Error* (*add_user_data)(FfiUserDataAddArgs*);
  Error* (*register_handler)(FfiRegisterHandlerArgs*);
};

struct MemoryDescriptionsArgs : Head {
  DeviceDescription* description;
  List<const Memory* const> memories;  // out
  size_t default_index;                // out
};
struct MemoryDescriptionKindArgs : Head {
  const Memory* memory;
  Text kind;    // out
  int kind_id;  // out
};
struct MemoryDescriptionsExtension {
  Extension base;
  Error* (*of_device)(MemoryDescriptionsArgs*);
  Error* (*kind)(MemoryDescriptionKindArgs*);
};

}  // namespace lamella::pjrt
