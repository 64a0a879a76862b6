// Collectives of tensors that are not in the memory of the CPU, by a library of their own.
//
// Note [Collectives on a GPU]
//   Operators, checks, groups, works and gradients are the same for tensors on CUDA. Only what
//   moves the data is another library, liblamella_nccl.so, which is loaded for the first such
//   tensor: NCCL's communicator of a group and device is made at the first collective, for which
//   rank 0 of the group tells the others NCCL's number over MPI.
//   A collective goes into the thread's current stream of the device, behind what was launched
//   there before and before what comes next, and the call returns at once. One that is begun runs
//   in a stream of the communicator's own, which waits for an event of the current stream; wait()
//   makes the stream that is current then wait for the end, and not the CPU.
//   Messages are staged through the memory of the CPU and sent by MPI: NCCL has no tags, and takes
//   messages of one communicator one after the other, so that two ranks which both begin to
//   receive before they send would wait for ever.
#pragma once
#include <memory>
#include <string>

#include "lamella/distributed/collective.h"

namespace lamella::distributed {

// A collective on contiguous memory of a device. Counts and places are elements of `dtype`.
struct DeviceCall {
  Kind kind;
  const char* op_name;
  Reduction reduction;
  ScalarType dtype;
  Device device;
  const void* in;
  void* out;
  int in_count, out_count;
  bool equal;  // all ranks have the same counts
  // Parts of each rank: what all_to_all, all_gather and gather receive, and what reduce_scatter and
  // scatter send. send_* are what all_to_all sends.
  const int *counts, *starts, *send_counts, *send_starts;
  int root;
  bool begun;  // in a stream of its own
};

// A collective that was begun.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;
  virtual bool is_done() = 0;
  // What is launched in the current stream from now on comes behind it.
  virtual void wait() = 0;
};

// What liblamella_nccl.so gives.
class DeviceTransport {
 public:
  // Why it cannot work on this machine, or nothing.
  virtual std::string obstacle() = 0;
  // Throws where the library cannot do the call, before anything is launched.
  virtual void check(const DeviceCall& call) = 0;
  // Launches it; the work is null unless the call is begun. All ranks of the group call it.
  virtual std::unique_ptr<DeviceWork> post(const DeviceCall& call, const Group& group) = 0;
  // Ends all communicators; their ranks call it together.
  virtual void close() = 0;

 protected:
  ~DeviceTransport() = default;
};

// Why collectives cannot take tensors of a type of device here; nothing where they can.
std::string device_obstacle(DeviceType type);
// Throws with the obstacle if there is one.
DeviceTransport& transport_of(Device device, const char* op_name);
// Ends what was opened.
void close_transports();

}  // namespace lamella::distributed
