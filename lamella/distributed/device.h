// Collectives of tensors on devices other than the CPU, by a separately loaded library.
//
// Note [Collectives on a GPU]
//   Operators, checks, groups, works and gradients are the same for CUDA tensors. The data is moved
//   by another library, liblamella_nccl.so, which is loaded for the first such tensor. NCCL's
//   communicator of a group and device is made at the first collective; rank 0 of the group sends
//   NCCL's id to the others over MPI.
//   A blocking collective is launched in the thread's current stream of the device, and the call
//   returns at once. A started one runs in a stream of the communicator, which waits for an event
//   of the current stream; wait() makes the stream that is current then wait for it, not the CPU.
//   send and recv are staged through CPU memory and sent by MPI: NCCL has no tags and runs the
//   messages of a communicator one after the other, so two ranks that both start to receive before
//   they send would deadlock.
#pragma once
#include <memory>
#include <string>

#include "lamella/distributed/collective.h"

namespace lamella::distributed {

// A collective on contiguous memory of a device. Counts and starts are in elements of `dtype`.
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
  // The parts of each rank: those received by all_to_all, all_gather and gather, and those sent by
  // reduce_scatter and scatter. send_* are the parts that all_to_all sends.
  const int *counts, *starts, *send_counts, *send_starts;
  int root;
  bool begun;  // runs in the communicator's stream, until DeviceWork::wait()
};

// A started collective.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;
  virtual bool is_done() = 0;
  // Makes later launches in the current stream wait for the collective.
  virtual void wait() = 0;
};

// The interface that liblamella_nccl.so implements.
class DeviceTransport {
 public:
  // The reason why it cannot work on this machine; empty if it can.
  virtual std::string obstacle() = 0;
  // Throws if the library does not support the call; launches nothing.
  virtual void check(const DeviceCall& call) = 0;
  // Launches it; the work is null unless the call is begun. All ranks of the group call it.
  virtual std::unique_ptr<DeviceWork> post(const DeviceCall& call, const Group& group) = 0;
  // Ends all communicators; collective over their ranks.
  virtual void close() = 0;

 protected:
  ~DeviceTransport() = default;
};

// The reason why collectives cannot take tensors of this device type; empty if they can.
std::string device_obstacle(DeviceType type);
// The transport for a device; throws with the obstacle if there is one.
DeviceTransport& transport_of(Device device, const char* op_name);
// Closes the transport, if it was loaded.
void close_transports();

}  // namespace lamella::distributed
