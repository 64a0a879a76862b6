// Recurrent layers: RNN, LSTM and GRU over sequences, and their cells for one step. For equal
// seeds, the initial parameters equal PyTorch's.
#pragma once
#include "lamella/nn/packed_sequence.h"

namespace lamella::nn {

#define LAMELLA_RECURRENT_OPTIONS(Name)                       \
 public:                                                      \
  Name(int64_t input_size, int64_t hidden_size)               \
      : input_size_(input_size), hidden_size_(hidden_size) {} \
  LAMELLA_OPTION(int64_t, input_size);                        \
  LAMELLA_OPTION(int64_t, hidden_size);                       \
  LAMELLA_OPTION(bool, bias) = true
// The further options of layers; dropout is applied between consecutive layers.
#define LAMELLA_LAYERED_OPTIONS(Name)        \
  LAMELLA_RECURRENT_OPTIONS(Name);           \
  LAMELLA_OPTION(int64_t, num_layers) = 1;   \
  LAMELLA_OPTION(bool, batch_first) = false; \
  LAMELLA_OPTION(double, dropout) = 0;       \
  LAMELLA_OPTION(bool, bidirectional) = false
struct RNNOptions {
  LAMELLA_LAYERED_OPTIONS(RNNOptions);
  LAMELLA_OPTION(Word, nonlinearity) = kTanh;  // or kReLU
};
struct LSTMOptions {
  LAMELLA_LAYERED_OPTIONS(LSTMOptions);
  LAMELLA_OPTION(int64_t, proj_size) = 0;  // projected size of the hidden state; 0: none
};
struct GRUOptions {
  LAMELLA_LAYERED_OPTIONS(GRUOptions);
};
struct RNNCellOptions {
  LAMELLA_RECURRENT_OPTIONS(RNNCellOptions);
  LAMELLA_OPTION(Word, nonlinearity) = kTanh;
};
struct LSTMCellOptions {
  LAMELLA_RECURRENT_OPTIONS(LSTMCellOptions);
};
struct GRUCellOptions {
  LAMELLA_RECURRENT_OPTIONS(GRUCellOptions);
};
#undef LAMELLA_LAYERED_OPTIONS
#undef LAMELLA_RECURRENT_OPTIONS

namespace detail {

// The number by which the operator _rnn_layer knows a cell, and its number of gates.
struct RecurrentKind {
  const char* name;
  int64_t number, gates;
};
LAMELLA_LAZY RecurrentKind kind_of(const char* name, Word nonlinearity) {
  LAMELLA_CHECK_VALUE(nonlinearity == kTanh || nonlinearity == kReLU, name,
                      ": expected 'nonlinearity' to be tanh or relu, got ", nonlinearity);
  return {name, nonlinearity == kTanh ? 0 : 1, 1};
}
template <class Options>
RecurrentKind kind_of_options(const Options& options) {
  if constexpr (std::is_same_v<Options, RNNOptions>) {
    return kind_of("RNN", options.nonlinearity());
  } else if constexpr (std::is_same_v<Options, RNNCellOptions>) {
    return kind_of("RNNCell", options.nonlinearity());
  } else if constexpr (std::is_same_v<Options, LSTMOptions>) {
    return {"LSTM", 2, 4};
  } else if constexpr (std::is_same_v<Options, LSTMCellOptions>) {
    return {"LSTMCell", 2, 4};
  } else if constexpr (std::is_same_v<Options, GRUOptions>) {
    return {"GRU", 3, 3};
  } else {
    return {"GRUCell", 3, 3};
  }
}

// One direction of one layer. Rows are ordered by time, batch_sizes[t] of them for step t. Returns
// the outputs, the last hidden state, and for an LSTM the last cell; `states` has the initial ones.
// Weights are w_ih, w_hh, then b_ih and b_hh if `bias`, then the projection if there is one.
LAMELLA_LAZY std::vector<Tensor> recur(const RecurrentKind& kind, const Tensor& rows,
                                       const std::vector<Tensor>& states,
                                       const std::vector<Tensor>& weights, bool bias,
                                       IntArrayRef batch_sizes, bool reverse) {
  using OptionalTensor = std::optional<Tensor>;
  static const auto layer =
      find<std::tuple<Tensor, Tensor, Tensor, Tensor>, const Tensor&, const Tensor&,
           const OptionalTensor&, const Tensor&, const OptionalTensor&, const OptionalTensor&,
           IntArrayRef, int64_t, bool, bool, const OptionalTensor&, const OptionalTensor&,
           const OptionalTensor&>("aten::_rnn_layer");
  bool keep = rows.requires_grad();
  for (const Tensor& each : states) keep = keep || each.requires_grad();
  for (const Tensor& each : weights) keep = keep || each.requires_grad();
  const size_t behind = bias ? 4 : 2;
  Tensor gates = F::linear(rows, weights[0], bias ? weights[2] : Tensor());
  auto [output, h, c, kept] =
      layer.call(gates, states[0], states.size() > 1 ? OptionalTensor(states[1]) : std::nullopt,
                 weights[1], bias ? OptionalTensor(weights[3]) : std::nullopt,
                 weights.size() > behind ? OptionalTensor(weights[behind]) : std::nullopt,
                 batch_sizes, kind.number, reverse, keep && GradMode::is_enabled(), rows,
                 weights[0], bias ? OptionalTensor(weights[2]) : std::nullopt);
  return {output, h, c};
}

LAMELLA_LAZY void draw_recurrent(const std::vector<Tensor>& weights, int64_t hidden_size) {
  double bound = hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(hidden_size)) : 0;
  for (const Tensor& weight : weights) init::uniform_(weight, -bound, bound);
}

LAMELLA_LAZY void check_shape(const char* op, const char* name, const Tensor& tensor,
                              std::vector<int64_t> shape) {
  LAMELLA_CHECK(tensor.sizes() == IntArrayRef(shape), op, ": expected '", name,
                "' to have the shape ", shape, ", got ", tensor.sizes());
}

// The options that layers of all kinds have, as they were given to the constructor.
struct RNNOptionsBase {
  RNNOptionsBase() = default;
  LAMELLA_OPTION(int64_t, input_size) = 0;
  LAMELLA_OPTION(int64_t, hidden_size) = 0;
  LAMELLA_OPTION(int64_t, num_layers) = 1;
  LAMELLA_OPTION(bool, bias) = true;
  LAMELLA_OPTION(bool, batch_first) = false;
  LAMELLA_OPTION(double, dropout) = 0;
  LAMELLA_OPTION(bool, bidirectional) = false;
  LAMELLA_OPTION(int64_t, proj_size) = 0;
};

// The base of the layers. State is a Tensor, or for an LSTM a pair of hidden state and cell.
template <class Derived, class Options, class State>
class RecurrentBase : public Cloneable<Derived> {
  static constexpr bool kHasCell = !std::is_same_v<State, Tensor>;

 public:
  using HiddenState = std::conditional_t<kHasCell, std::optional<State>, State>;

  RecurrentBase(int64_t input_size, int64_t hidden_size)
      : RecurrentBase(Options(input_size, hidden_size)) {}
  explicit RecurrentBase(const Options& given) : options(given) {
    reset();
    options_base.input_size(given.input_size())
        .hidden_size(given.hidden_size())
        .num_layers(given.num_layers())
        .bias(given.bias())
        .batch_first(given.batch_first())
        .dropout(given.dropout())
        .bidirectional(given.bidirectional())
        .proj_size(projected());
  }
  void reset() override {
    const RecurrentKind kind = kind_of_options(options);
    for (auto [name, value] : {std::pair("hidden_size", options.hidden_size()),
                               std::pair("num_layers", options.num_layers())}) {
      LAMELLA_CHECK_VALUE(value > 0, kind.name, ": expected '", name, "' to be positive, got ",
                          value);
    }
    LAMELLA_CHECK_VALUE(options.dropout() >= 0 && options.dropout() <= 1, kind.name,
                        ": expected 'dropout' to be from 0 to 1, got ", options.dropout());
    LAMELLA_CHECK_VALUE(projected() >= 0 && projected() < options.hidden_size(), kind.name,
                        ": expected 'proj_size' to be from 0 to ", options.hidden_size() - 1,
                        ", got ", projected());
    weights_.clear();
    const int64_t rows = kind.gates * options.hidden_size();
    for (int64_t layer = 0; layer < options.num_layers(); ++layer) {
      for (int64_t direction = 0; direction < directions(); ++direction) {
        std::string ending = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
        std::vector<Tensor> mine;
        auto add = [&](const char* name, std::vector<int64_t> shape) {
          mine.push_back(this->register_parameter(name + ending, lamella::empty(shape)));
        };
        add("weight_ih", {rows, layer == 0 ? options.input_size() : width() * directions()});
        add("weight_hh", {rows, width()});
        if (options.bias()) {
          add("bias_ih", {rows});
          add("bias_hh", {rows});
        }
        if (projected() > 0) add("weight_hr", {projected(), options.hidden_size()});
        weights_.push_back(std::move(mine));
      }
    }
    reset_parameters();
  }
  void reset_parameters() { draw_recurrent(all_weights(), options.hidden_size()); }
  // Does nothing, because the parameters need not be contiguous with each other.
  void flatten_parameters() {}
  std::vector<Tensor> all_weights() const {
    std::vector<Tensor> all;
    for (const std::vector<Tensor>& some : weights_)
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }

  // input: [T, N, input_size], [N, T, input_size] with batch_first, or [T, input_size]. hx:
  // [num_layers * directions, N, hidden], zeros by default. Returns the outputs, in the layout of
  // the input, and the last state.
  std::tuple<Tensor, State> forward(const Tensor& input, HiddenState hx = {}) {
    const char* name = kind_of_options(options).name;
    LAMELLA_CHECK_VALUE(input.dim() == 2 || input.dim() == 3, name,
                        ": expected 'input' to have 2 or 3 dimensions, got ", input.dim());
    check_width(input);
    const bool batched = input.dim() == 3, turned = batched && options.batch_first();
    Tensor steps = !batched ? input.unsqueeze(1) : turned ? input.transpose(0, 1) : input;
    const int64_t length = steps.size(0), count = steps.size(1);
    LAMELLA_CHECK(length > 0, name, ": expected 'input' to have at least one step");
    std::vector<Tensor> states = states_of(input, hx, count, batched);
    Tensor rows = layers(steps.reshape({length * count, -1}), &states,
                         std::vector<int64_t>(static_cast<size_t>(length), count));
    Tensor output = rows.view({length, count, -1});
    if (turned) output = output.transpose(0, 1);
    if (!batched) {
      output = output.squeeze(1);
      for (Tensor& state : states) state = state.squeeze(1);
    }
    return {output, state_of(states)};
  }
  std::tuple<utils::rnn::PackedSequence, State> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed, HiddenState hx = {}) {
    check_width(packed.data());
    const Tensor& sizes = packed.batch_sizes();
    std::vector<int64_t> batch_sizes(sizes.data_ptr<int64_t>(),
                                     sizes.data_ptr<int64_t>() + sizes.numel());
    std::vector<Tensor> states = states_of(packed.data(), hx, batch_sizes.at(0), true);
    auto reorder = [&](const Tensor& order) {
      if (!order.defined()) return;
      for (Tensor& state : states) state = state.index_select(1, order);
    };
    reorder(packed.sorted_indices());
    Tensor rows = layers(packed.data(), &states, batch_sizes);
    reorder(packed.unsorted_indices());
    return {
        utils::rnn::PackedSequence(rows, sizes, packed.sorted_indices(), packed.unsorted_indices()),
        state_of(states)};
  }

  void pretty_print(std::ostream& stream) const override {
    show(stream, "torch::nn::", kind_of_options(options).name, "(input_size=", options.input_size(),
         ", hidden_size=", options.hidden_size(), ", num_layers=", options.num_layers(),
         ", bias=", options.bias(), ", batch_first=", options.batch_first(),
         ", dropout=", options.dropout(), ", bidirectional=", options.bidirectional());
    if (projected() > 0) show(stream, ", proj_size=", projected());
    show(stream, ")");
  }

  Options options;
  RNNOptionsBase options_base;

 private:
  int64_t directions() const { return options.bidirectional() ? 2 : 1; }
  int64_t projected() const {
    if constexpr (kHasCell) return options.proj_size();
    return 0;
  }
  int64_t width() const { return projected() > 0 ? projected() : options.hidden_size(); }
  void check_width(const Tensor& input) const {
    LAMELLA_CHECK(input.size(-1) == options.input_size(), kind_of_options(options).name,
                  ": expected 'input' to have ", options.input_size(),
                  " numbers in its last dimension, got ", input.sizes());
  }
  // The initial states, each [num_layers * directions, N, *].
  std::vector<Tensor> states_of(const Tensor& input, const HiddenState& hx, int64_t count,
                                bool batched) const {
    const char* name = kind_of_options(options).name;
    const int64_t all = options.num_layers() * directions();
    std::vector<Tensor> states;
    auto add = [&](const char* what, const Tensor* given, int64_t size) {
      if (given == nullptr || !given->defined()) {
        states.push_back(lamella::zeros({all, count, size}, input.options()));
        return;
      }
      check_shape(
          name, what, *given,
          batched ? std::vector<int64_t>{all, count, size} : std::vector<int64_t>{all, size});
      states.push_back(batched ? *given : given->unsqueeze(1));
    };
    if constexpr (kHasCell) {
      add("hx[0]", hx ? &std::get<0>(*hx) : nullptr, width());
      add("hx[1]", hx ? &std::get<1>(*hx) : nullptr, options.hidden_size());
    } else {
      add("hx", &hx, width());
    }
    return states;
  }
  static State state_of(const std::vector<Tensor>& states) {
    if constexpr (kHasCell) {
      return {states[0], states[1]};
    } else {
      return states[0];
    }
  }
  // Runs all layers over rows that are ordered by time; replaces the states by the last ones.
  Tensor layers(Tensor rows, std::vector<Tensor>* states, const std::vector<int64_t>& batch_sizes) {
    const RecurrentKind kind = kind_of_options(options);
    std::vector<std::vector<Tensor>> last(states->size());
    for (int64_t layer = 0; layer < options.num_layers(); ++layer) {
      std::vector<Tensor> outputs;
      for (int64_t direction = 0; direction < directions(); ++direction) {
        const int64_t place = layer * directions() + direction;
        std::vector<Tensor> before;
        for (const Tensor& state : *states) before.push_back(state[place]);
        std::vector<Tensor> got = recur(kind, rows, before, weights_[static_cast<size_t>(place)],
                                        options.bias(), batch_sizes, direction == 1);
        outputs.push_back(got[0]);
        for (size_t i = 0; i < last.size(); ++i) last[i].push_back(got[1 + i]);
      }
      rows = outputs.size() == 1 ? outputs[0] : lamella::cat(outputs, 1);
      if (options.dropout() > 0 && layer + 1 < options.num_layers()) {
        rows = lamella::dropout(rows, options.dropout(), this->is_training());
      }
    }
    for (size_t i = 0; i < last.size(); ++i) (*states)[i] = lamella::stack(last[i]);
    return rows;
  }

  std::vector<std::vector<Tensor>> weights_;  // one list for each layer and direction
};

// The base of the cells: input [N, input_size] or [input_size], states [N, hidden] or [hidden].
template <class Derived, class Options>
class RecurrentCell : public Cloneable<Derived> {
 public:
  RecurrentCell(int64_t input_size, int64_t hidden_size)
      : RecurrentCell(Options(input_size, hidden_size)) {}
  explicit RecurrentCell(const Options& given) : options(given) { reset(); }
  void reset() override {
    const int64_t rows = kind_of_options(options).gates * options.hidden_size();
    auto make = [&](const char* name, bool there, std::vector<int64_t> shape) {
      return this->register_parameter(name, there ? lamella::empty(shape) : Tensor());
    };
    weight_ih = make("weight_ih", true, {rows, options.input_size()});
    weight_hh = make("weight_hh", true, {rows, options.hidden_size()});
    bias_ih = make("bias_ih", options.bias(), {rows});
    bias_hh = make("bias_hh", options.bias(), {rows});
    reset_parameters();
  }
  void reset_parameters() { draw_recurrent(this->parameters(), options.hidden_size()); }

  void pretty_print(std::ostream& stream) const override {
    show(stream, "torch::nn::", kind_of_options(options).name, "(", options.input_size(), ", ",
         options.hidden_size());
    if (!options.bias()) show(stream, ", bias=false");
    if constexpr (std::is_same_v<Options, RNNCellOptions>) {
      if (!(options.nonlinearity() == kTanh)) {
        show(stream, ", nonlinearity=", options.nonlinearity());
      }
    }
    show(stream, ")");
  }

  Options options;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  // The states after one step; undefined states are zeros.
  std::vector<Tensor> step(const Tensor& input, std::vector<Tensor> states) const {
    const RecurrentKind kind = kind_of_options(options);
    LAMELLA_CHECK_VALUE(input.dim() == 1 || input.dim() == 2, kind.name,
                        ": expected 'input' to have 1 or 2 dimensions, got ", input.dim());
    LAMELLA_CHECK(input.size(-1) == options.input_size(), kind.name, ": expected 'input' to have ",
                  options.input_size(), " numbers in its last dimension, got ", input.sizes());
    const bool batched = input.dim() == 2;
    Tensor rows = batched ? input : input.unsqueeze(0);
    for (Tensor& state : states) {
      if (!state.defined()) {
        state = lamella::zeros({rows.size(0), options.hidden_size()}, input.options());
      } else if (state.dim() == 1) {
        state = state.unsqueeze(0);
      }
      check_shape(kind.name, "hx", state, {rows.size(0), options.hidden_size()});
    }
    std::vector<Tensor> weights{weight_ih, weight_hh};
    if (options.bias()) weights.insert(weights.end(), {bias_ih, bias_hh});
    std::vector<Tensor> got =
        recur(kind, rows, states, weights, options.bias(), {rows.size(0)}, false);
    std::vector<Tensor> ends(got.begin() + 1,
                             got.begin() + 1 + static_cast<ptrdiff_t>(states.size()));
    if (!batched) {
      for (Tensor& end : ends) end = end.squeeze(0);
    }
    return ends;
  }
};

using PairOfStates = std::tuple<Tensor, Tensor>;

}  // namespace detail

#define LAMELLA_RECURRENT(Name, State)                                                     \
  LAMELLA_LAZY class Name##ImplOf                                                          \
      : public detail::RecurrentBase<Name##ImplOf<lazy_>, Name##Options, State> {          \
   public:                                                                                 \
    using detail::RecurrentBase<Name##ImplOf<lazy_>, Name##Options, State>::RecurrentBase; \
  };                                                                                       \
  LAMELLA_LAZY_MODULE(Name)
LAMELLA_RECURRENT(RNN, Tensor)
LAMELLA_RECURRENT(LSTM, detail::PairOfStates)
LAMELLA_RECURRENT(GRU, Tensor)
#undef LAMELLA_RECURRENT

#define LAMELLA_RECURRENT_CELL(Name)                                                \
  LAMELLA_LAZY class Name##ImplOf                                                   \
      : public detail::RecurrentCell<Name##ImplOf<lazy_>, Name##Options> {          \
   public:                                                                          \
    using detail::RecurrentCell<Name##ImplOf<lazy_>, Name##Options>::RecurrentCell; \
    Tensor forward(const Tensor& input, const Tensor& hx = {}) {                    \
      return this->step(input, {hx})[0];                                            \
    }                                                                               \
  };                                                                                \
  LAMELLA_LAZY_MODULE(Name)
LAMELLA_RECURRENT_CELL(RNNCell)
LAMELLA_RECURRENT_CELL(GRUCell)
#undef LAMELLA_RECURRENT_CELL
LAMELLA_LAZY class LSTMCellImplOf
    : public detail::RecurrentCell<LSTMCellImplOf<lazy_>, LSTMCellOptions> {
 public:
  using detail::RecurrentCell<LSTMCellImplOf<lazy_>, LSTMCellOptions>::RecurrentCell;
  // Returns hidden state and cell.
  std::tuple<Tensor, Tensor> forward(const Tensor& input,
                                     std::optional<std::tuple<Tensor, Tensor>> hx = {}) {
    std::vector<Tensor> ends =
        this->step(input, {hx ? std::get<0>(*hx) : Tensor(), hx ? std::get<1>(*hx) : Tensor()});
    return {ends[0], ends[1]};
  }
};
LAMELLA_LAZY_MODULE(LSTMCell)

}  // namespace lamella::nn
