// Reduce-window and select-and-scatter.
//
// Note [Windows]
//   Along each dimension, position k of the window at output o is at o * stride - padding_low +
//   k * window_dilation of the array dilated by base_dilation. Padding and holes of the dilation
//   are skipped, not read as initial values: each window starts with the initial value once. The
//   elements of a window are found by iterating over the window's positions or over the array's
//   elements, whichever are fewer, because a module may state huge windows. Windows that all begin
//   at the first element, or all end at the last one, extend the window before by some elements.
//   Those to the last element are reduced from it on, which a reducer's associativity allows.
#include "lamella/graph/evaluate/reduce_window.h"

#include <algorithm>

#include "lamella/graph/evaluate/elements.h"
#include "lamella/graph/evaluate/numbers.h"
#include "lamella/graph/evaluate/scalar_call.h"
#include "lamella/graph/hlo/single_operation.h"

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

// The operands and results of a reduce-window.
struct Reduction {
  ScalarCall call;
  std::vector<Elements> from, initial, into;
};

void reduce_prefixes(const Prefix& prefix, std::span<const int64_t> from_sizes,
                     std::span<const int64_t> into_sizes, Reduction& reduction) {
  auto& [call, from, initial, into] = reduction;
  const size_t count = from.size(), d = static_cast<size_t>(prefix.dimension);
  int64_t outer = 1, inner = 1;
  for (size_t e = 0; e < from_sizes.size(); ++e) {
    if (e != d) (e < d ? outer : inner) *= from_sizes[e];
  }
  const int64_t size = from_sizes[d], outputs = into_sizes[d];
  struct alignas(16) Cell {
    std::byte bytes[16];
  };
  std::vector<Cell> cells(count);
  std::vector<const void*> arguments(2 * count);
  std::vector<void*> reached(count);
  const size_t running = prefix.from_last ? count : 0, taken = count - running;
  for (size_t n = 0; n < count; ++n) arguments[running + n] = reached[n] = &cells[n];
  for (int64_t line = 0; line < outer * inner; ++line) {
    const int64_t row = line / inner, column = line % inner;
    for (size_t n = 0; n < count; ++n) std::memcpy(reached[n], initial[n].data, into[n].size);
    int64_t done = 0;  // elements from the first, or the last, on
    for (int64_t k = 0; k < outputs; ++k) {
      const int64_t o = prefix.from_last ? outputs - 1 - k : k;
      int64_t end = o * prefix.stride + prefix.first;
      if (prefix.from_last) end = size - end;
      for (; done < std::min(end, size); ++done) {
        const int64_t at = prefix.from_last ? size - 1 - done : done;
        for (size_t n = 0; n < count; ++n) {
          arguments[taken + n] = from[n].at((row * size + at) * inner + column);
        }
        call(arguments, reached);
      }
      for (size_t n = 0; n < count; ++n) {
        std::memcpy(into[n].at((row * outputs + o) * inner + column), reached[n], into[n].size);
      }
    }
  }
}

}  // namespace

std::optional<Prefix> prefix_of(const Instruction& i) {
  std::optional<Prefix> prefix;
  const Shape& shape = i.operand_shape(0);
  int64_t d = 0;
  for (const WindowDimension& w : window_of(i)) {
    int64_t size = shape.dimension(d++);
    if (w.base_dilation != 1 || size == 0) return std::nullopt;
    if (w.size == 1 && w.stride == 1 && w.padding_low == 0 && w.padding_high == 0) continue;
    if (prefix || w.window_dilation != 1 || w.size < size) return std::nullopt;
    const int64_t last = (size + w.padding_low + w.padding_high - w.size) / w.stride * w.stride;
    const bool from_last = last > w.padding_low;
    if (from_last && w.size - w.padding_low < size) return std::nullopt;
    const int64_t first = (from_last ? 0 : w.size) - w.padding_low;
    const bool is_scan = w.stride == 1 && last == size - 1 && first == (from_last ? 0 : 1);
    prefix = Prefix{d - 1, from_last, w.stride, first, is_scan};
  }
  // One operation that is not associative, such as subtraction, stays in the order of the window.
  const Computation& reducer = *i.computation(AttributeKey::ToApply);
  bool is_one = reducer.instructions.size() == reducer.parameters.size() + 1;
  if (prefix && prefix->from_last && is_one && !single_operation(reducer)) return std::nullopt;
  return prefix;
}

Value evaluate_reduce_window(Step& step) {
  const Instruction& i = step.instruction;
  size_t count = step.operands.size() / 2;
  Windows windows(window_of(i), step.operands[0].shape().dimensions());
  std::vector<Value> results = make_results(step);
  Reduction reduction{{*i.computation(AttributeKey::ToApply), step.run}, {}, {}, {}};
  auto& [call, from, initial, into] = reduction;
  for (size_t n = 0; n < count; ++n) {
    from.emplace_back(step.operands[n]);
    initial.emplace_back(step.operands[count + n]);
    into.emplace_back(results[n]);
  }
  if (std::optional<Prefix> prefix = prefix_of(i)) {
    reduce_prefixes(*prefix, step.operands[0].shape().dimensions(), results[0].shape().dimensions(),
                    reduction);
    return join_results(step, results);
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
