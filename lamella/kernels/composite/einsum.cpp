// einsum: sums of products by subscripts, operand after operand from the left.
#include <string>

#include "lamella/kernels/native.h"

namespace lamella::native {

namespace {

constexpr int kEllipsis = -1;

// The labels of one operand or of the result. kEllipsis stands for the dimensions without a label.
std::vector<int> read_labels(std::string_view text) {
  std::vector<int> labels;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      LAMELLA_CHECK(text.substr(i, 3) == "...", "einsum: expected '...' in 'equation', got '", text,
                    "'");
      for (int label : labels) {
        LAMELLA_CHECK(label != kEllipsis, "einsum: expected at most one '...' in '", text, "'");
      }
      labels.push_back(kEllipsis);
      i += 2;
      continue;
    }
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    LAMELLA_CHECK(letter, "einsum: expected letters in 'equation', got '", c, "'");
    labels.push_back(static_cast<unsigned char>(c));
  }
  return labels;
}

struct Equation {
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
};

Equation read_equation(std::string_view text, size_t count) {
  Equation equation;
  size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  while (true) {
    size_t comma = left.find(',');
    equation.operands.push_back(read_labels(left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left = left.substr(comma + 1);
  }
  LAMELLA_CHECK(equation.operands.size() == count, "einsum: expected ", equation.operands.size(),
                " 'tensors' for equation '", text, "', got ", count);
  if (arrow != std::string_view::npos) {
    equation.result = read_labels(text.substr(arrow + 2));
    return equation;
  }
  // Without an arrow, the result has the dimensions of the ellipsis, then those of the labels that
  // occur once, in alphabetical order.
  int times[256] = {};
  bool ellipsis = false;
  for (const auto& labels : equation.operands) {
    for (int label : labels) {
      if (label == kEllipsis)
        ellipsis = true;
      else
        ++times[label];
    }
  }
  if (ellipsis) equation.result.push_back(kEllipsis);
  for (int label = 0; label < 256; ++label) {
    if (times[label] == 1) equation.result.push_back(label);
  }
  return equation;
}

// The dimension of each label in the common layout of all operands.
struct Layout {
  int place[256];
  int64_t ellipsis_at = 0, ellipsis_size = 0;
  int64_t rank = 0, result_rank = 0;
};

Layout lay_out(const Equation& equation, TensorList tensors) {
  Layout layout;
  for (int& p : layout.place) p = -1;
  for (size_t i = 0; i < tensors.size(); ++i) {
    int64_t named = 0;
    bool ellipsis = false;
    for (int label : equation.operands[i]) {
      if (label == kEllipsis)
        ellipsis = true;
      else
        ++named;
    }
    int64_t open = tensors[i].dim() - named;
    LAMELLA_CHECK(ellipsis ? open >= 0 : open == 0, "einsum: expected operand ", i, " to have ",
                  named, ellipsis ? " or more dimensions, got " : " dimensions, got ",
                  tensors[i].sizes());
    if (open > layout.ellipsis_size) layout.ellipsis_size = open;
  }
  int64_t next = 0;
  for (int label : equation.result) {
    if (label == kEllipsis) {
      layout.ellipsis_at = next;
      next += layout.ellipsis_size;
      continue;
    }
    LAMELLA_CHECK(layout.place[label] < 0, "einsum: expected each label once in the result, got '",
                  static_cast<char>(label), "' twice");
    layout.place[label] = static_cast<int>(next++);
  }
  layout.result_rank = next;
  bool kept = false;
  for (int label : equation.result) kept |= label == kEllipsis;
  if (!kept) {
    layout.ellipsis_at = next;
    next += layout.ellipsis_size;
  }
  std::vector<bool> known(256, false);
  for (const auto& labels : equation.operands) {
    for (int label : labels) {
      if (label == kEllipsis) continue;
      known[static_cast<size_t>(label)] = true;
      if (layout.place[label] < 0) layout.place[label] = static_cast<int>(next++);
    }
  }
  for (int label : equation.result) {
    LAMELLA_CHECK(label == kEllipsis || known[static_cast<size_t>(label)],
                  "einsum: expected the labels of the result to be those of operands, got '",
                  static_cast<char>(label), "'");
  }
  layout.rank = next;
  return layout;
}

// Returns the operand with one dimension for each place of the layout, of size 1 where it lacks the
// label.
Tensor aligned(Tensor operand, std::vector<int> labels, const Layout& layout) {
  // A label that is repeated takes the diagonal of its dimensions.
  for (size_t i = 0; i < labels.size(); ++i) {
    for (size_t j = i + 1; j < labels.size(); ++j) {
      if (labels[i] == kEllipsis || labels[i] != labels[j]) continue;
      auto dim_of = [&](size_t at) {
        int64_t d = 0;
        int64_t open = operand.dim() - static_cast<int64_t>(labels.size());
        for (size_t k = 0; k < at; ++k) d += labels[k] == kEllipsis ? open + 1 : 1;
        return d;
      };
      int64_t x = dim_of(i), y = dim_of(j);
      LAMELLA_CHECK(operand.size(x) == operand.size(y),
                    "einsum: expected dimensions with the same label to be of one size, got ",
                    operand.sizes());
      operand = operand.diagonal(0, x, y).movedim(-1, x);
      labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(j));
      --j;
    }
  }
  Dims source(static_cast<size_t>(layout.rank), -1);
  int64_t d = 0;
  int64_t open = operand.dim();
  for (int label : labels) open -= label != kEllipsis;
  for (int label : labels) {
    if (label == kEllipsis) {
      for (int64_t e = 0; e < open; ++e) {
        source[static_cast<size_t>(layout.ellipsis_at + layout.ellipsis_size - open + e)] = d++;
      }
    } else {
      source[static_cast<size_t>(layout.place[label])] = d++;
    }
  }
  Dims order, missing;
  for (size_t place = 0; place < source.size(); ++place) {
    if (source[place] >= 0) {
      order.push_back(source[place]);
    } else {
      missing.push_back(static_cast<int64_t>(place));
    }
  }
  operand = operand.permute(order);
  for (int64_t place : missing) operand = operand.unsqueeze(place);
  return operand;
}

// Sums the product of two aligned operands over `sums`, as one batched matrix product.
Tensor contract(const Tensor& a, const Tensor& b, const std::vector<int64_t>& sums) {
  auto summed = [&](int64_t d) {
    for (int64_t s : sums) {
      if (s == d) return true;
    }
    return false;
  };
  Tensor left = a, right = b;
  Dims batch, rows, columns, inner;  // dimensions by their part in the product
  for (int64_t d = 0; d < a.dim(); ++d) {
    bool in_a = a.size(d) != 1, in_b = b.size(d) != 1;
    LAMELLA_CHECK(!in_a || !in_b || a.size(d) == b.size(d),
                  "einsum: expected operands of broadcastable sizes, got ", a.size(d), " and ",
                  b.size(d), " for one label");
    if (summed(d)) {
      if (in_a && in_b) {
        inner.push_back(d);
      } else if (in_a) {
        left = left.sum(IntArrayRef(d), true);
      } else if (in_b) {
        right = right.sum(IntArrayRef(d), true);
      }
    } else if (in_a && in_b) {
      batch.push_back(d);
    } else if (in_a) {
      rows.push_back(d);
    } else {
      columns.push_back(d);
    }
  }
  // Sums of narrow integers are int64, so the other operand is converted as well.
  if (left.scalar_type() != right.scalar_type()) {
    ScalarType common = lamella::promote_types(left.scalar_type(), right.scalar_type());
    left = left.to(common);
    right = right.to(common);
  }
  auto size_of = [](const Tensor& t, const Dims& dims) {
    int64_t n = 1;
    for (int64_t d : dims) n *= t.size(d);
    return n;
  };
  int64_t nb = size_of(left, batch), nr = size_of(left, rows), nc = size_of(right, columns),
          ni = size_of(left, inner);
  auto order = [](const Dims& x, const Dims& y, const Dims& z, const Tensor& t) {
    Dims all(x);
    all.append_all(y);
    all.append_all(z);
    uint64_t used = 0;
    for (int64_t d : all) used |= uint64_t{1} << d;
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (!(used >> d & 1)) all.push_back(d);  // size 1: its position does not matter
    }
    return all;
  };
  Tensor x = left.permute(order(batch, rows, inner, left)).reshape({nb, nr, ni});
  Tensor y = right.permute(order(batch, inner, columns, right)).reshape({nb, ni, nc});
  Tensor z = lamella::bmm(x, y);
  // Restores one dimension per place.
  Dims made(batch);
  made.append_all(rows);
  made.append_all(columns);
  Dims shape;
  for (int64_t d : batch) shape.push_back(left.size(d));
  for (int64_t d : rows) shape.push_back(left.size(d));
  for (int64_t d : columns) shape.push_back(right.size(d));
  Dims back(static_cast<size_t>(a.dim()), -1);
  for (size_t i = 0; i < made.size(); ++i) {
    back[static_cast<size_t>(made[i])] = static_cast<int64_t>(i);
  }
  for (int64_t& place : back) {
    if (place >= 0) continue;
    place = shape.ndim();
    shape.push_back(1);
  }
  return z.reshape(shape).permute(back);
}

}  // namespace

Tensor einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path) {
  LAMELLA_CHECK_VALUE(!tensors.empty(), "einsum: expected 'tensors' not to be empty");
  Equation read = read_equation(equation, tensors.size());
  Layout layout = lay_out(read, tensors);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < tensors.size(); ++i) {
    operands.push_back(aligned(tensors[i], read.operands[i], layout));
  }
  Tensor result = operands[0];
  for (size_t i = 1; i <= operands.size(); ++i) {
    // Sums over the places that neither the result nor a later operand has.
    std::vector<int64_t> sums;
    for (int64_t d = layout.result_rank; d < layout.rank; ++d) {
      bool later = false;
      for (size_t j = i + 1; j < operands.size(); ++j) later |= operands[j].size(d) != 1;
      if (!later) sums.push_back(d);
    }
    if (i < operands.size()) {
      result = contract(result, operands[i], sums);
    } else if (operands.size() == 1 && !sums.empty()) {
      result = result.sum(IntArrayRef(sums), true);
    }
  }
  Dims shape;
  for (int64_t d = 0; d < layout.result_rank; ++d) shape.push_back(result.size(d));
  return result.reshape(shape);
}

}  // namespace lamella::native
