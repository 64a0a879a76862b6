// Plans and launches reductions: Note [Passes of a reduction] in kernels/reduce.h.
#include <algorithm>
#include <cstring>

#include "lamella/cuda/line_launch.h"

#include "lamella/cuda/kernels/reduce.h"

namespace lamella::cuda {
namespace {

// A table of the CPU's reductions as a kernel and its mode.
struct Reduction {
  const char* table;
  const char* kernel;
  int mode;
  int acc_bytes;  // for the type of 4 bytes, and that of 8 bytes
  int wide_bytes;
};
constexpr Reduction kReductions[] = {{"sum", "reduce_sum", 0, 4, 8},
                                     {"nansum", "reduce_sum", 1, 4, 8},
                                     {"mean", "reduce_sum", 2, 4, 8},
                                     {"prod", "reduce_prod", 0, 4, 8},
                                     {"aminmax", "reduce_extremes", 0, 8, 16},
                                     {"max", "reduce_extremes", 1, 8, 16},
                                     {"min", "reduce_extremes", 2, 8, 16},
                                     {"argmin", "reduce_place", 0, 16, 16},
                                     {"argmax", "reduce_place", 1, 16, 16},
                                     {"count", "reduce_count", 0, 8, 8},
                                     {"any", "reduce_count", 1, 8, 8},
                                     {"all", "reduce_count", 2, 8, 8},
                                     {"norm0", "reduce_norm", 0, 8, 8},
                                     {"norm1", "reduce_norm", 1, 8, 8},
                                     {"norm2", "reduce_norm", 2, 8, 8},
                                     {"norm3", "reduce_norm", 3, 8, 8},
                                     {"norm_general", "reduce_norm", 4, 8, 8},
                                     {"norm_max", "reduce_norm", 5, 8, 8},
                                     {"norm_min", "reduce_norm", 6, 8, 8},
                                     {"var", "reduce_var", 0, 24, 24},
                                     {"logsumexp", "reduce_logsumexp", 0, 8, 16}};
const Reduction* find(const char* table) {
  for (const Reduction& r : kReductions) {
    if (std::strcmp(r.table, table) == 0) return &r;
  }
  return nullptr;
}
bool is(const Reduction& r, const char* kernel) { return std::strcmp(r.kernel, kernel) == 0; }

}  // namespace

bool reduce(const char* name, ScalarType type, const TensorBase& in, uint64_t mask,
            const TensorBase& out, const void* params, const TensorBase& values) {
  const Reduction* reduction = find(name);
  if (reduction == nullptr) return false;
  if (in.is_complex() && is(*reduction, "reduce_count")) {
    const Tensor truth = Tensor(in).ne(0);
    return reduce(name, ScalarType::Bool, truth, mask, out, params, values);
  }
  // Complex numbers are added as pairs of real ones.
  const bool pairs = in.is_complex() && is(*reduction, "reduce_sum") && in.scalar_type() == type &&
                     out.scalar_type() == type;
  auto kind_of = [&](ScalarType dtype) {
    return line_kind(pairs ? (dtype == ScalarType::ComplexDouble  ? ScalarType::Double
                              : dtype == ScalarType::ComplexFloat ? ScalarType::Float
                                                                  : ScalarType::Undefined)
                           : dtype);
  };
  const int in_kind = kind_of(in.scalar_type()), out_kind = kind_of(out.scalar_type());
  int computed = kind_of(type);
  if (in_kind < 0 || out_kind < 0 || computed < 0) return false;
  const bool counts = is(*reduction, "reduce_count"), places = is(*reduction, "reduce_place");
  if (counts) computed = in_kind;
  const bool fraction = computed >= kF32, wide = computed == kF64;
  const char* suffix = !fraction ? "i64" : wide ? "f64" : "f32";
  // Results that the kernels do not convert as the CPU does.
  if (!counts && (in_kind >= kF32) != fraction) return false;
  if (!counts && in_kind == kF64 && !wide) return false;
  if (counts || places || !fraction ? out_kind >= kF32 : out_kind < kF32) return false;
  if (wide && !counts && !places && out_kind != kF32 && out_kind != kF64) return false;
  if (out.numel() == 0) return true;

  ReduceParameters p{};
  StridedDims kept, reduced;
  const bool keeps = in.dim() == out.dim(), empty = in.numel() == 0;
  p.outputs = 1;
  p.length = empty ? 0 : 1;
  int64_t at = 0;
  for (int64_t d = 0; d < in.dim(); ++d) {
    const int64_t size = in.size(d);
    const bool folded = (mask >> d & 1) != 0;
    if (folded && !empty) {
      p.length *= size;
      reduced.add(size, stride_of(in, d), 0, 0);
    } else if (!folded) {
      const int64_t to = keeps ? d : at;
      p.outputs *= size;
      kept.add(size, empty ? 0 : stride_of(in, d), stride_of(out, to),
               values.defined() ? stride_of(values, to) : 0);
    }
    if (keeps || !folded) ++at;
  }
  if (pairs) {
    const auto half = static_cast<int64_t>(in.itemsize() / 2);
    p.outputs *= 2;
    kept.add(2, half, half, 0);
  }
  kept.join();
  reduced.join();
  if (kept.count > kLineDims || reduced.count > kLineDims) return false;
  if (places && reduced.count > 1) return false;
  const bool across = kept.innermost() < reduced.innermost() && p.length > 1;
  kept.store(&p.kept, p.kept_in, p.kept_out, p.kept_values);
  reduced.store(&p.reduced, p.reduced_in, nullptr, nullptr);
  p.in = address_of(in);
  p.out = address_of(out);
  p.values = address_of(values);
  p.in_kind = static_cast<Kind>(in_kind);
  p.out_kind = static_cast<Kind>(out_kind);
  if (values.defined()) p.values_kind = static_cast<Kind>(line_kind(values.scalar_type()));
  p.across = across ? 1 : 0;
  p.mode = reduction->mode;
  for (int i = 0; i < 2 && params != nullptr; ++i) {
    std::memcpy(&p.numbers[i], static_cast<const char*>(params) + i * native::kLineParamBytes,
                sizeof(double));
  }

  p.pack = 1;
  if (!across && !wide && fraction && reduced.count == 1 &&
      reduced.all[0].strides[0] == static_cast<int64_t>(in.itemsize()) && !pairs) {
    uint64_t aligned = p.in;
    for (int d = 0; d < kept.count; ++d) aligned |= static_cast<uint64_t>(p.kept_in[d]);
    p.pack = pack_of(in.scalar_type(), aligned);
  }
  Shape shape = team_shape(across, p.outputs, (p.length + p.pack - 1) / p.pack);
  const int64_t lanes = shape.block[across ? 1 : 0], busy = 4 * busy_blocks(in, shape);
  const int64_t most = p.length / (lanes * 16);
  int64_t parts = std::min<int64_t>({most, busy / shape.grid[0], 1024});
  p.part = p.length;
  if (parts <= 1) return launch_lines(in, reduction->kernel, suffix, &p, shape);
  p.part = ((p.length + parts - 1) / parts + p.pack - 1) / p.pack * p.pack;
  parts = (p.length + p.part - 1) / p.part;
  const int64_t bytes =
      parts * p.outputs *
      (wide || !fraction || counts ? reduction->wide_bytes : reduction->acc_bytes);
  Tensor partial = lamella::empty({bytes}, TensorOptions(ScalarType::Byte).device(in.device()));
  p.partial = address_of(partial);
  shape.grid[1] = static_cast<unsigned>(parts);
  if (!launch_lines(in, reduction->kernel, suffix, &p, shape)) return false;
  p.merges = 1;
  p.part = parts;
  p.across = p.outputs >= 32 ? 1 : 0;
  return launch_lines(in, reduction->kernel, suffix, &p,
                      team_shape(p.across != 0, p.outputs, parts));
}

}  // namespace lamella::cuda
