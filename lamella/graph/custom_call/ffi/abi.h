// The binary interface of XLA's typed custom calls: the structs that handlers and the runtime
// exchange.
//
// Note [The typed interface]
//   A handler is a C function that takes a call frame: arguments, results, attributes, a context,
//   and a table of functions that call back into the runtime. Handlers are compiled against XLA's
//   own headers, so sizes, offsets and numbers here equal those of XLA's version 0.3; a test
//   compiles both and compares. Three rules hold for all structs:
//   - Every struct begins with its size, as known to the side that made it. An older struct lacks
//     the last fields of a newer one; fields beyond a struct's size are neither read nor written. A
//     call frame's size ends before `future`, and handlers compare it for equality, so it must not
//     grow.
//   - The receiver of an error owns it and destroys it: the runtime owns errors that handlers
//     return, and a handler owns errors that the table's functions return. NULL is success. An
//     error passed to future_set_error becomes the runtime's.
//   - All parts of a call frame belong to the runtime. They are valid until the handler returns or,
//     if it returned a future, until the future is completed.
//   The runtime supports handlers of versions 0.1 to 0.3. Up to 0.2 the arguments of state_set and
//   state_get had no `stage`: their size is smaller, and the stage is then `instantiate`.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lamella::hlo::ffi {

inline constexpr int api_major = 0;
inline constexpr int api_minor = 3;
inline constexpr int oldest_api_minor = 1;

struct Api;
struct InternalApi;       // XLA's internal interface; NULL here
struct HandlerError;      // a code and a message; made by error_create
struct Future;            // completion of work that continues after a handler has returned
struct ExecutionContext;  // one call of one instruction; an argument of the table's functions
struct CallFrame;

// The size of a struct up to and including the field `last`.
#define LAMELLA_FFI_SIZE(Struct, last) (offsetof(Struct, last) + sizeof(Struct::last))

// ---- Extensions -------------------------------------------------------------------------------

enum class ExtensionType : uint32_t { Metadata = 1 };
struct ExtensionBase {
  size_t struct_size;
  ExtensionType type;
  ExtensionBase* next;
};

struct ApiVersion {
  size_t struct_size;
  ExtensionBase* extension_start;
  int major_version;
  int minor_version;
};

// ---- Values -----------------------------------------------------------------------------------

// The numbers are those of ElementType (hlo/element_type.def); 0 is invalid.
enum class DataType : uint32_t { Invalid = 0 };

// A dense array in the layout that the instruction states, by default row-major; `dims` are in
// logical order. A token has the type TOKEN, no dimensions and no data.
struct Buffer {
  size_t struct_size;
  ExtensionBase* extension_start;
  DataType dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};
enum class ArgType : uint32_t { Buffer = 1 };
enum class RetType : uint32_t { Buffer = 1 };
enum class AttrType : uint32_t { Array = 1, Dictionary = 2, Scalar = 3, String = 4 };

// A string without a terminating zero.
struct ByteSpan {
  const char* ptr;
  size_t len;
};
struct Scalar {
  DataType dtype;
  void* value;
};
struct Array {
  DataType dtype;
  size_t size;  // in elements
  void* data;
};

// ---- Call frame -------------------------------------------------------------------------------

// When a handler is called. Instantiate: once per instruction when the module is compiled, without
// arguments and results. Prepare and Initialize: before each run, with buffers that have no data.
enum class Stage : uint32_t { Instantiate = 0, Prepare = 1, Initialize = 2, Execute = 3 };

struct Args {
  size_t struct_size;
  ExtensionBase* extension_start;
  int64_t size;
  ArgType* types;
  void** args;  // Buffer*
};
struct Rets {
  size_t struct_size;
  ExtensionBase* extension_start;
  int64_t size;
  RetType* types;
  void** rets;  // Buffer*
};
// Attributes, sorted bytewise by name. `attrs` holds an Array* for an array, an Attrs* for a
// dictionary, a Scalar* for a scalar, and a ByteSpan* for a string.
struct Attrs {
  size_t struct_size;
  ExtensionBase* extension_start;
  int64_t size;
  AttrType* types;
  ByteSpan** names;
  void** attrs;
};
struct CallFrame {
  size_t struct_size;  // call_frame_size
  // If this is a Metadata extension, the handler only fills it in and returns.
  ExtensionBase* extension_start;
  const Api* api;
  ExecutionContext* ctx;
  Stage stage;
  Args args;
  Rets rets;
  Attrs attrs;
  Future* future;  // out: set if work continues after the return
};
inline constexpr size_t call_frame_size = LAMELLA_FFI_SIZE(CallFrame, attrs);

// ---- Handlers ---------------------------------------------------------------------------------

using Handler = HandlerError*(CallFrame* call_frame);
// The handlers of the stages; only `execute` is required.
struct HandlerBundle {
  Handler* instantiate;
  Handler* prepare;
  Handler* initialize;
  Handler* execute;
};
// The handler always enqueues the same device operations, so a recorded call may be replayed.
inline constexpr uint32_t trait_command_buffer_compatible = 1u << 0;

struct TypeId {
  int64_t type_id;  // 0: not registered
};
struct TypeInfo {
  size_t struct_size;
  ExtensionBase* extension_start;
  void (*deleter)(void* object);
};
// A handler's description of itself.
struct Metadata {
  size_t struct_size;  // metadata_size
  ApiVersion api_version;
  uint32_t traits;
  TypeId state_type_id;  // of the state that it makes; 0 if it makes none
};
inline constexpr size_t metadata_size = LAMELLA_FFI_SIZE(Metadata, traits);
struct MetadataExtension {
  ExtensionBase extension_base;
  Metadata* metadata;
};

// ---- Functions of the runtime -----------------------------------------------------------------

// The canonical status codes of gRPC and Abseil.
enum class ErrorCode : uint32_t {
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

struct ErrorCreateArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  const char* message;  // copied
  ErrorCode errc;
};
struct ErrorGetMessageArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  HandlerError* error;
  const char* message;  // out: lives as long as the error
};
struct ErrorDestroyArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  HandlerError* error;
};
struct HandlerRegisterArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ByteSpan name;
  ByteSpan platform;  // "Host" or "cpu"; "CUDA" or "gpu"
  HandlerBundle bundle;
  uint32_t traits;
};
// Registers a type of states or user data. A *type_id of 0 asks for a new number; any other number
// must be unused, or be the one that the name has already.
struct TypeRegisterArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ByteSpan name;
  TypeId* type_id;            // in and out
  const TypeInfo* type_info;  // copied; absent before version 0.2
};
struct ExecutionContextGetArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  TypeId* type_id;
  void* data;  // out
};
// The runtime takes ownership of the state and deletes it with the type's deleter.
struct StateSetArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  Stage stage;
  TypeId* type_id;
  void* state;
};
struct StateGetArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  Stage stage;
  TypeId* type_id;
  void* state;  // out
};
// The arguments of state_set and state_get in versions up to 0.2.
struct OldStateArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  TypeId* type_id;
  void* state;
};
struct StreamGetArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  void* stream;  // out: a CUstream
};
struct DeviceMemoryAllocateArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  size_t size;
  size_t alignment;
  void* data;  // out
};
struct DeviceMemoryFreeArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  size_t size;
  void* data;
};
using Task = void(void* data);
struct ThreadPoolScheduleArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  Task* task;
  void* data;
};
struct ThreadPoolNumThreadsArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  int64_t* num_threads;  // out
};
struct FutureCreateArgs {
  size_t struct_size;  // future_create_size or more
  ExtensionBase* extension_start;
  Future* future;  // out
};
// The struct's size in the interface excludes the output field.
inline constexpr size_t future_create_size = LAMELLA_FFI_SIZE(FutureCreateArgs, extension_start);
struct FutureSetAvailableArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  Future* future;
};
struct FutureSetErrorArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  Future* future;
  HandlerError* error;  // the runtime takes ownership
};
struct RunIdGetArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  int64_t run_id;  // out
};
struct DeviceOrdinalGetArgs {
  size_t struct_size;
  ExtensionBase* extension_start;
  ExecutionContext* ctx;
  int32_t device_ordinal;  // out
};

struct Api {
  size_t struct_size;
  ExtensionBase* extension_start;
  ApiVersion api_version;
  const InternalApi* internal_api;
  HandlerError* (*error_create)(ErrorCreateArgs*);
  void (*error_get_message)(ErrorGetMessageArgs*);
  void (*error_destroy)(ErrorDestroyArgs*);
  HandlerError* (*handler_register)(HandlerRegisterArgs*);
  HandlerError* (*stream_get)(StreamGetArgs*);
  HandlerError* (*type_register)(TypeRegisterArgs*);
  HandlerError* (*execution_context_get)(ExecutionContextGetArgs*);
  HandlerError* (*state_set)(StateSetArgs*);
  HandlerError* (*state_get)(StateGetArgs*);
  HandlerError* (*device_memory_allocate)(DeviceMemoryAllocateArgs*);
  HandlerError* (*device_memory_free)(DeviceMemoryFreeArgs*);
  HandlerError* (*thread_pool_schedule)(ThreadPoolScheduleArgs*);
  HandlerError* (*thread_pool_num_threads)(ThreadPoolNumThreadsArgs*);
  HandlerError* (*future_create)(FutureCreateArgs*);
  HandlerError* (*future_set_available)(FutureSetAvailableArgs*);
  HandlerError* (*future_set_error)(FutureSetErrorArgs*);
  HandlerError* (*run_id_get)(RunIdGetArgs*);
  HandlerError* (*device_ordinal_get)(DeviceOrdinalGetArgs*);
};

}  // namespace lamella::hlo::ffi
