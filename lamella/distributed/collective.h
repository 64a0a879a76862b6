// One collective: its arguments, their checks, and its execution by MPI, shared memory or a device.
#pragma once
#include <mpi.h>

#include <optional>
#include <string_view>
#include <vector>

#include "lamella/distributed/group.h"
#include "lamella/distributed/reduction.h"
#include "lamella/lamella.h"

namespace lamella::distributed {

class DeviceTransport;
class DeviceWork;

enum class Kind {
  AllReduce,
  AllGather,
  ReduceScatter,
  Broadcast,
  AllToAll,
  Gather,
  Scatter,
  Send,
  Recv,
  Barrier
};
// The operator's name, without its namespace.
const char* name_of(Kind kind);
Kind kind_of(std::string_view name);

struct Collective {
  Kind kind = Kind::Barrier;
  Tensor input = {};
  Tensor output = {};
  Reduction reduction = Reduction::Sum;
  int64_t peer = 0;                              // root, receiver or source
  OptionalIntArrayRef rows = std::nullopt;       // the number of rows of each rank
  OptionalIntArrayRef send_rows = std::nullopt;  // rows that all_to_all sends to each rank
  int64_t tag = 0;
  int64_t group = 0;
  bool deterministic = false;
  bool gradient = false;  // a send or recv in the backward of another
};

// Throws if the peer, the tag or the reduction is not valid for the group and the input.
void check(const Collective& asked, const Tensor& input);
// The same, and checks the input's rows; returns the shape of the result.
std::vector<int64_t> result_sizes(const Collective& asked, const Tensor& input);

// Runs the collective. On the CPU, returns when it is done; on a device, when it was launched.
void run(const Collective& asked);

// A collective in progress, with its buffers.
class Running {
 public:
  // `output` may have any strides and may be the input. Both stay alive.
  Running(const Collective& asked, const Group& group);
  ~Running();
  // Starts the collective. Without a request, returns when the data was exchanged (on a device:
  // when the exchange was launched).
  void post(MPI_Request* request);
  // The sum in shared memory that post() began instead of an MPI request; null if it began none.
  SharedSum* shared() { return shared_ ? &*shared_ : nullptr; }
  // Completes the collective after MPI: sums in the ranks' order, means, results with strides. For
  // a collective on a device these steps are launched in its current stream.
  void finish();
  bool on_device() const { return transport_ != nullptr; }
  // Whether a started collective on a device is done there.
  bool device_is_done() const;
  Kind kind() const { return kind_; }
  const Group& group() const { return group_; }

 private:
  void post_on_device(bool begun);
  void fold_on_device();
  void sum_in_shared_memory(SharedSum::Parts parts, bool begun);
  void all_reduce(MPI_Request* request);
  void reduce_scatter(MPI_Request* request);
  void all_to_all(MPI_Request* request);
  void all_gather(MPI_Request* request);
  void gather(MPI_Request* request);
  void scatter(MPI_Request* request);
  // Reduces the ranks' values of `elements` elements, stored one rank after the other, into `into`.
  void fold(const char* parts, int elements, char* into);
  int elements(const Tensor& tensor) const;
  int row_elements(const Tensor& tensor) const;
  char* in() const { return static_cast<char*>(input_.data_ptr()); }
  char* out() const { return static_cast<char*>(output_.data_ptr()); }

  Kind kind_;
  Reduction reduction_;
  const Group& group_;
  Tensor input_, output_;  // contiguous
  Tensor result_;          // the caller's output, if output_ is a temporary in its place
  Tensor scratch_;
  std::vector<int> counts_, starts_;            // of `rows`, in elements
  std::vector<int> send_counts_, send_starts_;  // of `send_rows`
  bool equal_ = true, send_equal_ = true;       // no numbers of rows were given
  int peer_, tag_;
  bool deterministic_;
  bool folds_later_ = false;
  std::optional<SharedSum> shared_;
  DeviceTransport* transport_ = nullptr;  // where the tensors are on a device
  std::unique_ptr<DeviceWork> device_work_;
};

}  // namespace lamella::distributed
