// One collective, as an operator asks for it: what is checked, and which call of MPI does it.
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
  OptionalIntArrayRef rows = std::nullopt;       // of each rank
  OptionalIntArrayRef send_rows = std::nullopt;  // of an all_to_all
  int64_t tag = 0;
  int64_t group = 0;
  bool deterministic = false;
  bool gradient = false;  // of a send or recv
};

// Throws where the peer, the tag or the reduction do not suit the group and the input.
void check(const Collective& asked, const Tensor& input);
// The same, also of the input's rows; the shape of the result.
std::vector<int64_t> result_sizes(const Collective& asked, const Tensor& input);

// Does it and returns when it is done.
void run(const Collective& asked);

// A collective with its buffers, between its beginning and its end.
class Running {
 public:
  // `output` may have any strides and may be the input. Both stay alive.
  Running(const Collective& asked, const Group& group);
  ~Running();
  // With a request the call returns before the collective is done.
  void post(MPI_Request* request);
  // The sum in shared memory that was begun instead of a request of MPI, if it is one.
  SharedSum* shared() { return shared_ ? &*shared_ : nullptr; }
  // What is left to do once MPI is done: sums in the ranks' order, means, strides. The rest of a
  // collective on a device is put into its current stream.
  void finish();
  bool on_device() const { return transport_ != nullptr; }
  // Whether a collective on a device that was begun is done there.
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
  // parts: one result's elements from each rank, in the ranks' order. Sums them into `into`.
  void fold(const char* parts, int elements, char* into);
  int elements(const Tensor& tensor) const;
  int row_elements(const Tensor& tensor) const;
  char* in() const { return static_cast<char*>(input_.data_ptr()); }
  char* out() const { return static_cast<char*>(output_.data_ptr()); }

  Kind kind_;
  Reduction reduction_;
  const Group& group_;
  Tensor input_, output_;  // contiguous
  Tensor result_;          // where output_ goes at the end, if that is another
  Tensor scratch_;
  std::vector<int> counts_, starts_;            // of `rows`, in elements
  std::vector<int> send_counts_, send_starts_;  // of `send_rows`
  bool equal_ = true, send_equal_ = true;       // no rows were given
  int peer_, tag_;
  bool deterministic_;
  bool folds_later_ = false;
  std::optional<SharedSum> shared_;
  DeviceTransport* transport_ = nullptr;  // where the tensors are on a device
  std::unique_ptr<DeviceWork> device_work_;
};

}  // namespace lamella::distributed
