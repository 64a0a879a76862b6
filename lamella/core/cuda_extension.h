// What liblamella_cuda.so has for extensions that use CUDA's runtime. Functions return a status;
// the text of an error is lamella_error_text().
//
// Note [Extensions and CUDA's runtime]
//   A context of the driver holds a device's memory and streams. Lamella's is the device's primary
//   context, and so is that of CUDA's runtime: memory, streams and events of one are valid for the
//   other, and each extension may link the static runtime. The runtime launches in the context
//   that is current on the thread, which Lamella's functions leave as it was. So what makes a
//   device current, a guard or lamella.cuda.set_device(), makes its context current as well, and a
//   stream that is asked for is one of the context that is current then.
#pragma once
#include "lamella/abi/abi.h"

#define LAMELLA_CUDA_API extern "C" __attribute__((visibility("default"))) lamella_status

// Makes the context of a device the current one of this thread.
LAMELLA_CUDA_API lamella_cuda_enter(int device);
// The runtime's handle of a stream, and the number of a stream that another library made.
LAMELLA_CUDA_API lamella_cuda_stream_handle(int device, int64_t stream, int64_t* handle);
LAMELLA_CUDA_API lamella_cuda_external_stream(int device, int64_t handle, int64_t* stream);
LAMELLA_CUDA_API lamella_cuda_priority_range(int device, int* least, int* greatest);
// Memory of the caching allocator, which serves the stream until it is freed.
LAMELLA_CUDA_API lamella_cuda_allocate(int device, int64_t stream, size_t bytes, void** data);
LAMELLA_CUDA_API lamella_cuda_free(void* data);
LAMELLA_CUDA_API lamella_cuda_record_stream(void* data, int device, int64_t stream);
LAMELLA_CUDA_API lamella_cuda_empty_cache();
LAMELLA_CUDA_API lamella_cuda_memory_info(int device, int64_t* free_and_total);
LAMELLA_CUDA_API lamella_cuda_can_access_peer(int device, int peer, int* can);
// Notes a launch for the text of an error that is reported later; waits for it under
// LAMELLA_CUDA_BLOCKING=1. `name` must live on.
LAMELLA_CUDA_API lamella_cuda_launched(const char* name);
