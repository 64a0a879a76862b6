// im2col and col2im: sliding windows as columns, and columns summed back.
#include "lamella/core/checked_size.h"
#include "lamella/kernels/cpu/convolution.h"

namespace lamella::native {

namespace {
struct Windows {
  Convolution c;
  int64_t columns, rows;
};

int64_t pair_entry(const char* op, const char* name, IntArrayRef list, size_t d, int64_t least) {
  LAMELLA_CHECK(list.size() == 2 || list.size() == 1, op, ": expected '", name,
                "' to have 2 entries, got ", list);
  int64_t value = list[list.size() == 1 ? 0 : d];
  LAMELLA_CHECK(value >= least, op, ": expected the entries of '", name, "' to be at least ", least,
                ", got ", list);
  return value;
}
Windows windows_of(const char* op, ScalarType dtype, int64_t channels, IntArrayRef image,
                   IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
                   IntArrayRef stride) {
  Windows w;
  Convolution& c = w.c;
  c.dtype = dtype;
  c.ndim = 2;
  c.batch = c.groups = c.out_channels = 1;
  c.in_channels = channels;
  CheckedSize columns(1, op), rows(channels, op);
  for (size_t d = 0; d < 2; ++d) {
    c.in[d] = image[d];
    c.kernel[d] = pair_entry(op, "kernel_size", kernel, d, 1);
    c.dilation[d] = pair_entry(op, "dilation", dilation, d, 1);
    c.padding[d] = pair_entry(op, "padding", padding, d, 0);
    c.stride[d] = pair_entry(op, "stride", stride, d, 1);
    LAMELLA_CHECK(c.in[d] >= 0, op, ": expected 'output_size' of at least 0, got ", image);
    CheckedSize reach = CheckedSize(c.kernel[d] - 1, op) * c.dilation[d] + 1;
    int64_t room = (CheckedSize(c.padding[d], op) * 2 + c.in[d] - reach).value();
    LAMELLA_CHECK(room >= 0, op, ": expected the window to fit into the padded image, got ",
                  "'kernel_size' ", kernel, " for ", image);
    c.out[d] = room / c.stride[d] + 1;
    columns *= c.out[d];
    rows *= c.kernel[d];
  }
  w.columns = columns.value();
  w.rows = rows.value();
  return w;
}
char* sample(const Tensor& t, int64_t n, int64_t elements) {
  return static_cast<char*>(t.data_ptr()) + n * elements * t.element_size();
}
}  // namespace

Tensor im2col(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation,
              IntArrayRef padding, IntArrayRef stride) {
  const char* op = "im2col";
  int64_t rank = self.dim();
  LAMELLA_CHECK(rank == 3 || rank == 4, op, ": expected 'self' to have 3 or 4 dimensions, got ",
                self.sizes());
  auto lead = static_cast<size_t>(rank - 3);
  Windows w = windows_of(op, self.scalar_type(), self.sizes()[lead], self.sizes().slice(lead + 1),
                         kernel_size, dilation, padding, stride);
  Dims shape(self.sizes().slice(0, lead));
  int64_t count = product(shape);
  shape.push_back(w.rows);
  shape.push_back(w.columns);
  Tensor out = new_tensor(shape, self.scalar_type(), self.device());
  if (self.is_meta()) return out;
  Tensor x = self.contiguous();
  int64_t size = product(self.sizes().slice(lead));
  for (int64_t n = 0; n < count; ++n) {
    convolution_to_columns(op, w.c, sample(x, n, size), sample(out, n, w.rows * w.columns));
  }
  return out;
}

Tensor col2im(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel_size,
              IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  const char* op = "col2im";
  int64_t rank = self.dim();
  LAMELLA_CHECK(rank == 2 || rank == 3, op, ": expected 'self' to have 2 or 3 dimensions, got ",
                self.sizes());
  LAMELLA_CHECK(output_size.size() == 2, op, ": expected 'output_size' to have 2 entries, got ",
                output_size);
  auto lead = static_cast<size_t>(rank - 2);
  int64_t taps = (CheckedSize(pair_entry(op, "kernel_size", kernel_size, 0, 1), op) *
                  pair_entry(op, "kernel_size", kernel_size, 1, 1))
                     .value();
  LAMELLA_CHECK(self.sizes()[lead] % taps == 0, op, ": expected the rows of 'self' to be a ",
                "multiple of ", taps, ", got ", self.sizes());
  int64_t channels = self.sizes()[lead] / taps;
  Windows w = windows_of(op, self.scalar_type(), channels, output_size, kernel_size, dilation,
                         padding, stride);
  LAMELLA_CHECK(self.sizes()[lead + 1] == w.columns, op, ": expected 'self' to have ", w.columns,
                " columns, got ", self.sizes());
  Dims shape(self.sizes().slice(0, lead));
  int64_t count = product(shape);
  shape.push_back(channels);
  shape.append_all(output_size);
  Tensor out = new_tensor(shape, self.scalar_type(), self.device());
  if (self.is_meta()) return out;
  Tensor x = self.contiguous();
  int64_t size = channels * output_size[0] * output_size[1];
  for (int64_t n = 0; n < count; ++n) {
    convolution_from_columns(op, w.c, sample(x, n, w.rows * w.columns), sample(out, n, size));
  }
  return out;
}

}  // namespace lamella::native
