// Element types by their numbers in PJRT, layouts, and copies between them.
#include "lamella/pjrt/array_type.h"

#include <algorithm>
#include <cstring>

#include "lamella/pjrt/status.h"

namespace lamella::pjrt {
namespace {

using hlo::ElementType;

// By PJRT's numbers.
constexpr ElementType kTypes[] = {
    ElementType::Invalid,
    ElementType::PRED,
    ElementType::S8,
    ElementType::S16,
    ElementType::S32,
    ElementType::S64,
    ElementType::U8,
    ElementType::U16,
    ElementType::U32,
    ElementType::U64,
    ElementType::F16,
    ElementType::F32,
    ElementType::F64,
    ElementType::BF16,
    ElementType::C64,
    ElementType::C128,
    ElementType::F8E5M2,
    ElementType::F8E4M3FN,
    ElementType::F8E4M3B11FNUZ,
    ElementType::F8E5M2FNUZ,
    ElementType::F8E4M3FNUZ,
    ElementType::S4,
    ElementType::U4,
    ElementType::TOKEN,
    ElementType::S2,
    ElementType::U2,
    ElementType::F8E4M3,
    ElementType::F8E3M4,
    ElementType::F8E8M0FNU,
    ElementType::F4E2M1FN,
    ElementType::S1,
    ElementType::U1,
};

BufferType number_of(ElementType type) {
  auto found = std::ranges::find(kTypes, type);
  if (found == std::end(kTypes)) {
    fail(Code::Unimplemented, "lamella: expected an array, got ", hlo::element_name(type));
  }
  return static_cast<BufferType>(found - kTypes);
}

}  // namespace

ElementType element_type_of(BufferType number) {
  if (number <= 0 || number >= static_cast<BufferType>(std::size(kTypes))) {
    fail(Code::Unimplemented, "lamella: expected an element type of PJRT 0.112, got number ",
         number);
  }
  return kTypes[number];
}

ArrayType::ArrayType(hlo::Shape shape)
    : shape_(std::move(shape)),
      number_(number_of(shape_.element_type())),
      bytes_(shape_.is_array() ? static_cast<size_t>(shape_.bytes()) : 0),
      element_bytes_(static_cast<size_t>(hlo::element_bytes(shape_.element_type()))),
      is_row_major_(shape_.is_row_major()) {
  if (shape_.has_layout()) {
    minor_to_major_.assign(shape_.minor_to_major().begin(), shape_.minor_to_major().end());
  } else {
    minor_to_major_ = hlo::row_major(shape_.rank());
  }
  // Dimensions of size 1 may stand anywhere.
  if (!is_row_major_) {
    std::vector<int64_t> large;
    for (int64_t d : minor_to_major_) {
      if (shape_.dimension(d) != 1) large.push_back(d);
    }
    is_row_major_ = std::ranges::is_sorted(large, std::greater<>()) || bytes_ == 0;
  }
  row_major_ = shape_;
  row_major_.clear_layout();
}

std::vector<int64_t> ArrayType::strides_of(std::span<const int64_t> minor_to_major) const {
  std::vector<int64_t> strides(minor_to_major.size());
  auto step = static_cast<int64_t>(element_bytes_);
  for (int64_t d : minor_to_major) {
    strides[static_cast<size_t>(d)] = step;
    step *= std::max<int64_t>(shape_.dimension(d), 1);
  }
  return strides;
}

namespace {

std::span<const int64_t> minor_to_major_of(const LayoutText& layout, size_t rank) {
  if (layout.tiled.tiles != 0)
    fail(Code::Unimplemented, "lamella: expected a layout without tiles");
  std::span<const int64_t> order(layout.tiled.minor_to_major.data,
                                 layout.tiled.minor_to_major.size);
  std::vector<int64_t> sorted(order.begin(), order.end());
  std::ranges::sort(sorted);
  bool good = sorted.size() == rank;
  for (size_t d = 0; good && d < rank; ++d) good = sorted[d] == static_cast<int64_t>(d);
  require(good, "lamella: expected a layout of ", rank, " dimensions, got ", hlo::braced(order));
  return order;
}

}  // namespace

std::vector<int64_t> strides_of(const ArrayType& type, const LayoutText* layout) {
  if (layout == nullptr) return type.byte_strides();
  auto rank = static_cast<size_t>(type.shape().rank());
  if (layout->kind == LayoutKind::Tiled) return type.strides_of(minor_to_major_of(*layout, rank));
  const List<const int64_t>& strides = layout->strides.byte_strides;
  require(strides.size == rank, "lamella: expected ", rank, " strides, got ", strides.size);
  return {strides.data, strides.data + strides.size};
}

ArrayTypePointer array_type(BufferType number, List<const int64_t> dims, const LayoutText* layout) {
  ElementType type = element_type_of(number);
  if (type == ElementType::TOKEN) return std::make_shared<ArrayType>(hlo::Shape::token());
  std::vector<int64_t> sizes(dims.data, dims.data + dims.size);
  if (layout == nullptr)
    return std::make_shared<ArrayType>(hlo::Shape::array(type, std::move(sizes)));
  if (layout->kind == LayoutKind::Tiled) {
    std::span<const int64_t> order = minor_to_major_of(*layout, sizes.size());
    return std::make_shared<ArrayType>(
        hlo::Shape::array(type, std::move(sizes), {order.begin(), order.end()}));
  }
  std::vector<int64_t> order = hlo::row_major(static_cast<int64_t>(sizes.size()));
  ArrayType plain(hlo::Shape::array(type, sizes));
  std::vector<int64_t> strides = strides_of(plain, layout);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return strides[static_cast<size_t>(a)] < strides[static_cast<size_t>(b)];
  });
  auto made = std::make_shared<ArrayType>(hlo::Shape::array(type, std::move(sizes), order));
  std::vector<int64_t> dense = made->byte_strides();
  for (size_t d = 0; d < dense.size(); ++d) {
    bool good = dense[d] == strides[d] || dims.data[d] <= 1 || made->bytes() == 0;
    require(good, "lamella: expected the strides of a dense array, got ", hlo::braced(strides));
  }
  return made;
}

void copy_strided(std::span<const int64_t> sizes, size_t bytes, const void* from,
                  std::span<const int64_t> from_strides, void* to,
                  std::span<const int64_t> to_strides) {
  // Dimensions from the largest steps of the target to the smallest, without those of size 1, and
  // with neighbours joined where both arrays allow it.
  struct Dimension {
    int64_t size, from, to;
  };
  std::vector<Dimension> all;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return;
    if (sizes[d] != 1) all.push_back({sizes[d], from_strides[d], to_strides[d]});
  }
  std::ranges::stable_sort(all, [](const Dimension& a, const Dimension& b) { return a.to > b.to; });
  std::vector<Dimension> joined;
  for (const Dimension& one : all) {
    if (!joined.empty() && joined.back().from == one.from * one.size &&
        joined.back().to == one.to * one.size) {
      joined.back() = {joined.back().size * one.size, one.from, one.to};
    } else {
      joined.push_back(one);
    }
  }
  auto width = static_cast<int64_t>(bytes);
  if (!joined.empty() && joined.back().from == width && joined.back().to == width) {
    width *= joined.back().size;
    joined.pop_back();
  }
  auto copy = [&](auto& self, size_t d, const char* source, char* target) -> void {
    if (d == joined.size()) {
      std::memcpy(target, source, static_cast<size_t>(width));
      return;
    }
    const Dimension& one = joined[d];
    if (d + 1 == joined.size()) {
      // The common widths as constants, so that a move is an instruction.
      auto row = [&](auto constant) {
        for (int64_t i = 0; i < one.size; ++i) {
          std::memcpy(target + i * one.to, source + i * one.from, constant);
        }
      };
      switch (width) {
        case 1:
          return row(std::integral_constant<size_t, 1>());
        case 2:
          return row(std::integral_constant<size_t, 2>());
        case 4:
          return row(std::integral_constant<size_t, 4>());
        case 8:
          return row(std::integral_constant<size_t, 8>());
        default:
          return row(static_cast<size_t>(width));
      }
    }
    for (int64_t i = 0; i < one.size; ++i) {
      self(self, d + 1, source + i * one.from, target + i * one.to);
    }
  };
  copy(copy, 0, static_cast<const char*>(from), static_cast<char*>(to));
}

}  // namespace lamella::pjrt
