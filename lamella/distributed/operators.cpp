// The operators of dist.yaml: their shape functions, and the kernels that run the collectives.
#include <cstdlib>

#include "lamella/distributed/collective.h"
#include "lamella/distributed/device.h"
#include "lamella/distributed/work.h"
#include "lamella_mpi/native_functions.h"
#include "lamella_mpi/structured_kernels.h"

namespace dist {

using lamella::Device;
using lamella::IntArrayRef;
using lamella::OptionalIntArrayRef;
using lamella::Tensor;
using lamella::distributed::Collective;
using lamella::distributed::Kind;
using lamella::distributed::reduction_of;
using lamella::distributed::result_sizes;

namespace {

void run_into(Collective asked, const Tensor& self, const Tensor& out) {
  asked.input = self;
  asked.output = out;
  lamella::distributed::run(asked);
}

}  // namespace

namespace meta {

#define LAMELLA_DIST_OUTPUT(...) \
  set_output_raw_strided(0, result_sizes(Collective{__VA_ARGS__}, self), {}, self.options())
// The shape function of operators whose result has the input's shape.
#define LAMELLA_DIST_LIKE_SELF(...)                           \
  lamella::distributed::check(Collective{__VA_ARGS__}, self); \
  set_output_raw_strided(0, self.sizes(), {}, self.options())

LAMELLA_META_FUNC(all_reduce)
(const Tensor& self, std::string_view op, int64_t group, bool) {
  LAMELLA_DIST_LIKE_SELF(.kind = Kind::AllReduce, .reduction = reduction_of(op, "all_reduce"),
                         .group = group);
}
LAMELLA_META_FUNC(all_gather)(const Tensor& self, OptionalIntArrayRef sizes, int64_t group) {
  LAMELLA_DIST_OUTPUT(.kind = Kind::AllGather, .rows = sizes, .group = group);
}
LAMELLA_META_FUNC(reduce_scatter)
(const Tensor& self, std::string_view op, OptionalIntArrayRef sizes, int64_t group, bool) {
  LAMELLA_DIST_OUTPUT(.kind = Kind::ReduceScatter, .reduction = reduction_of(op, "reduce_scatter"),
                      .rows = sizes, .group = group);
}
LAMELLA_META_FUNC(broadcast)(const Tensor& self, int64_t root, int64_t group) {
  LAMELLA_DIST_LIKE_SELF(.kind = Kind::Broadcast, .peer = root, .group = group);
}
LAMELLA_META_FUNC(all_to_all)
(const Tensor& self, OptionalIntArrayRef send, OptionalIntArrayRef receive, int64_t group) {
  LAMELLA_DIST_OUTPUT(.kind = Kind::AllToAll, .rows = receive, .send_rows = send, .group = group);
}
LAMELLA_META_FUNC(gather)
(const Tensor& self, int64_t root, OptionalIntArrayRef sizes, int64_t group) {
  LAMELLA_DIST_OUTPUT(.kind = Kind::Gather, .peer = root, .rows = sizes, .group = group);
}
LAMELLA_META_FUNC(scatter)
(const Tensor& self, int64_t root, OptionalIntArrayRef sizes, int64_t group) {
  LAMELLA_DIST_OUTPUT(.kind = Kind::Scatter, .peer = root, .rows = sizes, .group = group);
}
LAMELLA_META_FUNC(recv)
(const Tensor& self, int64_t source, int64_t tag, int64_t group, bool gradient) {
  LAMELLA_DIST_LIKE_SELF(.kind = Kind::Recv, .peer = source, .tag = tag, .group = group);
}

}  // namespace meta

namespace native {

LAMELLA_IMPL_FUNC(all_reduce_impl)
(const Tensor& self, std::string_view op, int64_t group, bool deterministic, const Tensor& out) {
  run_into({.kind = Kind::AllReduce,
            .reduction = reduction_of(op, "all_reduce"),
            .group = group,
            .deterministic = deterministic},
           self, out);
}
LAMELLA_IMPL_FUNC(all_gather_impl)
(const Tensor& self, OptionalIntArrayRef sizes, int64_t group, const Tensor& out) {
  run_into({.kind = Kind::AllGather, .rows = sizes, .group = group}, self, out);
}
LAMELLA_IMPL_FUNC(reduce_scatter_impl)
(const Tensor& self, std::string_view op, OptionalIntArrayRef sizes, int64_t group,
 bool deterministic, const Tensor& out) {
  run_into({.kind = Kind::ReduceScatter,
            .reduction = reduction_of(op, "reduce_scatter"),
            .rows = sizes,
            .group = group,
            .deterministic = deterministic},
           self, out);
}
LAMELLA_IMPL_FUNC(broadcast_impl)
(const Tensor& self, int64_t root, int64_t group, const Tensor& out) {
  run_into({.kind = Kind::Broadcast, .peer = root, .group = group}, self, out);
}
LAMELLA_IMPL_FUNC(all_to_all_impl)
(const Tensor& self, OptionalIntArrayRef send, OptionalIntArrayRef receive, int64_t group,
 const Tensor& out) {
  run_into({.kind = Kind::AllToAll, .rows = receive, .send_rows = send, .group = group}, self, out);
}
LAMELLA_IMPL_FUNC(gather_impl)
(const Tensor& self, int64_t root, OptionalIntArrayRef sizes, int64_t group, const Tensor& out) {
  run_into({.kind = Kind::Gather, .peer = root, .rows = sizes, .group = group}, self, out);
}
LAMELLA_IMPL_FUNC(scatter_impl)
(const Tensor& self, int64_t root, OptionalIntArrayRef sizes, int64_t group, const Tensor& out) {
  run_into({.kind = Kind::Scatter, .peer = root, .rows = sizes, .group = group}, self, out);
}
LAMELLA_IMPL_FUNC(recv_impl)
(const Tensor& self, int64_t source, int64_t tag, int64_t group, bool gradient, const Tensor& out) {
  run_into({.kind = Kind::Recv, .peer = source, .tag = tag, .group = group, .gradient = gradient},
           self, out);
}

Tensor send_meta(const Tensor& self, int64_t to, int64_t tag, int64_t group, bool) {
  lamella::distributed::check({.kind = Kind::Send, .peer = to, .tag = tag, .group = group}, self);
  return lamella::zeros({}, self.options());
}
Tensor send_impl(const Tensor& self, int64_t to, int64_t tag, int64_t group, bool gradient) {
  Tensor zero = send_meta(self, to, tag, group, gradient);
  lamella::distributed::run({.kind = Kind::Send,
                             .input = self,
                             .peer = to,
                             .tag = tag,
                             .group = group,
                             .gradient = gradient});
  return zero;
}
void barrier(int64_t group) { lamella::distributed::run({.kind = Kind::Barrier, .group = group}); }

int64_t start_impl(std::string_view operator_name, const Tensor& input, Tensor& output,
                   std::string_view op, int64_t peer, OptionalIntArrayRef rows,
                   OptionalIntArrayRef send_rows, int64_t tag, int64_t group, bool deterministic) {
  Collective asked{.kind = lamella::distributed::kind_of(operator_name),
                   .input = input,
                   .output = output,
                   .reduction = reduction_of(op, "start"),
                   .peer = peer,
                   .rows = rows,
                   .send_rows = send_rows,
                   .tag = tag,
                   .group = group,
                   .deterministic = deterministic};
  if (asked.kind != Kind::AllReduce && asked.kind != Kind::ReduceScatter) {
    LAMELLA_CHECK(op == "sum",
                  "start: expected 'op' to be given to all_reduce and reduce_scatter, got ", op,
                  " for ", operator_name);
  }
  if (asked.kind != Kind::Barrier) {
    std::vector<int64_t> sizes = result_sizes(asked, input);
    LAMELLA_CHECK(asked.kind == Kind::Send || output.sizes() == IntArrayRef(sizes),
                  "start: expected 'output' to have the shape ", IntArrayRef(sizes), " that ",
                  operator_name, " gives, got ", output.sizes());
    LAMELLA_CHECK(output.scalar_type() == input.scalar_type(),
                  "start: expected 'output' to have the dtype ", input.scalar_type(), ", got ",
                  output.scalar_type());
  }
  return lamella::distributed::start(asked);
}
void wait(int64_t work) { lamella::distributed::wait(work); }
bool test(int64_t work) { return lamella::distributed::test(work); }

void init(std::optional<bool> debug) {
  const char* text = std::getenv("LAMELLA_DISTRIBUTED_DEBUG");
  bool asked = text != nullptr && *text != '\0' && std::string_view(text) != "0";
  lamella::distributed::init(debug.value_or(asked));
}
void finalize() { lamella::distributed::finalize(); }
bool is_initialized() { return lamella::distributed::is_initialized(); }
std::string obstacle(std::string_view device_type) {
  return lamella::distributed::device_obstacle(Device(std::string(device_type)).type());
}
int64_t rank(int64_t group) { return lamella::distributed::group_of(group, "rank").rank; }
int64_t size(int64_t group) { return lamella::distributed::group_of(group, "size").size; }
int64_t new_group(IntArrayRef ranks) { return lamella::distributed::new_group(ranks); }
std::vector<int64_t> group_ranks(int64_t group) {
  const std::vector<int>& ranks = lamella::distributed::group_of(group, "group_ranks").ranks;
  return {ranks.begin(), ranks.end()};
}
void abort(std::string_view reason) { lamella::distributed::abort(reason); }

}  // namespace native
}  // namespace dist
