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

Tensor apply(const lamella_operator* op, const View& view, const Tensor& to) {
  Values arguments = view.arguments;
  arguments[view.self] = IValue(to);
  return result_of(call(op, arguments), view.index);
}
Tensor apply(const View& view, const Tensor& to, bool copies) {
  const lamella_operator* op = copies ? copy_form(view.op) : nullptr;
  return apply(op != nullptr ? op : view.op, view, to);
}

Tensor shaped(const Tensor& value, IntArrayRef sizes, bool copies) {
  if (value.sizes().equals(sizes)) return value;
  return copies ? lamella::view_copy(value, sizes) : value.reshape(sizes);
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

Tensor strided(const Tensor& memory, const Geometry& to, int64_t offset, bool copies) {
  return copies ? lamella::as_strided_copy(memory, to.sizes, to.strides, offset)
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

Tensor step(const View& view, const Tensor& parent, bool copies) {
  if (is(view, "aten::alias") || is(view, "aten::lift_fresh")) return parent;
  if (is(view, "aten::view") || is(view, "aten::_reshape_alias")) {
    if (view.to.dtype == view.from.dtype) return shaped(parent, view.to.sizes, copies);
    return apply(view, row_major(parent), copies);
  }
  if (is(view, "aten::view_as_complex")) return apply(view, row_major(parent), copies);
  if (is(view, "aten::as_strided")) {
    check_reach(view);
    int64_t offset = 0;
    Tensor memory = laid_out(parent, view.from, &offset);
    return strided(memory, view.to, offset + view.to.offset - view.from.offset, copies);
  }
  return apply(view, parent, copies);
}

int64_t int_at(const View& view, size_t i) { return view.arguments[i].toInt(); }
int64_t dim_at(const View& view, size_t i) {
  return maybe_wrap_dim(int_at(view, i), static_cast<int64_t>(view.from.sizes.size()));
}

// For any view: finds the elements that it shows by applying the view to a tensor of their indices.
Tensor write_places(const View& view, const Tensor& parent, const Tensor& value, bool copies) {
  int64_t count = parent.numel();
  Tensor places = lamella::arange(count, parent.options().dtype(kLong));
  Tensor shown = step(view, shaped(places, view.from.sizes, copies), copies);
  LAMELLA_CHECK(shown.scalar_type() == kLong, view.op->name,
                ": expected a view of the element type of its argument to write through, got one "
                "that changes it");
  Tensor line = shaped(parent, {count}, copies);
  line = lamella::scatter(line, 0, shaped(shown, {shown.numel()}, copies),
                          shaped(value, {value.numel()}, copies));
  return shaped(line, view.from.sizes, copies);
}

// The parent with the view's elements replaced by `value`.
Tensor inverse(const View& view, const Tensor& parent, const Tensor& value, bool copies) {
  if (is(view, "aten::alias") || is(view, "aten::lift_fresh") || is(view, "aten::detach")) {
    return value;
  }
  bool same_dtype = view.to.dtype == view.from.dtype;
  if (is(view, "aten::view") || is(view, "aten::_reshape_alias") || is(view, "aten::unsqueeze") ||
      is(view, "aten::squeeze")) {
    if (same_dtype) return shaped(value, view.from.sizes, copies);
    Tensor dense = row_major(value);
    return copies ? lamella::view_copy(dense, view.from.dtype) : dense.view(view.from.dtype);
  }
  if (is(view, "aten::transpose") || is(view, "aten::t") || is(view, "aten::_conj") ||
      is(view, "aten::_neg_view")) {
    return apply(view, value, copies);  // their own inverses
  }
  if (is(view, "aten::permute")) {
    IntArrayRef dims = view.arguments[1].toIntList();
    std::vector<int64_t> back(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      auto from = maybe_wrap_dim(dims[i], static_cast<int64_t>(dims.size()));
      back[static_cast<size_t>(from)] = static_cast<int64_t>(i);
    }
    return copies ? lamella::permute_copy(value, back) : value.permute(back);
  }
  if (is(view, "aten::select")) {
    return lamella::select_scatter(parent, value, int_at(view, 1), int_at(view, 2));
  }
  if (is(view, "aten::slice")) {
    auto bound = [&](size_t i) -> std::optional<int64_t> {
      if (view.arguments[i].isNone()) return std::nullopt;
      return int_at(view, i);
    };
    return lamella::slice_scatter(parent, value, int_at(view, 1), bound(2), bound(3),
                                  int_at(view, 4));
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
    return shaped(value, view.from.sizes, copies);
  }
  if (is(view, "aten::view_as_real")) {
    Tensor dense = row_major(value);
    return copies ? lamella::view_as_complex_copy(dense) : lamella::view_as_complex(dense);
  }
  if (is(view, "aten::view_as_complex")) {
    return copies ? lamella::view_as_real_copy(value) : lamella::view_as_real(value);
  }
  if (is(view, "aten::as_strided")) {
    check_reach(view);
    int64_t offset = 0;
    Tensor memory = laid_out(parent, view.from, &offset);
    int64_t at = offset + view.to.offset - view.from.offset;
    memory = lamella::as_strided_scatter(memory, value, view.to.sizes, view.to.strides, at);
    if (memory.sizes().equals(view.from.sizes) && memory.strides().equals(view.from.strides)) {
      return memory;
    }
    return strided(memory, view.from, offset, copies);
  }
  return write_places(view, parent, value, copies);
}

}  // namespace

Tensor replay(const Tensor& whole, const Chain& view, bool copies) {
  if (view == nullptr) return whole;
  return step(*view, replay(whole, view->parent, copies), copies);
}

Tensor write_back(const Tensor& whole, const Chain& view, const Tensor& value, bool copies) {
  if (view == nullptr) return value;
  Tensor parent = replay(whole, view->parent, copies);
  return write_back(whole, view->parent, inverse(*view, parent, value, copies), copies);
}

}  // namespace lamella::functionalize
