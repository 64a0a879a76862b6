// convolution and convolution_backward: checks, shapes, layouts.
#include "lamella/core/checked_size.h"
#include "lamella/kernels/cpu/convolution.h"

namespace lamella::native {

namespace {
struct Problem {
  Convolution c;
  bool transposed;
  Dims shape;  // of the output
  MemoryFormat format;
};

void expand_list(const char* op, const char* name, IntArrayRef list, int ndim, int64_t least,
                 int64_t (&to)[3]) {
  LAMELLA_CHECK(list.size() == 1 || list.size() == static_cast<size_t>(ndim), op, ": expected '",
                name, "' to have 1 or ", ndim, " entries, got ", list);
  for (int d = 0; d < ndim; ++d) {
    to[d] = list[list.size() == 1 ? 0 : static_cast<size_t>(d)];
    LAMELLA_CHECK(to[d] >= least, op, ": expected the entries of '", name, "' to be at least ",
                  least, ", got ", list);
  }
}

Problem problem_of(const char* op, const Tensor& input, const Tensor& weight, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed,
                   IntArrayRef output_padding, int64_t groups) {
  Problem p;
  Convolution& c = p.c;
  p.transposed = transposed;
  int64_t rank = input.dim();
  LAMELLA_CHECK(rank >= 3 && rank <= 5, op, ": expected 'input' to have 3 to 5 dimensions, got ",
                input.sizes());
  LAMELLA_CHECK(weight.dim() == rank, op, ": expected 'weight' to have ", rank, " dimensions, got ",
                weight.sizes());
  LAMELLA_CHECK(input.scalar_type() == weight.scalar_type(), op, ": expected 'weight' to be ",
                input.scalar_type(), ", got ", weight.scalar_type());
  c.dtype = input.scalar_type();
  c.ndim = static_cast<int>(rank - 2);
  c.batch = input.sizes()[0];
  c.groups = groups;
  LAMELLA_CHECK(groups > 0, op, ": expected 'groups' to be greater than 0, got ", groups);
  int64_t extra[3] = {0, 0, 0};
  expand_list(op, "stride", stride, c.ndim, 1, c.stride);
  expand_list(op, "padding", padding, c.ndim, 0, c.padding);
  expand_list(op, "dilation", dilation, c.ndim, 1, c.dilation);
  expand_list(op, "output_padding", output_padding, c.ndim, 0, extra);

  IntArrayRef ws = weight.sizes();
  int64_t channels = input.sizes()[1], spread = (CheckedSize(ws[1], op) * groups).value();
  int64_t taken = transposed ? ws[0] : spread;
  LAMELLA_CHECK(ws[0] >= groups && (!transposed || ws[1] > 0), op, ": expected 'weight' to have ",
                "channels for each of ", groups, groups == 1 ? " group" : " groups", ", got ", ws);
  LAMELLA_CHECK(ws[0] % groups == 0, op, ": expected 'groups' to divide the ", ws[0],
                " rows of 'weight', got ", groups);
  LAMELLA_CHECK(channels == taken, op, ": expected 'input' to have ", taken, " channels for a ",
                "'weight' of shape ", ws, " with ", groups, groups == 1 ? " group" : " groups",
                ", got ", input.sizes());
  int64_t made = transposed ? spread : ws[0];
  c.in_channels = transposed ? made : channels;
  c.out_channels = transposed ? channels : made;
  p.shape.push_back(c.batch);
  p.shape.push_back(made);
  for (int d = 0; d < c.ndim; ++d) {
    auto at = static_cast<size_t>(d) + 2;
    c.kernel[d] = ws[at];
    int64_t size = input.sizes()[at], result;
    int64_t reach = (CheckedSize(c.kernel[d] - 1, op) * c.dilation[d] + 1).value();
    int64_t padding_of_both = (CheckedSize(c.padding[d], op) * 2).value();
    LAMELLA_CHECK(size > 0, op, ": expected 'input' to have elements in its last ", c.ndim,
                  c.ndim == 1 ? " dimension" : " dimensions", ", got ", input.sizes());
    if (transposed) {
      LAMELLA_CHECK(c.kernel[d] > 0, op, ": expected 'weight' to have a kernel of at least one ",
                    "element, got ", ws);
      LAMELLA_CHECK(extra[d] < c.stride[d] || extra[d] < c.dilation[d], op,
                    ": expected 'output_padding' to be smaller than 'stride' or 'dilation', got ",
                    output_padding);
      result =
          (CheckedSize(size - 1, op) * c.stride[d] - padding_of_both + reach + extra[d]).value();
      LAMELLA_CHECK(result > 0, op, ": expected an output of at least one element, got 'input' ",
                    input.sizes(), " with 'weight' ", ws);
    } else {
      int64_t padded = (CheckedSize(padding_of_both, op) + size).value();
      LAMELLA_CHECK(padded >= reach && c.kernel[d] > 0, op, ": expected the kernel to fit into ",
                    "the padded input, got a reach of ", reach, " in dimension ", at, " of size ",
                    padded);
      result = (padded - reach) / c.stride[d] + 1;
    }
    c.in[d] = transposed ? result : size;
    c.out[d] = transposed ? size : result;
    p.shape.push_back(result);
    // The stride of a single output and the dilation of a single tap have no effect: they become
    // small, so that sizes computed from them do not overflow.
    int64_t room = (CheckedSize(padding_of_both, op) + c.in[d] - reach).value();
    if (c.stride[d] > room) c.stride[d] = room < 0 ? 1 : room + 1;
    if (c.kernel[d] == 1) c.dilation[d] = 1;
  }
  MemoryFormat format = input.suggest_memory_format();
  if (format == MemoryFormat::Contiguous) format = weight.suggest_memory_format();
  bool fits = (rank == 4 && format == MemoryFormat::ChannelsLast) ||
              (rank == 5 && format == MemoryFormat::ChannelsLast3d);
  p.format = fits ? format : MemoryFormat::Contiguous;
  c.channels_last = fits && (input.is_cuda() || convolution_by_library(c));
  return p;
}

// The memory format in which the kernels read the operands.
MemoryFormat inner_format(const Problem& p) {
  return p.c.channels_last ? p.format : MemoryFormat::Contiguous;
}
Tensor made(const Problem& p, IntArrayRef shape, Device device) {
  return new_strided(shape, strides_in_format(shape, inner_format(p)), p.c.dtype, device);
}
Tensor finished(const Problem& p, const Tensor& tensor) {
  return inner_format(p) == p.format ? tensor : tensor.contiguous(p.format);
}
}  // namespace

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                   IntArrayRef output_padding, int64_t groups) {
  const char* op = "convolution";
  Problem p =
      problem_of(op, input, weight, stride, padding, dilation, transposed, output_padding, groups);
  bool biased = bias.has_value() && bias->defined();
  if (biased) {
    LAMELLA_CHECK(bias->dim() == 1 && bias->numel() == p.shape[1], op,
                  ": expected 'bias' to be of shape [", p.shape[1], "], got ", bias->sizes());
    LAMELLA_CHECK(bias->scalar_type() == p.c.dtype, op, ": expected 'bias' to be ", p.c.dtype,
                  ", got ", bias->scalar_type());
  }
  if (input.is_meta()) {
    return new_strided(p.shape, strides_in_format(p.shape, p.format), p.c.dtype, kMeta);
  }
  Tensor x = input.contiguous(inner_format(p)), w = weight.contiguous();
  Tensor b = biased ? bias->contiguous() : Tensor();
  Tensor out = made(p, p.shape, input.device());
  if (!transposed) {
    convolution_forward(op, p.c, x, w, b, out);
    return finished(p, out);
  }
  if (input.numel() == 0) out.zero_();
  if (input.numel() != 0) convolution_backward_data(op, p.c, x, w, out);
  if (biased) {
    Dims shape(static_cast<size_t>(input.dim()), 1);
    shape[1] = b.numel();
    out.add_(b.view(shape));
  }
  return finished(p, out);
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad_output, const Tensor& input, const Tensor& weight,
    OptionalIntArrayRef bias_sizes, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
    bool transposed, IntArrayRef output_padding, int64_t groups, std::array<bool, 3> output_mask) {
  const char* op = "convolution_backward";
  Problem p =
      problem_of(op, input, weight, stride, padding, dilation, transposed, output_padding, groups);
  LAMELLA_CHECK(grad_output.sizes().equals(p.shape), op, ": expected 'grad_output' to be of shape ",
                p.shape, ", got ", grad_output.sizes());
  LAMELLA_CHECK(grad_output.scalar_type() == p.c.dtype, op, ": expected 'grad_output' to be ",
                p.c.dtype, ", got ", grad_output.scalar_type());
  Tensor dx, dw, db;
  if (input.is_meta()) {
    if (output_mask[0]) {
      dx = new_strided(input.sizes(), strides_in_format(input.sizes(), p.format), p.c.dtype, kMeta);
    }
    if (output_mask[1]) dw = new_tensor(weight.sizes(), p.c.dtype, kMeta);
    if (output_mask[2]) db = new_tensor({p.shape[1]}, p.c.dtype, kMeta);
    return {dx, dw, db};
  }
  Tensor dy = grad_output.contiguous(inner_format(p));
  if (output_mask[0]) {
    Tensor w = weight.contiguous();
    dx = made(p, input.sizes(), input.device());
    if (transposed) {
      convolution_forward(op, p.c, dy, w, Tensor(), dx);
    } else {
      convolution_backward_data(op, p.c, dy, w, dx);
    }
    dx = finished(p, dx);
  }
  if (output_mask[1]) {
    Tensor x = input.contiguous(inner_format(p));
    dw = new_tensor(weight.sizes(), p.c.dtype, input.device());
    if (x.numel() == 0 || dy.numel() == 0) {
      dw.zero_();
    } else if (transposed) {
      convolution_backward_weight(op, p.c, dy, x, dw);
    } else {
      convolution_backward_weight(op, p.c, x, dy, dw);
    }
    if (weight.dim() == 4 && weight.suggest_memory_format() == MemoryFormat::ChannelsLast) {
      dw = dw.contiguous(MemoryFormat::ChannelsLast);
    }
  }
  if (output_mask[2]) {
    Dims over(1, 0);
    for (int64_t d = 2; d < grad_output.dim(); ++d) over.push_back(d);
    db = dy.sum(over.ref());
  }
  return {dx, dw, db};
}

}  // namespace lamella::native
