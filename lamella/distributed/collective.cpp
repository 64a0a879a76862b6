// Implements the collectives by MPI calls.
#include "lamella/distributed/collective.h"

#include <climits>
#include <cstring>

#include "lamella/distributed/debug.h"
#include "lamella/distributed/device.h"
#include "lamella/distributed/failure.h"
#include "lamella/distributed/work.h"

namespace lamella::distributed {
namespace {

constexpr int64_t kMaxTag = 32767;

constexpr const char* kNames[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                  "all_to_all", "gather",     "scatter",        "send",
                                  "recv",       "barrier"};

int64_t total(IntArrayRef rows) {
  int64_t sum = 0;
  for (int64_t n : rows) sum += n;
  return sum;
}

void check_rows(const char* name, const char* argument, IntArrayRef rows, const Group& group) {
  LAMELLA_CHECK(static_cast<int64_t>(rows.size()) == group.size, name, ": expected '", argument,
                "' to have a number for each of the ", group.size, " ranks, got ", rows);
  for (int64_t n : rows) {
    LAMELLA_CHECK(n >= 0, name, ": expected '", argument, "' not to be negative, got ", rows);
  }
}

// Checks the input's `rows` against the given numbers of rows, at `rank` or in total.
void check_input_rows(const char* name, const char* argument, int64_t got, int64_t expected) {
  LAMELLA_CHECK(got == expected, name, ": expected 'self' to have ", expected, " rows, as '",
                argument, "' says, got ", got);
}

void check_divisible(const char* name, int64_t rows, const Group& group) {
  LAMELLA_CHECK(rows % group.size == 0, name,
                ": expected 'self' to have as many rows for each of the ", group.size,
                " ranks, or the sizes to be given, got ", rows, " rows");
}

// The counts and starts, in elements, of consecutive parts.
void lay_out(const char* name, IntArrayRef rows, int64_t row_elements, std::vector<int>& counts,
             std::vector<int>& starts) {
  int64_t at = 0;
  for (int64_t n : rows) {
    counts.push_back(static_cast<int>(n * row_elements));
    starts.push_back(static_cast<int>(at));
    at += n * row_elements;
  }
  LAMELLA_CHECK(at <= INT_MAX, name, ": expected at most 2147483647 elements in one call, got ",
                at);
}

std::vector<int64_t> equal_parts(int64_t whole, int parts) {
  std::vector<int64_t> result(static_cast<size_t>(parts), whole / parts);
  for (int64_t i = 0; i < whole % parts; ++i) ++result[static_cast<size_t>(i)];
  return result;
}

}  // namespace

const char* name_of(Kind kind) { return kNames[static_cast<size_t>(kind)]; }

Kind kind_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<Kind>(i);
  }
  throw Error(str("start: expected 'operator_name' to be a collective, got ", name));
}

void check(const Collective& asked, const Tensor& input) {
  const char* name = name_of(asked.kind);
  const Group& group = joined_group(asked.group, name);
  bool has_peer = asked.kind == Kind::Broadcast || asked.kind >= Kind::Gather;
  LAMELLA_CHECK(!has_peer || (asked.peer >= 0 && asked.peer < group.size), name, ": expected '",
                asked.kind == Kind::Send   ? "to"
                : asked.kind == Kind::Recv ? "source"
                                           : "root",
                "' to be a rank of the group's ", group.size, ", got ", asked.peer);
  LAMELLA_CHECK(asked.tag >= 0 && asked.tag <= kMaxTag, name,
                ": expected 'tag' to be from 0 to 32767, got ", asked.tag);
  if (asked.kind == Kind::AllReduce || asked.kind == Kind::ReduceScatter) {
    check_reduction(asked.reduction, input.scalar_type(), name);
  }
}

std::vector<int64_t> result_sizes(const Collective& asked, const Tensor& input) {
  check(asked, input);
  const char* name = name_of(asked.kind);
  const Group& group = joined_group(asked.group, name);
  std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
  if (asked.kind == Kind::AllReduce || asked.kind == Kind::Broadcast || asked.kind >= Kind::Send) {
    return sizes;
  }
  LAMELLA_CHECK(!sizes.empty(), name,
                ": expected 'self' to have rows, got a tensor without dimensions");
  auto rank = static_cast<size_t>(group.rank);
  if (asked.rows) {
    check_rows(name, asked.kind == Kind::AllToAll ? "receive_sizes" : "sizes", *asked.rows, group);
  }
  int64_t& rows = sizes[0];
  switch (asked.kind) {
    case Kind::AllGather:
    case Kind::Gather: {
      if (asked.rows) check_input_rows(name, "sizes", rows, (*asked.rows)[rank]);
      bool gets = asked.kind == Kind::AllGather || asked.peer == group.rank;
      rows = !gets ? 0 : asked.rows ? total(*asked.rows) : rows * group.size;
      break;
    }
    case Kind::ReduceScatter:
    case Kind::Scatter: {
      bool reads = asked.kind == Kind::ReduceScatter || asked.peer == group.rank;
      if (asked.rows) {
        if (reads) check_input_rows(name, "sizes", rows, total(*asked.rows));
        rows = (*asked.rows)[rank];
      } else {
        check_divisible(name, rows, group);
        rows /= group.size;
      }
      break;
    }
    default:  // all_to_all
      LAMELLA_CHECK(asked.rows.has_value() == asked.send_rows.has_value(), name,
                    ": expected 'send_sizes' and 'receive_sizes' to be given together");
      if (asked.rows) {
        check_rows(name, "send_sizes", *asked.send_rows, group);
        check_input_rows(name, "send_sizes", rows, total(*asked.send_rows));
        rows = total(*asked.rows);
      } else {
        check_divisible(name, rows, group);
      }
  }
  return sizes;
}

Running::Running(const Collective& asked, const Group& group)
    : kind_(asked.kind),
      reduction_(asked.reduction),
      group_(group),
      peer_(static_cast<int>(asked.peer)),
      tag_(static_cast<int>(asked.gradient ? asked.tag + kMaxTag + 1 : asked.tag)),
      deterministic_(asked.deterministic) {
  if (kind_ == Kind::Barrier) return;
  const char* name = name_of(kind_);
  bool on_device = !asked.input.is_cpu(), is_message = kind_ >= Kind::Send;
  if (on_device && !is_message) transport_ = &transport_of(asked.input.device(), name);
  // recv uses only the shape of its input.
  if (kind_ != Kind::Recv) input_ = on_device && is_message ? asked.input.cpu() : asked.input;
  if (kind_ != Kind::Recv) input_ = input_.contiguous();
  if (kind_ == Kind::Send) return;
  output_ = asked.output;
  if (!output_.is_contiguous() || (on_device && is_message)) {
    result_ = output_;
    TensorOptions options = result_.options();
    output_ = empty(result_.sizes(), is_message ? options.device(DeviceType::CPU) : options);
  }
  if (asked.rows) {
    equal_ = false;
    lay_out(name, *asked.rows, row_elements(input_), counts_, starts_);
  }
  if (asked.send_rows) {
    send_equal_ = false;
    lay_out(name, *asked.send_rows, row_elements(input_), send_counts_, send_starts_);
  }
}

Running::~Running() = default;

bool Running::device_is_done() const { return !device_work_ || device_work_->is_done(); }

int Running::elements(const Tensor& tensor) const {
  LAMELLA_CHECK(tensor.numel() <= INT_MAX, name_of(kind_),
                ": expected at most 2147483647 elements in one call, got ", tensor.numel());
  return static_cast<int>(tensor.numel());
}

int Running::row_elements(const Tensor& tensor) const {
  int64_t count = 1;
  for (size_t d = 1; d < tensor.sizes().size(); ++d) count *= tensor.sizes()[d];
  LAMELLA_CHECK(count <= INT_MAX, name_of(kind_),
                ": expected at most 2147483647 elements in one row, got ", count);
  return static_cast<int>(count);
}

void Running::fold(const char* parts, int count, char* into) {
  ReducedType type = reduced_type(reduction_, output_.scalar_type());
  size_t bytes = static_cast<size_t>(count) * output_.itemsize();
  if (bytes != 0) std::memcpy(into, parts, bytes);
  for (int r = 1; r < group_.size && bytes != 0; ++r) {
    check_mpi(MPI_Reduce_local(parts + static_cast<size_t>(r) * bytes, into, count, type.datatype,
                               type.operation),
              name_of(kind_));
  }
}

void Running::sum_in_shared_memory(SharedSum::Parts parts, bool begun) {
  shared_.emplace(*group_.window, in(), out(), input_.numel(), reduction_, input_.scalar_type(),
                  parts);
  if (begun) return;
  while (!shared_->advance()) shared_->wait_for_others();
}

void Running::all_reduce(MPI_Request* request) {
  int count = elements(input_);
  if (group_.window != nullptr &&
      count * static_cast<int64_t>(input_.itemsize()) >= SharedSum::kLeastBytes) {
    sum_in_shared_memory({}, request != nullptr);
    return;
  }
  if (!deterministic_ || group_.size == 1) {
    ReducedType type = reduced_type(reduction_, input_.scalar_type());
    const void* from = in() == out() ? MPI_IN_PLACE : in();
    check_mpi(request == nullptr
                  ? MPI_Allreduce(from, out(), count, type.datatype, type.operation, group_.comm)
                  : MPI_Iallreduce(from, out(), count, type.datatype, type.operation, group_.comm,
                                   request),
              "all_reduce");
    return;
  }
  MPI_Datatype type = moved_type(input_.scalar_type());
  if (request != nullptr) {
    // One call gathers all inputs on every rank: a second call would have to start in the same
    // order on all ranks, but the time at which the first completes differs between them.
    scratch_ = empty({group_.size, count}, input_.options());
    folds_later_ = true;
    check_mpi(
        MPI_Iallgather(in(), count, type, scratch_.data_ptr(), count, type, group_.comm, request),
        "all_reduce");
    return;
  }
  // Each rank sums one part, in the ranks' order.
  std::vector<int> counts, starts;
  lay_out("all_reduce", equal_parts(count, group_.size), 1, counts, starts);
  int part = counts[static_cast<size_t>(group_.rank)];
  std::vector<int> got(counts.size(), part), places(counts.size());
  for (size_t r = 0; r < places.size(); ++r) places[r] = static_cast<int>(r) * part;
  scratch_ = empty({group_.size, part}, input_.options());
  auto* parts = static_cast<char*>(scratch_.data_ptr());
  check_mpi(MPI_Alltoallv(in(), counts.data(), starts.data(), type, parts, got.data(),
                          places.data(), type, group_.comm),
            "all_reduce");
  auto start = static_cast<size_t>(starts[static_cast<size_t>(group_.rank)]);
  fold(parts, part, out() + start * output_.itemsize());
  check_mpi(
      MPI_Allgatherv(MPI_IN_PLACE, 0, type, out(), counts.data(), starts.data(), type, group_.comm),
      "all_reduce");
}

void Running::reduce_scatter(MPI_Request* request) {
  int count = elements(output_);
  elements(input_);
  if (equal_) {
    counts_.assign(static_cast<size_t>(group_.size), count);
    for (int r = 0; r < group_.size; ++r) starts_.push_back(r * count);
  }
  if (group_.window != nullptr &&
      input_.numel() * static_cast<int64_t>(input_.itemsize()) >= SharedSum::kLeastBytes) {
    // The output must not overwrite input rows before they are read.
    const char* end = in() + input_.numel() * static_cast<int64_t>(input_.itemsize());
    if (out() >= in() && out() < end) input_ = input_.clone();
    sum_in_shared_memory({counts_.data(), starts_.data()}, request != nullptr);
    return;
  }
  ReducedType reduced = reduced_type(reduction_, input_.scalar_type());
  if (!deterministic_) {
    check_mpi(request == nullptr
                  ? MPI_Reduce_scatter(in(), out(), counts_.data(), reduced.datatype,
                                       reduced.operation, group_.comm)
                  : MPI_Ireduce_scatter(in(), out(), counts_.data(), reduced.datatype,
                                        reduced.operation, group_.comm, request),
              "reduce_scatter");
    return;
  }
  MPI_Datatype type = moved_type(input_.scalar_type());
  scratch_ = empty({group_.size, count}, input_.options());
  folds_later_ = true;
  // Kept as members, since MPI reads them until the request is done.
  send_counts_.assign(counts_.size(), count);
  for (size_t r = 0; r < counts_.size(); ++r) send_starts_.push_back(static_cast<int>(r) * count);
  check_mpi(
      request == nullptr
          ? MPI_Alltoallv(in(), counts_.data(), starts_.data(), type, scratch_.data_ptr(),
                          send_counts_.data(), send_starts_.data(), type, group_.comm)
          : MPI_Ialltoallv(in(), counts_.data(), starts_.data(), type, scratch_.data_ptr(),
                           send_counts_.data(), send_starts_.data(), type, group_.comm, request),
      "reduce_scatter");
}

void Running::all_gather(MPI_Request* request) {
  MPI_Datatype type = moved_type(input_.scalar_type());
  int count = elements(input_);
  elements(output_);
  int status = 0;
  if (equal_) {
    status = request == nullptr
                 ? MPI_Allgather(in(), count, type, out(), count, type, group_.comm)
                 : MPI_Iallgather(in(), count, type, out(), count, type, group_.comm, request);
  } else {
    status = request == nullptr ? MPI_Allgatherv(in(), count, type, out(), counts_.data(),
                                                 starts_.data(), type, group_.comm)
                                : MPI_Iallgatherv(in(), count, type, out(), counts_.data(),
                                                  starts_.data(), type, group_.comm, request);
  }
  check_mpi(status, "all_gather");
}

void Running::gather(MPI_Request* request) {
  MPI_Datatype type = moved_type(input_.scalar_type());
  int count = elements(input_);
  elements(output_);
  int status = 0;
  if (equal_) {
    status = request == nullptr
                 ? MPI_Gather(in(), count, type, out(), count, type, peer_, group_.comm)
                 : MPI_Igather(in(), count, type, out(), count, type, peer_, group_.comm, request);
  } else {
    status = request == nullptr ? MPI_Gatherv(in(), count, type, out(), counts_.data(),
                                              starts_.data(), type, peer_, group_.comm)
                                : MPI_Igatherv(in(), count, type, out(), counts_.data(),
                                               starts_.data(), type, peer_, group_.comm, request);
  }
  check_mpi(status, "gather");
}

void Running::scatter(MPI_Request* request) {
  MPI_Datatype type = moved_type(input_.scalar_type());
  int count = elements(output_);
  elements(input_);
  int status = 0;
  if (equal_) {
    status = request == nullptr
                 ? MPI_Scatter(in(), count, type, out(), count, type, peer_, group_.comm)
                 : MPI_Iscatter(in(), count, type, out(), count, type, peer_, group_.comm, request);
  } else {
    status = request == nullptr ? MPI_Scatterv(in(), counts_.data(), starts_.data(), type, out(),
                                               count, type, peer_, group_.comm)
                                : MPI_Iscatterv(in(), counts_.data(), starts_.data(), type, out(),
                                                count, type, peer_, group_.comm, request);
  }
  check_mpi(status, "scatter");
}

void Running::all_to_all(MPI_Request* request) {
  MPI_Datatype type = moved_type(input_.scalar_type());
  int count = elements(input_) / group_.size;
  elements(output_);
  if (in() == out() && input_.numel() != 0) scratch_ = input_.clone();
  const void* from = scratch_.defined() ? scratch_.data_ptr() : in();
  int status = 0;
  if (equal_) {
    status = request == nullptr
                 ? MPI_Alltoall(from, count, type, out(), count, type, group_.comm)
                 : MPI_Ialltoall(from, count, type, out(), count, type, group_.comm, request);
  } else {
    status = request == nullptr
                 ? MPI_Alltoallv(from, send_counts_.data(), send_starts_.data(), type, out(),
                                 counts_.data(), starts_.data(), type, group_.comm)
                 : MPI_Ialltoallv(from, send_counts_.data(), send_starts_.data(), type, out(),
                                  counts_.data(), starts_.data(), type, group_.comm, request);
  }
  check_mpi(status, "all_to_all");
}

void Running::post(MPI_Request* request) {
  if (transport_ != nullptr) return post_on_device(request != nullptr);
  switch (kind_) {
    case Kind::AllReduce:
      return all_reduce(request);
    case Kind::ReduceScatter:
      return reduce_scatter(request);
    case Kind::AllGather:
      return all_gather(request);
    case Kind::Gather:
      return gather(request);
    case Kind::Scatter:
      return scatter(request);
    case Kind::AllToAll:
      return all_to_all(request);
    case Kind::Barrier:
      return check_mpi(
          request == nullptr ? MPI_Barrier(group_.comm) : MPI_Ibarrier(group_.comm, request),
          "barrier");
    case Kind::Broadcast: {
      int count = elements(output_);
      MPI_Datatype type = moved_type(output_.scalar_type());
      if (group_.rank == peer_ && in() != out() && count != 0) {
        std::memcpy(out(), in(), static_cast<size_t>(count) * output_.itemsize());
      }
      return check_mpi(request == nullptr
                           ? MPI_Bcast(out(), count, type, peer_, group_.comm)
                           : MPI_Ibcast(out(), count, type, peer_, group_.comm, request),
                       "broadcast");
    }
    case Kind::Send: {
      int count = elements(input_);
      MPI_Datatype type = moved_type(input_.scalar_type());
      return check_mpi(request == nullptr
                           ? MPI_Send(in(), count, type, peer_, tag_, group_.comm)
                           : MPI_Isend(in(), count, type, peer_, tag_, group_.comm, request),
                       "send");
    }
    case Kind::Recv: {
      int count = elements(output_);
      MPI_Datatype type = moved_type(output_.scalar_type());
      return check_mpi(
          request == nullptr
              ? MPI_Recv(out(), count, type, peer_, tag_, group_.comm, MPI_STATUS_IGNORE)
              : MPI_Irecv(out(), count, type, peer_, tag_, group_.comm, request),
          "recv");
    }
  }
}

void Running::finish() {
  if (device_work_) device_work_->wait();
  // NCCL and sums in shared memory compute means themselves.
  bool divides = reduction_ == Reduction::Mean && !shared_ && (!transport_ || folds_later_);
  if (!folds_later_ && !divides && !result_.defined()) return;
  AutoDispatchBelowAutograd below;
  if (folds_later_ && transport_) {
    fold_on_device();
  } else if (folds_later_) {
    fold(static_cast<const char*>(scratch_.data_ptr()), elements(output_), out());
  }
  if (divides) output_.div_(static_cast<double>(group_.size));
  if (result_.defined()) result_.copy_(output_);
}

namespace {

// Runs a common small reduction as one call of MPI, without a Running. False: it is not such a one.
bool sum_small(const Collective& asked, const Group& group) {
  if (asked.kind != Kind::AllReduce || asked.reduction == Reduction::Mean) return false;
  const Tensor &in = asked.input, &out = asked.output;
  if ((asked.deterministic && group.size > 1) || !in.is_cpu() || !in.is_contiguous() ||
      !out.is_contiguous() ||
      in.numel() * static_cast<int64_t>(in.itemsize()) >= SharedSum::kLeastBytes) {
    return false;
  }
  ReducedType type = reduced_type(asked.reduction, in.scalar_type());
  const void* from = in.data_ptr() == out.data_ptr() ? MPI_IN_PLACE : in.data_ptr();
  Inside inside(static_cast<int>(asked.kind), group.number == 0, /*returns=*/false);
  check_mpi(MPI_Allreduce(from, out.data_ptr(), static_cast<int>(in.numel()), type.datatype,
                          type.operation, group.comm),
            "all_reduce");
  return true;
}

}  // namespace

void run(const Collective& asked) {
  const char* name = name_of(asked.kind);
  const Group& group = joined_group(asked.group, name);
  // A sum in shared memory has to run after the sums that were started before it.
  bool sums = asked.kind == Kind::AllReduce || asked.kind == Kind::ReduceScatter;
  if (sums && group.window != nullptr && !group.window->is_free() && asked.input.is_cpu()) {
    return wait(start(asked));
  }
  if (debug_mode()) agree(asked, group);
  if (sum_small(asked, group)) return;
  AutoDispatchBelowAutograd below;
  Running running(asked, group);
  {
    Inside inside(static_cast<int>(asked.kind), group.number == 0, /*returns=*/false);
    running.post(nullptr);
  }
  running.finish();
}

}  // namespace lamella::distributed
