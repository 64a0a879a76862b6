// The structs of the typed interface against XLA's own headers from the jaxlib wheel: every size,
// offset and number.
#include <gtest/gtest.h>

#include "lamella/graph/custom_call/ffi/abi.h"
#include "lamella/graph/hlo/element_type.h"
#include "xla/ffi/api/c_api.h"

namespace lamella::hlo::ffi {

#define SAME_SIZE(ours, theirs)                            \
  static_assert(sizeof(ours) == sizeof(XLA_FFI_##theirs)); \
  static_assert(alignof(ours) == alignof(XLA_FFI_##theirs))
#define SAME_FIELD(ours, theirs, field)                                      \
  static_assert(offsetof(ours, field) == offsetof(XLA_FFI_##theirs, field)); \
  static_assert(sizeof(ours::field) == sizeof(XLA_FFI_##theirs::field))
#define SAME_FUNCTION(field, theirs) \
  static_assert(offsetof(Api, field) == offsetof(XLA_FFI_Api, XLA_FFI_##theirs))
#define SAME_NUMBER(ours, theirs) \
  static_assert(static_cast<unsigned>(ours) == static_cast<unsigned>(XLA_FFI_##theirs))

SAME_SIZE(ExtensionBase, Extension_Base);
SAME_FIELD(ExtensionBase, Extension_Base, struct_size);
SAME_FIELD(ExtensionBase, Extension_Base, type);
SAME_FIELD(ExtensionBase, Extension_Base, next);
SAME_SIZE(ApiVersion, Api_Version);
SAME_FIELD(ApiVersion, Api_Version, struct_size);
SAME_FIELD(ApiVersion, Api_Version, extension_start);
SAME_FIELD(ApiVersion, Api_Version, major_version);
SAME_FIELD(ApiVersion, Api_Version, minor_version);
SAME_SIZE(Buffer, Buffer);
SAME_FIELD(Buffer, Buffer, struct_size);
SAME_FIELD(Buffer, Buffer, extension_start);
SAME_FIELD(Buffer, Buffer, dtype);
SAME_FIELD(Buffer, Buffer, data);
SAME_FIELD(Buffer, Buffer, rank);
SAME_FIELD(Buffer, Buffer, dims);
SAME_SIZE(ByteSpan, ByteSpan);
SAME_FIELD(ByteSpan, ByteSpan, ptr);
SAME_FIELD(ByteSpan, ByteSpan, len);
SAME_SIZE(Scalar, Scalar);
SAME_FIELD(Scalar, Scalar, dtype);
SAME_FIELD(Scalar, Scalar, value);
SAME_SIZE(Array, Array);
SAME_FIELD(Array, Array, dtype);
SAME_FIELD(Array, Array, size);
SAME_FIELD(Array, Array, data);
SAME_SIZE(Args, Args);
SAME_FIELD(Args, Args, struct_size);
SAME_FIELD(Args, Args, extension_start);
SAME_FIELD(Args, Args, size);
SAME_FIELD(Args, Args, types);
SAME_FIELD(Args, Args, args);
SAME_SIZE(Rets, Rets);
SAME_FIELD(Rets, Rets, struct_size);
SAME_FIELD(Rets, Rets, extension_start);
SAME_FIELD(Rets, Rets, size);
SAME_FIELD(Rets, Rets, types);
SAME_FIELD(Rets, Rets, rets);
SAME_SIZE(Attrs, Attrs);
SAME_FIELD(Attrs, Attrs, struct_size);
SAME_FIELD(Attrs, Attrs, extension_start);
SAME_FIELD(Attrs, Attrs, size);
SAME_FIELD(Attrs, Attrs, types);
SAME_FIELD(Attrs, Attrs, names);
SAME_FIELD(Attrs, Attrs, attrs);
SAME_SIZE(CallFrame, CallFrame);
SAME_FIELD(CallFrame, CallFrame, struct_size);
SAME_FIELD(CallFrame, CallFrame, extension_start);
SAME_FIELD(CallFrame, CallFrame, api);
SAME_FIELD(CallFrame, CallFrame, ctx);
SAME_FIELD(CallFrame, CallFrame, stage);
SAME_FIELD(CallFrame, CallFrame, args);
SAME_FIELD(CallFrame, CallFrame, rets);
SAME_FIELD(CallFrame, CallFrame, attrs);
SAME_FIELD(CallFrame, CallFrame, future);
SAME_SIZE(HandlerBundle, Handler_Bundle);
SAME_FIELD(HandlerBundle, Handler_Bundle, instantiate);
SAME_FIELD(HandlerBundle, Handler_Bundle, prepare);
SAME_FIELD(HandlerBundle, Handler_Bundle, initialize);
SAME_FIELD(HandlerBundle, Handler_Bundle, execute);
SAME_SIZE(TypeId, TypeId);
SAME_FIELD(TypeId, TypeId, type_id);
SAME_SIZE(TypeInfo, TypeInfo);
SAME_FIELD(TypeInfo, TypeInfo, struct_size);
SAME_FIELD(TypeInfo, TypeInfo, extension_start);
SAME_FIELD(TypeInfo, TypeInfo, deleter);
SAME_SIZE(Metadata, Metadata);
SAME_FIELD(Metadata, Metadata, struct_size);
SAME_FIELD(Metadata, Metadata, api_version);
SAME_FIELD(Metadata, Metadata, traits);
SAME_FIELD(Metadata, Metadata, state_type_id);
SAME_SIZE(MetadataExtension, Metadata_Extension);
SAME_FIELD(MetadataExtension, Metadata_Extension, extension_base);
SAME_FIELD(MetadataExtension, Metadata_Extension, metadata);
SAME_SIZE(ErrorCreateArgs, Error_Create_Args);
SAME_FIELD(ErrorCreateArgs, Error_Create_Args, struct_size);
SAME_FIELD(ErrorCreateArgs, Error_Create_Args, extension_start);
SAME_FIELD(ErrorCreateArgs, Error_Create_Args, message);
SAME_FIELD(ErrorCreateArgs, Error_Create_Args, errc);
SAME_SIZE(ErrorGetMessageArgs, Error_GetMessage_Args);
SAME_FIELD(ErrorGetMessageArgs, Error_GetMessage_Args, struct_size);
SAME_FIELD(ErrorGetMessageArgs, Error_GetMessage_Args, extension_start);
SAME_FIELD(ErrorGetMessageArgs, Error_GetMessage_Args, error);
SAME_FIELD(ErrorGetMessageArgs, Error_GetMessage_Args, message);
SAME_SIZE(ErrorDestroyArgs, Error_Destroy_Args);
SAME_FIELD(ErrorDestroyArgs, Error_Destroy_Args, struct_size);
SAME_FIELD(ErrorDestroyArgs, Error_Destroy_Args, extension_start);
SAME_FIELD(ErrorDestroyArgs, Error_Destroy_Args, error);
SAME_SIZE(HandlerRegisterArgs, Handler_Register_Args);
SAME_FIELD(HandlerRegisterArgs, Handler_Register_Args, struct_size);
SAME_FIELD(HandlerRegisterArgs, Handler_Register_Args, extension_start);
SAME_FIELD(HandlerRegisterArgs, Handler_Register_Args, name);
SAME_FIELD(HandlerRegisterArgs, Handler_Register_Args, platform);
SAME_FIELD(HandlerRegisterArgs, Handler_Register_Args, bundle);
SAME_FIELD(HandlerRegisterArgs, Handler_Register_Args, traits);
SAME_SIZE(TypeRegisterArgs, Type_Register_Args);
SAME_FIELD(TypeRegisterArgs, Type_Register_Args, struct_size);
SAME_FIELD(TypeRegisterArgs, Type_Register_Args, extension_start);
SAME_FIELD(TypeRegisterArgs, Type_Register_Args, name);
SAME_FIELD(TypeRegisterArgs, Type_Register_Args, type_id);
SAME_FIELD(TypeRegisterArgs, Type_Register_Args, type_info);
SAME_SIZE(ExecutionContextGetArgs, ExecutionContext_Get_Args);
SAME_FIELD(ExecutionContextGetArgs, ExecutionContext_Get_Args, struct_size);
SAME_FIELD(ExecutionContextGetArgs, ExecutionContext_Get_Args, extension_start);
SAME_FIELD(ExecutionContextGetArgs, ExecutionContext_Get_Args, ctx);
SAME_FIELD(ExecutionContextGetArgs, ExecutionContext_Get_Args, type_id);
SAME_FIELD(ExecutionContextGetArgs, ExecutionContext_Get_Args, data);
SAME_SIZE(StateSetArgs, State_Set_Args);
SAME_FIELD(StateSetArgs, State_Set_Args, struct_size);
SAME_FIELD(StateSetArgs, State_Set_Args, extension_start);
SAME_FIELD(StateSetArgs, State_Set_Args, ctx);
SAME_FIELD(StateSetArgs, State_Set_Args, stage);
SAME_FIELD(StateSetArgs, State_Set_Args, type_id);
SAME_FIELD(StateSetArgs, State_Set_Args, state);
SAME_SIZE(StateGetArgs, State_Get_Args);
SAME_FIELD(StateGetArgs, State_Get_Args, struct_size);
SAME_FIELD(StateGetArgs, State_Get_Args, extension_start);
SAME_FIELD(StateGetArgs, State_Get_Args, ctx);
SAME_FIELD(StateGetArgs, State_Get_Args, stage);
SAME_FIELD(StateGetArgs, State_Get_Args, type_id);
SAME_FIELD(StateGetArgs, State_Get_Args, state);
SAME_SIZE(StreamGetArgs, Stream_Get_Args);
SAME_FIELD(StreamGetArgs, Stream_Get_Args, struct_size);
SAME_FIELD(StreamGetArgs, Stream_Get_Args, extension_start);
SAME_FIELD(StreamGetArgs, Stream_Get_Args, ctx);
SAME_FIELD(StreamGetArgs, Stream_Get_Args, stream);
SAME_SIZE(DeviceMemoryAllocateArgs, DeviceMemory_Allocate_Args);
SAME_FIELD(DeviceMemoryAllocateArgs, DeviceMemory_Allocate_Args, struct_size);
SAME_FIELD(DeviceMemoryAllocateArgs, DeviceMemory_Allocate_Args, extension_start);
SAME_FIELD(DeviceMemoryAllocateArgs, DeviceMemory_Allocate_Args, ctx);
SAME_FIELD(DeviceMemoryAllocateArgs, DeviceMemory_Allocate_Args, size);
SAME_FIELD(DeviceMemoryAllocateArgs, DeviceMemory_Allocate_Args, alignment);
SAME_FIELD(DeviceMemoryAllocateArgs, DeviceMemory_Allocate_Args, data);
SAME_SIZE(DeviceMemoryFreeArgs, DeviceMemory_Free_Args);
SAME_FIELD(DeviceMemoryFreeArgs, DeviceMemory_Free_Args, struct_size);
SAME_FIELD(DeviceMemoryFreeArgs, DeviceMemory_Free_Args, extension_start);
SAME_FIELD(DeviceMemoryFreeArgs, DeviceMemory_Free_Args, ctx);
SAME_FIELD(DeviceMemoryFreeArgs, DeviceMemory_Free_Args, size);
SAME_FIELD(DeviceMemoryFreeArgs, DeviceMemory_Free_Args, data);
SAME_SIZE(ThreadPoolScheduleArgs, ThreadPool_Schedule_Args);
SAME_FIELD(ThreadPoolScheduleArgs, ThreadPool_Schedule_Args, struct_size);
SAME_FIELD(ThreadPoolScheduleArgs, ThreadPool_Schedule_Args, extension_start);
SAME_FIELD(ThreadPoolScheduleArgs, ThreadPool_Schedule_Args, ctx);
SAME_FIELD(ThreadPoolScheduleArgs, ThreadPool_Schedule_Args, task);
SAME_FIELD(ThreadPoolScheduleArgs, ThreadPool_Schedule_Args, data);
SAME_SIZE(ThreadPoolNumThreadsArgs, ThreadPool_NumThreads_Args);
SAME_FIELD(ThreadPoolNumThreadsArgs, ThreadPool_NumThreads_Args, struct_size);
SAME_FIELD(ThreadPoolNumThreadsArgs, ThreadPool_NumThreads_Args, extension_start);
SAME_FIELD(ThreadPoolNumThreadsArgs, ThreadPool_NumThreads_Args, ctx);
SAME_FIELD(ThreadPoolNumThreadsArgs, ThreadPool_NumThreads_Args, num_threads);
SAME_SIZE(FutureCreateArgs, Future_Create_Args);
SAME_FIELD(FutureCreateArgs, Future_Create_Args, struct_size);
SAME_FIELD(FutureCreateArgs, Future_Create_Args, extension_start);
SAME_FIELD(FutureCreateArgs, Future_Create_Args, future);
SAME_SIZE(FutureSetAvailableArgs, Future_SetAvailable_Args);
SAME_FIELD(FutureSetAvailableArgs, Future_SetAvailable_Args, struct_size);
SAME_FIELD(FutureSetAvailableArgs, Future_SetAvailable_Args, extension_start);
SAME_FIELD(FutureSetAvailableArgs, Future_SetAvailable_Args, future);
SAME_SIZE(FutureSetErrorArgs, Future_SetError_Args);
SAME_FIELD(FutureSetErrorArgs, Future_SetError_Args, struct_size);
SAME_FIELD(FutureSetErrorArgs, Future_SetError_Args, extension_start);
SAME_FIELD(FutureSetErrorArgs, Future_SetError_Args, future);
SAME_FIELD(FutureSetErrorArgs, Future_SetError_Args, error);
SAME_SIZE(RunIdGetArgs, RunId_Get_Args);
SAME_FIELD(RunIdGetArgs, RunId_Get_Args, struct_size);
SAME_FIELD(RunIdGetArgs, RunId_Get_Args, extension_start);
SAME_FIELD(RunIdGetArgs, RunId_Get_Args, ctx);
SAME_FIELD(RunIdGetArgs, RunId_Get_Args, run_id);
SAME_SIZE(DeviceOrdinalGetArgs, DeviceOrdinal_Get_Args);
SAME_FIELD(DeviceOrdinalGetArgs, DeviceOrdinal_Get_Args, struct_size);
SAME_FIELD(DeviceOrdinalGetArgs, DeviceOrdinal_Get_Args, extension_start);
SAME_FIELD(DeviceOrdinalGetArgs, DeviceOrdinal_Get_Args, ctx);
SAME_FIELD(DeviceOrdinalGetArgs, DeviceOrdinal_Get_Args, device_ordinal);
SAME_SIZE(Api, Api);
SAME_FIELD(Api, Api, struct_size);
SAME_FIELD(Api, Api, extension_start);
SAME_FIELD(Api, Api, api_version);
SAME_FIELD(Api, Api, internal_api);
SAME_FUNCTION(error_create, Error_Create);
SAME_FUNCTION(error_get_message, Error_GetMessage);
SAME_FUNCTION(error_destroy, Error_Destroy);
SAME_FUNCTION(handler_register, Handler_Register);
SAME_FUNCTION(stream_get, Stream_Get);
SAME_FUNCTION(type_register, Type_Register);
SAME_FUNCTION(execution_context_get, ExecutionContext_Get);
SAME_FUNCTION(state_set, State_Set);
SAME_FUNCTION(state_get, State_Get);
SAME_FUNCTION(device_memory_allocate, DeviceMemory_Allocate);
SAME_FUNCTION(device_memory_free, DeviceMemory_Free);
SAME_FUNCTION(thread_pool_schedule, ThreadPool_Schedule);
SAME_FUNCTION(thread_pool_num_threads, ThreadPool_NumThreads);
SAME_FUNCTION(future_create, Future_Create);
SAME_FUNCTION(future_set_available, Future_SetAvailable);
SAME_FUNCTION(future_set_error, Future_SetError);
SAME_FUNCTION(run_id_get, RunId_Get);
SAME_FUNCTION(device_ordinal_get, DeviceOrdinal_Get);

// Sizes as each side writes them at the beginning of a struct.
SAME_NUMBER(call_frame_size, CallFrame_STRUCT_SIZE);
SAME_NUMBER(metadata_size, Metadata_STRUCT_SIZE);
SAME_NUMBER(future_create_size, Future_Create_Args_STRUCT_SIZE);
SAME_NUMBER(sizeof(Api), Api_STRUCT_SIZE);
SAME_NUMBER(LAMELLA_FFI_SIZE(Buffer, dims), Buffer_STRUCT_SIZE);
SAME_NUMBER(LAMELLA_FFI_SIZE(Args, args), Args_STRUCT_SIZE);
SAME_NUMBER(LAMELLA_FFI_SIZE(Rets, rets), Rets_STRUCT_SIZE);
SAME_NUMBER(LAMELLA_FFI_SIZE(Attrs, attrs), Attrs_STRUCT_SIZE);
SAME_NUMBER(LAMELLA_FFI_SIZE(ErrorCreateArgs, errc), Error_Create_Args_STRUCT_SIZE);
SAME_NUMBER(LAMELLA_FFI_SIZE(HandlerRegisterArgs, traits), Handler_Register_Args_STRUCT_SIZE);
SAME_NUMBER(LAMELLA_FFI_SIZE(TypeRegisterArgs, type_id), Type_Register_Args_STRUCT_SIZE);
SAME_NUMBER(LAMELLA_FFI_SIZE(DeviceOrdinalGetArgs, device_ordinal),
            DeviceOrdinal_Get_Args_STRUCT_SIZE);
SAME_NUMBER(sizeof(MetadataExtension), Metadata_Extension_STRUCT_SIZE);

SAME_NUMBER(api_major, API_MAJOR);
SAME_NUMBER(api_minor, API_MINOR);
SAME_NUMBER(trait_command_buffer_compatible, HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE);
SAME_NUMBER(ExtensionType::Metadata, Extension_Metadata);
SAME_NUMBER(ArgType::Buffer, ArgType_BUFFER);
SAME_NUMBER(RetType::Buffer, RetType_BUFFER);
SAME_NUMBER(AttrType::Array, AttrType_ARRAY);
SAME_NUMBER(AttrType::Dictionary, AttrType_DICTIONARY);
SAME_NUMBER(AttrType::Scalar, AttrType_SCALAR);
SAME_NUMBER(AttrType::String, AttrType_STRING);
SAME_NUMBER(Stage::Instantiate, ExecutionStage_INSTANTIATE);
SAME_NUMBER(Stage::Prepare, ExecutionStage_PREPARE);
SAME_NUMBER(Stage::Initialize, ExecutionStage_INITIALIZE);
SAME_NUMBER(Stage::Execute, ExecutionStage_EXECUTE);
SAME_NUMBER(ErrorCode::Ok, Error_Code_OK);
SAME_NUMBER(ErrorCode::Cancelled, Error_Code_CANCELLED);
SAME_NUMBER(ErrorCode::Unknown, Error_Code_UNKNOWN);
SAME_NUMBER(ErrorCode::InvalidArgument, Error_Code_INVALID_ARGUMENT);
SAME_NUMBER(ErrorCode::DeadlineExceeded, Error_Code_DEADLINE_EXCEEDED);
SAME_NUMBER(ErrorCode::NotFound, Error_Code_NOT_FOUND);
SAME_NUMBER(ErrorCode::AlreadyExists, Error_Code_ALREADY_EXISTS);
SAME_NUMBER(ErrorCode::PermissionDenied, Error_Code_PERMISSION_DENIED);
SAME_NUMBER(ErrorCode::ResourceExhausted, Error_Code_RESOURCE_EXHAUSTED);
SAME_NUMBER(ErrorCode::FailedPrecondition, Error_Code_FAILED_PRECONDITION);
SAME_NUMBER(ErrorCode::Aborted, Error_Code_ABORTED);
SAME_NUMBER(ErrorCode::OutOfRange, Error_Code_OUT_OF_RANGE);
SAME_NUMBER(ErrorCode::Unimplemented, Error_Code_UNIMPLEMENTED);
SAME_NUMBER(ErrorCode::Internal, Error_Code_INTERNAL);
SAME_NUMBER(ErrorCode::Unavailable, Error_Code_UNAVAILABLE);
SAME_NUMBER(ErrorCode::DataLoss, Error_Code_DATA_LOSS);
SAME_NUMBER(ErrorCode::Unauthenticated, Error_Code_UNAUTHENTICATED);
SAME_NUMBER(ElementType::PRED, DataType_PRED);
SAME_NUMBER(ElementType::S1, DataType_S1);
SAME_NUMBER(ElementType::S2, DataType_S2);
SAME_NUMBER(ElementType::S4, DataType_S4);
SAME_NUMBER(ElementType::S8, DataType_S8);
SAME_NUMBER(ElementType::S16, DataType_S16);
SAME_NUMBER(ElementType::S32, DataType_S32);
SAME_NUMBER(ElementType::S64, DataType_S64);
SAME_NUMBER(ElementType::U1, DataType_U1);
SAME_NUMBER(ElementType::U2, DataType_U2);
SAME_NUMBER(ElementType::U4, DataType_U4);
SAME_NUMBER(ElementType::U8, DataType_U8);
SAME_NUMBER(ElementType::U16, DataType_U16);
SAME_NUMBER(ElementType::U32, DataType_U32);
SAME_NUMBER(ElementType::U64, DataType_U64);
SAME_NUMBER(ElementType::F16, DataType_F16);
SAME_NUMBER(ElementType::F32, DataType_F32);
SAME_NUMBER(ElementType::F64, DataType_F64);
SAME_NUMBER(ElementType::BF16, DataType_BF16);
SAME_NUMBER(ElementType::C64, DataType_C64);
SAME_NUMBER(ElementType::C128, DataType_C128);
SAME_NUMBER(ElementType::TOKEN, DataType_TOKEN);
SAME_NUMBER(ElementType::F8E5M2, DataType_F8E5M2);
SAME_NUMBER(ElementType::F8E3M4, DataType_F8E3M4);
SAME_NUMBER(ElementType::F8E4M3, DataType_F8E4M3);
SAME_NUMBER(ElementType::F8E4M3FN, DataType_F8E4M3FN);
SAME_NUMBER(ElementType::F8E4M3B11FNUZ, DataType_F8E4M3B11FNUZ);
SAME_NUMBER(ElementType::F8E5M2FNUZ, DataType_F8E5M2FNUZ);
SAME_NUMBER(ElementType::F8E4M3FNUZ, DataType_F8E4M3FNUZ);
SAME_NUMBER(ElementType::F4E2M1FN, DataType_F4E2M1FN);
SAME_NUMBER(ElementType::F8E8M0FNU, DataType_F8E8M0FNU);

// What is compared above is compared by the compiler; this says that it was.
TEST(FfiAbi, MatchesTheHeadersOfJaxlib) { EXPECT_EQ(sizeof(Api), sizeof(XLA_FFI_Api)); }

}  // namespace lamella::hlo::ffi
