// Select-and-scatter with windows of which one element is selected: the gradient of pooling.
#include "lamella/graph/execute/select_scatter.h"

#include <algorithm>
#include <string_view>

#include "lamella/core/interrupt.h"
#include "lamella/graph/execute/region.h"

namespace lamella::hlo {
namespace {

// Reads how the select computation compares its two parameters; false if it does anything else.
bool read_select(const Computation& select, SelectScatter* p) {
  const Instruction& root = *select.root;
  if (root.opcode != Opcode::Compare || root.text(AttributeKey::Type) == "TOTALORDER") return false;
  const Instruction *left = root.operands[0], *right = root.operands[1];
  if (left->opcode != Opcode::Parameter || right->opcode != Opcode::Parameter || left == right) {
    return false;
  }
  std::string_view direction = root.text(AttributeKey::Direction);
  if (direction != "GE" && direction != "GT" && direction != "LE" && direction != "LT") {
    return false;
  }
  bool exchanged = left->parameter_number == 1;
  p->takes_less = (direction[0] == 'L') != exchanged ? 1 : 0;
  p->takes_equal = direction[1] == 'E' ? 1 : 0;
  return true;
}

// Processes one of the outer arrays. The selected elements of several lanes are found at once.
template <class T, class Stays>
void scatter_one(const SelectScatter& p, const T* x, const T* source, T first, T* y,
                 const Stays& stays) {
  constexpr int64_t kLanes = 64;
  const int64_t row = p.in[2] * p.lanes, plane = p.in[1] * row;
  std::fill_n(y, p.in[0] * plane, first);
  int64_t at[3], begin[3], end[3];
  auto clip = [&](int d) {
    begin[d] = std::max<int64_t>(0, at[d] * p.stride[d] - p.padding[d]);
    end[d] = std::min(p.in[d], at[d] * p.stride[d] - p.padding[d] + p.size[d]);
    return begin[d] < end[d];
  };
  for (at[0] = 0; at[0] < p.out[0]; ++at[0]) {
    for (at[1] = 0; at[1] < p.out[1]; ++at[1]) {
      for (at[2] = 0; at[2] < p.out[2]; ++at[2], source += p.lanes) {
        bool has_elements = true;
        for (int d = 0; d < 3; ++d) has_elements = clip(d) && has_elements;
        if (!has_elements) continue;
        if (p.lanes == 1) {
          int64_t where = begin[0] * plane + begin[1] * row + begin[2];
          T best = x[where];
          for (int64_t a = begin[0]; a < end[0]; ++a) {
            for (int64_t b = begin[1]; b < end[1]; ++b) {
              const int64_t line = a * plane + b * row;
              for (int64_t from = line + begin[2]; from < line + end[2]; ++from) {
                const bool keep = stays(best, x[from]);
                best = keep ? best : x[from];
                where = keep ? where : from;
              }
            }
          }
          y[where] += *source;
          continue;
        }
        for (int64_t lane = 0; lane < p.lanes; lane += kLanes) {
          const int64_t count = std::min(kLanes, p.lanes - lane);
          T best[kLanes];
          int64_t where[kLanes];
          const int64_t start = begin[0] * plane + begin[1] * row + begin[2] * p.lanes + lane;
          for (int64_t l = 0; l < count; ++l) {
            best[l] = x[start + l];
            where[l] = start;
          }
          for (int64_t a = begin[0]; a < end[0]; ++a) {
            for (int64_t b = begin[1]; b < end[1]; ++b) {
              for (int64_t c = begin[2]; c < end[2]; ++c) {
                const int64_t from = a * plane + b * row + c * p.lanes + lane;
                if (from == start) continue;
                for (int64_t l = 0; l < count; ++l) {
                  const T one = x[from + l];
                  const bool keep = stays(best[l], one);
                  best[l] = keep ? best[l] : one;
                  where[l] = keep ? where[l] : from;
                }
              }
            }
          }
          for (int64_t l = 0; l < count; ++l) y[where[l] + l] += source[lane + l];
        }
      }
    }
  }
}

struct Job {
  const SelectScatter* p;
  const void *operand, *source, *first;
  void* result;
};
template <class T>
void run_range(void* const* context, int64_t begin, int64_t end) {
  const Job& job = *static_cast<const Job*>(context[0]);
  const SelectScatter& p = *job.p;
  const int64_t in = p.in[0] * p.in[1] * p.in[2] * p.lanes;
  const int64_t out = p.out[0] * p.out[1] * p.out[2] * p.lanes;
  const T first = *static_cast<const T*>(job.first);
  for (int64_t o = begin; o < end; ++o) {
    auto one = [&](const auto& stays) {
      scatter_one(p, static_cast<const T*>(job.operand) + o * in,
                  static_cast<const T*>(job.source) + o * out, first,
                  static_cast<T*>(job.result) + o * in, stays);
    };
    // A comparison with NaN is false, so that the later element is selected.
    if (p.takes_less != 0 && p.takes_equal != 0) {
      one([](T a, T b) { return a <= b; });
    } else if (p.takes_less != 0) {
      one([](T a, T b) { return a < b; });
    } else if (p.takes_equal != 0) {
      one([](T a, T b) { return a >= b; });
    } else {
      one([](T a, T b) { return a > b; });
    }
  }
}

}  // namespace

std::optional<SelectScatter> select_scatter(const Instruction& i) {
  const Attribute* found = i.find(AttributeKey::Window);
  if (i.opcode != Opcode::SelectAndScatter || found == nullptr || !i.shape->is_array()) {
    return std::nullopt;
  }
  const Shape &operand = i.operand_shape(0), &source = i.operand_shape(1);
  ElementType type = i.shape->element_type();
  SelectScatter p{};
  if ((type != ElementType::F32 && type != ElementType::F64) || operand.element_type() != type ||
      source.element_type() != type || operand.rank() == 0 || operand.elements() == 0 ||
      source.elements() == 0 ||
      single_operation(*i.computation(AttributeKey::Scatter)) != Opcode::Add ||
      !read_select(*i.computation(AttributeKey::Select), &p)) {
    return std::nullopt;
  }
  auto window = found->window();
  auto is_trivial = [&](const WindowDimension& w) {
    return w.size == 1 && w.stride == 1 && w.padding_low == 0 && w.padding_high == 0;
  };
  size_t begin = 0, end = window.size();
  while (begin < end && is_trivial(window[begin])) ++begin;
  while (end > begin && is_trivial(window[end - 1])) --end;
  constexpr int64_t kLimit = int64_t{1} << 31;
  if (end - begin > 3) return std::nullopt;
  p.is_double = type == ElementType::F64 ? 1 : 0;
  p.outer = p.lanes = 1;
  for (size_t d = 0; d < window.size(); ++d) {
    int64_t size = operand.dimension(static_cast<int64_t>(d));
    if (d < begin) p.outer *= size;
    if (d >= end) p.lanes *= size;
  }
  for (size_t n = 0; n < 3; ++n) {
    p.in[n] = p.out[n] = p.size[n] = p.stride[n] = 1;
    if (n < 3 - (end - begin)) continue;
    size_t d = begin + n - (3 - (end - begin));
    const WindowDimension& w = window[d];
    if (w.window_dilation != 1 || w.base_dilation != 1 || w.size > kLimit || w.stride > kLimit ||
        w.padding_low > kLimit || w.padding_low < -kLimit) {
      return std::nullopt;
    }
    p.in[n] = operand.dimension(static_cast<int64_t>(d));
    p.out[n] = source.dimension(static_cast<int64_t>(d));
    p.size[n] = w.size;
    p.stride[n] = w.stride;
    p.padding[n] = w.padding_low;
  }
  return p;
}

void run_select_scatter(const SelectScatter& p, const void* operand, const void* source,
                        const void* first, void* result, ParallelLoop parallel) {
  const int64_t work = p.in[0] * p.in[1] * p.in[2] * p.lanes;
  constexpr int64_t kWork = 16384;
  Job job{&p, operand, source, first, result};
  void* context[] = {&job};
  parallel(p.is_double != 0 ? run_range<double> : run_range<float>, context, p.outer,
           kWork / work + 1);
  count_steps(p.outer * work);
}

}  // namespace lamella::hlo
