// Gradients of collectives, made of collectives, so that they have gradients themselves.
#include "lamella/distributed/gradients.h"

#include "lamella/distributed/group.h"
#include "lamella_mpi/functions.h"

namespace dist {
namespace {

// The product of the other ranks' values, computed without division, as a value may be 0.
Tensor product_of_others(const Tensor& self, int64_t group) {
  Tensor all = dist::all_gather(self.unsqueeze(0), std::nullopt, group);
  int64_t rank = dist::rank(group), size = dist::size(group);
  Tensor product = lamella::ones_like(self);
  for (int64_t r = 0; r < size; ++r) {
    if (r != rank) product = product * all.select(0, r);
  }
  return product.is_complex() ? product.conj() : product;
}

// 1 where this rank has the extreme value, divided by the number of ranks that have it.
Tensor share_of_extreme(const Tensor& self, const Tensor& extreme, int64_t group) {
  Tensor mask = self.eq(extreme).to(self.scalar_type());
  return mask / dist::all_reduce(mask, "sum", group);
}

// Differentiating a message twice would need matching messages on the other rank, so it is refused.
void check_first(const char* name, bool is_gradient) {
  LAMELLA_CHECK(!is_gradient, name, ": the gradient of a message cannot be differentiated again");
}

}  // namespace

std::vector<int64_t> all_rows(OptionalIntArrayRef sizes, IntArrayRef own, int64_t group) {
  if (sizes) return {sizes->begin(), sizes->end()};
  return std::vector<int64_t>(static_cast<size_t>(dist::size(group)), own[0]);
}

Tensor all_reduce_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                           std::string_view op, int64_t group, bool deterministic) {
  if (op == "mean") return dist::all_reduce(grad, "mean", group, deterministic);
  Tensor sum = dist::all_reduce(grad, "sum", group, deterministic);
  if (op == "sum") return sum;
  if (op == "product") return sum * product_of_others(self, group);
  return sum * share_of_extreme(self, result, group);
}

Tensor all_reduce_forward(const Tensor& tangent, const Tensor& self, const Tensor& result,
                          std::string_view op, int64_t group, bool deterministic) {
  if (op == "sum" || op == "mean") return dist::all_reduce(tangent, op, group, deterministic);
  Tensor factor = op == "product" ? product_of_others(self, group).conj()
                                  : share_of_extreme(self, result, group);
  return dist::all_reduce(tangent * factor, "sum", group, deterministic);
}

Tensor reduce_scatter_backward(const Tensor& grad, const Tensor& self, const Tensor& result,
                               std::string_view op, OptionalIntArrayRef sizes, int64_t group) {
  std::vector<int64_t> rows = all_rows(sizes, grad.sizes(), group);
  Tensor all = dist::all_gather(grad, rows, group);
  if (op == "sum") return all;
  if (op == "mean") return all / static_cast<double>(dist::size(group));
  if (op == "product") return all * product_of_others(self, group);
  return all * share_of_extreme(self, dist::all_gather(result, rows, group), group);
}

Tensor broadcast_backward(const Tensor& grad, int64_t root, int64_t group) {
  Tensor sum = dist::all_reduce(grad, "sum", group);
  return dist::rank(group) == root ? sum : lamella::zeros_like(sum);
}

Tensor send_backward(const Tensor& grad, const Tensor& self, int64_t to, int64_t tag, int64_t group,
                     bool gradient) {
  check_first("send", gradient);
  // recv's argument only gives shape and dtype. It is made to depend on the gradient, so that the
  // recv belongs to backward where a program is divided into forward and backward.
  return dist::recv(self * grad, to, tag, group, /*gradient=*/true);
}

Tensor recv_backward(const Tensor& grad, int64_t source, int64_t tag, int64_t group,
                     bool gradient) {
  check_first("recv", gradient);
  dist::send(grad, source, tag, group, /*gradient=*/true);
  return lamella::zeros_like(grad);
}

Tensor scatter_backward(const Tensor& grad, IntArrayRef sizes_of_self, int64_t root,
                        OptionalIntArrayRef sizes, int64_t group) {
  Tensor all = dist::gather(grad, root, all_rows(sizes, grad.sizes(), group), group);
  return dist::rank(group) == root ? all : lamella::zeros(sizes_of_self, grad.options());
}

}  // namespace dist
