// How vmap runs collectives: as one message for all examples. The operators that move or reduce
// rows get the examples behind the rows; for all others the examples are just more elements.
#include "lamella/lamella.h"
#include "lamella_mpi/functions.h"

namespace dist {
namespace {

using lamella::IntArrayRef;
using lamella::OptionalIntArrayRef;
using lamella::Tensor;

template <class Call>
Tensor of_elements(const Tensor& self, Call call) {
  auto level = lamella::vmap::highest_level(self);
  return lamella::vmap::wrap(call(lamella::vmap::unwrap(self, level).first), level);
}
template <class Call>
Tensor of_rows(const char* name, const Tensor& self, Call call) {
  auto level = lamella::vmap::highest_level(self);
  Tensor all = lamella::vmap::unwrap(self, level).first;
  LAMELLA_CHECK(all.dim() > 1, name,
                ": expected 'self' to have rows, got a tensor without dimensions");
  return lamella::vmap::wrap(call(all.transpose(0, 1)).transpose(0, 1), level);
}

Tensor all_reduce_batched(const Tensor& self, std::string_view op, int64_t group, bool fixed) {
  return of_elements(self, [&](const Tensor& all) { return all_reduce(all, op, group, fixed); });
}
Tensor& all_reduce_batched_(Tensor& self, std::string_view op, int64_t group, bool fixed) {
  of_elements(self, [&](Tensor all) { return all_reduce_(all, op, group, fixed); });
  return self;
}
Tensor broadcast_batched(const Tensor& self, int64_t root, int64_t group) {
  return of_elements(self, [&](const Tensor& all) { return broadcast(all, root, group); });
}
Tensor& broadcast_batched_(Tensor& self, int64_t root, int64_t group) {
  of_elements(self, [&](Tensor all) { return broadcast_(all, root, group); });
  return self;
}
Tensor recv_batched(const Tensor& self, int64_t source, int64_t tag, int64_t group, bool gradient) {
  return of_elements(self,
                     [&](const Tensor& all) { return recv(all, source, tag, group, gradient); });
}
Tensor& recv_batched_(Tensor& self, int64_t source, int64_t tag, int64_t group, bool gradient) {
  of_elements(self, [&](Tensor all) { return recv_(all, source, tag, group, gradient); });
  return self;
}
Tensor send_batched(const Tensor& self, int64_t to, int64_t tag, int64_t group, bool gradient) {
  auto level = lamella::vmap::highest_level(self);
  return send(lamella::vmap::unwrap(self, level).first, to, tag, group, gradient);
}
Tensor all_gather_batched(const Tensor& self, OptionalIntArrayRef sizes, int64_t group) {
  return of_rows("all_gather", self,
                 [&](const Tensor& all) { return all_gather(all, sizes, group); });
}
Tensor reduce_scatter_batched(const Tensor& self, std::string_view op, OptionalIntArrayRef sizes,
                              int64_t group, bool fixed) {
  return of_rows("reduce_scatter", self,
                 [&](const Tensor& all) { return reduce_scatter(all, op, sizes, group, fixed); });
}
Tensor all_to_all_batched(const Tensor& self, OptionalIntArrayRef send, OptionalIntArrayRef receive,
                          int64_t group) {
  return of_rows("all_to_all", self,
                 [&](const Tensor& all) { return all_to_all(all, send, receive, group); });
}
Tensor gather_batched(const Tensor& self, int64_t root, OptionalIntArrayRef sizes, int64_t group) {
  return of_rows("gather", self,
                 [&](const Tensor& all) { return gather(all, root, sizes, group); });
}
Tensor scatter_batched(const Tensor& self, int64_t root, OptionalIntArrayRef sizes, int64_t group) {
  return of_rows("scatter", self,
                 [&](const Tensor& all) { return scatter(all, root, sizes, group); });
}

LAMELLA_LIBRARY_IMPL(dist, Batched, m) {
  m.impl("all_reduce", &all_reduce_batched);
  m.impl("all_reduce_", &all_reduce_batched_);
  m.impl("broadcast", &broadcast_batched);
  m.impl("broadcast_", &broadcast_batched_);
  m.impl("recv", &recv_batched);
  m.impl("recv_", &recv_batched_);
  m.impl("send", &send_batched);
  m.impl("all_gather", &all_gather_batched);
  m.impl("reduce_scatter", &reduce_scatter_batched);
  m.impl("all_to_all", &all_to_all_batched);
  m.impl("gather", &gather_batched);
  m.impl("scatter", &scatter_batched);
}

}  // namespace
}  // namespace dist
