// A fake NCCL and CUDA runtime for machines without a GPU. Devices "cuda" have host memory, their
// operators run on the CPU, and collectives are MPI's. Launches are recorded with their stream, for
// tests to read.
#include <mpi.h>
#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "lamella/backend.h"
#include "lamella/lamella.h"

struct ncclComm {
  MPI_Comm comm;
};
struct CUstream_st {
  int number;
};
struct CUevent_st {
  int stream = -1;  // that it was recorded in
};

namespace {

using lamella::DeviceIndex;

std::string launched;
int devices = 2;
int last_stream = 0;
int last_id = 0;

void note(const std::string& what, cudaStream_t stream) {
  launched += what + "@" + std::to_string(stream == nullptr ? 0 : stream->number) + " ";
}

struct Fake {
  void* allocate(size_t bytes, DeviceIndex, void**) { return std::malloc(bytes == 0 ? 1 : bytes); }
  void deallocate(void* data, size_t, DeviceIndex, void*) { std::free(data); }
  void copy(lamella_place to, lamella_place from, size_t bytes, bool) {
    std::memcpy(to.data, from.data, bytes);
  }
  DeviceIndex device_count() { return 2; }
  DeviceIndex current_device() { return current; }
  void set_device(DeviceIndex device) { current = device; }
  DeviceIndex current = 0;
} fake;
LAMELLA_REGISTER_BACKEND(CUDA, "cuda", fake)

LAMELLA_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(lamella::CppFunction::makeFromBoxedFunction<&lamella::cpu_fallback>());
}

MPI_Datatype mpi_type(ncclDataType_t type) {
  constexpr int kCount = 9;
  const MPI_Datatype types[kCount] = {MPI_INT8_T,   MPI_UINT8_T, MPI_INT32_T,
                                      MPI_UINT32_T, MPI_INT64_T, MPI_UINT64_T,
                                      MPI_UINT16_T, MPI_FLOAT,   MPI_DOUBLE};
  return type < kCount ? types[type] : MPI_UINT16_T;
}
size_t width(ncclDataType_t type) {
  int size = 0;
  MPI_Type_size(mpi_type(type), &size);
  return static_cast<size_t>(size);
}

// MPI has no 16-bit floats: all ranks' values are gathered and added up one after the other.
template <class T>
void reduce_small(const void* in, void* out, int count, ncclRedOp_t operation, MPI_Comm comm) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  std::vector<T> all(static_cast<size_t>(count) * static_cast<size_t>(ranks));
  MPI_Allgather(in, count, MPI_UINT16_T, all.data(), count, MPI_UINT16_T, comm);
  T* to = static_cast<T*>(out);
  for (int i = 0; i < count; ++i) {
    float value = static_cast<float>(all[static_cast<size_t>(i)]);
    for (int r = 1; r < ranks; ++r) {
      auto next = static_cast<float>(all[static_cast<size_t>(r * count + i)]);
      switch (operation) {
        case ncclProd:
          value *= next;
          break;
        case ncclMin:
          value = next < value ? next : value;
          break;
        case ncclMax:
          value = next > value ? next : value;
          break;
        default:
          value += next;
      }
      value = static_cast<float>(T(value));
    }
    if (operation == ncclAvg) value /= static_cast<float>(ranks);
    to[i] = T(value);
  }
}

ncclResult_t reduce(const void* in, void* out, size_t size, ncclDataType_t type,
                    ncclRedOp_t operation, MPI_Comm comm) {
  int count = static_cast<int>(size), ranks = 0;
  MPI_Comm_size(comm, &ranks);
  std::vector<char> copy(size * width(type));
  if (size != 0) std::memcpy(copy.data(), in, copy.size());
  if (type == ncclFloat16) {
    reduce_small<lamella::Half>(copy.data(), out, count, operation, comm);
    return ncclSuccess;
  }
  if (type == ncclBfloat16) {
    reduce_small<lamella::BFloat16>(copy.data(), out, count, operation, comm);
    return ncclSuccess;
  }
  const MPI_Op operations[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_SUM};
  MPI_Allreduce(copy.data(), out, count, mpi_type(type), operations[operation], comm);
  if (operation == ncclAvg) {
    if (type != ncclFloat32 && type != ncclFloat64) return ncclInvalidArgument;
    for (int i = 0; i < count; ++i) {
      if (type == ncclFloat32) static_cast<float*>(out)[i] /= static_cast<float>(ranks);
      if (type == ncclFloat64) static_cast<double*>(out)[i] /= ranks;
    }
  }
  return ncclSuccess;
}

// What was asked for since ncclGroupStart.
int depth = 0;
std::vector<MPI_Request> messages;
struct Later {
  const void* in;
  void* out;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t operation;
  int root;
  MPI_Comm comm;
};
std::vector<Later> reductions;

ncclResult_t finish_group() {
  MPI_Waitall(static_cast<int>(messages.size()), messages.data(), MPI_STATUSES_IGNORE);
  messages.clear();
  for (const Later& one : reductions) {
    int rank = 0;
    MPI_Comm_rank(one.comm, &rank);
    std::vector<char> out(one.count * width(one.type));
    ncclResult_t status = reduce(one.in, out.data(), one.count, one.type, one.operation, one.comm);
    if (status != ncclSuccess) return status;
    if (rank == one.root) std::memcpy(one.out, out.data(), out.size());
  }
  reductions.clear();
  return ncclSuccess;
}
ncclResult_t unless_grouped() { return depth == 0 ? finish_group() : ncclSuccess; }

}  // namespace

extern "C" {

// For tests: what was launched since the last call, and how many devices there are.
__attribute__((visibility("default"))) const char* fake_launched() {
  static std::string text;
  text = std::exchange(launched, "");
  return text.c_str();
}
__attribute__((visibility("default"))) void fake_set_devices(int count) { devices = count; }

#pragma GCC visibility push(default)
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "an error";
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices;
  return devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = fake.current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  fake.current = static_cast<DeviceIndex>(device);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st{++last_stream};
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  note("wait" + std::to_string(event->stream), stream);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->stream = stream == nullptr ? 0 : stream->number;
  note("record", stream);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

const char* ncclGetErrorString(ncclResult_t) { return "invalid argument"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  int numbers[2] = {0, ++last_id};
  MPI_Comm_rank(MPI_COMM_WORLD, &numbers[0]);
  std::memcpy(id->internal, numbers, sizeof(numbers));
  return ncclSuccess;
}
// Each rank sends its number to the rank that created the id, and receives those of all others.
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  int numbers[2], me = 0;
  std::memcpy(numbers, id.internal, sizeof(numbers));
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  std::vector<int> all(static_cast<size_t>(ranks));
  all[static_cast<size_t>(rank)] = me;
  int tag = 1000 + numbers[1];
  if (me == numbers[0]) {
    for (int r = 1; r < ranks; ++r) {
      int who[2];
      MPI_Recv(who, 2, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      all[static_cast<size_t>(who[0])] = who[1];
    }
    for (int other : all) {
      if (other != me) MPI_Send(all.data(), ranks, MPI_INT, other, tag, MPI_COMM_WORLD);
    }
  } else {
    int who[2] = {rank, me};
    MPI_Send(who, 2, MPI_INT, numbers[0], tag, MPI_COMM_WORLD);
    MPI_Recv(all.data(), ranks, MPI_INT, numbers[0], tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Group world, some;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, ranks, all.data(), &some);
  *comm = new ncclComm;
  MPI_Comm_create_group(MPI_COMM_WORLD, some, tag, &(*comm)->comm);
  MPI_Group_free(&some);
  MPI_Group_free(&world);
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  MPI_Comm_free(&comm->comm);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* error) {
  *error = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() { return --depth == 0 ? finish_group() : ncclSuccess; }
ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  note("all_reduce", stream);
  return reduce(in, out, count, type, operation, comm->comm);
}
ncclResult_t ncclReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t stream) {
  note("reduce", stream);
  reductions.push_back({in, out, count, type, operation, root, comm->comm});
  return unless_grouped();
}
ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  note("reduce_scatter", stream);
  int ranks = 0, rank = 0;
  MPI_Comm_size(comm->comm, &ranks);
  MPI_Comm_rank(comm->comm, &rank);
  size_t bytes = count * width(type);
  std::vector<char> all(bytes * static_cast<size_t>(ranks));
  ncclResult_t status =
      reduce(in, all.data(), count * static_cast<size_t>(ranks), type, operation, comm->comm);
  if (bytes != 0) std::memcpy(out, all.data() + bytes * static_cast<size_t>(rank), bytes);
  return status;
}
ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  note("all_gather", stream);
  MPI_Allgather(in, static_cast<int>(count), mpi_type(type), out, static_cast<int>(count),
                mpi_type(type), comm->comm);
  return ncclSuccess;
}
ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  note("broadcast", stream);
  int rank = 0;
  MPI_Comm_rank(comm->comm, &rank);
  if (rank == root && in != out && count != 0) std::memcpy(out, in, count * width(type));
  MPI_Bcast(out, static_cast<int>(count), mpi_type(type), root, comm->comm);
  return ncclSuccess;
}
ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int to, ncclComm_t comm,
                      cudaStream_t stream) {
  note("send", stream);
  MPI_Isend(in, static_cast<int>(count), mpi_type(type), to, 0, comm->comm,
            &messages.emplace_back());
  return unless_grouped();
}
ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int from, ncclComm_t comm,
                      cudaStream_t stream) {
  note("recv", stream);
  MPI_Irecv(out, static_cast<int>(count), mpi_type(type), from, 0, comm->comm,
            &messages.emplace_back());
  return unless_grouped();
}
#pragma GCC visibility pop

}  // extern "C"
