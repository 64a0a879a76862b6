// One step of recurrent cells; compiled for each capability of the processor.
//
// Note [Recurrent layers]
//   A layer iterates once over a sequence whose rows, [total, *], are ordered by time: step t has
//   batch_sizes[t] of them, never more than the previous step. So padded and packed batches are
//   handled alike. The input's share of the gates is computed beforehand as one large product; a
//   step multiplies the hidden state by its weight and runs the cell, which reads each number once.
//   Values for backward are stored in `saved`, [total, gates and previous state + previous hidden
//   state], so that the weight's gradient is one large product as well.
#pragma once
#include <cstdint>

namespace lamella::rnn {

enum class Mode : int64_t { kTanh, kRelu, kLstm, kGru };

// Parts of a row of gates.
constexpr int64_t gates_of(Mode mode) {
  return mode == Mode::kLstm ? 4 : mode == Mode::kGru ? 3 : 1;
}
// Parts of `hidden` numbers that precede the hidden state in a row of `saved`: the LSTM's gates
// i, f, g, o and previous cell; the GRU's r, z, n and the hidden state's share of n.
constexpr int64_t saved_of(Mode mode) {
  return mode == Mode::kLstm ? 5 : mode == Mode::kGru ? 4 : 0;
}

// The operands of a step. Rows of gates are gates_of(mode) * hidden numbers long.
template <class T>
struct Step {
  Mode mode;
  int64_t hidden;
  const T *input, *recurrent;  // the shares of the gates, biases included
  const T* hidden_before;      // [n, hidden], for the GRU
  T* cell;                     // [n, hidden], for the LSTM; replaced by the new cell
  T* output;                   // [n, hidden]
  T* saved;                    // or null
  int64_t saved_row;
};

// The backward of a step. `gates` and `recurrent` get the gradients of both shares, which are equal
// except for the GRU.
template <class T>
struct StepBackward {
  Mode mode;
  int64_t hidden;
  const T* grad;           // [n, hidden]: of the output, with the gradients from later steps
  const T* output;         // [n, hidden], for cells without gates
  const T* hidden_before;  // for the GRU
  int64_t hidden_row;
  const T* saved;
  int64_t saved_row;
  T *gates, *recurrent;  // may be the same
  T* state;              // [n, hidden]; LSTM: the gradient of the cell, replaced by that of the
                         // previous cell; GRU: set to the part of the gradient of the previous
                         // state that does not pass through the gates
};

// The functions of one capability.
template <class T>
struct Cells {
  void (*forward)(const Step<T>& step, int64_t begin, int64_t end);
  void (*backward)(const StepBackward<T>& step, int64_t begin, int64_t end);
};

template <class T>
const Cells<T>& cells();

}  // namespace lamella::rnn
