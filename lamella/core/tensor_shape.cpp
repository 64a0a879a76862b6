// Facts about shapes: flags of strides, and checked numbers of elements.
#include "lamella/core/checked_size.h"
#include "lamella/core/error.h"
#include "lamella/core/tensor_impl.h"

namespace lamella {
namespace {

// For shapes with elements that are not contiguous.
bool is_dense(IntArrayRef sizes, IntArrayRef strides) {
  size_t n = sizes.size();
  if (n == 1) return false;
  if (n == 2) return sizes[0] > 1 && sizes[1] > 1 && strides[0] == 1 && strides[1] == sizes[0];
  size_t order[64];
  // Insertion sort by stride; dimensions of size 0 or 1 come last and are ignored.
  for (size_t i = 0; i < n; ++i) {
    size_t at = i;
    auto before = [&](size_t a, size_t b) {
      if (sizes[a] < 2 || sizes[b] < 2) return sizes[a] >= 2 && sizes[b] < 2;
      return strides[a] < strides[b];
    };
    for (; at > 0 && before(i, order[at - 1]); --at) order[at] = order[at - 1];
    order[at] = i;
  }
  int64_t expected = 1;
  for (size_t i = 0; i < n; ++i) {
    size_t d = order[i];
    if (sizes[d] < 2) return true;
    if (strides[d] != expected) return false;
    expected = wrapping_product(expected, sizes[d]);
  }
  return true;
}

// Dense with channels innermost; 4 or 5 dimensions.
bool is_dense_channels_last(IntArrayRef sizes, IntArrayRef strides) {
  int64_t expected = 1;
  auto fits = [&](size_t d) {
    if (sizes[d] == 1) return true;
    if (strides[d] != expected) return false;
    expected = wrapping_product(expected, sizes[d]);
    return true;
  };
  if (!fits(1)) return false;
  for (size_t d = sizes.size() - 1; d > 1; --d) {
    if (!fits(d)) return false;
  }
  return fits(0);
}

}  // namespace

void detail::throw_size_overflow(const char* op, int64_t a, char sign, int64_t b) {
  throw Error(str(op, ": expected sizes that fit int64, got ", a, ' ', sign, ' ', b));
}

void detail::throw_bad_sizes(IntArrayRef sizes, const char* op) {
  for (int64_t size : sizes) {
    LAMELLA_CHECK(size >= 0, op, ": expected sizes of at least 0, got ", sizes);
  }
  throw Error(str(op, ": expected sizes whose bytes fit int64, got ", sizes));
}

uint32_t shape_flags(IntArrayRef sizes, IntArrayRef strides, int64_t numel) {
  size_t n = sizes.size();
  uint32_t flags = 0;
  bool contiguous = true;
  if (numel != 0) {
    int64_t expected = 1;
    for (size_t d = n; d-- > 0;) {
      if (sizes[d] == 1) continue;
      if (strides[d] != expected) {
        contiguous = false;
        break;
      }
      expected = wrapping_product(expected, sizes[d]);
    }
  }
  if (contiguous) flags |= LAMELLA_TENSOR_CONTIGUOUS | LAMELLA_TENSOR_DENSE;
  if (n == 4 || n == 5) {
    if (is_dense_channels_last(sizes, strides)) {
      flags |= LAMELLA_TENSOR_DENSE |
               (n == 4 ? LAMELLA_TENSOR_CHANNELS_LAST : LAMELLA_TENSOR_CHANNELS_LAST_3D);
    }
    if (detail::strides_like_channels_last(sizes, strides)) {
      flags |= LAMELLA_TENSOR_LIKES_CHANNELS_LAST;
    }
  }
  if ((flags & LAMELLA_TENSOR_DENSE) == 0 && is_dense(sizes, strides)) {
    flags |= LAMELLA_TENSOR_DENSE;
  }
  return flags;
}

int64_t checked_numel(IntArrayRef sizes, const char* op) {
  int64_t numel = 1;
  bool bad = false;
  for (int64_t size : sizes) {
    bad |= size < 0;
    // No partial product may overflow, even for a tensor without elements.
    bad |= __builtin_mul_overflow(numel, size, &numel);
  }
  if (LAMELLA_UNLIKELY(bad)) detail::throw_bad_sizes(sizes, op);
  return numel;
}

int64_t storage_elements(IntArrayRef sizes, IntArrayRef strides, const char* op) {
  LAMELLA_CHECK(sizes.size() == strides.size(), op, ": expected as many 'stride' as 'size', got ",
                strides, " for ", sizes);
  int64_t elements = 1;
  bool none = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0) detail::throw_bad_sizes(sizes, op);
    LAMELLA_CHECK(strides[d] >= 0, op, ": expected a 'stride' of at least 0, got ", strides);
    none |= sizes[d] == 0;
    int64_t span = 0;
    if (!none && (__builtin_mul_overflow(sizes[d] - 1, strides[d], &span) ||
                  __builtin_add_overflow(elements, span, &elements))) {
      LAMELLA_CHECK(false, op, ": expected a shape whose bytes fit int64, got ", sizes,
                    " with strides ", strides);
    }
  }
  return none ? 0 : elements;
}

}  // namespace lamella
