// The binary interface of PJRT: topologies, and the table of functions.
#pragma once
#include "lamella/pjrt/c_api_executables.h"

namespace lamella::pjrt {

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

// Sizes leave out the padding behind the last field.
inline constexpr size_t kMostPadding = 7;
// Whether the caller's struct reaches beyond the field: has(args, &args->field).
template <class Args, class Field>
bool has(const Args* args, const Field* field) {
  auto end = reinterpret_cast<const char*>(field + 1) - reinterpret_cast<const char*>(args);
  return static_cast<size_t>(end) <=
         reinterpret_cast<const Head*>(args)->struct_size + kMostPadding;
}
template <class Args>
inline constexpr size_t least_size = sizeof(Args) - kMostPadding;
template <>
inline constexpr size_t least_size<ClientCreateArgs> = 64;
template <>
inline constexpr size_t least_size<ClientCreateErrorBufferArgs> = 96;
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
