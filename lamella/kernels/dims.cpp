// Arithmetic on shapes and strides.
#include "lamella/kernels/dims.h"

#include "lamella/core/checked_size.h"

namespace lamella::native {

Dims infer_size(const char* op, IntArrayRef requested, int64_t numel) {
  Dims shape;  // filled below, as a copy of so few elements as a block is a call
  CheckedSize known(1, op);
  bool none = false;
  int64_t open = -1;
  for (size_t i = 0; i < requested.size(); ++i) {
    shape.push_back(requested[i]);
    if (requested[i] == -1) {
      LAMELLA_CHECK(open < 0, op, ": expected at most one -1 in 'size', got ", requested);
      open = static_cast<int64_t>(i);
    } else {
      LAMELLA_CHECK(requested[i] >= 0, op, ": expected sizes of at least 0 in 'size', got ",
                    requested);
      none |= requested[i] == 0;
      if (requested[i] != 0) known *= requested[i];
    }
  }
  int64_t count = none ? 0 : known.value();
  bool fits = open < 0 ? count == numel : count > 0 && numel % count == 0;
  if (open >= 0 && count == 0) {
    LAMELLA_CHECK(numel != 0, op, ": expected a 'size' that determines the size for -1, got ",
                  requested, " for a tensor without elements");
  }
  LAMELLA_CHECK(fits, op, ": expected 'size' to hold ", numel, " elements, got ", requested);
  if (open >= 0) shape[static_cast<size_t>(open)] = numel / count;
  return shape;
}

bool compute_view_strides(IntArrayRef sizes, IntArrayRef strides, IntArrayRef shape, Dims& out) {
  int64_t* result = out.grow_uninitialised(shape.size());
  int64_t numel = product(sizes);
  if (numel == 0) {
    // A tensor without elements: keeps the strides if the shape is the same, else contiguous ones.
    if (sizes.equals(shape)) {
      for (size_t i = 0; i < shape.size(); ++i) result[i] = strides[i];
    } else {
      contiguous_strides(shape, result);
    }
    return true;
  }
  // From the innermost dimension, assigns runs of mergeable dimensions to dimensions of the view.
  int64_t view_dim = static_cast<int64_t>(shape.size()) - 1;
  int64_t base = sizes.empty() ? 1 : strides[sizes.size() - 1];
  int64_t run = 1;    // elements in the run so far
  int64_t given = 1;  // of those, already given to the view
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    run *= sizes[d];
    bool ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != run * base);
    if (!ends) continue;
    while (view_dim >= 0 && (given < run || shape[view_dim] == 1)) {
      result[view_dim] = given * base;
      given *= shape[view_dim];
      --view_dim;
    }
    if (given != run) return false;
    if (d > 0) {
      base = strides[d - 1];
      run = given = 1;
    }
  }
  while (view_dim >= 0) result[view_dim--] = given * base;  // leading ones of a 0-dim tensor
  return true;
}

namespace {
// Orders `perm` (innermost first) with an insertion sort that leaves undecided pairs where they
// are.
template <class Compare>
void order_dims(Dims& perm, Compare&& compare) {
  for (size_t i = 1; i < perm.size(); ++i) {
    size_t moving = i;
    for (size_t below = i; below-- > 0;) {
      int c = compare(perm[below], perm[moving]);
      if (c > 0) {
        int64_t t = perm[below];
        perm[below] = perm[moving];
        perm[moving] = t;
        moving = below;
      } else if (c < 0) {
        break;
      }
    }
  }
}

Dims strides_in_order(IntArrayRef sizes, const Dims& perm) {
  Dims out(sizes.size(), 1);
  int64_t stride = 1;
  for (int64_t d : perm) {
    out[static_cast<size_t>(d)] = stride;
    if (sizes[static_cast<size_t>(d)] > 1) stride *= sizes[static_cast<size_t>(d)];
  }
  return out;
}

Dims reversed_dims(size_t ndim) {
  Dims perm;
  for (size_t d = ndim; d-- > 0;) perm.push_back(static_cast<int64_t>(d));
  return perm;
}
}  // namespace

Dims infer_dense_strides(IntArrayRef sizes, IntArrayRef strides) {
  Dims perm = reversed_dims(sizes.size());
  order_dims(perm, [&](int64_t a, int64_t b) {
    int64_t sa = strides[static_cast<size_t>(a)], sb = strides[static_cast<size_t>(b)];
    if (sa == 0 || sb == 0) return 0;
    if (sa != sb) return sa < sb ? -1 : 1;
    return sizes[static_cast<size_t>(a)] > sizes[static_cast<size_t>(b)] ? 1 : 0;
  });
  return strides_in_order(sizes, perm);
}

Dims dense_strides_like(IntArrayRef shape, ArrayRef<Dims> operand_strides) {
  Dims perm = reversed_dims(shape.size());
  order_dims(perm, [&](int64_t a, int64_t b) {
    for (const Dims& strides : operand_strides) {
      int64_t sa = strides[static_cast<size_t>(a)], sb = strides[static_cast<size_t>(b)];
      if (sa == 0 || sb == 0) continue;
      if (sa != sb) return sa < sb ? -1 : 1;
      if (shape[static_cast<size_t>(a)] > shape[static_cast<size_t>(b)]) return 1;
    }
    return 0;
  });
  return strides_in_order(shape, perm);
}

}  // namespace lamella::native
