// The binary interface of PJRT: the structs that JAX and a plugin exchange.
//
// Note [Versions of PJRT]
//   Names, layouts and numbers are those of version 0.112 with the fields that 0.113 and 0.114 add
//   at the ends; the major version is 0. Every struct of arguments begins with its size as known to
//   the caller. An older caller's struct lacks the last fields: has() says whether a field is
//   there, and a field that is not there is neither read nor written. `least_size` is the size in
//   the oldest version that is accepted. The table of functions only grows, so an older caller
//   reads a part of it.
//   A pointer and the number of its elements are one member, Text or List, where they stand side by
//   side in this order. Members after the comment `out` are written by the plugin.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lamella::pjrt {

inline constexpr int api_major = 0;
inline constexpr int api_minor = 112;

// Defined by the plugin.
struct Error;
struct Event;
struct Client;
struct Device;
struct DeviceDescription;
struct Memory;
struct Topology;
struct Executable;
struct LoadedExecutable;
struct Buffer;
struct ExecuteContext;
struct TransferManager;
struct AliasPromise;
struct TrackingEvent;
struct MemoryLayout;
// Memory behind texts that the caller frees with the deleter that comes with them.
struct Bytes;
// Owned by callers, and not looked into.
struct CopyToDeviceStream;
struct MultiSliceConfig;

struct Text {
  const char* data;
  size_t size;
};
template <class T>
struct List {
  T* data;
  size_t size;
};

// ---- Extensions -------------------------------------------------------------------------------

enum class ExtensionType : int32_t {
  Layouts = 4,
  Ffi = 5,
  MemoryDescriptions = 6,
};
struct Extension {
  size_t struct_size;
  ExtensionType type;
  Extension* next;
};
// What every struct of arguments begins with.
struct Head {
  size_t struct_size;
  Extension* extension_start;
};

// ---- Errors and values ------------------------------------------------------------------------

// The canonical status codes of gRPC and Abseil.
enum class Code : int32_t {
  Ok = 0,
  Cancelled = 1,
  Unknown = 2,
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  NotFound = 5,
  AlreadyExists = 6,
  PermissionDenied = 7,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  Aborted = 10,
  OutOfRange = 11,
  Unimplemented = 12,
  Internal = 13,
  Unavailable = 14,
  DataLoss = 15,
  Unauthenticated = 16,
};
using PayloadVisitor = void (*)(const char* key, size_t key_size, const char* value,
                                size_t value_size, void* user);
// An error begins with a pointer to this table, and so do memories below.
struct ErrorTable {
  size_t struct_size;
  size_t instance_size;
  Extension* extension_start;
  void (*destroy)(Error*);
  void (*message)(const Error*, const char** text, size_t* size);
  Code (*code)(const Error*);
  void (*for_each_payload)(const Error*, PayloadVisitor, void* user);
};
struct MemoryTable {
  size_t struct_size;
  Extension* extension_start;
  size_t instance_size;
  void* (*get_user_data)(Memory*, const void* key);
  void (*set_user_data)(Memory*, const void* key, void* data, void (*free)(void*));
};
using ErrorMaker = Error* (*)(Code code, const char* message, size_t size);

enum class ValueKind : int32_t { String = 0, Int64 = 1, Int64List = 2, Float = 3, Bool = 4 };
struct NamedValue {
  Head head;
  Text name;
  ValueKind kind;
  union {
    const char* string;
    int64_t integer;
    const int64_t* integers;
    float number;
    bool flag;
  };
  size_t size;  // of the string or list; otherwise 1
};

struct ErrorDestroyArgs : Head {
  Error* error;
};
struct ErrorMessageArgs : Head {
  const Error* error;
  Text message;  // out
};
struct ErrorGetCodeArgs : Head {
  const Error* error;
  Code code;  // out
};
struct ErrorForEachPayloadArgs : Head {
  const Error* error;
  PayloadVisitor visitor;
  void* user;
};

struct PluginInitializeArgs : Head {};
struct PluginAttributesArgs : Head {
  List<const NamedValue> attributes;  // out
};

// ---- Events -----------------------------------------------------------------------------------

struct EventDestroyArgs : Head {
  Event* event;
};
struct EventIsReadyArgs : Head {
  Event* event;
  bool is_ready;  // out
};
struct EventErrorArgs : Head {
  Event* event;
};
struct EventAwaitArgs : Head {
  Event* event;
};
// The callback owns the error.
using ReadyCallback = void (*)(Error* error, void* user);
struct EventOnReadyArgs : Head {
  Event* event;
  ReadyCallback callback;
  void* user;
};
struct EventCreateArgs : Head {
  Event* event;  // out
};
struct EventSetArgs : Head {
  Event* event;
  Code code;
  Text message;
};

// ---- Client -----------------------------------------------------------------------------------

struct ClientCreateArgs : Head {
  List<const NamedValue> options;
  void* get_value;  // of the key-value store of several processes
  void* get_value_user;
  void* put_value;
  void* put_value_user;
  Client* client;  // out
  void* try_get_value;
  void* try_get_value_user;
};
struct ClientDestroyArgs : Head {
  Client* client;
};
struct ClientTextArgs : Head {
  Client* client;
  Text text;  // out
};
using ClientPlatformNameArgs = ClientTextArgs;
using ClientPlatformVersionArgs = ClientTextArgs;
struct ClientProcessIndexArgs : Head {
  Client* client;
  int process_index;  // out
};
struct ClientTopologyDescriptionArgs : Head {
  Client* client;
  Topology* topology;  // out
};
struct ClientDevicesArgs : Head {
  Client* client;
  List<Device* const> devices;  // out
};
using ClientAddressableDevicesArgs = ClientDevicesArgs;
struct ClientLookupDeviceArgs : Head {
  Client* client;
  int id;
  Device* device;  // out
};
using ClientLookupAddressableDeviceArgs = ClientLookupDeviceArgs;
struct ClientUpdateGlobalProcessInfoArgs : Head {
  Client* client;
  void* processes;
  size_t process_count;
};
struct ClientAddressableMemoriesArgs : Head {
  Client* client;
  List<Memory* const> memories;  // out
};
struct ProgramText {
  Head head;
  char* code;
  size_t code_size;
  Text format;
};
struct ClientCompileArgs : Head {
  Client* client;
  const ProgramText* program;
  Text options;
  LoadedExecutable* executable;  // out
};
struct ClientLoadArgs : Head {
  Client* client;
  Executable* executable;
  Text options;
  LoadedExecutable* loaded;  // out
};
struct ClientDefaultDeviceAssignmentArgs : Head {
  Client* client;
  int replicas;
  int partitions;
  size_t size;
  int* assignment;  // written
};
struct ClientDmaMapArgs : Head {
  Client* client;
  void* data;
  size_t size;
};
struct ClientDmaUnmapArgs : Head {
  Client* client;
  void* data;
};

// ---- Shapes and layouts -----------------------------------------------------------------------

// Numbers of element types; array_type.cpp has the table.
using BufferType = int32_t;

enum class LayoutKind : int32_t { Tiled = 0, Strides = 1 };
struct TiledLayout {
  Head head;
  List<const int64_t> minor_to_major;
  const int64_t* tile_dims;
  const size_t* tile_dim_sizes;
  size_t tiles;
};
struct StridesLayout {
  Head head;
  List<const int64_t> byte_strides;
};
struct LayoutText {
  Head head;
  union {
    TiledLayout tiled;
    StridesLayout strides;
  };
  LayoutKind kind;
};
struct ShapeText {
  List<const int64_t> dims;
  BufferType type;
  const LayoutText* layout;
};
struct ShapeSpec {
  Head head;
  List<const int64_t> dims;
  BufferType type;
};

// ---- Making buffers ---------------------------------------------------------------------------

// How long the host's memory of a new buffer stays as it is.
enum class HostSemantics : int32_t {
  DuringCall = 0,
  UntilTransferCompletes = 1,
  ZeroCopy = 2,
  MutableZeroCopy = 3,
};
struct ClientBufferFromHostBufferArgs : Head {
  Client* client;
  const void* data;
  BufferType type;
  List<const int64_t> dims;
  List<const int64_t> byte_strides;
  HostSemantics semantics;
  Device* device;
  Memory* memory;
  LayoutText* layout;
  Event* done_with_host_buffer;  // out
  Buffer* buffer;                // out
};
struct ClientCreateUninitializedBufferArgs : Head {
  Client* client;
  ShapeText shape;
  Device* device;
  Memory* memory;
  Buffer* buffer;  // out
};
struct ClientCreateErrorBufferArgs : Head {
  Client* client;
  Code code;
  Text message;
  ShapeText shape;
  Memory* memory;
  Buffer* buffer;  // out
  List<const NamedValue> payload;
};
struct ClientCreateAliasBufferArgs : Head {
  Client* client;
  Memory* memory;
  ShapeText shape;
  Buffer* buffer;         // out
  AliasPromise* promise;  // out
};
struct ClientFulfillAliasBufferArgs : Head {
  Client* client;
  Buffer* buffer;
  Code code;
  Text message;
  AliasPromise* promise;
};
struct ClientCreateViewOfDeviceBufferArgs : Head {
  Client* client;
  void* data;
  List<const int64_t> dims;
  BufferType type;
  LayoutText* layout;
  Device* device;
  void (*on_delete)(void* data, void* user);
  void* on_delete_user;
  intptr_t stream;
  Buffer* buffer;  // out
  Memory* memory;
};
struct ClientCreateBuffersForAsyncHostToDeviceArgs : Head {
  Client* client;
  List<ShapeSpec> shapes;
  List<LayoutText*> layouts;
  Memory* memory;
  TransferManager* manager;  // out
};
struct TransferManagerDestroyArgs : Head {
  TransferManager* manager;
};
struct TransferManagerTransferDataArgs : Head {
  TransferManager* manager;
  int index;
  const void* data;
  int64_t offset;
  int64_t bytes;
  bool is_last;
  Event* done;  // out
};
struct TransferManagerTransferLiteralArgs : Head {
  TransferManager* manager;
  int index;
  const void* data;
  ShapeText shape;
  Event* done;  // out
};
struct TransferManagerRetrieveBufferArgs : Head {
  TransferManager* manager;
  int index;
  Buffer* buffer;  // out
};
struct TransferManagerDeviceArgs : Head {
  TransferManager* manager;
  Device* device;  // out
};
struct TransferManagerBufferCountArgs : Head {
  TransferManager* manager;
  size_t count;  // out
};
struct TransferManagerBufferSizeArgs : Head {
  TransferManager* manager;
  int index;
  size_t bytes;  // out
};
struct TransferManagerSetBufferErrorArgs : Head {
  TransferManager* manager;
  int index;
  Code code;
  Text message;
};
struct TransferManagerAddMetadataArgs : Head {
  TransferManager* manager;
  List<const NamedValue> metadata;
};

// ---- Devices ----------------------------------------------------------------------------------

struct DeviceDescriptionIdArgs : Head {
  DeviceDescription* description;
  int id;  // out
};
struct DeviceDescriptionProcessIndexArgs : Head {
  DeviceDescription* description;
  int process_index;  // out
};
struct DeviceDescriptionAttributesArgs : Head {
  DeviceDescription* description;
  size_t count;                  // out
  const NamedValue* attributes;  // out
};
struct DeviceDescriptionTextArgs : Head {
  DeviceDescription* description;
  Text text;  // out
};
using DeviceDescriptionKindArgs = DeviceDescriptionTextArgs;
using DeviceDescriptionDebugStringArgs = DeviceDescriptionTextArgs;
using DeviceDescriptionToStringArgs = DeviceDescriptionTextArgs;

struct DeviceGetDescriptionArgs : Head {
  Device* device;
  DeviceDescription* description;  // out
};
struct DeviceIsAddressableArgs : Head {
  Device* device;
  bool is_addressable;  // out
};
struct DeviceLocalHardwareIdArgs : Head {
  Device* device;
  int id;  // out
};
struct DeviceAddressableMemoriesArgs : Head {
  Device* device;
  List<Memory* const> memories;  // out
};
struct DeviceDefaultMemoryArgs : Head {
  Device* device;
  Memory* memory;  // out
};
struct OptionalBytes {
  int64_t value;
  bool is_set;
};
struct DeviceMemoryStatsArgs : Head {
  Device* device;
  int64_t bytes_in_use;  // out, like all that follow
  OptionalBytes peak_bytes_in_use;
  OptionalBytes allocations;
  OptionalBytes largest_allocation;
  OptionalBytes bytes_limit;
  OptionalBytes bytes_reserved;
  OptionalBytes peak_bytes_reserved;
  OptionalBytes bytes_reservable_limit;
  OptionalBytes largest_free_block;
  OptionalBytes pool_bytes;
  OptionalBytes peak_pool_bytes;
  OptionalBytes peak_allocated_bytes;  // from 0.113
};
struct DeviceClearMemoryStatsArgs : Head {
  Device* device;
};
struct DevicePoisonExecutionArgs : Head {
  Device* device;
  int32_t launch_id;
  Code code;
  Text message;
  bool poisoned;  // out
  List<const NamedValue> payload;
};
struct DeviceGetAttributesArgs : Head {
  Device* device;
  List<const NamedValue> attributes;  // out
  void* holder;                       // out
  void (*free)(void* holder);         // out
};
struct DeviceCreateAsyncTrackingEventArgs : Head {
  Device* device;
  Text description;
  TrackingEvent* event;  // out
};
struct AsyncTrackingEventDestroyArgs : Head {
  TrackingEvent* event;
};

struct MemoryIdArgs : Head {
  Memory* memory;
  int id;  // out
};
using MemoryKindIdArgs = MemoryIdArgs;
struct MemoryTextArgs : Head {
  Memory* memory;
  Text text;  // out
};
using MemoryKindArgs = MemoryTextArgs;
using MemoryDebugStringArgs = MemoryTextArgs;
using MemoryToStringArgs = MemoryTextArgs;
struct MemoryAddressableByDevicesArgs : Head {
  Memory* memory;
  List<Device* const> devices;  // out
};

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

// ---- Buffers ----------------------------------------------------------------------------------

struct BufferDestroyArgs : Head {
  Buffer* buffer;
};
struct BufferElementTypeArgs : Head {
  Buffer* buffer;
  BufferType type;  // out
};
struct BufferDimensionsArgs : Head {
  Buffer* buffer;
  List<const int64_t> dims;  // out
};
using BufferUnpaddedDimensionsArgs = BufferDimensionsArgs;
struct BufferDynamicDimensionIndicesArgs : Head {
  Buffer* buffer;
  List<const size_t> dims;  // out
};
struct BufferGetMemoryLayoutArgs : Head {
  Buffer* buffer;
  LayoutText layout;  // out
};
struct BufferToHostBufferArgs : Head {
  Buffer* buffer;
  LayoutText* layout;
  void* to;
  size_t bytes;  // in and out
  Event* done;   // out
};
struct BufferOnDeviceSizeInBytesArgs : Head {
  Buffer* buffer;
  size_t bytes;  // out
};
struct BufferDeleteArgs : Head {
  Buffer* buffer;
};
struct BufferIsDeletedArgs : Head {
  Buffer* buffer;
  bool is_deleted;  // out
};
struct BufferCopyRawToHostArgs : Head {
  Buffer* buffer;
  void* to;
  int64_t offset;
  int64_t bytes;
  Event* done;  // out
};
struct CopyRawReady {
  size_t struct_size;
  void* user;
  Code code;
  Text message;
  void* to;
};
struct BufferCopyRawToHostFutureArgs : Head {
  Buffer* buffer;
  int64_t offset;
  int64_t bytes;
  Event* done;                         // out
  void* user;                          // out
  void (*ready)(CopyRawReady* place);  // out
};
struct BufferCopyToDeviceArgs : Head {
  Buffer* buffer;
  Device* device;
  Buffer* copy;  // out
};
struct BufferCopyToMemoryArgs : Head {
  Buffer* buffer;
  Memory* memory;
  Buffer* copy;  // out
};
struct BufferBitcastArgs : Head {
  Buffer* buffer;
  BufferType type;
  List<const int64_t> dims;
  LayoutText* layout;
  Buffer* made;  // out
};
struct BufferIsOnCpuArgs : Head {
  Buffer* buffer;
  bool is_on_cpu;  // out
};
struct BufferDeviceArgs : Head {
  Buffer* buffer;
  Device* device;  // out
};
struct BufferMemoryArgs : Head {
  Buffer* buffer;
  Memory* memory;  // out
};
struct BufferReadyEventArgs : Head {
  Buffer* buffer;
  Event* event;  // out
};
struct BufferUnsafePointerArgs : Head {
  Buffer* buffer;
  uintptr_t address;  // out
};
struct BufferReferenceArgs : Head {
  Buffer* buffer;
};
using BufferIncreaseExternalReferenceCountArgs = BufferReferenceArgs;
using BufferDecreaseExternalReferenceCountArgs = BufferReferenceArgs;
struct BufferOpaqueDeviceMemoryDataPointerArgs : Head {
  Buffer* buffer;
  void* data;  // out
};
struct DependencyReady {
  size_t struct_size;
  void* user;
  Code code;
  Text message;
};
struct BufferDonateWithControlDependencyArgs : Head {
  Buffer* buffer;
  void* user;                              // out
  void (*ready)(DependencyReady* result);  // out
  Buffer* made;                            // out
};

// ---- Streams, topologies, compilation without devices -----------------------------------------

struct CopyToDeviceStreamDestroyArgs : Head {
  CopyToDeviceStream* stream;
};
struct CopyToDeviceStreamAddChunkArgs : Head {
  CopyToDeviceStream* stream;
  void* chunk;
  Event* done;  // out
};
struct CopyToDeviceStreamBytesArgs : Head {
  CopyToDeviceStream* stream;
  int64_t bytes;  // out
};
using CopyToDeviceStreamTotalBytesArgs = CopyToDeviceStreamBytesArgs;
using CopyToDeviceStreamGranuleSizeArgs = CopyToDeviceStreamBytesArgs;
using CopyToDeviceStreamCurrentBytesArgs = CopyToDeviceStreamBytesArgs;

struct TopologyCreateArgs : Head {
  Text name;
  List<const NamedValue> options;
  Topology* topology;  // out
};
struct TopologyDestroyArgs : Head {
  Topology* topology;
};
struct TopologyTextArgs : Head {
  Topology* topology;
  Text text;  // out
};
using TopologyPlatformVersionArgs = TopologyTextArgs;
using TopologyPlatformNameArgs = TopologyTextArgs;
struct TopologyGetDeviceDescriptionsArgs : Head {
  Topology* topology;
  List<DeviceDescription* const> descriptions;  // out
};
struct TopologySerializeArgs : Head {
  Topology* topology;
  Text bytes;            // out
  Bytes* holder;         // out
  void (*free)(Bytes*);  // out
};
struct TopologyDeserializeArgs : Head {
  Text bytes;
  Topology* topology;  // out
};
struct TopologyAttributesArgs : Head {
  Topology* topology;
  List<const NamedValue> attributes;  // out
};
struct TopologyFingerprintArgs : Head {
  Topology* topology;
  uint64_t fingerprint;  // out
};
struct TopologyMakeCanonicalShapeForMemorySpaceArgs : Head {
  Topology* topology;
  int memory_kind;
  List<const int64_t> dims;
  BufferType type;
  const LayoutText* layout;
  Text shape;                 // out: a ShapeProto
  void (*free)(const char*);  // out
};
struct TopologyGetMemorySpaceKindIdsArgs : Head {
  Topology* topology;
  List<const int> kinds;  // out
};
struct CompileArgs : Head {
  Topology* topology;
  const ProgramText* program;
  Text options;
  Client* client;
  Executable* executable;  // out
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

// ---- The table --------------------------------------------------------------------------------

struct ApiVersion {
  Head head;
  int major;
  int minor;
};
struct Api {
  Head head;
  ApiVersion version;
#define LAMELLA_PJRT_FIRST(Name, name) void (*name)(Name##Args*);
#define LAMELLA_PJRT(Name, name) Error* (*name)(Name##Args*);
#include "lamella/pjrt/functions.def"
};

// Whether the caller's struct reaches beyond the field: has(args, &args->field).
template <class Args, class Field>
bool has(const Args* args, const Field* field) {
  auto end = reinterpret_cast<const char*>(field + 1) - reinterpret_cast<const char*>(args);
  return static_cast<size_t>(end) <= reinterpret_cast<const Head*>(args)->struct_size;
}
// A size leaves out the padding behind the last field.
template <class Args>
inline constexpr size_t least_size = sizeof(Args) - 7;
template <>
inline constexpr size_t least_size<ClientCreateArgs> = 64;
template <>
inline constexpr size_t least_size<ClientCreateErrorBufferArgs> = 88;
template <>
inline constexpr size_t least_size<ClientCreateViewOfDeviceBufferArgs> = 104;
template <>
inline constexpr size_t least_size<DeviceMemoryStatsArgs> = 185;
template <>
inline constexpr size_t least_size<DevicePoisonExecutionArgs> = 49;
template <>
inline constexpr size_t least_size<ExecutableGetCompiledMemoryStatsArgs> = 64;
template <>
inline constexpr size_t least_size<ExecutableDeserializeAndLoadArgs> = 48;

}  // namespace lamella::pjrt
