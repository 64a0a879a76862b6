// Second derivatives of recurrent layers. The kernel's gradient is recomputed by differentiable
// operators, step by step, and differentiated: slower than a kernel, but correct to any order.
#include "lamella/kernels/families/gradients.h"

#include "lamella/kernels/families/families.h"
#include "lamella/kernels/families/rnn/cells.h"

namespace aten {

using namespace lamella;  // NOLINT(google-build-using-namespace)
using std::optional;

namespace {

Tensor sigmoid_part(const Tensor& gates, int64_t part, int64_t hidden) {
  return gates.narrow(1, part * hidden, hidden).sigmoid();
}

// Outputs, the last hidden state and the last cell, as _rnn_layer computes them.
std::array<Tensor, 3> recur(const Tensor& input, const Tensor& hx, const Tensor& cx,
                            const Tensor& w_hh, const Tensor& b_hh, const Tensor& w_hr,
                            IntArrayRef batch_sizes, rnn::Mode mode, bool reverse) {
  const auto steps = static_cast<int64_t>(batch_sizes.size());
  const int64_t batch = hx.size(0), hidden = w_hh.size(0) / rnn::gates_of(mode);
  std::vector<int64_t> starts;
  int64_t rows = 0;
  for (int64_t n : batch_sizes) starts.push_back(rows), rows += n;
  std::vector<Tensor> outputs(batch_sizes.size());
  Tensor h = hx, c = cx;
  // Rows of a state that do not take part in a step keep their values.
  auto with_rest = [&](const Tensor& fresh, const Tensor& state, int64_t n) {
    return n == batch ? fresh : lamella::cat({fresh, state.narrow(0, n, batch - n)});
  };
  for (int64_t i = 0; i < steps; ++i) {
    const auto t = static_cast<size_t>(reverse ? steps - 1 - i : i);
    const int64_t n = batch_sizes[t];
    const Tensor before = h.narrow(0, 0, n);
    const Tensor a = input.narrow(0, starts[t], n);
    const Tensor r =
        lamella::linear(before, w_hh, b_hh.defined() ? optional<Tensor>(b_hh) : std::nullopt);
    Tensor fresh;
    if (mode == rnn::Mode::kLstm) {
      const Tensor gates = a + r;
      const Tensor cell =
          sigmoid_part(gates, 1, hidden) * c.narrow(0, 0, n) +
          sigmoid_part(gates, 0, hidden) * gates.narrow(1, 2 * hidden, hidden).tanh();
      fresh = sigmoid_part(gates, 3, hidden) * cell.tanh();
      if (w_hr.defined()) fresh = lamella::linear(fresh, w_hr);
      c = with_rest(cell, c, n);
    } else if (mode == rnn::Mode::kGru) {
      const Tensor both = a.narrow(1, 0, 2 * hidden) + r.narrow(1, 0, 2 * hidden);
      const Tensor made = (a.narrow(1, 2 * hidden, hidden) +
                           sigmoid_part(both, 0, hidden) * r.narrow(1, 2 * hidden, hidden))
                              .tanh();
      fresh = made + sigmoid_part(both, 1, hidden) * (before - made);
    } else {
      fresh = mode == rnn::Mode::kTanh ? (a + r).tanh() : (a + r).relu();
    }
    outputs[t] = fresh;
    h = with_rest(fresh, h, n);
  }
  return {lamella::cat(outputs), h, c};
}

}  // namespace

RnnGradients rnn_layer_double_backward(TensorList grads, const optional<Tensor>& grad_output,
                                       const optional<Tensor>& grad_hy,
                                       const optional<Tensor>& grad_cy, const Tensor& hx,
                                       const Tensor& w_hh, const optional<Tensor>& w_hr,
                                       const optional<Tensor>& cx, const optional<Tensor>& b_hh,
                                       const optional<Tensor>& rows, const optional<Tensor>& w_ih,
                                       const optional<Tensor>& b_ih, IntArrayRef batch_sizes,
                                       int64_t mode, bool reverse, std::array<bool, 12> wanted) {
  LAMELLA_CHECK(rows.has_value() && rows->defined(),
                "_rnn_layer_backward: expected 'rows' to be given to _rnn_layer for a second "
                "derivative");
  const bool create_graph = GradMode::is_enabled();
  AutoGradMode record(true);
  // Detached aliases, so that dependencies between these tensors outside the layer are not
  // followed.
  std::array<Tensor, 11> own;
  const optional<Tensor> given[] = {grad_output, grad_hy, grad_cy, hx,   w_hh, w_hr,
                                    cx,          b_hh,    rows,    w_ih, b_ih};
  for (size_t i = 0; i < own.size(); ++i) {
    if (given[i].has_value() && given[i]->defined()) own[i] = given[i]->view_as(*given[i]);
  }
  const auto& [g_output, g_hy, g_cy, h, w, narrow, c, b, x, w_in, b_in] = own;
  Tensor input = x;
  if (w_in.defined()) {
    input = lamella::linear(x, w_in, b_in.defined() ? optional<Tensor>(b_in) : std::nullopt);
  }
  const ScalarType type = w.scalar_type();
  if (input.scalar_type() != type) input = input.to(type);  // under autocast
  const auto found =
      recur(input, h, c, w, b, narrow, batch_sizes, static_cast<rnn::Mode>(mode), reverse);

  // The first gradients, of the results in the order of _rnn_layer_backward.
  const Tensor sides[] = {input, h, c, w, b, narrow};
  const Tensor upstream[] = {g_output, g_hy, g_cy};
  std::vector<Tensor> outputs, output_grads, inputs, seconds;
  for (size_t i = 0; i < 3; ++i) {
    if (!upstream[i].defined() || !found[i].defined() || !found[i].requires_grad()) continue;
    outputs.push_back(found[i]);
    output_grads.push_back(upstream[i]);
  }
  for (size_t i = 0; i < 6; ++i) {
    if (!grads[i].defined() || !sides[i].defined() || !sides[i].requires_grad()) continue;
    inputs.push_back(sides[i]);
    seconds.push_back(grads[i]);
  }
  std::array<Tensor, 12> made;
  if (!outputs.empty() && !inputs.empty()) {
    const auto first = autograd::grad(outputs, inputs, output_grads, true, true, true);
    std::vector<Tensor> results, result_grads, sources;
    std::vector<size_t> places;
    for (size_t i = 0; i < first.size(); ++i) {
      if (!first[i].defined() || !first[i].requires_grad()) continue;
      results.push_back(first[i]);
      result_grads.push_back(seconds[i]);
    }
    for (size_t i = 0; i < own.size(); ++i) {
      if (!wanted[i] || !own[i].defined() || !own[i].requires_grad()) continue;
      sources.push_back(own[i]);
      places.push_back(i);
    }
    if (!results.empty() && !sources.empty()) {
      const auto second =
          autograd::grad(results, sources, result_grads, create_graph, create_graph, true);
      for (size_t i = 0; i < places.size(); ++i) made[places[i]] = second[i];
    }
  }
  return std::tuple_cat(made);
}

}  // namespace aten
