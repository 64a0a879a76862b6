// Compares two graphs and reports their first difference.
#include <bit>
#include <cstring>

#include "lamella/core/error.h"
#include "lamella/layers/trace/graph.h"
#include "lamella/layers/trace/operators.h"

namespace lamella::tracing {
namespace {

bool same_elements(const TensorBase& a, const TensorBase& b, size_t at_a, size_t at_b, int64_t d) {
  size_t item = a.itemsize();
  if (d == a.dim()) {
    return std::memcmp(static_cast<const char*>(a.data_ptr()) + at_a * item,
                       static_cast<const char*>(b.data_ptr()) + at_b * item, item) == 0;
  }
  for (int64_t i = 0; i < a.sizes()[static_cast<size_t>(d)]; ++i) {
    auto step = [&](const TensorBase& t) {
      return static_cast<size_t>(i * t.strides()[static_cast<size_t>(d)]);
    };
    if (!same_elements(a, b, at_a + step(a), at_b + step(b), d + 1)) return false;
  }
  return true;
}
bool same_tensor(const TensorBase& a, const TensorBase& b) {
  if (a.is_same(b)) return true;
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() || a.device() != b.device() ||
      a.is_conj() != b.is_conj() || a.is_neg() != b.is_neg()) {
    return false;
  }
  if (a.numel() == 0 || a.is_meta()) return true;
  // Only elements in CPU memory can be compared.
  if (!a.is_cpu() || a.data_ptr() == nullptr || b.data_ptr() == nullptr) return false;
  if (a.is_contiguous() && b.is_contiguous()) {
    return a.nbytes() == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
  }
  return same_elements(a, b, 0, 0, 0);
}

bool same_value(const lamella_value& a, const lamella_value& b) {
  if (a.tag != b.tag) return false;
  auto same_elements = [&](size_t bytes) {
    return a.size == b.size &&
           (a.size == 0 || std::memcmp(a.as.pointer, b.as.pointer, a.size * bytes) == 0);
  };
  switch (a.tag) {
    case LAMELLA_NONE:
      return true;
    case LAMELLA_TENSOR:  // a Python number, or a placeholder for a value
      if (a.as.tensor == nullptr || b.as.tensor == nullptr) return a.as.tensor == b.as.tensor;
      return same_tensor(TensorBase::borrow(a.as.tensor), TensorBase::borrow(b.as.tensor));
    case LAMELLA_INT:
    case LAMELLA_BOOL:
    case LAMELLA_DEVICE:
      return a.as.i == b.as.i;
    case LAMELLA_DOUBLE:
      // Compared by bits: NaN equals itself, and 0 differs from -0.
      return std::bit_cast<uint64_t>(a.as.d) == std::bit_cast<uint64_t>(b.as.d);
    case LAMELLA_COMPLEX:
      return std::memcmp(a.as.pointer, b.as.pointer, 2 * sizeof(double)) == 0;
    case LAMELLA_STRING:
    case LAMELLA_BOOL_LIST:
      return same_elements(1);
    case LAMELLA_INT_LIST:
    case LAMELLA_DOUBLE_LIST:
      return same_elements(8);
    case LAMELLA_TENSOR_LIST:
      return a.size == b.size;
    case LAMELLA_LIST:
    case LAMELLA_TUPLE:
    case LAMELLA_DICT: {
      if (a.size != b.size) return false;
      for (uint32_t i = 0; i < a.size; ++i) {
        if (!same_value(static_cast<const lamella_value*>(a.as.pointer)[i],
                        static_cast<const lamella_value*>(b.as.pointer)[i])) {
          return false;
        }
      }
      return true;
    }
    default:
      // Generators of a graph that was read from a file differ from the original's.
      return true;
  }
}

}  // namespace

std::string Graph::difference(const Graph& other, bool contents) const {
  if (inputs_.size() != other.inputs_.size()) {
    return lamella::str(inputs_.size(), " inputs, and ", other.inputs_.size());
  }
  // Maps each value of this graph to the value of the other, in the order of their first use.
  std::vector<ValueId> map(values_.size(), kNoValue);
  auto same_type = [&](ValueId a, ValueId b) {
    return values_[a].dtype == other.values_[b].dtype && sizes(a) == other.sizes(b) &&
           values_[a].device == other.values_[b].device;
  };
  auto same_id = [&](ValueId a, ValueId b) {
    if (a == kNoValue || b == kNoValue) return a == b;
    if (map[a] != kNoValue) return map[a] == b;
    const Value& v = values_[a];
    if (v.kind != other.values_[b].kind) return false;
    if (v.kind == ValueKind::kParameter && name(a) != other.name(b)) return false;
    if (v.kind == ValueKind::kParameter || v.kind == ValueKind::kConstant) {
      if (contents && !same_tensor(tensor(a), other.tensor(b))) return false;
    }
    map[a] = b;
    return true;
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    map[inputs_[i]] = other.inputs_[i];
    if (contents && !same_type(inputs_[i], other.inputs_[i])) {
      return lamella::str("input ", i, " is ", type_text(inputs_[i]), ", and ",
                          other.type_text(other.inputs_[i]));
    }
  }
  auto at = [](const Graph& graph, const Node& node) {
    std::string where = graph.location(node).str();
    return graph.node_text(node) + (where.empty() ? "" : "  # " + where);
  };
  for (size_t n = 0; n < nodes_.size() && n < other.nodes_.size(); ++n) {
    const Node& a = nodes_[n];
    const Node& b = other.nodes_[n];
    bool same = a.op == b.op && a.grad_mode == b.grad_mode;
    ArrayRef<Operand> given = arguments(a), given_b = other.arguments(b);
    for (size_t i = 0; same && i < given.size(); ++i) {
      same = given[i].form == given_b[i].form && given[i].count == given_b[i].count &&
             same_value(given[i].value.value(), given_b[i].value.value());
      for (uint32_t k = 0; same && k < given[i].count; ++k) {
        same = same_id(tensors(given[i])[k], other.tensors(given_b[i])[k]);
      }
    }
    std::vector<ValueId> made = made_by(a), made_b = other.made_by(b);
    same = same && made.size() == made_b.size();
    for (size_t k = 0; same && k < made.size(); ++k) {
      same = same_id(made[k], made_b[k]) && (!contents || same_type(made[k], made_b[k]));
    }
    if (!same) {
      return lamella::str("node ", n, " is\n  ", at(*this, a), "\nand\n  ", at(other, b));
    }
  }
  if (nodes_.size() != other.nodes_.size()) {
    const Graph& longer = nodes_.size() > other.nodes_.size() ? *this : other;
    size_t shorter = std::min(nodes_.size(), other.nodes_.size());
    return lamella::str(nodes_.size(), " nodes, and ", other.nodes_.size(),
                        "; the first that only one has is\n  ", at(longer, longer.nodes_[shorter]));
  }
  bool same = outputs_.size() == other.outputs_.size();
  for (size_t i = 0; same && i < outputs_.size(); ++i)
    same = same_id(outputs_[i], other.outputs_[i]);
  return same ? "" : "other outputs";
}

}  // namespace lamella::tracing
