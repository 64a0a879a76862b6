// Recurrent cells, compiled for each capability: see Note [Recurrent layers].
#include "lamella/kernels/families/rnn/cells.h"

#include <algorithm>
#include <cstring>

#include "lamella/kernels/cpu/simd/exponential.h"
#include "lamella/kernels/cpu/simd/vec_math.h"

namespace lamella::rnn {
inline namespace CPU_CAPABILITY {
namespace {

using native::v_at_least;
using native::v_tanh;
template <class T>
using VecOf = std::conditional_t<std::is_same_v<T, float>, native::VecF, native::VecD>;

// Loads `count` numbers, at most a vector; the other lanes are zero.
template <class T>
LAMELLA_ALWAYS_INLINE VecOf<T> load(const T* from, int64_t count) {
  VecOf<T> v = {};
  if (count * static_cast<int64_t>(sizeof(T)) == static_cast<int64_t>(sizeof(v))) {
    std::memcpy(&v, from, sizeof(v));
  } else {
    std::memcpy(&v, from, static_cast<size_t>(count) * sizeof(T));
  }
  return v;
}
template <class T>
LAMELLA_ALWAYS_INLINE void store(T* to, VecOf<T> v, int64_t count) {
  if (count * static_cast<int64_t>(sizeof(T)) == static_cast<int64_t>(sizeof(v))) {
    std::memcpy(to, &v, sizeof(v));
  } else {
    std::memcpy(to, &v, static_cast<size_t>(count) * sizeof(T));
  }
}
template <class V>
LAMELLA_ALWAYS_INLINE V sigmoid(V x) {
  using T = native::ElementOf<V>;
  return T(0.5) + T(0.5) * v_tanh(T(0.5) * x);
}

// Calls f(row, i, count) for stretches of at most a vector; `count` is constant for whole vectors.
template <class T, class F>
LAMELLA_ALWAYS_INLINE void over(int64_t begin, int64_t end, int64_t hidden, const F& f) {
  constexpr int64_t kLanes = sizeof(VecOf<T>) / sizeof(T);
  for (int64_t row = begin; row < end; ++row) {
    int64_t i = 0;
    for (; i + kLanes <= hidden; i += kLanes) {
      f(row, i, std::integral_constant<int64_t, kLanes>());
    }
    if (i < hidden) f(row, i, hidden - i);
  }
}

template <class T>
void forward(const Step<T>& s, int64_t begin, int64_t end) {
  const int64_t h = s.hidden;
  if (s.mode == Mode::kLstm) {
    over<T>(begin, end, h, [&](int64_t row, int64_t i, auto count) {
      auto gate = [&](int64_t k) {
        const int64_t at = row * 4 * h + k * h + i;
        return load(s.input + at, count) + load(s.recurrent + at, count);
      };
      const auto in = sigmoid(gate(0)), keep = sigmoid(gate(1));
      const auto made = v_tanh(gate(2)), out = sigmoid(gate(3));
      const auto before = load(s.cell + row * h + i, count);
      const auto cell = keep * before + in * made;
      if (s.saved != nullptr) {
        T* saved = s.saved + row * s.saved_row + i;
        store(saved, in, count), store(saved + h, keep, count), store(saved + 2 * h, made, count);
        store(saved + 3 * h, out, count), store(saved + 4 * h, before, count);
      }
      store(s.cell + row * h + i, cell, count);
      store(s.output + row * h + i, VecOf<T>(out * v_tanh(cell)), count);
    });
  } else if (s.mode == Mode::kGru) {
    over<T>(begin, end, h, [&](int64_t row, int64_t i, auto count) {
      const T *input = s.input + row * 3 * h + i, *recurrent = s.recurrent + row * 3 * h + i;
      const auto reset = sigmoid(load(input, count) + load(recurrent, count));
      const auto keep = sigmoid(load(input + h, count) + load(recurrent + h, count));
      const auto share = load(recurrent + 2 * h, count);
      const auto made = v_tanh(load(input + 2 * h, count) + reset * share);
      if (s.saved != nullptr) {
        T* saved = s.saved + row * s.saved_row + i;
        store(saved, reset, count), store(saved + h, keep, count);
        store(saved + 2 * h, made, count), store(saved + 3 * h, share, count);
      }
      const auto before = load(s.hidden_before + row * h + i, count);
      store(s.output + row * h + i, VecOf<T>(made + keep * (before - made)), count);
    });
  } else {
    over<T>(begin, end, h, [&](int64_t row, int64_t i, auto count) {
      const int64_t at = row * h + i;
      const auto sum = load(s.input + at, count) + load(s.recurrent + at, count);
      const auto made = s.mode == Mode::kTanh ? v_tanh(sum) : v_at_least(sum, T(0));
      store(s.output + at, made, count);
    });
  }
}

template <class T>
void backward(const StepBackward<T>& s, int64_t begin, int64_t end) {
  const int64_t h = s.hidden;
  if (s.mode == Mode::kLstm) {
    over<T>(begin, end, h, [&](int64_t row, int64_t i, auto count) {
      const T* saved = s.saved + row * s.saved_row + i;
      const auto in = load(saved, count), keep = load(saved + h, count);
      const auto made = load(saved + 2 * h, count), out = load(saved + 3 * h, count);
      const auto before = load(saved + 4 * h, count);
      const auto tanh = v_tanh(keep * before + in * made);
      const auto grad = load(s.grad + row * h + i, count);
      const auto cell = load(s.state + row * h + i, count) + grad * out * (1 - tanh * tanh);
      T* gates = s.gates + row * 4 * h + i;
      store(gates, VecOf<T>(cell * made * in * (1 - in)), count);
      store(gates + h, VecOf<T>(cell * before * keep * (1 - keep)), count);
      store(gates + 2 * h, VecOf<T>(cell * in * (1 - made * made)), count);
      store(gates + 3 * h, VecOf<T>(grad * tanh * out * (1 - out)), count);
      store(s.state + row * h + i, VecOf<T>(cell * keep), count);
    });
  } else if (s.mode == Mode::kGru) {
    over<T>(begin, end, h, [&](int64_t row, int64_t i, auto count) {
      const T* saved = s.saved + row * s.saved_row + i;
      const auto reset = load(saved, count), keep = load(saved + h, count);
      const auto made = load(saved + 2 * h, count), share = load(saved + 3 * h, count);
      const auto before = load(s.hidden_before + row * s.hidden_row + i, count);
      const auto grad = load(s.grad + row * h + i, count);
      const auto new_gate = grad * (1 - keep) * (1 - made * made);
      const auto reset_gate = new_gate * share * reset * (1 - reset);
      const auto keep_gate = grad * (before - made) * keep * (1 - keep);
      T *gates = s.gates + row * 3 * h + i, *recurrent = s.recurrent + row * 3 * h + i;
      store(gates, reset_gate, count), store(recurrent, reset_gate, count);
      store(gates + h, keep_gate, count), store(recurrent + h, keep_gate, count);
      store(gates + 2 * h, new_gate, count);
      store(recurrent + 2 * h, VecOf<T>(new_gate * reset), count);
      store(s.state + row * h + i, VecOf<T>(grad * keep), count);
    });
  } else {
    over<T>(begin, end, h, [&](int64_t row, int64_t i, auto count) {
      const int64_t at = row * h + i;
      const auto out = load(s.output + at, count), grad = load(s.grad + at, count);
      const VecOf<T> zero = {};
      const auto gate = s.mode == Mode::kTanh ? VecOf<T>(grad * (1 - out * out))
                                              : VecOf<T>(out > 0 ? grad : zero);
      store(s.gates + at, gate, count);
    });
  }
}

}  // namespace

const Cells<float>& cells_of(float) {
  static constexpr Cells<float> kCells = {&forward<float>, &backward<float>};
  return kCells;
}
const Cells<double>& cells_of(double) {
  static constexpr Cells<double> kCells = {&forward<double>, &backward<double>};
  return kCells;
}

}  // namespace CPU_CAPABILITY
}  // namespace lamella::rnn
