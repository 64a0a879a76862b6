// Recurrent layers: see Note [Recurrent layers].
#include <array>
#include <cstring>

#include "lamella/kernels/by_capability.h"
#include "lamella/kernels/families/families.h"
#include "lamella/kernels/families/rnn/cells.h"

namespace lamella::rnn {

#if defined(__x86_64__)
namespace AVX2 {
const Cells<float>& cells_of(float);
const Cells<double>& cells_of(double);
}  // namespace AVX2
namespace AVX512 {
const Cells<float>& cells_of(float);
const Cells<double>& cells_of(double);
}  // namespace AVX512
#endif
namespace DEFAULT {
const Cells<float>& cells_of(float);
const Cells<double>& cells_of(double);
}  // namespace DEFAULT

template <class T>
const Cells<T>& cells() {
  LAMELLA_RETURN_BY_CAPABILITY("rnn", cells_of(T()));
}

}  // namespace lamella::rnn

namespace aten::native {
namespace {

using rnn::Mode;
using std::optional;

struct Layer {
  Mode mode;
  int64_t rows, batch, hidden, out, gates, saved_row;  // `out`: size of the hidden state
  bool projected;
  std::vector<int64_t> starts;  // first row of each step
};

bool given(const optional<Tensor>& t) { return t.has_value() && t->defined(); }

void check_shape(const char* op, const char* name, const Tensor& t, const Dims& shape) {
  LAMELLA_CHECK(t.sizes() == IntArrayRef(shape), op, ": expected '", name, "' to have the shape ",
                IntArrayRef(shape), ", got ", t.sizes());
}

Layer layer_of(const char* op, int64_t rows, ScalarType type, const Tensor& hx, const Tensor& w_hh,
               const optional<Tensor>& w_hr, IntArrayRef batch_sizes, int64_t mode) {
  LAMELLA_CHECK(mode >= 0 && mode <= 3, op, ": expected 'mode' to be from 0 to 3, got ", mode);
  Layer layer;
  layer.mode = static_cast<Mode>(mode);
  LAMELLA_CHECK(hx.dim() == 2, op, ": expected 'hx' to have 2 dimensions, got ", hx.sizes());
  LAMELLA_CHECK(w_hh.dim() == 2, op, ": expected 'w_hh' to have 2 dimensions, got ", w_hh.sizes());
  const int64_t parts = rnn::gates_of(layer.mode);
  layer.rows = rows, layer.batch = hx.size(0), layer.out = hx.size(1);
  layer.gates = w_hh.size(0), layer.hidden = layer.gates / parts;
  layer.projected = given(w_hr);
  layer.saved_row = rnn::saved_of(layer.mode) * layer.hidden + layer.out;
  LAMELLA_CHECK(layer.hidden * parts == layer.gates && layer.hidden > 0, op,
                ": expected 'w_hh' to have a multiple of ", parts, " rows, got ", w_hh.size(0));
  check_shape(op, "w_hh", w_hh, {layer.gates, layer.out});
  LAMELLA_CHECK(!layer.projected || layer.mode == Mode::kLstm, op,
                ": expected 'w_hr' only for an LSTM, got it for another cell");
  if (layer.projected) {
    check_shape(op, "w_hr", *w_hr, {layer.out, layer.hidden});
  } else {
    check_shape(op, "hx", hx, {layer.batch, layer.hidden});
  }
  LAMELLA_CHECK(!batch_sizes.empty(), op, ": expected 'batch_sizes' not to be empty");
  int64_t at = 0, before = layer.batch;
  for (int64_t n : batch_sizes) {
    LAMELLA_CHECK(n >= 0 && n <= before, op, ": expected 'batch_sizes' to be non-increasing ",
                  "from at most ", layer.batch, ", got ", batch_sizes);
    layer.starts.push_back(at);
    at += n, before = n;
  }
  LAMELLA_CHECK(at == rows, op, ": expected as many rows as the sum of 'batch_sizes', ", at,
                ", got ", rows);
  LAMELLA_CHECK_TYPE(is_floating_point(type), op, ": expected floating-point numbers, got ", type);
  for (const Tensor& t : {hx, w_hh, layer.projected ? *w_hr : hx}) {
    LAMELLA_CHECK_TYPE(t.scalar_type() == type, op, ": expected all tensors to be ", type, ", got ",
                       t.scalar_type());
  }
  return layer;
}

void check_rest(const char* op, const Layer& layer, const Tensor& input, const optional<Tensor>& cx,
                const optional<Tensor>& b_hh) {
  check_shape(op, "input", input, {layer.rows, layer.gates});
  LAMELLA_CHECK(given(cx) == (layer.mode == Mode::kLstm), op,
                ": expected 'cx' for an LSTM and for no other cell");
  if (given(cx)) check_shape(op, "cx", *cx, {layer.batch, layer.hidden});
  if (given(b_hh)) check_shape(op, "b_hh", *b_hh, {layer.gates});
  for (const auto* t : {&cx, &b_hh}) {
    LAMELLA_CHECK_TYPE(!given(*t) || (*t)->scalar_type() == input.scalar_type(), op,
                       ": expected all tensors to be ", input.scalar_type(), ", got ",
                       given(*t) ? (*t)->scalar_type() : input.scalar_type());
  }
}

// c = a b, plus the row d for each row unless d is null. All are dense; a is m x k, b is k x n.
template <class T>
void product(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c, const T* d = nullptr) {
  constexpr auto kType = static_cast<int64_t>(sizeof(T) == 4 ? kFloat : kDouble);
  const lamella::native::CodeProduct p = {kType, 1, m, n, k, m * k, k, 1, k * n, n, 1, 1, kType};
  lamella::native::code_product(p, a, b, c, nullptr, d);
}

// The number of rows of a step for which another thread pays.
int64_t grain_of(int64_t hidden) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, hidden));
}

template <class T>
void run(const Layer& layer, const Tensor& input, const Tensor& w_hh, const optional<Tensor>& b_hh,
         const optional<Tensor>& w_hr, IntArrayRef batch_sizes, bool reverse, const Tensor& output,
         const Tensor& hy, const Tensor& cy, const Tensor& saved) {
  const auto& cells = rnn::cells<T>();
  const Tensor weight = w_hh.t().contiguous();
  const Tensor narrow = layer.projected ? w_hr->t().contiguous() : Tensor();
  const Tensor bias = given(b_hh) ? b_hh->contiguous() : Tensor();
  const Tensor recurrent = lamella::empty({layer.batch, layer.gates}, input.options());
  const Tensor wide =
      layer.projected ? lamella::empty({layer.batch, layer.hidden}, input.options()) : Tensor();
  const T* in = input.const_data_ptr<T>();
  const T* w = weight.const_data_ptr<T>();
  T *out = output.mutable_data_ptr<T>(), *state = hy.mutable_data_ptr<T>();
  T* kept = saved.numel() > 0 ? saved.mutable_data_ptr<T>() : nullptr;
  const auto steps = static_cast<int64_t>(batch_sizes.size());
  const int64_t hidden_at = layer.saved_row - layer.out;
  const auto state_bytes = static_cast<size_t>(layer.out) * sizeof(T);
  for (int64_t i = 0; i < steps; ++i) {
    const auto t = static_cast<size_t>(reverse ? steps - 1 - i : i);
    const int64_t n = batch_sizes[t], start = layer.starts[t];
    if (n == 0) continue;
    product<T>(n, layer.gates, layer.out, state, w, recurrent.mutable_data_ptr<T>(),
               bias.defined() ? bias.const_data_ptr<T>() : nullptr);
    T* here = out + start * layer.out;
    rnn::Step<T> step = {layer.mode,
                         layer.hidden,
                         in + start * layer.gates,
                         recurrent.const_data_ptr<T>(),
                         state,
                         layer.mode == Mode::kLstm ? cy.mutable_data_ptr<T>() : nullptr,
                         layer.projected ? wide.mutable_data_ptr<T>() : here,
                         kept == nullptr ? nullptr : kept + start * layer.saved_row,
                         layer.saved_row};
    in_parallel(n, grain_of(layer.hidden), [&](int64_t begin, int64_t end) {
      if (kept != nullptr) {
        for (int64_t row = begin; row < end; ++row) {
          std::memcpy(step.saved + row * layer.saved_row + hidden_at, state + row * layer.out,
                      state_bytes);
        }
      }
      cells.forward(step, begin, end);
    });
    if (layer.projected) {
      product<T>(n, layer.out, layer.hidden, wide.const_data_ptr<T>(), narrow.const_data_ptr<T>(),
                 here);
    }
    std::memcpy(state, here, static_cast<size_t>(n) * state_bytes);
  }
}

// Adds `count` numbers of a gradient to another.
template <class T>
void add_rows(T* to, const T* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

template <class T>
void run_backward(const Layer& layer, const Tensor& grad_output, const Tensor& grad_h,
                  const Tensor& grad_c, const Tensor& w_hh, const Tensor& w_hr,
                  const Tensor& output, const Tensor& saved, IntArrayRef batch_sizes, bool reverse,
                  const Tensor& gates, const Tensor& recurrent, const Tensor& grads) {
  const auto& cells = rnn::cells<T>();
  const auto options = output.options();
  const Tensor wide =
      layer.projected ? lamella::empty({layer.batch, layer.hidden}, options) : Tensor();
  const Tensor direct =
      layer.mode == Mode::kGru ? lamella::empty({layer.batch, layer.hidden}, options) : grad_c;
  const T* kept = saved.const_data_ptr<T>();
  T* state = grad_h.mutable_data_ptr<T>();
  const auto steps = static_cast<int64_t>(batch_sizes.size());
  for (int64_t i = 0; i < steps; ++i) {
    const auto t = static_cast<size_t>(reverse ? i : steps - 1 - i);
    const int64_t n = batch_sizes[t], start = layer.starts[t];
    if (n == 0) continue;
    if (grad_output.defined()) {
      add_rows(state, grad_output.const_data_ptr<T>() + start * layer.out, n * layer.out);
    }
    const T* grad = state;
    if (layer.projected) {
      std::memcpy(grads.mutable_data_ptr<T>() + start * layer.out, state,
                  static_cast<size_t>(n * layer.out) * sizeof(T));
      product<T>(n, layer.hidden, layer.out, state, w_hr.const_data_ptr<T>(),
                 wide.mutable_data_ptr<T>());
      grad = wide.const_data_ptr<T>();
    }
    const T* row = kept + start * layer.saved_row;
    T* step_recurrent = recurrent.mutable_data_ptr<T>() + start * layer.gates;
    const rnn::StepBackward<T> step = {layer.mode,
                                       layer.hidden,
                                       grad,
                                       output.const_data_ptr<T>() + start * layer.out,
                                       row + layer.saved_row - layer.out,
                                       layer.saved_row,
                                       row,
                                       layer.saved_row,
                                       gates.mutable_data_ptr<T>() + start * layer.gates,
                                       step_recurrent,
                                       direct.defined() ? direct.mutable_data_ptr<T>() : nullptr};
    in_parallel(n, grain_of(layer.hidden),
                [&](int64_t begin, int64_t end) { cells.backward(step, begin, end); });
    product<T>(n, layer.out, layer.gates, step_recurrent, w_hh.const_data_ptr<T>(), state);
    if (layer.mode == Mode::kGru) add_rows(state, direct.const_data_ptr<T>(), n * layer.out);
  }
}

// The dtype of the computation: float32 for half precision.
ScalarType computed(ScalarType type) { return type == kHalf || type == kBFloat16 ? kFloat : type; }
optional<Tensor> as(const optional<Tensor>& t, ScalarType type) {
  return given(t) ? optional<Tensor>(t->to(type)) : std::nullopt;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> rnn_layer_meta(
    const Tensor& input, const Tensor& hx, const optional<Tensor>& cx, const Tensor& w_hh,
    const optional<Tensor>& b_hh, const optional<Tensor>& w_hr, IntArrayRef batch_sizes,
    int64_t mode, bool reverse, bool keep, const optional<Tensor>& rows,
    const optional<Tensor>& w_ih, const optional<Tensor>& b_ih) {
  (void)reverse, (void)rows, (void)w_ih, (void)b_ih;
  const char* op = "_rnn_layer";
  LAMELLA_CHECK(input.dim() == 2, op, ": expected 'input' to have 2 dimensions, got ",
                input.sizes());
  const Layer layer =
      layer_of(op, input.size(0), input.scalar_type(), hx, w_hh, w_hr, batch_sizes, mode);
  check_rest(op, layer, input, cx, b_hh);
  const auto options = input.options();
  return {lamella::empty({layer.rows, layer.out}, options),
          lamella::empty({layer.batch, layer.out}, options),
          lamella::empty({given(cx) ? layer.batch : 0, layer.hidden}, options),
          lamella::empty({keep ? layer.rows : 0, layer.saved_row},
                         options.dtype(computed(input.scalar_type())))};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> rnn_layer_cpu(
    const Tensor& input, const Tensor& hx, const optional<Tensor>& cx, const Tensor& w_hh,
    const optional<Tensor>& b_hh, const optional<Tensor>& w_hr, IntArrayRef batch_sizes,
    int64_t mode, bool reverse, bool keep, const optional<Tensor>& rows,
    const optional<Tensor>& w_ih, const optional<Tensor>& b_ih) {
  const ScalarType type = input.scalar_type(), inner = computed(type);
  if (inner != type) {
    const auto [output, hy, cy, saved] =
        rnn_layer_cpu(input.to(inner), hx.to(inner), as(cx, inner), w_hh.to(inner), as(b_hh, inner),
                      as(w_hr, inner), batch_sizes, mode, reverse, keep, rows, w_ih, b_ih);
    return {output.to(type), hy.to(type), cy.to(type), saved};
  }
  auto [output, hy, cy, saved] = rnn_layer_meta(input, hx, cx, w_hh, b_hh, w_hr, batch_sizes, mode,
                                                reverse, keep, rows, w_ih, b_ih);
  const Layer layer =
      layer_of("_rnn_layer", input.size(0), type, hx, w_hh, w_hr, batch_sizes, mode);
  hy.copy_(hx);
  if (given(cx)) cy.copy_(*cx);
  const Tensor dense = input.contiguous();
  if (type == kFloat) {
    run<float>(layer, dense, w_hh, b_hh, w_hr, batch_sizes, reverse, output, hy, cy, saved);
  } else {
    run<double>(layer, dense, w_hh, b_hh, w_hr, batch_sizes, reverse, output, hy, cy, saved);
  }
  return {output, hy, cy, saved};
}

using Six = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

Six rnn_layer_backward_meta(const optional<Tensor>& grad_output, const optional<Tensor>& grad_hy,
                            const optional<Tensor>& grad_cy, const Tensor& hx, const Tensor& w_hh,
                            const optional<Tensor>& w_hr, const Tensor& output, const Tensor& saved,
                            IntArrayRef batch_sizes, int64_t mode, bool reverse,
                            std::array<bool, 6> mask, const optional<Tensor>& cx,
                            const optional<Tensor>& b_hh, const optional<Tensor>& rows,
                            const optional<Tensor>& w_ih, const optional<Tensor>& b_ih) {
  (void)grad_output, (void)grad_hy, (void)grad_cy, (void)saved, (void)reverse;
  (void)cx, (void)b_hh, (void)rows, (void)w_ih, (void)b_ih;
  const Layer layer = layer_of("_rnn_layer_backward", output.size(0), output.scalar_type(), hx,
                               w_hh, w_hr, batch_sizes, mode);
  auto make = [&](bool wanted, const Dims& shape) {
    return wanted ? lamella::empty(shape, output.options()) : Tensor();
  };
  return {make(mask[0], {layer.rows, layer.gates}),
          make(mask[1], {layer.batch, layer.out}),
          make(mask[2], {layer.batch, layer.hidden}),
          make(mask[3], {layer.gates, layer.out}),
          make(mask[4], {layer.gates}),
          make(mask[5], {layer.out, layer.hidden})};
}

Six rnn_layer_backward_cpu(const optional<Tensor>& grad_output, const optional<Tensor>& grad_hy,
                           const optional<Tensor>& grad_cy, const Tensor& hx, const Tensor& w_hh,
                           const optional<Tensor>& w_hr, const Tensor& output, const Tensor& saved,
                           IntArrayRef batch_sizes, int64_t mode, bool reverse,
                           std::array<bool, 6> mask, const optional<Tensor>& cx,
                           const optional<Tensor>& b_hh, const optional<Tensor>& rows,
                           const optional<Tensor>& w_ih, const optional<Tensor>& b_ih) {
  (void)cx, (void)b_hh, (void)rows, (void)w_ih, (void)b_ih;
  const char* op = "_rnn_layer_backward";
  const ScalarType type = output.scalar_type(), inner = computed(type);
  const Layer layer = layer_of(op, output.size(0), type, hx, w_hh, w_hr, batch_sizes, mode);
  LAMELLA_CHECK(saved.sizes() == IntArrayRef({layer.rows, layer.saved_row}), op,
                ": expected 'saved' to be of shape [", layer.rows, ", ", layer.saved_row,
                "], as _rnn_layer returns it with 'keep', got ", saved.sizes());
  const auto options = output.options().dtype(inner);
  auto start = [&](const optional<Tensor>& grad, int64_t columns) {
    return given(grad) ? grad->to(inner).contiguous().clone()
                       : lamella::zeros({layer.batch, columns}, options);
  };
  const Tensor grad_h = start(grad_hy, layer.out);
  const Tensor grad_c = layer.mode == Mode::kLstm ? start(grad_cy, layer.hidden) : Tensor();
  const Tensor outside = given(grad_output) ? grad_output->to(inner).contiguous() : Tensor();
  const Tensor gates = lamella::empty({layer.rows, layer.gates}, options);
  const Tensor recurrent = layer.mode == Mode::kGru ? lamella::empty_like(gates) : gates;
  const Tensor grads =
      layer.projected ? lamella::empty({layer.rows, layer.out}, options) : Tensor();
  const Tensor weight = w_hh.to(inner).contiguous(), out = output.to(inner).contiguous();
  const Tensor narrow = layer.projected ? w_hr->to(inner).contiguous() : Tensor();
  if (inner == kFloat) {
    run_backward<float>(layer, outside, grad_h, grad_c, weight, narrow, out, saved, batch_sizes,
                        reverse, gates, recurrent, grads);
  } else {
    run_backward<double>(layer, outside, grad_h, grad_c, weight, narrow, out, saved, batch_sizes,
                         reverse, gates, recurrent, grads);
  }
  Tensor grad_w, grad_b, grad_r;
  if (mask[3]) {
    const Tensor before = saved.narrow(1, layer.saved_row - layer.out, layer.out);
    grad_w = lamella::mm(recurrent.t(), before).to(type);
  }
  if (mask[4]) grad_b = recurrent.sum(IntArrayRef(int64_t{0})).to(type);
  if (mask[5]) {
    // The input of the projection: o tanh(c).
    auto part = [&](int64_t k) { return saved.narrow(1, k * layer.hidden, layer.hidden); };
    const Tensor cell = part(1).mul(part(4)).add(part(0).mul(part(2)));
    grad_r = lamella::mm(grads.t(), part(3).mul(cell.tanh())).to(type);
  }
  return {mask[0] ? gates.to(type) : Tensor(),
          mask[1] ? grad_h.to(type) : Tensor(),
          mask[2] ? grad_c.to(type) : Tensor(),
          grad_w,
          grad_b,
          grad_r};
}

}  // namespace aten::native
