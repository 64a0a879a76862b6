// The driver of reductions: Note [How a reduction is walked] in reduce.h.
#include "lamella/kernels/cpu/reduce.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "lamella/kernels/cpu/convert.h"

namespace lamella::native {

namespace {

constexpr int64_t kBlock = 512;   // accumulators, or converted elements, at a time
constexpr int64_t kPiece = 4096;  // elements folded in one step
constexpr int64_t kSteps = 64;    // of one level
constexpr int kLevels = 3;
constexpr int64_t kMaxAcc = 24;

struct Dim {
  int64_t size, in, out;  // strides in bytes
};
// Dimensions ordered from the innermost in memory, those that lie like one merged.
void order(std::vector<Dim>& dims) {
  auto size = [](int64_t s) { return s < 0 ? -s : s; };
  std::stable_sort(dims.begin(), dims.end(),
                   [&](const Dim& a, const Dim& b) { return size(a.in) < size(b.in); });
  size_t kept = 0;
  for (size_t i = 1; i < dims.size(); ++i) {
    Dim& last = dims[kept];
    if (dims[i].in == last.in * last.size && dims[i].out == last.out * last.size) {
      last.size *= dims[i].size;
    } else {
      dims[++kept] = dims[i];
    }
  }
  if (!dims.empty()) dims.resize(kept + 1);
}
// Counts through dimensions from position `index` on.
struct Walker {
  const std::vector<Dim>& dims;
  size_t first;
  int64_t at[64];
  int64_t in = 0, out = 0;
  Walker(const std::vector<Dim>& dims, size_t first, int64_t index) : dims(dims), first(first) {
    for (size_t d = first; d < dims.size(); ++d) {
      at[d] = index % dims[d].size;
      index /= dims[d].size;
      in += at[d] * dims[d].in;
      out += at[d] * dims[d].out;
    }
  }
  void next() {
    for (size_t d = first; d < dims.size(); ++d) {
      in += dims[d].in;
      out += dims[d].out;
      if (++at[d] < dims[d].size) return;
      in -= dims[d].in * dims[d].size;
      out -= dims[d].out * dims[d].size;
      at[d] = 0;
    }
  }
};

// Elements in memory as contiguous elements of the loop's type.
struct Reader {
  int64_t bytes;
  ConvertFn convert;
  alignas(64) char gathered[kBlock * 16];
  alignas(64) char converted[kBlock * 16];

  Reader(ScalarType from, ScalarType to)
      : bytes(static_cast<int64_t>(element_size(from))),
        convert(from == to ? nullptr : get_convert(from, to)) {}
  bool direct(int64_t stride) const { return convert == nullptr && stride == bytes; }
  // n <= kBlock unless direct(stride).
  const char* read(const char* data, int64_t stride, int64_t n) {
    if (direct(stride)) return data;
    const char* run = data;
    if (stride != bytes) {
      move_elements(data, stride, gathered, bytes, n, bytes);
      run = gathered;
    }
    if (convert == nullptr) return run;
    convert(run, converted, n);
    return converted;
  }
};

// Accumulators of `n` outputs that pass what they hold on to the next level.
struct Cascade {
  const ReduceLoops& loops;
  int64_t n;
  int64_t steps[kLevels] = {};
  int used = 1;
  alignas(64) char acc[kLevels][kBlock * kMaxAcc];

  Cascade(const ReduceLoops& loops, int64_t n) : loops(loops), n(n) { loops.init(acc[0], n); }
  void step() {
    int level = 0;
    while (level + 1 < kLevels && ++steps[level] == kSteps) {
      if (level + 1 == used) loops.init(acc[used++], n);
      loops.merge(acc[level + 1], acc[level], n);
      loops.init(acc[level], n);
      steps[level++] = 0;
    }
  }
  void* result() {
    for (int level = used - 1; level > 0; --level) loops.merge(acc[level - 1], acc[level], n);
    return acc[0];
  }
};

struct Reduction {
  const ReduceLoops& loops;
  ScalarType type, in_type, out_type;
  const void* params;
  const char* in;
  char* out;
  std::vector<Dim> kept, reduced;
  bool across;  // rows: the innermost dimension is kept
  int64_t outputs = 1, length = 1;
  int64_t blocks = 1;  // of outputs that are computed together

  int64_t block_size(int64_t block) const {
    if (!across) return 1;
    int64_t from = block % blocks_of_row() * kBlock;
    return std::min(kBlock, kept[0].size - from);
  }
  int64_t blocks_of_row() const { return (kept[0].size + kBlock - 1) / kBlock; }

  void place(int64_t block, const char*& from, char*& to) const {
    if (!across) {
      Walker at(kept, 0, block);
      from = in + at.in;
      to = out + at.out;
      return;
    }
    Walker at(kept, 1, block / blocks_of_row());
    int64_t column = block % blocks_of_row() * kBlock;
    from = in + at.in + column * kept[0].in;
    to = out + at.out + column * kept[0].out;
  }

  // Folds reduced elements [begin, end) of one block.
  void fold(int64_t block, int64_t begin, int64_t end, Cascade& cascade, Reader& reader) const {
    const char* from;
    char* to;
    place(block, from, to);
    if (begin >= end) return;
    if (across) {
      Walker at(reduced, 0, begin);
      for (int64_t r = begin; r < end; ++r) {
        loops.rows(cascade.acc[0], reader.read(from + at.in, kept[0].in, cascade.n), cascade.n,
                   params);
        cascade.step();
        at.next();
      }
      return;
    }
    if (reduced.empty()) {
      loops.run(cascade.acc[0], reader.read(from, reader.bytes, 1), 1, params);
      return;
    }
    int64_t inner = reduced[0].size, stride = reduced[0].in;
    int64_t piece = reader.direct(stride) ? kPiece : kBlock;
    Walker at(reduced, 1, begin / inner);
    int64_t skip = begin % inner;
    while (begin < end) {
      int64_t n = std::min(inner - skip, end - begin);
      for (int64_t i = 0; i < n; i += piece) {
        int64_t now = std::min(piece, n - i);
        loops.run(cascade.acc[0], reader.read(from + at.in + (skip + i) * stride, stride, now), now,
                  params);
        cascade.step();
      }
      begin += n;
      skip = 0;
      at.next();
    }
  }
  void write(int64_t block, const void* acc, int64_t n) const {
    alignas(64) char finished[kBlock * 16], converted[kBlock * 16];
    const char* from;
    char* to;
    place(block, from, to);
    loops.finish(acc, finished, n, params);
    const char* result = finished;
    if (loops.out != out_type) {
      get_convert(loops.out, out_type)(finished, converted, n);
      result = converted;
    }
    auto bytes = static_cast<int64_t>(element_size(out_type));
    move_elements(result, bytes, to, across ? kept[0].out : bytes, n, bytes);
  }
  void serial(int64_t first, int64_t last) const {
    Reader reader(in_type, type);
    for (int64_t b = first; b < last; ++b) {
      Cascade cascade(loops, block_size(b));
      fold(b, 0, length, cascade, reader);
      write(b, cascade.result(), cascade.n);
    }
  }
  void run() const {
    int64_t work = outputs * length;
    int64_t parts = std::min<int64_t>(get_num_threads(), work / kGrainSize);
    if (parts <= 1 || in_parallel_region()) {
      serial(0, blocks);
    } else if (blocks >= parts) {
      parallel_for(0, blocks, std::max<int64_t>(1, blocks / parts),
                   [&](int64_t b, int64_t e) { serial(b, e); });
    } else {
      for (int64_t b = 0; b < blocks; ++b) split(b, parts);
    }
  }
  // One block by several threads.
  void split(int64_t block, int64_t parts) const {
    int64_t n = block_size(block), bytes = n * loops.acc_bytes;
    std::vector<char> partial(static_cast<size_t>(parts * bytes));
    int64_t each = (length + parts - 1) / parts;
    parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        Reader reader(in_type, type);
        Cascade cascade(loops, n);
        fold(block, p * each, std::min(length, (p + 1) * each), cascade, reader);
        std::memcpy(partial.data() + p * bytes, cascade.result(), static_cast<size_t>(bytes));
      }
    });
    for (int64_t p = 1; p < parts; ++p) loops.merge(partial.data(), partial.data() + p * bytes, n);
    write(block, partial.data(), n);
  }
};

int64_t stride_bytes(const TensorBase& t, size_t d) {
  return t.strides()[d] * static_cast<int64_t>(t.itemsize());
}

}  // namespace

void reduce_tensor(const ReduceTable& table, ScalarType type, const TensorBase& in, DimMask mask,
                   const TensorBase& out, const void* params) {
  int at = loop_index(loop_type(type));
  bool known = at >= 0 && at < kLoopTypes && table.loops[at].run != nullptr &&
               loop_index(in.dtype()) >= 0 && loop_index(out.dtype()) >= 0;
  LAMELLA_CHECK_NOT_IMPLEMENTED(known, table.name,
                                ": expected a dtype that it has a kernel for, got ", in.dtype());
  if (out.numel() == 0) return;
  Reduction r{table.loops[at],
              loop_type(type),
              in.dtype(),
              out.dtype(),
              params,
              static_cast<const char*>(in.data_ptr()),
              static_cast<char*>(out.data_ptr()),
              {},
              {},
              false};
  bool keeps = in.dim() == out.dim();
  size_t o = 0;
  for (size_t d = 0; d < static_cast<size_t>(in.dim()); ++d) {
    int64_t size = in.sizes()[d];
    if (mask[d]) {
      r.length *= size;
      if (size != 1) r.reduced.push_back({size, stride_bytes(in, d), 0});
    } else {
      r.outputs *= size;
      if (size != 1)
        r.kept.push_back({size, stride_bytes(in, d), stride_bytes(out, keeps ? d : o)});
    }
    if (keeps || !mask[d]) ++o;
  }
  order(r.kept);
  order(r.reduced);
  r.across =
      !r.kept.empty() && (r.reduced.empty() || std::abs(r.kept[0].in) < std::abs(r.reduced[0].in));
  if (r.length == 0) r.reduced.clear();
  r.blocks = r.across ? r.blocks_of_row() * (r.outputs / r.kept[0].size) : r.outputs;
  r.run();
}

// ---- Places of extremes ------------------------------------------------------------------------

void arg_reduce(const ArgTable& table, const TensorBase& in, int64_t dim, const TensorBase& values,
                const TensorBase& indices) {
  ScalarType type = loop_type(in.dtype());
  int slot = loop_index(type);
  LAMELLA_CHECK_NOT_IMPLEMENTED(slot >= 0 && slot < kLoopTypes && table.loops[slot].line != nullptr,
                                table.name, ": expected a dtype that it has a kernel for, got ",
                                in.dtype());
  if (indices.numel() == 0) return;
  const ArgLoops& loops = table.loops[slot];
  int64_t length = in.dim() == 0 ? 1 : in.size(dim);
  int64_t stride = in.dim() == 0 ? 0 : stride_bytes(in, static_cast<size_t>(dim));
  // Two walks, as indices and values may have strides of their own.
  std::vector<Dim> kept, kept_values;
  bool keeps = in.dim() == indices.dim();
  size_t o = 0;
  for (size_t d = 0; d < static_cast<size_t>(in.dim()); ++d) {
    if (d == static_cast<size_t>(dim)) {
      if (keeps) ++o;
      continue;
    }
    size_t at = keeps ? d : o;
    ++o;
    kept.push_back({in.sizes()[d], stride_bytes(in, d), stride_bytes(indices, at)});
    kept_values.push_back(
        {in.sizes()[d], stride_bytes(in, d), values.defined() ? stride_bytes(values, at) : 0});
  }
  int64_t outputs = indices.numel();
  // The kept dimension that is innermost in memory, if it lies within the reduced one.
  size_t inner = kept.size();
  for (size_t d = 0; d < kept.size(); ++d) {
    if (kept[d].size > 1 && std::abs(kept[d].in) < std::abs(stride) &&
        (inner == kept.size() || std::abs(kept[d].in) < std::abs(kept[inner].in))) {
      inner = d;
    }
  }
  bool across = inner < kept.size();
  if (across) {
    std::swap(kept[0], kept[inner]);
    std::swap(kept_values[0], kept_values[inner]);
  }
  int64_t row = across ? kept[0].size : 1, row_blocks = (row + kBlock - 1) / kBlock;
  int64_t blocks = across ? outputs / row * row_blocks : outputs;
  auto* from = static_cast<const char*>(in.data_ptr());
  auto* to = static_cast<char*>(indices.data_ptr());
  auto* to_values = values.defined() ? static_cast<char*>(values.data_ptr()) : nullptr;
  auto bytes = static_cast<int64_t>(in.itemsize());
  ConvertFn back = type == in.dtype() ? nullptr : get_convert(type, in.dtype());
  int64_t grain =
      std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, length * (across ? kBlock : 1)));
  parallel_for(0, blocks, grain, [&](int64_t first, int64_t last) {
    Reader reader(in.dtype(), type);
    alignas(64) char best[kBlock * 16], narrow[kBlock * 16];
    int64_t index[kBlock];
    for (int64_t b = first; b < last; ++b) {
      size_t outer = across ? 1 : 0;
      int64_t position = across ? b / row_blocks : b;
      int64_t column = across ? b % row_blocks * kBlock : 0;
      Walker at(kept, outer, position), at_values(kept_values, outer, position);
      const char* p = from + at.in + (across ? column * kept[0].in : 0);
      int64_t n = across ? std::min(kBlock, row - column) : 1;
      if (across) {
        for (int64_t r = 0; r < length; ++r) {
          loops.rows(reader.read(p + r * stride, kept[0].in, n), n, r, best, index);
        }
      } else {
        index[0] = -1;
        std::memset(best, 0, 16);
        int64_t piece = reader.direct(stride) ? kPiece : kBlock;
        for (int64_t i = 0; i < length; i += piece) {
          int64_t now = std::min(piece, length - i);
          loops.line(reader.read(p + i * stride, stride, now), now, i, best, index);
        }
      }
      int64_t out_stride = across ? kept[0].out : 8;
      move_elements(reinterpret_cast<const char*>(index), 8,
                    to + at.out + (across ? column * kept[0].out : 0), out_stride, n, 8);
      if (to_values == nullptr) continue;
      const char* result = best;
      if (back != nullptr) {
        back(best, narrow, n);
        result = narrow;
      }
      move_elements(result, bytes,
                    to_values + at_values.out + (across ? column * kept_values[0].out : 0),
                    across ? kept_values[0].out : bytes, n, bytes);
    }
  });
}

}  // namespace lamella::native
