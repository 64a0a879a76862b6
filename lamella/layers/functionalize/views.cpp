// Views of values, and their inverses: where a value goes when a view of it is written.
#include <string_view>

#include "lamella/core/error.h"
#include "lamella/core/wrap_dim.h"
#include "lamella/layers/functionalize/value.h"

namespace lamella::functionalize {
namespace {

Tensor result_of(const Values& results, int index) {
  if (index < 0) return results.at(0).toTensor();
  return results.at(0).toTensorVector().at(static_cast<size_t>(index));
}

bool is(const View& view, std::string_view name) { return view.op->name == name; }

Values call_view(const View& view, const Tensor& to, ViewRule rule) {
  const lamella_operator* op = rule.copies ? copy_form(view.op) : nullptr;
  Values arguments = view.arguments;
  bool resolves = to.is_conj() && is(view, "aten::view_as_real");
  arguments[view.self] = IValue(resolves ? to.resolve_conj() : to);
  return call(op != nullptr ? op : view.op, arguments);
}
Tensor apply(const View& view, const Tensor& to, ViewRule rule) {
  return result_of(call_view(view, to, rule), view.index);
}

Tensor shaped(const Tensor& value, IntArrayRef sizes, ViewRule rule) {
  if (rule.exact && !rule.copies && value.is_contiguous()) return value.view(sizes);
  if (!rule.exact && value.sizes().equals(sizes)) return value;
  return rule.copies ? lamella::view_copy(value, sizes) : value.reshape(sizes);
}

// The value, or a copy of it, in row-major order, for views of another element type.
Tensor row_major(const Tensor& value) {
  return value.is_contiguous() ? value : value.clone(MemoryFormat::Contiguous);
}

// A tensor with the elements of `value` in the wrapper's memory layout. `offset` receives the
// storage offset in it that corresponds to the wrapper's.
Tensor laid_out(const Tensor& value, const Geometry& like, int64_t* offset) {
  if (value.strides().equals(like.strides)) {
    *offset = value.storage_offset();
    return value;
  }
  *offset = 0;
  int64_t span = like.span();
  Tensor memory = lamella::zeros({span}, value.options());
  return lamella::as_strided_scatter(memory, value, like.sizes, like.strides, 0);
}

Tensor strided(const Tensor& memory, const Geometry& to, int64_t offset, ViewRule rule) {
  return rule.copies ? lamella::as_strided_copy(memory, to.sizes, to.strides, offset)
                     : memory.as_strided(to.sizes, to.strides, offset);
}

void check_reach(const View& view) {
  int64_t first = view.to.offset - view.from.offset;
  LAMELLA_CHECK(
      view.to.span() == 0 || (first >= 0 && first + view.to.span() <= view.from.span()),
      "as_strided: expected a view within the elements of the tensor that functionalize() "
      "knows, those from ",
      view.from.offset, " to ", view.from.offset + view.from.span(), ", got size ",
      IntArrayRef(view.to.sizes), ", stride ", IntArrayRef(view.to.strides), ", storage_offset ",
      view.to.offset);
}

// Whether a tensor has the layout that the program sees.
bool has_layout(const Tensor& value, const Geometry& like) {
  return value.strides().equals(like.strides) && value.storage_offset() == like.offset;
}

// Whether a step is computed by its own operator on the value of its parent.
bool is_exact(const View& view, const Tensor& parent, ViewRule rule) {
  return rule.exact && view.to.dtype == view.from.dtype &&
         (!is(view, "aten::as_strided") || has_layout(parent, view.from));
}

Tensor step(const View& view, const Tensor& parent, ViewRule rule) {
  if (is_exact(view, parent, rule)) return apply(view, parent, rule);
  if (is(view, "aten::alias") || is(view, "aten::lift_fresh")) return parent;
  if (is(view, "aten::view") || is(view, "aten::_reshape_alias")) {
    if (view.to.dtype == view.from.dtype) return shaped(parent, view.to.sizes, rule);
    return apply(view, row_major(parent), rule);
  }
  if (is(view, "aten::view_as_complex")) return apply(view, row_major(parent), rule);
  if (is(view, "aten::as_strided")) {
    check_reach(view);
    int64_t offset = 0;
    Tensor memory = laid_out(parent, view.from, &offset);
    return strided(memory, view.to, offset + view.to.offset - view.from.offset, rule);
  }
  return apply(view, parent, rule);
}

int64_t int_at(const View& view, size_t i) { return view.arguments[i].toInt(); }
std::optional<int64_t> int_or_none(const View& view, size_t i) {
  if (view.arguments[i].isNone()) return std::nullopt;
  return int_at(view, i);
}
int64_t dim_at(const View& view, size_t i) {
  return maybe_wrap_dim(int_at(view, i), static_cast<int64_t>(view.from.sizes.size()));
}

// For any view: finds the elements that it shows by applying the view to a tensor of their indices.
Tensor write_places(const View& view, const Tensor& parent, const Tensor& value, ViewRule rule) {
  int64_t count = parent.numel();
  Tensor places = lamella::arange(count, parent.options().dtype(kLong));
  Tensor shown = step(view, shaped(places, view.from.sizes, rule), rule);
  LAMELLA_CHECK(shown.scalar_type() == kLong, view.op->name,
                ": expected a view of the element type of its argument to write through, got one "
                "that changes it");
  Tensor line = shaped(parent, {count}, rule);
  line = lamella::scatter(line, 0, shaped(shown, {shown.numel()}, rule),
                          shaped(value, {value.numel()}, rule));
  return shaped(line, view.from.sizes, rule);
}

// The inverse of a squeeze: inserts the dimensions of one element that it removed.
Tensor unsqueezed(Tensor value, const View& view, ViewRule rule) {
  size_t kept = 0;
  for (size_t d = 0; d < view.from.sizes.size(); ++d) {
    if (kept < view.to.sizes.size() && view.from.sizes[d] == view.to.sizes[kept]) {
      ++kept;
      continue;
    }
    auto dim = static_cast<int64_t>(d);
    value = rule.copies ? lamella::unsqueeze_copy(value, dim) : value.unsqueeze(dim);
  }
  return value;
}

// The parent with the view's elements replaced by `value`.
Tensor inverse(const View& view, const Tensor& parent, const Tensor& value, ViewRule rule) {
  if (rule.exact && is(view, "aten::alias")) return apply(view, value, rule);
  if (is(view, "aten::alias") || is(view, "aten::lift_fresh") || is(view, "aten::detach")) {
    return value;
  }
  bool same_dtype = view.to.dtype == view.from.dtype;
  if (rule.exact && is(view, "aten::unsqueeze")) {
    int64_t dim = maybe_wrap_dim(int_at(view, 1), static_cast<int64_t>(view.to.sizes.size()));
    return rule.copies ? lamella::squeeze_copy(value, dim) : value.squeeze(dim);
  }
  if (rule.exact && is(view, "aten::squeeze")) return unsqueezed(value, view, rule);
  if (is(view, "aten::view") || is(view, "aten::_reshape_alias") || is(view, "aten::unsqueeze") ||
      is(view, "aten::squeeze")) {
    if (same_dtype) return shaped(value, view.from.sizes, rule);
    Tensor dense = row_major(value);
    return rule.copies ? lamella::view_copy(dense, view.from.dtype) : dense.view(view.from.dtype);
  }
  if (is(view, "aten::transpose") || is(view, "aten::t") || is(view, "aten::_conj") ||
      is(view, "aten::_neg_view")) {
    return apply(view, value, rule);  // their own inverses
  }
  if (is(view, "aten::permute")) {
    IntArrayRef dims = view.arguments[1].toIntList();
    std::vector<int64_t> back(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      auto from = maybe_wrap_dim(dims[i], static_cast<int64_t>(dims.size()));
      back[static_cast<size_t>(from)] = static_cast<int64_t>(i);
    }
    return rule.copies ? lamella::permute_copy(value, back) : value.permute(back);
  }
  if (is(view, "aten::select")) {
    return lamella::select_scatter(parent, value, int_at(view, 1), int_at(view, 2));
  }
  if (is(view, "aten::slice")) {
    return lamella::slice_scatter(parent, value, int_at(view, 1), int_or_none(view, 2),
                                  int_or_none(view, 3), int_at(view, 4));
  }
  if (is(view, "aten::diagonal")) {
    return lamella::diagonal_scatter(parent, value, int_at(view, 1), int_at(view, 2),
                                     int_at(view, 3));
  }
  if (is(view, "aten::unbind")) {
    return lamella::select_scatter(parent, value, int_at(view, 1), view.index);
  }
  if (is(view, "aten::split") || is(view, "aten::split_with_sizes")) {
    int64_t dim = dim_at(view, 2);
    int64_t start = 0;
    if (is(view, "aten::split")) {
      start = int_at(view, 1) * view.index;
    } else {
      IntArrayRef sizes = view.arguments[1].toIntList();
      for (int i = 0; i < view.index; ++i) start += sizes[static_cast<size_t>(i)];
    }
    int64_t length = view.to.sizes[static_cast<size_t>(dim)];
    return lamella::slice_scatter(parent, value, dim, start, start + length, 1);
  }
  if (is(view, "aten::expand") && value.numel() == parent.numel()) {
    return shaped(value, view.from.sizes, rule);
  }
  if (is(view, "aten::view_as_real")) {
    Tensor dense = row_major(value);
    return rule.copies ? lamella::view_as_complex_copy(dense) : lamella::view_as_complex(dense);
  }
  if (is(view, "aten::view_as_complex")) {
    return rule.copies ? lamella::view_as_real_copy(value) : lamella::view_as_real(value);
  }
  if (is(view, "aten::as_strided")) {
    if (is_exact(view, parent, rule)) {
      return lamella::as_strided_scatter(parent, value, view.to.sizes, view.to.strides,
                                         int_or_none(view, 3));
    }
    check_reach(view);
    int64_t offset = 0;
    Tensor memory = laid_out(parent, view.from, &offset);
    int64_t at = offset + view.to.offset - view.from.offset;
    memory = lamella::as_strided_scatter(memory, value, view.to.sizes, view.to.strides, at);
    if (memory.sizes().equals(view.from.sizes) && memory.strides().equals(view.from.strides)) {
      return memory;
    }
    return strided(memory, view.from, offset, rule);
  }
  return write_places(view, parent, value, rule);
}

}  // namespace

Tensor replay(const Tensor& whole, const Chain& view, ViewRule rule) {
  if (view == nullptr) return whole;
  return step(*view, replay(whole, view->parent, rule), rule);
}

Values replay_step(const View& view, const Tensor& parent, ViewRule rule) {
  if (is_exact(view, parent, rule)) return call_view(view, parent, rule);
  return {IValue(step(view, parent, rule))};
}

Tensor write_back(const Tensor& whole, const Chain& view, const Tensor& value, ViewRule rule) {
  std::vector<const View*> steps;  // the last first
  for (const View* one = view.get(); one != nullptr; one = one->parent.get()) steps.push_back(one);
  std::vector<Tensor> parents{whole};
  for (size_t i = steps.size(); i-- > 1;) {
    parents.push_back(step(*steps[i], parents.back(), rule));
  }
  Tensor result = value;
  for (const View* one : steps) {
    result = inverse(*one, parents.back(), result, rule);
    parents.pop_back();
  }
  return result;
}

}  // namespace lamella::functionalize
