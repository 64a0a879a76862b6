// The binary interface of PJRT: arguments of functions on buffers.
#pragma once
#include "lamella/pjrt/c_api_base.h"

namespace lamella::pjrt {

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

}  // namespace lamella::pjrt
