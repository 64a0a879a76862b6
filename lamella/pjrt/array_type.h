// ArrayType: element type, sizes and layout of a buffer, with what PJRT asks about them.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "lamella/graph/hlo/shape.h"
#include "lamella/pjrt/c_api.h"

namespace lamella::pjrt {

// Note [Layouts of buffers]
//   The elements of a buffer are dense, in the order of its layout, which is row-major unless a
//   program or a caller asked for another one. Programs read and write row-major arrays, so a
//   buffer of another layout is rearranged before a run, or after it. Elements narrower than a byte
//   take one byte each, as in NumPy.
class ArrayType {
 public:
  // A shape without a layout is row-major. It is an array or a token.
  explicit ArrayType(hlo::Shape shape);

  const hlo::Shape& shape() const { return shape_; }
  // The same shape without a layout of its own, which programs use.
  const hlo::Shape& row_major_shape() const { return row_major_; }
  BufferType number() const { return number_; }
  List<const int64_t> dims() const {
    return {shape_.dimensions().data(), shape_.dimensions().size()};
  }
  size_t bytes() const { return bytes_; }
  size_t element_bytes() const { return element_bytes_; }
  bool is_row_major() const { return is_row_major_; }
  const std::vector<int64_t>& minor_to_major() const { return minor_to_major_; }
  // "{1,0}".
  std::string layout_text() const { return hlo::braced(minor_to_major_); }
  // The number of bytes from one element to the next in each dimension.
  std::vector<int64_t> byte_strides() const { return strides_of(minor_to_major_); }
  std::vector<int64_t> strides_of(std::span<const int64_t> minor_to_major) const;

 private:
  hlo::Shape shape_;
  hlo::Shape row_major_;
  BufferType number_;
  size_t bytes_;
  size_t element_bytes_;
  bool is_row_major_;
  std::vector<int64_t> minor_to_major_;
};
using ArrayTypePointer = std::shared_ptr<const ArrayType>;

// Throws Unimplemented if there is no such element type here.
hlo::ElementType element_type_of(BufferType number);
// The type of a caller's description. A null layout is row-major; strides must be those of a dense
// array.
ArrayTypePointer array_type(BufferType number, List<const int64_t> dims, const LayoutText* layout);
// The strides in bytes that a layout states; those of `type` if it is null.
std::vector<int64_t> strides_of(const ArrayType& type, const LayoutText* layout);
// Copies elements of `bytes` bytes between arrays of these sizes and strides in bytes.
void copy_strided(std::span<const int64_t> sizes, size_t bytes, const void* from,
                  std::span<const int64_t> from_strides, void* to,
                  std::span<const int64_t> to_strides);

}  // namespace lamella::pjrt
