// The binary interface of PJRT: errors, events, the client and its devices.
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

}  // namespace lamella::pjrt
