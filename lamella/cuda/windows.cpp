// Pooling, sliding blocks, padding and interpolation, and their gradients.
#include "lamella/cuda/call.h"

#include "lamella/cuda/families.h"
#include "lamella/cuda/kernels/windows.h"

namespace lamella::cuda {
namespace {

using Lengths = std::vector<int64_t>;

// The strides of a tensor as [batch][channels][0][1][2], in bytes: `spatial` dimensions come last,
// and what is missing has size 1.
void lay_strides(const Tensor& t, int spatial, int64_t (&strides)[5]) {
  const int64_t lead = t.dim() - spatial, bytes = static_cast<int64_t>(t.itemsize());
  strides[0] = lead == 2 ? t.stride(0) * bytes : 0;
  strides[1] = lead >= 1 ? t.stride(lead - 1) * bytes : 0;
  for (int d = 0; d < 3; ++d) {
    const int at = d - (3 - spatial);
    strides[2 + d] = at >= 0 ? t.stride(lead + at) * bytes : 0;
  }
}
// `inputs` and `outputs` are the tensors of the two sides; `axes` must follow.
WindowParameters window_of(const Tensor& inputs, const Tensor& outputs, int spatial) {
  WindowParameters p{};
  const int64_t lead = inputs.dim() - spatial;
  p.planes = 1;
  for (int64_t d = 0; d < lead; ++d) p.planes *= inputs.size(d);
  p.channels = lead >= 1 ? inputs.size(lead - 1) : 1;
  for (int d = 0; d < 3; ++d) {
    WindowAxis& axis = p.axes[d];
    const int at = d - (3 - spatial);
    axis = {1, 1, kReplicate, 0, 1, 1, 0, 1, 1};
    if (at < 0) continue;
    axis.in = inputs.size(lead + at);
    axis.out = outputs.size(lead + at);
  }
  return p;
}
bool start(const Call& call, WindowParameters* p, const char* kernel, const char* suffix,
           const Tensor& from, const Tensor& to, int spatial) {
  lay_strides(from, spatial, p->from_strides);
  lay_strides(to, spatial, p->to_strides);
  p->from = address_of(from);
  p->to = address_of(to);
  return launch_named(call.device(), kernel, suffix, p, to.numel());
}
int64_t entry(const Lengths& list, int d, int64_t otherwise) {
  return list.empty() ? otherwise : list[list.size() == 1 ? 0 : static_cast<size_t>(d)];
}

// ---- Pooling ----

// Arguments from `first` on are kernel_size, stride, padding and, of maxima, dilation or, of
// averages, ceil_mode, count_include_pad and divisor_override.
void lay_windows(const Call& call, WindowParameters* p, int spatial, int first, bool maximum) {
  const Lengths kernels = call.integers(first), strides = call.integers(first + 1),
                paddings = call.integers(first + 2);
  const Lengths dilations = maximum ? call.integers(first + 3) : Lengths();
  if (!maximum && !call.is_none(first + 5)) p->divisor = call.integer(first + 5);
  for (int d = 0; d < 3; ++d) {
    WindowAxis& axis = p->axes[d];
    const int at = d - (3 - spatial);
    axis.rule = kWindow;
    axis.counts_padding = maximum || call.flag(first + 4) ? 1 : 0;
    if (at < 0) continue;
    const int64_t kernel = entry(kernels, at, 1);
    axis.step = entry(dilations, at, 1);
    axis.reach = (kernel - 1) * axis.step + 1;
    axis.stride = entry(strides, at, kernel);
    axis.pad = entry(paddings, at, 0);
  }
}
// Pooling or its gradient, whose arguments follow the gradient of the outputs and end with the
// indices of maxima. The gradients compute with float32 where elements are smaller.
template <int kSpatial, bool kMaximum, bool kIsAdaptive, bool kBackward>
bool pool_body(Call& call) {
  const Tensor from = call.tensor(0), out = call.output();
  const ScalarType dtype = from.scalar_type();
  const char* suffix = kMaximum && dtype == ScalarType::Bool ? nullptr : suffix_of_type(dtype);
  WindowParameters p = window_of(call.tensor(kBackward ? 1 : 0), kBackward ? from : out, kSpatial);
  if constexpr (kIsAdaptive) {
    for (WindowAxis& axis : p.axes) axis.rule = kAdaptive;
  } else {
    lay_windows(call, &p, kSpatial, kBackward ? 2 : 1, kMaximum);
  }
  if constexpr (kMaximum) {
    const Tensor indices = kBackward ? call.tensor(kIsAdaptive ? 2 : 7) : call.output(1);
    lay_strides(indices, kSpatial, p.index_strides);
    p.indices = address_of(indices);
  }
  if constexpr (kMaximum && kBackward) {
    const IndexSlot slot = report_slot(
        call.device(),
        kSpatial == 2 ? "max_pool2d_with_indices_backward" : "max_pool3d_with_indices_backward",
        IndexText::kElements, 0, p.axes[0].in * p.axes[1].in * p.axes[2].in);
    p.slot = slot.slot;
    p.any = slot.any;
  }
  const char* kernel = kMaximum    ? kBackward ? "max_pool_backward" : "max_pool"
                       : kBackward ? "average_pool_backward"
                                   : "average_pool";
  return start(call, &p, kernel, suffix, from, out, kSpatial);
}

// ---- Padding ----

void lay_padding(WindowParameters* p, int spatial, const Lengths& padding, bool reflects) {
  for (int d = 3 - spatial; d < 3; ++d) {
    WindowAxis& axis = p->axes[d];
    axis.rule = reflects ? kReflect : kReplicate;
    // The last dimension's padding comes first.
    axis.pad = padding[static_cast<size_t>(2 * (2 - d))];
    if (!reflects && axis.pad < -axis.in) axis.pad = -axis.in;
  }
}
template <int kSpatial, bool kReflects>
bool pad_body(Call& call) {
  const Tensor self = call.tensor(0);
  WindowParameters p = window_of(self, call.output(), kSpatial);
  lay_padding(&p, kSpatial, call.integers(1), kReflects);
  return start(call, &p, "pick", suffix_of_bytes(self.itemsize()), self, call.output(), kSpatial);
}
template <int kSpatial, bool kReflects>
bool pad_backward_body(Call& call) {
  const Tensor grad = call.tensor(0), out = call.output();
  WindowParameters p = window_of(call.tensor(1), grad, kSpatial);
  lay_padding(&p, kSpatial, call.integers(2), kReflects);
  auto run = [&](const Tensor& from, const Tensor& to) {
    return is_floating_point(from.scalar_type()) &&
           start(call, &p, "resample_backward", suffix_of_type(from.scalar_type()), from, to,
                 kSpatial);
  };
  if (!is_complex(grad.scalar_type())) return run(grad, out);
  const Tensor from = lamella::view_as_real(grad), to = lamella::view_as_real(out);
  return run(from.select(-1, 0), to.select(-1, 0)) && run(from.select(-1, 1), to.select(-1, 1));
}

// ---- Interpolation ----

// The step in the input for one step of the output, with PyTorch's exceptions: linear interpolation
// that keeps a size, and nearest interpolation in two dimensions that keeps or doubles one.
double step_of(AxisRule rule, bool plane, int64_t in, int64_t out, double scale) {
  const bool nearest = rule == kNearest && plane;
  if (in == out && (nearest || rule == kLinear)) return 1;
  if (nearest && out % 2 == 0 && out / 2 == in) return 0.5;
  if (rule == kLinearCorners) {
    return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
  }
  return scale > 0 ? 1 / scale : static_cast<double>(in) / static_cast<double>(out);
}
// `first`: the position of the first scale among the arguments.
void lay_resize(const Call& call, WindowParameters* p, int spatial, AxisRule rule, int first,
                ScalarType dtype) {
  for (int d = 3 - spatial; d < 3; ++d) {
    WindowAxis& axis = p->axes[d];
    axis.rule = rule;
    const double scale = call.number(first + d - (3 - spatial), 0);
    axis.scale = step_of(rule, spatial == 2, axis.in, axis.out, scale);
    if (dtype != ScalarType::Double) {
      axis.scale = static_cast<double>(static_cast<float>(axis.scale));
    }
  }
}
// Interpolation or its gradient. Its arguments are output_size, of a gradient input_size, of linear
// rules align_corners, and the scales.
template <int kSpatial, AxisRule kRule, bool kBackward>
bool resize_body(Call& call) {
  constexpr bool kMixes = kRule == kLinear, kComputes = kMixes || kBackward;
  constexpr int kFirst = kBackward ? 3 : 2;
  const Tensor from = call.tensor(0), out = call.output();
  const ScalarType dtype = from.scalar_type();
  const AxisRule rule = kMixes && call.flag(kFirst) ? kLinearCorners : kRule;
  if (kComputes && !is_floating_point(dtype)) return false;
  WindowParameters p = window_of(kBackward ? out : from, kBackward ? from : out, kSpatial);
  lay_resize(call, &p, kSpatial, rule, kFirst + (kMixes ? 1 : 0), dtype);
  return start(call, &p,
               kBackward ? "resample_backward"
               : kMixes  ? "resample"
                         : "pick",
               kComputes ? suffix_of_type(dtype) : suffix_of_bytes(from.itemsize()), from, out,
               kSpatial);
}

// ---- Sliding blocks ----

// `first`: the position of kernel_size, behind which dilation, padding and stride come.
bool columns(Call& call, const Tensor& image, const Tensor& blocks, int first, bool gathers) {
  ColumnParameters p{};
  const Lengths kernel = call.integers(first), dilation = call.integers(first + 1),
                padding = call.integers(first + 2), stride = call.integers(first + 3);
  const Tensor from = call.tensor(0).contiguous(), out = call.output();
  if (!out.is_contiguous()) return false;
  p.w.planes = 1;
  for (int64_t d = 0; d + 2 < image.dim(); ++d) p.w.planes *= image.size(d);
  for (int d = 0; d < 2; ++d) {
    WindowAxis& axis = p.w.axes[d + 1];
    p.kernel[d] = entry(kernel, d, 1);
    axis.in = image.size(d - 2);
    axis.step = entry(dilation, d, 1);
    axis.pad = entry(padding, d, 0);
    axis.stride = entry(stride, d, 1);
    axis.out = (axis.in + 2 * axis.pad - (p.kernel[d] - 1) * axis.step - 1) / axis.stride + 1;
  }
  const ScalarType dtype = out.scalar_type();
  const char* suffix = gathers                    ? suffix_of_bytes(out.itemsize())
                       : is_floating_point(dtype) ? suffix_of_type(dtype)
                                                  : nullptr;
  p.image = address_of(gathers ? from : out);
  p.columns = address_of(gathers ? out : from);
  return launch_named(call.device(), gathers ? "to_columns" : "from_columns", suffix, &p,
                      out.numel());
}
bool im2col_body(Call& call) { return columns(call, call.tensor(0), call.output(), 1, true); }
bool col2im_body(Call& call) { return columns(call, call.output(), call.tensor(0), 2, false); }

// Registers an operator, with its form that writes into `out` if that is not made of this one, and
// its gradient.
template <CallBody forward, CallBody backward>
void register_both(Library& aten, const std::string& name, bool has_out) {
  register_calls<forward>(aten, has_out ? name + " " + name + ".out" : name);
  register_calls<backward>(aten, name + "_backward");
}
template <int kSpatial>
void register_pads(Library& aten, const std::string& d) {
  register_both<&pad_body<kSpatial, true>, &pad_backward_body<kSpatial, true>>(
      aten, "reflection_pad" + d, true);
  register_both<&pad_body<kSpatial, false>, &pad_backward_body<kSpatial, false>>(
      aten, "replication_pad" + d, true);
}
template <int kSpatial, AxisRule kRule>
void register_resize(Library& aten, const std::string& name, bool has_out = true) {
  register_both<&resize_body<kSpatial, kRule, false>, &resize_body<kSpatial, kRule, true>>(
      aten, name, has_out);
}
template <int kSpatial>
void register_resizes(Library& aten, const std::string& d, const std::string& linear) {
  register_resize<kSpatial, kNearest>(aten, "upsample_nearest" + d);
  register_resize<kSpatial, kNearestExact>(aten, "_upsample_nearest_exact" + d, false);
  register_resize<kSpatial, kLinear>(aten, linear);
}
template <int kSpatial, bool kMaximum, bool kIsAdaptive>
void register_pool(Library& aten, const std::string& name) {
  register_both<&pool_body<kSpatial, kMaximum, kIsAdaptive, false>,
                &pool_body<kSpatial, kMaximum, kIsAdaptive, true>>(aten, name,
                                                                   kMaximum && kIsAdaptive);
}
template <int kSpatial>
void register_pools(Library& aten, const std::string& d) {
  register_pool<kSpatial, true, false>(aten, "max_pool" + d + "_with_indices");
  register_pool<kSpatial, false, false>(aten, "avg_pool" + d);
  register_pool<kSpatial, true, true>(aten, "adaptive_max_pool" + d);
  register_pool<kSpatial, false, true>(aten, "_adaptive_avg_pool" + d);
}

}  // namespace

void register_windows(Library& aten) {
  register_pools<2>(aten, "2d");
  register_pools<3>(aten, "3d");
  register_pads<1>(aten, "1d");
  register_pads<2>(aten, "2d");
  register_pads<3>(aten, "3d");
  register_resizes<1>(aten, "1d", "upsample_linear1d");
  register_resizes<2>(aten, "2d", "upsample_bilinear2d");
  register_resizes<3>(aten, "3d", "upsample_trilinear3d");
  register_calls<&im2col_body>(aten, "im2col im2col.out");
  register_calls<&col2im_body>(aten, "col2im col2im.out");
}

}  // namespace lamella::cuda
