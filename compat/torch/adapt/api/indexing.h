// Indexing as in Python: x.index({Slice(1, 3), None, "...", 0, mask}).
#pragma once
#include <initializer_list>

#include "lamella/api/functions.h"
#include "lamella/core/warning.h"

namespace lamella {
namespace indexing {

inline constexpr int64_t INDEX_MIN = INT64_MIN, INDEX_MAX = INT64_MAX;

// start:stop:step. Negative start and stop count from the end; step must be positive.
struct Slice {
  constexpr Slice(std::optional<int64_t> start = std::nullopt,  // NOLINT: implicit
                  std::optional<int64_t> stop = std::nullopt,
                  std::optional<int64_t> step = std::nullopt)
      : start_(start), stop_(stop), step_(step ? *step : 1) {}
  // What stands for an absent start or stop is the end that the step comes from or goes to.
  constexpr int64_t start() const { return start_ ? *start_ : step_ < 0 ? INDEX_MAX : 0; }
  constexpr int64_t stop() const { return stop_ ? *stop_ : step_ < 0 ? INDEX_MIN : INDEX_MAX; }
  constexpr int64_t step() const { return step_; }
  constexpr const std::optional<int64_t>& start_or_none() const { return start_; }
  constexpr const std::optional<int64_t>& stop_or_none() const { return stop_; }

 private:
  std::optional<int64_t> start_, stop_;
  int64_t step_;
};
inline void append(std::string& out, const Slice& slice) {
  lamella::append(out, lamella::str(slice.start(), ':', slice.stop(), ':', slice.step()));
}
// "..."
struct EllipsisIndexType {};
inline constexpr EllipsisIndexType Ellipsis{};
// A new dimension of size 1.
inline constexpr std::nullopt_t None = std::nullopt;

}  // namespace indexing

// One entry of an index.
class TensorIndex {
 public:
  enum Kind : uint8_t { kNew, kEllipsis, kInteger, kFlag, kSlice, kTensor };

  TensorIndex(std::nullopt_t) : kind_(kNew) {}                    // NOLINT: implicit
  TensorIndex(indexing::EllipsisIndexType) : kind_(kEllipsis) {}  // NOLINT
  TensorIndex(const char* text) : kind_(kEllipsis) {              // NOLINT
    LAMELLA_CHECK_VALUE(std::string_view(text) == "...", "index: expected \"...\", got \"", text,
                        "\"");
  }
  template <class I, std::enable_if_t<std::is_integral_v<I>, int> = 0>
  TensorIndex(I number)  // NOLINT
      : kind_(std::is_same_v<I, bool> ? kFlag : kInteger), number_(static_cast<int64_t>(number)) {}
  TensorIndex(indexing::Slice slice) : kind_(kSlice), slice_(slice) {}        // NOLINT
  TensorIndex(Tensor tensor) : kind_(kTensor), tensor_(std::move(tensor)) {}  // NOLINT

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == kNew; }
  bool is_ellipsis() const { return kind_ == kEllipsis; }
  bool is_integer() const { return kind_ == kInteger; }
  bool is_boolean() const { return kind_ == kFlag; }
  bool is_slice() const { return kind_ == kSlice; }
  bool is_tensor() const { return kind_ == kTensor; }
  int64_t integer() const { return number_; }
  bool boolean() const { return number_ != 0; }
  const indexing::Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }
  // The number of dimensions of the indexed tensor that this entry consumes.
  int64_t dims() const {
    if (kind_ == kTensor) return is_mask() ? tensor_.dim() : 1;
    return kind_ == kInteger || kind_ == kSlice ? 1 : 0;
  }
  bool is_mask() const { return tensor_.scalar_type() == kBool || tensor_.scalar_type() == kByte; }

 private:
  Kind kind_;
  int64_t number_ = 0;
  indexing::Slice slice_;
  Tensor tensor_;
};

// As Python prints it; a tensor with its elements, for which the caller includes ATen/ATen.h.
LAMELLA_LAZY void append(std::string& out, const TensorIndex& index) {
  if (index.is_none()) return append(out, "None");
  if (index.is_ellipsis()) return append(out, "...");
  if (index.is_integer()) return append(out, index.integer());
  if (index.is_boolean()) return append(out, index.boolean());
  if (index.is_slice()) return indexing::append(out, index.slice());
  detail::append_streamed(out, index.tensor());
}
LAMELLA_LAZY void append(std::string& out, const std::vector<TensorIndex>& indices) {
  const char* between = "(";
  for (const TensorIndex& index : indices) {
    append(out, between);
    append(out, index);
    between = ", ";
  }
  append(out, ')');
}
template <class Stream, class T>
  requires(std::is_same_v<T, TensorIndex> || std::is_same_v<T, indexing::Slice> ||
           std::is_same_v<T, std::vector<TensorIndex>>)
Stream& operator<<(Stream& out, const T& index) {
  std::string text;
  append(text, index);
  return out << text;
}

namespace indexing {
using lamella::TensorIndex;
using lamella::operator<<;
}  // namespace indexing

namespace detail {

// A view of `self` by the integers, slices and new dimensions among the indices, and the index
// tensors for the view's dimensions: undefined for a dimension that is taken whole.
struct IndexedView {
  Tensor view;
  std::vector<Tensor> tensors;
};
LAMELLA_LAZY inline IndexedView view_by(const Tensor& self, ArrayRef<TensorIndex> indices) {
  int64_t given = 0;
  for (const TensorIndex& index : indices) given += index.dims();
  LAMELLA_CHECK_INDEX(given <= self.dim(), "index: expected at most ", self.dim(), " indices, got ",
                      given);
  LAMELLA_CHECK_INDEX(!indices.empty(), "index: expected one index or more, got none");
  IndexedView result{self, {}};
  int64_t dim = 0, own = 0;  // of the view, and of `self`
  auto take = [&](const Tensor& tensor) {
    result.tensors.resize(static_cast<size_t>(dim));
    result.tensors.push_back(tensor);
    ++dim;
  };
  for (const TensorIndex& index : indices) {
    switch (index.kind()) {
      case TensorIndex::kNew:
        result.view = result.view.unsqueeze(dim++);
        break;
      case TensorIndex::kEllipsis:
        dim += self.dim() - given;
        own += self.dim() - given;
        break;
      case TensorIndex::kInteger:
        LAMELLA_CHECK_INDEX(index.integer() >= -self.size(own) && index.integer() < self.size(own),
                            "index: expected a position in dimension ", own, " of size ",
                            self.size(own), ", got ", index.integer());
        result.view = result.view.select(dim, index.integer());
        break;
      case TensorIndex::kFlag:
        result.view = result.view.unsqueeze(dim);
        take(full({index.integer()}, 0, TensorOptions(kLong).device(self.device())));
        break;
      case TensorIndex::kSlice:
        result.view = result.view.slice(dim++, index.slice().start_or_none(),
                                        index.slice().stop_or_none(), index.slice().step());
        break;
      case TensorIndex::kTensor:
        if (index.is_mask()) {
          if (index.tensor().scalar_type() == kByte) {
            LAMELLA_WARN("indexing with dtype torch.uint8 is now deprecated: use torch.bool");
          }
          const IntArrayRef sizes = self.sizes().slice(static_cast<size_t>(own));
          LAMELLA_CHECK_INDEX(
              index.tensor().sizes() == sizes.slice(0, static_cast<size_t>(index.dims())),
              "index: expected a mask of the sizes ", sizes, ", got ", index.tensor().sizes());
          // One tensor of positions for each dimension of the mask.
          Tensor places = index.tensor().nonzero();
          for (int64_t d = 0; d < index.tensor().dim(); ++d) take(places.select(1, d));
          if (index.tensor().dim() == 0) {
            result.view = result.view.unsqueeze(dim);
            take(zeros({places.size(0)}, TensorOptions(kLong).device(self.device())));
          }
        } else if (index.tensor().dim() == 0 && is_integral(index.tensor().scalar_type(), false)) {
          result.view = result.view.select(dim, index.tensor().item().template to<int64_t>());
        } else {
          take(index.tensor());
        }
        break;
    }
    own += index.dims();
  }
  return result;
}

LAMELLA_LAZY Tensor indexed(const Tensor& self, ArrayRef<TensorIndex> indices) {
  IndexedView by = view_by(self, indices);
  if (!by.tensors.empty()) return by.view.index(TensorList(by.tensors));
  return by.view.is_same(self) ? self.alias() : by.view;
}
LAMELLA_LAZY Tensor& write_indexed(const Tensor& self, ArrayRef<TensorIndex> indices,
                                   const Tensor& values) {
  IndexedView by = view_by(self, indices);
  // Leading dimensions of size 1 are left out, as in Python's assignment.
  Tensor given = values;
  while (given.dim() > by.view.dim() && given.size(0) == 1) given = given.squeeze(0);
  if (!by.tensors.empty()) {
    by.view.index_put_(TensorList(by.tensors), given.to(by.view.options()));
  } else {
    by.view.copy_(given);
  }
  return const_cast<Tensor&>(self);
}
LAMELLA_LAZY Tensor& write_indexed(const Tensor& self, ArrayRef<TensorIndex> indices,
                                   const Scalar& value) {
  return write_indexed(self, indices, full({}, value, self.options()));
}

}  // namespace detail

template <int>
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return detail::indexed(*this, indices);
}
template <int>
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values) const {
  return detail::write_indexed(*this, indices, values);
}
template <int>
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) const {
  return detail::write_indexed(*this, indices, value);
}
template <detail::ListOf<TensorIndex> L>
Tensor Tensor::index(const L& indices) const {
  return detail::indexed(*this, ArrayRef<TensorIndex>(indices));
}
template <detail::ListOf<TensorIndex> L, class V>
Tensor& Tensor::index_put_(const L& indices, const V& values) const {
  return detail::write_indexed(*this, ArrayRef<TensorIndex>(indices), values);
}

namespace indexing {
LAMELLA_LAZY Tensor get_item(const Tensor& self, ArrayRef<TensorIndex> indices) {
  return detail::indexed(self, indices);
}
template <class V>
void set_item(const Tensor& self, ArrayRef<TensorIndex> indices, const V& values) {
  detail::write_indexed(self, indices, values);
}
}  // namespace indexing

}  // namespace lamella
