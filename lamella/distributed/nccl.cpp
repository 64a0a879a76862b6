// liblamella_nccl.so: collectives of CUDA tensors by NCCL. See Note [Collectives on a GPU].
#include <mpi.h>
#include <nccl.h>

#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "lamella/backend.h"
#include "lamella/core/cuda_stream_handle.h"
#include "lamella/distributed/device.h"

namespace lamella::distributed {
namespace {

void check_cuda(cudaError_t status, const char* op_name) {
  if (LAMELLA_LIKELY(status == cudaSuccess)) return;
  throw Error(str(op_name, ": CUDA: ", cudaGetErrorString(status)));
}

void check_nccl(ncclResult_t status, const char* op_name) {
  if (LAMELLA_LIKELY(status == ncclSuccess)) return;
  const char* more = ncclGetLastError(nullptr);
  bool has_more = more != nullptr && *more != '\0';
  throw Error(str(op_name, ": NCCL: ", ncclGetErrorString(status), has_more ? ": " : "",
                  has_more ? more : ""));
}

// Makes a device current for the lifetime of the object.
class CurrentDevice {
 public:
  CurrentDevice(int device, const char* op_name) {
    check_cuda(cudaGetDevice(&former_), op_name);
    if (device == former_) return;
    check_cuda(cudaSetDevice(device), op_name);
    changed_ = true;
  }
  CurrentDevice(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (changed_) cudaSetDevice(former_);
  }

 private:
  int former_ = 0;
  bool changed_ = false;
};

cudaStream_t current_stream_of(Device device) {
  return static_cast<cudaStream_t>(current_cuda_stream(device));
}

class Mark {
 public:
  explicit Mark(const char* op_name) {
    check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), op_name);
  }
  Mark(const Mark&) = delete;
  ~Mark() { cudaEventDestroy(event_); }
  void record(cudaStream_t stream, const char* op_name) {
    check_cuda(cudaEventRecord(event_, stream), op_name);
  }
  void block(cudaStream_t stream, const char* op_name) {
    check_cuda(cudaStreamWaitEvent(stream, event_, 0), op_name);
  }
  cudaEvent_t event() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

struct Communicator {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;  // for started collectives
};

class NcclWork final : public DeviceWork {
 public:
  NcclWork(Device device, ncclComm_t comm, const char* op_name)
      : device_(device), comm_(comm), op_name_(op_name), end_(op_name) {}
  Mark& end() { return end_; }
  bool is_done() override {
    check();
    cudaError_t status = cudaEventQuery(end_.event());
    if (status == cudaErrorNotReady) return false;
    check_cuda(status, op_name_);
    return true;
  }
  void wait() override {
    check();
    end_.block(current_stream_of(device_), op_name_);
  }

 private:
  void check() {
    ncclResult_t status = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(comm_, &status), op_name_);
    check_nccl(status, op_name_);
  }
  Device device_;
  ncclComm_t comm_;
  const char* op_name_;
  Mark end_;
};

struct Reduced {
  ncclDataType_t type;
  ncclRedOp_t operation;
  size_t width = 1;  // how many values of that type make one element
};

// How NCCL reduces each dtype: its type, and how many values of that make one element.
constexpr std::tuple<ScalarType, ncclDataType_t, size_t> kTypes[] = {
    {ScalarType::Float, ncclFloat32, 1},
    {ScalarType::Double, ncclFloat64, 1},
    {ScalarType::Half, ncclFloat16, 1},
    {ScalarType::BFloat16, ncclBfloat16, 1},
    {ScalarType::Byte, ncclUint8, 1},
    {ScalarType::Char, ncclInt8, 1},
    {ScalarType::Int, ncclInt32, 1},
    {ScalarType::Long, ncclInt64, 1},
    {ScalarType::UInt32, ncclUint32, 1},
    {ScalarType::UInt64, ncclUint64, 1},
    {ScalarType::ComplexFloat, ncclFloat32, 2},
    {ScalarType::ComplexDouble, ncclFloat64, 2},
};
std::optional<Reduced> reduced(Reduction reduction, ScalarType dtype) {
  constexpr ncclRedOp_t kOperations[] = {ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg};
  ncclRedOp_t operation = kOperations[static_cast<size_t>(reduction)];
  bool adds = reduction == Reduction::Sum || reduction == Reduction::Mean;
  if (dtype == ScalarType::Bool) {  // true where any byte is, or where all are
    return Reduced{ncclUint8, adds || reduction == Reduction::Max ? ncclMax : ncclMin};
  }
  for (const auto& [of, type, width] : kTypes) {
    if (of == dtype && (width == 1 || adds)) return Reduced{type, operation, width};
  }
  return std::nullopt;
}

class Nccl final : public DeviceTransport {
 public:
  std::string obstacle() override {
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) return str("no GPU is here: ", cudaGetErrorString(status));
    return count == 0 ? "no GPU is here" : "";
  }

  void check(const DeviceCall& call) override {
    if (call.kind != Kind::AllReduce && call.kind != Kind::ReduceScatter) return;
    LAMELLA_CHECK(reduced(call.reduction, call.dtype).has_value(), call.op_name,
                  ": expected 'self' to have a dtype that NCCL reduces so, got ", call.dtype);
  }

  std::unique_ptr<DeviceWork> post(const DeviceCall& call, const Group& group) override {
    CurrentDevice device(call.device.index(), call.op_name);
    const Communicator& with = communicator(call, group);
    cudaStream_t current = current_stream_of(call.device);
    if (!call.begun) {
      launch(call, group, with.comm, current);
      return nullptr;
    }
    auto work = std::make_unique<NcclWork>(call.device, with.comm, call.op_name);
    Mark begin(call.op_name);
    begin.record(current, call.op_name);
    begin.block(with.stream, call.op_name);
    launch(call, group, with.comm, with.stream);
    work->end().record(with.stream, call.op_name);
    return work;
  }

  void close() override {
    std::lock_guard lock(mutex_);
    for (auto& [key, one] : communicators_) {
      cudaStreamSynchronize(one.stream);
      ncclCommDestroy(one.comm);
      cudaStreamDestroy(one.stream);
    }
    communicators_.clear();
  }

 private:
  const Communicator& communicator(const DeviceCall& call, const Group& group) {
    std::lock_guard lock(mutex_);
    auto [at, fresh] = communicators_.try_emplace({group.number, call.device.index()});
    if (!fresh) return at->second;
    try {
      // Rank 0 sends its failure to the other ranks, so that they do not wait for it in NCCL.
      struct {
        ncclUniqueId id{};
        ncclResult_t status = ncclSuccess;
      } told;
      if (group.rank == 0) told.status = ncclGetUniqueId(&told.id);
      MPI_Bcast(&told, sizeof(told), MPI_BYTE, 0, group.comm);
      check_nccl(told.status, call.op_name);
      check_cuda(cudaStreamCreateWithFlags(&at->second.stream, cudaStreamNonBlocking),
                 call.op_name);
      check_nccl(ncclCommInitRank(&at->second.comm, group.size, told.id, group.rank), call.op_name);
    } catch (...) {
      if (at->second.stream != nullptr) cudaStreamDestroy(at->second.stream);
      communicators_.erase(at);
      throw;
    }
    return at->second;
  }

  // Runs the sends and receives that `body` issues as one operation of NCCL.
  template <class Body>
  static void together(const char* op_name, Body body) {
    check_nccl(ncclGroupStart(), op_name);
    ncclResult_t status = body();
    ncclResult_t end = ncclGroupEnd();
    check_nccl(status, op_name);
    check_nccl(end, op_name);
  }

  void launch(const DeviceCall& call, const Group& group, ncclComm_t comm, cudaStream_t stream) {
    const char* name = call.op_name;
    // Collectives that only move data treat it as bytes.
    size_t bytes = element_size(call.dtype);
    auto* in = static_cast<const char*>(call.in);
    auto* out = static_cast<char*>(call.out);
    auto size = [&](int count) { return static_cast<size_t>(count) * bytes; };
    auto send = [&](int start, int count, int rank) {
      if (count == 0) return ncclSuccess;
      return ncclSend(in + size(start), size(count), ncclUint8, rank, comm, stream);
    };
    auto receive = [&](int start, int count, int rank) {
      if (count == 0) return ncclSuccess;
      return ncclRecv(out + size(start), size(count), ncclUint8, rank, comm, stream);
    };
    auto each = [&](auto body) {
      together(name, [&] {
        for (int r = 0; r < group.size; ++r) {
          if (ncclResult_t status = body(r); status != ncclSuccess) return status;
        }
        return ncclSuccess;
      });
    };
    bool is_root = group.rank == call.root;
    switch (call.kind) {
      case Kind::AllReduce: {
        Reduced as = *reduced(call.reduction, call.dtype);
        check_nccl(ncclAllReduce(in, out, static_cast<size_t>(call.in_count) * as.width, as.type,
                                 as.operation, comm, stream),
                   name);
        return;
      }
      case Kind::ReduceScatter: {
        Reduced as = *reduced(call.reduction, call.dtype);
        if (call.equal) {
          check_nccl(ncclReduceScatter(in, out, static_cast<size_t>(call.out_count) * as.width,
                                       as.type, as.operation, comm, stream),
                     name);
          return;
        }
        return each([&](int r) {
          if (call.counts[r] == 0) return ncclSuccess;
          return ncclReduce(in + size(call.starts[r]), out,
                            static_cast<size_t>(call.counts[r]) * as.width, as.type, as.operation,
                            r, comm, stream);
        });
      }
      case Kind::AllGather:
        if (call.equal) {
          check_nccl(ncclAllGather(in, out, size(call.in_count), ncclUint8, comm, stream), name);
          return;
        }
        return each([&](int r) {
          ncclResult_t status = send(0, call.in_count, r);
          return status == ncclSuccess ? receive(call.starts[r], call.counts[r], r) : status;
        });
      case Kind::Broadcast:
        check_nccl(ncclBroadcast(in, out, size(call.out_count), ncclUint8, call.root, comm, stream),
                   name);
        return;
      case Kind::AllToAll:
        return each([&](int r) {
          ncclResult_t status = send(call.send_starts[r], call.send_counts[r], r);
          return status == ncclSuccess ? receive(call.starts[r], call.counts[r], r) : status;
        });
      case Kind::Gather:
        return each([&](int r) {
          ncclResult_t status = ncclSuccess;
          if (r == call.root) status = send(0, call.in_count, r);
          if (is_root && status == ncclSuccess) status = receive(call.starts[r], call.counts[r], r);
          return status;
        });
      case Kind::Scatter:
        return each([&](int r) {
          ncclResult_t status = ncclSuccess;
          if (is_root) status = send(call.starts[r], call.counts[r], r);
          if (r == call.root && status == ncclSuccess) status = receive(0, call.out_count, r);
          return status;
        });
      default:
        throw Error(str(name, ": NCCL has no such collective"));
    }
  }

  std::mutex mutex_;
  std::map<std::pair<int64_t, int>, Communicator> communicators_;
};

}  // namespace
}  // namespace lamella::distributed

extern "C" __attribute__((visibility("default"))) lamella::distributed::DeviceTransport*
lamella_device_transport() {
  // Never destroyed: the driver may be gone by the time that statics are.
  static auto* transport = new lamella::distributed::Nccl;
  return transport;
}
