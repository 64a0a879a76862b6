// The functions that the runtime provides to handlers.
#include "lamella/graph/custom_call/ffi/runtime.h"

#include <cstdlib>
#include <new>

#include "lamella/abi/abi.h"
#include "lamella/core/error.h"
#include "lamella/graph/custom_call/ffi/registration.h"
#include "lamella/graph/custom_call/ffi/thread_pool.h"
#include "lamella/graph/hlo/status_code.h"

namespace lamella::hlo::ffi {
namespace {

template <class... Parts>
LAMELLA_COLD HandlerError* error(ErrorCode code, const Parts&... parts) {
  return new HandlerError{code, str(parts...)};
}
// Returns NULL if the caller's struct has all fields that are read, otherwise an error.
HandlerError* check_size(const char* what, size_t expected, size_t got) {
  if (LAMELLA_LIKELY(got >= expected)) return nullptr;
  return error(ErrorCode::InvalidArgument, "expected ", what, " to have at least ", expected,
               " bytes, got ", got, "; this runtime has version ", api_major, ".", api_minor,
               " of the interface");
}
#define LAMELLA_FFI_CHECK_SIZE(args, Struct, last)                                  \
  if (HandlerError* wrong =                                                         \
          check_size(#Struct, LAMELLA_FFI_SIZE(Struct, last), (args)->struct_size); \
      LAMELLA_UNLIKELY(wrong != nullptr))                                           \
  return wrong

HandlerError* error_create(ErrorCreateArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, ErrorCreateArgs, errc);
  return error(args->errc, args->message != nullptr ? args->message : "");
}
void error_get_message(ErrorGetMessageArgs* args) { args->message = args->error->message.c_str(); }
void error_destroy(ErrorDestroyArgs* args) { delete args->error; }

HandlerError* handler_register(HandlerRegisterArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, HandlerRegisterArgs, traits);
  return register_from_table(*args);
}
HandlerError* type_register(TypeRegisterArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, TypeRegisterArgs, type_id);
  try {
    const TypeInfo* info = args->type_info;
    register_type(text_of(args->name), &args->type_id->type_id,
                  info != nullptr ? info->deleter : nullptr);
    return nullptr;
  } catch (const std::exception& e) {
    return error(ErrorCode::InvalidArgument, e.what());
  }
}

HandlerError* no_run(const char* what) {
  return error(ErrorCode::FailedPrecondition, "expected ", what,
               " to be asked for during a run, got a call that is being instantiated");
}
HandlerError* stream_get(StreamGetArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, StreamGetArgs, stream);
  if (args->ctx->run == nullptr) return no_run("the stream");
  if (args->ctx->run->stream == nullptr) {
    return error(ErrorCode::Unimplemented, "expected a platform with streams, got the host");
  }
  args->stream = args->ctx->run->stream;
  return nullptr;
}
HandlerError* execution_context_get(ExecutionContextGetArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, ExecutionContextGetArgs, data);
  if (args->ctx->run == nullptr) return no_run("user data");
  const UserData* user_data = args->ctx->run->user_data;
  void* found = user_data != nullptr ? user_data->find(args->type_id->type_id) : nullptr;
  if (found == nullptr) {
    return error(ErrorCode::NotFound, "expected user data of type ", args->type_id->type_id,
                 " in the execution context, got none");
  }
  args->data = found;
  return nullptr;
}

// Finds the state of a stage, or returns an error.
HandlerError* state_of(ExecutionContext* ctx, Stage stage, State** state) {
  auto at = static_cast<size_t>(stage);
  *state = at < 3 ? ctx->states[at] : nullptr;
  if (*state != nullptr) return nullptr;
  constexpr const char* names[] = {"instantiate", "prepare", "initialize", "execute"};
  return error(ErrorCode::FailedPrecondition, "expected a stage that keeps a state, got ",
               at < 4 ? names[at] : "an unknown one",
               at < 3 ? ", whose handler is missing or has not run yet" : "");
}
HandlerError* set_state(ExecutionContext* ctx, Stage stage, TypeId* type, void* object) {
  State* state = nullptr;
  if (HandlerError* wrong = state_of(ctx, stage, &state)) return wrong;
  Deleter deleter = nullptr;
  if (!find_type(type->type_id, &deleter)) {
    return error(ErrorCode::NotFound, "expected the state's type to be registered, got number ",
                 type->type_id);
  }
  if (state->is_set()) {
    if (deleter != nullptr) deleter(object);
    return error(ErrorCode::FailedPrecondition,
                 "expected the state to be set once in a stage, got another");
  }
  state->set(type->type_id, object, deleter);
  return nullptr;
}
HandlerError* get_state(ExecutionContext* ctx, Stage stage, TypeId* type, void** object) {
  State* state = nullptr;
  if (HandlerError* wrong = state_of(ctx, stage, &state)) return wrong;
  if (!state->is_set()) {
    return error(ErrorCode::NotFound, "expected the state to be set, got none");
  }
  if (state->type() != type->type_id) {
    return error(ErrorCode::InvalidArgument, "expected a state of type ", type->type_id,
                 ", got one of type ", state->type());
  }
  *object = state->object();
  return nullptr;
}
// Callers of versions up to 0.2 pass no stage; it is then the first one.
constexpr size_t old_state_size = LAMELLA_FFI_SIZE(OldStateArgs, state);
HandlerError* state_set(StateSetArgs* args) {
  if (args->struct_size == old_state_size) {
    auto* old = reinterpret_cast<OldStateArgs*>(args);
    return set_state(old->ctx, Stage::Instantiate, old->type_id, old->state);
  }
  LAMELLA_FFI_CHECK_SIZE(args, StateSetArgs, state);
  return set_state(args->ctx, args->stage, args->type_id, args->state);
}
HandlerError* state_get(StateGetArgs* args) {
  if (args->struct_size == old_state_size) {
    auto* old = reinterpret_cast<OldStateArgs*>(args);
    return get_state(old->ctx, Stage::Instantiate, old->type_id, &old->state);
  }
  LAMELLA_FFI_CHECK_SIZE(args, StateGetArgs, state);
  return get_state(args->ctx, args->stage, args->type_id, &args->state);
}

HandlerError* device_memory_allocate(DeviceMemoryAllocateArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, DeviceMemoryAllocateArgs, data);
  size_t alignment = args->alignment;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    return error(ErrorCode::InvalidArgument, "expected an alignment that is a power of two, got ",
                 alignment);
  }
  args->data = nullptr;
  if (CudaDevice* device = args->ctx->device) {
    constexpr size_t most = 256;
    if (alignment > most) {
      return error(ErrorCode::InvalidArgument, "expected an alignment of at most ", most, ", got ",
                   alignment);
    }
    try {
      CudaDevice::Scope scope(*device);
      args->data = reinterpret_cast<void*>(device->allocate(args->size));
      return nullptr;
    } catch (const std::exception& e) {
      return error(ErrorCode::ResourceExhausted, e.what());
    }
  }
  if (alignment < 64) alignment = 64;
  if (args->size == 0) return nullptr;
  if (posix_memalign(&args->data, alignment, args->size) != 0) {
    args->data = nullptr;
    return error(ErrorCode::ResourceExhausted, "expected memory for ", args->size,
                 " bytes, got none");
  }
  return nullptr;
}
HandlerError* device_memory_free(DeviceMemoryFreeArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, DeviceMemoryFreeArgs, data);
  CudaDevice* device = args->ctx->device;
  if (device == nullptr) {
    std::free(args->data);
  } else if (args->data != nullptr) {
    CudaDevice::Scope scope(*device);
    device->free(reinterpret_cast<uintptr_t>(args->data));
  }
  return nullptr;
}

HandlerError* thread_pool_schedule(ThreadPoolScheduleArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, ThreadPoolScheduleArgs, data);
  schedule(args->task, args->data);
  return nullptr;
}
HandlerError* thread_pool_num_threads(ThreadPoolNumThreadsArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, ThreadPoolNumThreadsArgs, num_threads);
  *args->num_threads = thread_pool_size();
  return nullptr;
}

HandlerError* future_create(FutureCreateArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, FutureCreateArgs, extension_start);
  args->future = new Future;
  return nullptr;
}
HandlerError* complete(Future* future, HandlerError* with) {
  std::unique_ptr<HandlerError> held(with);
  std::lock_guard<std::mutex> lock(future->mutex);
  if (future->completed) {
    return error(ErrorCode::FailedPrecondition, "expected the future to be completed once");
  }
  future->completed = true;
  future->error = std::move(held);
  // Notifies under the lock, because the waiting thread destroys the future after it gets the lock.
  future->changed.notify_all();
  return nullptr;
}
HandlerError* future_set_available(FutureSetAvailableArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, FutureSetAvailableArgs, future);
  return complete(args->future, nullptr);
}
HandlerError* future_set_error(FutureSetErrorArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, FutureSetErrorArgs, error);
  if (args->error == nullptr || args->error->code == ErrorCode::Ok) {
    delete args->error;
    return error(ErrorCode::InvalidArgument, "expected the error of a future, got a success");
  }
  return complete(args->future, args->error);
}

HandlerError* run_id_get(RunIdGetArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, RunIdGetArgs, run_id);
  if (args->ctx->run == nullptr) return no_run("the run's number");
  args->run_id = args->ctx->run->run_id;
  return nullptr;
}
HandlerError* device_ordinal_get(DeviceOrdinalGetArgs* args) {
  LAMELLA_FFI_CHECK_SIZE(args, DeviceOrdinalGetArgs, device_ordinal);
  if (args->ctx->run == nullptr) return no_run("the device");
  args->device_ordinal = args->ctx->run->device_ordinal;
  return nullptr;
}

constexpr Api table = {
    sizeof(Api),
    nullptr,
    {LAMELLA_FFI_SIZE(ApiVersion, minor_version), nullptr, api_major, api_minor},
    nullptr,
    error_create,
    error_get_message,
    error_destroy,
    handler_register,
    stream_get,
    type_register,
    execution_context_get,
    state_set,
    state_get,
    device_memory_allocate,
    device_memory_free,
    thread_pool_schedule,
    thread_pool_num_threads,
    future_create,
    future_set_available,
    future_set_error,
    run_id_get,
    device_ordinal_get,
};

}  // namespace

const Api* api() { return &table; }

std::string take_message(HandlerError* error) {
  std::unique_ptr<HandlerError> held(error);
  return str(status_code_name(static_cast<int>(held->code)), held->message.empty() ? "" : ": ",
             held->message);
}

std::unique_ptr<HandlerError> await(Future* future) {
  std::unique_ptr<Future> held(future);
  std::unique_lock<std::mutex> lock(future->mutex);
  future->changed.wait(lock, [&] { return future->completed; });
  std::unique_ptr<HandlerError> error = std::move(future->error);
  lock.unlock();
  return error;
}

}  // namespace lamella::hlo::ffi

// Handlers that register themselves get the table through these functions.
extern "C" LAMELLA_ABI_API const lamella::hlo::ffi::Api* XLA_FFI_GetApi() {
  return lamella::hlo::ffi::api();
}
namespace xla::ffi {
LAMELLA_ABI_API const lamella::hlo::ffi::Api* GetXlaFfiApi() { return lamella::hlo::ffi::api(); }
}  // namespace xla::ffi
