// Reduce-window and select-and-scatter.
//
// Note [Windows]
//   Along each dimension, position k of the window at output o is at o * stride - padding_low +
//   k * window_dilation of the array dilated by base_dilation. Padding and holes of the dilation
//   are skipped, not read as initial values: each window starts with the initial value once. The
//   elements of a window are found by iterating over the window's positions or over the array's
//   elements, whichever are fewer, because a module may state huge windows.
#include "lamella/graph/evaluate/reduce_window.h"

#include "lamella/graph/evaluate/elements.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/scalar_call.h"

namespace lamella::hlo {
namespace {

class Windows {
 public:
  Windows(std::span<const WindowDimension> window, std::span<const int64_t> base)
      : window_(window), base_(base), strides_(row_major_strides(base)), taken_(base.size()) {}
  // Calls f(offset in the base) for each element in the window of an output, in row-major order.
  template <class F>
  void for_each(std::span<const int64_t> output, F&& f) {
    std::vector<int64_t> counts;
    for (size_t d = 0; d < window_.size(); ++d) {
      take(d, output[d]);
      counts.push_back(static_cast<int64_t>(taken_[d].size()));
    }
    for (Counter in(counts); in.valid(); in.next()) {
      int64_t place = 0;
      for (size_t d = 0; d < counts.size(); ++d) place += taken_[d][static_cast<size_t>(in[d])];
      f(place);
    }
  }

 private:
  // Fills taken_[d] with the offsets, along dimension d, of the elements in an output's window.
  void take(size_t d, int64_t output) {
    const WindowDimension& w = window_[d];
    int64_t start = output * w.stride - w.padding_low;
    taken_[d].clear();
    if (w.size <= base_[d]) {
      for (int64_t k = 0; k < w.size; ++k) {
        int64_t at = start + k * w.window_dilation;
        if (at < 0 || at % w.base_dilation != 0 || at / w.base_dilation >= base_[d]) continue;
        taken_[d].push_back(at / w.base_dilation * strides_[d]);
      }
      return;
    }
    for (int64_t element = 0; element < base_[d]; ++element) {
      int64_t from_start = element * w.base_dilation - start;
      if (from_start < 0 || from_start % w.window_dilation != 0) continue;
      if (from_start / w.window_dilation < w.size) taken_[d].push_back(element * strides_[d]);
    }
  }

  std::span<const WindowDimension> window_;
  std::span<const int64_t> base_;
  std::vector<int64_t> strides_;
  std::vector<std::vector<int64_t>> taken_;  // by dimension, for the current output
};

std::span<const WindowDimension> window_of(const Instruction& i) {
  const Attribute* found = i.find(AttributeKey::Window);
  return found != nullptr ? found->window() : std::span<const WindowDimension>();
}

}  // namespace

Value evaluate_reduce_window(Step& step) {
  const Instruction& i = step.instruction;
  size_t count = step.operands.size() / 2;
  Windows windows(window_of(i), step.operands[0].shape().dimensions());
  std::vector<Value> results = make_results(step);
  ScalarCall call(*i.computation(AttributeKey::ToApply), step.run);
  std::vector<Elements> from, initial, into;
  for (size_t n = 0; n < count; ++n) {
    from.emplace_back(step.operands[n]);
    initial.emplace_back(step.operands[count + n]);
    into.emplace_back(results[n]);
  }
  std::vector<const void*> arguments(2 * count);
  std::vector<void*> reached(count);
  int64_t r = 0;
  for (Counter out(results[0].shape().dimensions()); out.valid(); out.next(), ++r) {
    for (size_t n = 0; n < count; ++n) {
      arguments[n] = reached[n] = into[n].at(r);
      std::memcpy(reached[n], initial[n].data, into[n].size);
    }
    windows.for_each(out.index(), [&](int64_t place) {
      for (size_t n = 0; n < count; ++n) arguments[count + n] = from[n].at(place);
      call(arguments, reached);
    });
  }
  return join_results(step, results);
}

Value evaluate_select_and_scatter(Step& step) {
  const Instruction& i = step.instruction;
  const Value& source = step.operands[1];
  Windows windows(window_of(i), step.operands[0].shape().dimensions());
  Value result = step.result();
  Elements from(step.operands[0]), sources(source), into(result);
  for (int64_t e = 0; e < step.shape().elements(); ++e) {
    std::memcpy(into.at(e), step.operands[2].data(), into.size);
  }
  ScalarCall select(*i.computation(AttributeKey::Select), step.run);
  ScalarCall scatter(*i.computation(AttributeKey::Scatter), step.run);
  int64_t s = 0;
  for (Counter at(source.shape().dimensions()); at.valid(); at.next(), ++s) {
    int64_t chosen = -1;  // stays -1 if the whole window is padding
    windows.for_each(at.index(), [&](int64_t place) {
      const void* pair[] = {chosen < 0 ? nullptr : from.at(chosen), from.at(place)};
      if (chosen < 0 || !select.test(pair)) chosen = place;
    });
    if (chosen < 0) continue;
    const void* pair[] = {into.at(chosen), sources.at(s)};
    void* out = into.at(chosen);
    scatter(pair, {&out, 1});
  }
  return result;
}

}  // namespace lamella::hlo
