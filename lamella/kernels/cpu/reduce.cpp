// The driver of reductions: Note [How a reduction is walked] in reduce.h.
#include "lamella/kernels/cpu/reduce.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/device_lines.h"

namespace lamella::native {

namespace {

constexpr int64_t kPieceBytes = 16384;  // bytes of a line that are folded in one step
constexpr int64_t kRows = 16;           // rows that are folded in one step
constexpr int64_t kMaxStepRows = 254;   // so that a byte can number the rows of a step
constexpr int64_t kSteps = 16;          // steps of one level
constexpr int kLevels = 8;
constexpr int64_t kShortRows = 4096;     // elements of short rows that are folded in one step
constexpr int64_t kBufferBytes = 32768;  // bytes that are converted or gathered at a time
// Elements are gathered from at most kGatherBytes of memory at a time, but at least
// kMinGathered elements.
constexpr int64_t kMinGathered = 2048, kGatherBytes = 4096;
constexpr int64_t kBlockBytes = 32768;  // bytes of the accumulators of one block of rows
constexpr int64_t kBlockWork = 65536;   // elements of one block of lines
constexpr int64_t kMaxBlockLines = 512;
constexpr int64_t kPartWork = 65536;  // elements of one part of a block
constexpr int64_t kMaxParts = 32;

struct Dim {
  int64_t size, in, out, values;  // strides in bytes
};
struct Dims64 {
  Dim dims[64];
  size_t count = 0;
  Dims64() {}  // leaves the dimensions as they are
  bool empty() const { return count == 0; }
  Dim& operator[](size_t d) { return dims[d]; }
  const Dim& operator[](size_t d) const { return dims[d]; }
  void add(const Dim& dim) { dims[count++] = dim; }
  // Orders dimensions from the innermost in memory, and merges those whose strides allow it.
  void order() {
    auto size = [](int64_t s) { return s < 0 ? -s : s; };
    for (size_t i = 1; i < count; ++i) {
      Dim moved = dims[i];
      size_t at = i;
      for (; at > 0 && size(dims[at - 1].in) > size(moved.in); --at) dims[at] = dims[at - 1];
      dims[at] = moved;
    }
    size_t kept = 0;
    for (size_t i = 1; i < count; ++i) {
      Dim& last = dims[kept];
      const Dim& next = dims[i];
      if (next.in == last.in * last.size && next.out == last.out * last.size &&
          next.values == last.values * last.size) {
        last.size *= next.size;
      } else {
        dims[++kept] = next;
      }
    }
    if (count != 0) count = kept + 1;
  }
};
// Counts through dimensions from number `first` and position `index` on.
struct Walker {
  const Dims64& dims;
  size_t first;
  int64_t at[64];
  int64_t in = 0, out = 0, values = 0;
  Walker(const Dims64& dims, size_t first, int64_t index) : dims(dims), first(first) {
    for (size_t d = first; d < dims.count; ++d) {
      at[d] = index == 0 ? 0 : index % dims[d].size;
      index = index == 0 ? 0 : index / dims[d].size;
      in += at[d] * dims[d].in;
      out += at[d] * dims[d].out;
      values += at[d] * dims[d].values;
    }
  }
  void next() {
    for (size_t d = first; d < dims.count; ++d) {
      in += dims[d].in;
      if (++at[d] < dims[d].size) return;
      in -= dims[d].in * dims[d].size;
      at[d] = 0;
    }
  }
};

// Scratch memory, on the caller's stack if it is small.
class Scratch {
 public:
  explicit Scratch(int64_t bytes)
      : heap_(bytes <= kInline ? nullptr : new char[static_cast<size_t>(bytes) + 64]) {}
  char* get() {
    if (heap_ == nullptr) return inline_;
    auto at = reinterpret_cast<uintptr_t>(heap_.get());
    return heap_.get() + (64 - at % 64) % 64;
  }

 private:
  static constexpr int64_t kInline = 4096;
  alignas(64) char inline_[kInline];
  std::unique_ptr<char[]> heap_;
};

// Accumulators of `n` outputs in several levels; after kSteps steps a level is merged into the
// next.
struct Cascade {
  const ReduceLoops& loops;
  char* memory;
  int64_t n, level_bytes, first_steps;
  int64_t steps[kLevels] = {};
  int used = 1;

  Cascade(const ReduceLoops& loops, char* memory, int64_t n, bool across)
      : loops(loops),
        memory(memory),
        n(n),
        level_bytes(bytes_of(loops, n)),
        first_steps(across ? kSteps / 4 : kSteps) {
    loops.init(memory, n);
  }
  static int64_t bytes_of(const ReduceLoops& loops, int64_t n) {
    return (n * loops.acc_bytes + 63) / 64 * 64;
  }
  // Levels that so many steps can need.
  static int levels(int64_t steps, bool across) {
    int levels = 1;
    for (int64_t s = steps / (across ? kSteps / 4 : kSteps); s > 0 && levels < kLevels;
         s /= kSteps) {
      ++levels;
    }
    return levels;
  }
  char* level(int i) const { return memory + i * level_bytes; }
  void step() {
    for (int i = 0; i + 1 < kLevels && ++steps[i] == (i == 0 ? first_steps : kSteps); ++i) {
      if (i + 1 == used) loops.init(level(used++), n);
      loops.merge(level(i + 1), level(i), n);
      loops.init(level(i), n);
      steps[i] = 0;
    }
  }
  bool settled() const {
    return loops.settled >= 0 &&
           std::memchr(memory, 1 - loops.settled, static_cast<size_t>(n)) == nullptr;
  }
  void* result() {
    for (int i = used - 1; i > 0; --i) loops.merge(level(i - 1), level(i), n);
    return memory;
  }
};

struct Reduction {
  const ReduceLoops& loops;
  ScalarType type, in_type, out_type;
  const void* params;
  const char* in;
  char* out;
  char* values = nullptr;
  FoldFn fold_fn = nullptr;  // reads the tensor's memory directly; null if it must be gathered
  ConvertFn convert = nullptr;
  int64_t bytes = 0;  // of an element of `in`
  Dims64 kept = {}, reduced = {};
  bool across = false;  // rows: the innermost dimension is kept
  int64_t outputs = 1, length = 1;
  int64_t block = 1;   // outputs of a block
  int64_t in_row = 1;  // blocks of the innermost kept dimension
  int64_t blocks = 1;
  int64_t step = 1;  // elements of a line, or rows, that are folded at a time
  int levels = 1;

  void plan(FoldFn along_fn, FoldFn across_fn) {
    kept.order();
    reduced.order();
    across = !kept.empty() && (reduced.empty() || std::abs(kept[0].in) < std::abs(reduced[0].in));
    bool direct = (across ? kept[0].in : reduced.empty() ? bytes : reduced[0].in) == bytes;
    if (direct) fold_fn = across ? across_fn : along_fn;
    int64_t row = kept.empty() ? 1 : kept[0].size;
    int64_t most =
        across ? std::max<int64_t>(64, kBlockBytes / loops.acc_bytes)
               : std::clamp<int64_t>(kBlockWork / std::max<int64_t>(length, 1), 1, kMaxBlockLines);
    step = across ? std::max(kRows, kShortRows / row) : kPieceBytes / bytes;
    if (fold_fn == nullptr) {
      int64_t inner = reduced.empty() ? 1 : reduced[0].size;
      int64_t room = kBufferBytes / std::max(bytes, static_cast<int64_t>(element_size(type)));
      // Gathers fewer elements at a time, so that reads of memory overlap with folding.
      int64_t apart = across ? kept[0].in : reduced.empty() ? bytes : reduced[0].in;
      int64_t few = kGatherBytes / std::max<int64_t>(1, std::abs(apart));
      int64_t buffered = std::clamp(few, std::min(kMinGathered, room), room);
      most = std::min(most, across ? room : std::max<int64_t>(1, buffered / inner));
      step =
          across ? std::max<int64_t>(1, buffered / std::min(most, row)) : std::min(inner, buffered);
    }
    if (across) step = std::min(step, kMaxStepRows);
    in_row = (row + most - 1) / most;
    block = (row + in_row - 1) / in_row;
    in_row = (row + block - 1) / block;
    blocks = outputs / row * in_row;
    int64_t inner = reduced.empty() ? 1 : reduced[0].size;
    // A range that begins within a line takes one more step.
    levels = Cascade::levels(((inner + step - 1) / step + 1) * (length / inner + 1), across);
  }

  struct Place {
    int64_t n;
    const char* in;
    char *out, *values;
  };
  Place place(int64_t index) const {
    Walker at(kept, 1, index / in_row);
    int64_t first = index % in_row * block;
    Dim row = kept.empty() ? Dim{1, 0, 0, 0} : kept[0];
    return {std::min(block, row.size - first), in + at.in + first * row.in,
            out + at.out + first * row.out, values + at.values + first * row.values};
  }

  // Elements that are gathered and converted first, in memory of their own.
  struct Buffers {
    alignas(64) char gathered[kBufferBytes];
    alignas(64) char converted[kBufferBytes];
  };
  const char* read(Buffers& buffers, const char* from, int64_t stride, int64_t n, int64_t count,
                   int64_t between) const {
    const char* run = from;
    if (stride == bytes && convert != nullptr) {
      auto converted_bytes = static_cast<int64_t>(element_size(type));
      for (int64_t i = 0; i < count; ++i) {
        convert(from + i * between, buffers.converted + i * n * converted_bytes, n);
      }
      return buffers.converted;
    }
    if (stride != bytes || count != 1) {
      for (int64_t i = 0; i < count; ++i) {
        move_elements(from + i * between, stride, buffers.gathered + i * n * bytes, bytes, n,
                      bytes);
      }
      run = buffers.gathered;
    }
    if (convert == nullptr) return run;
    convert(run, buffers.converted, n * count);
    return buffers.converted;
  }

  // Folds reduced elements [begin, end) of one block. Stops early, and sets `settled` for the other
  // parts, once no more elements can change the result.
  void fold(const char* from, int64_t begin, int64_t end, Cascade& cascade,
            std::atomic<bool>* settled) const {
    if (begin >= end || (settled != nullptr && settled->load(std::memory_order_relaxed))) return;
    int64_t n = cascade.n;
    int64_t inner = reduced.empty() ? 1 : reduced[0].size;
    int64_t stride = reduced.empty() ? bytes : reduced[0].in;
    int64_t other = kept.empty() ? bytes : kept[0].in;
    auto compute_bytes = static_cast<int64_t>(element_size(type));
    alignas(Buffers) char room[sizeof(Buffers)];
    auto* buffers = reinterpret_cast<Buffers*>(room);
    Walker at(reduced, 1, begin / inner);
    int64_t skip = begin % inner;
    while (begin < end) {
      int64_t run = std::min(inner - skip, end - begin);
      for (int64_t i = 0; i < run; i += step) {
        int64_t now = std::min(step, run - i);
        const char* p = from + at.in + (skip + i) * stride;
        if (fold_fn != nullptr) {
          fold_fn(cascade.memory, across ? ReduceInput{p, n, now, stride, begin + i, params}
                                         : ReduceInput{p, now, n, other, begin + i, params});
        } else if (across) {
          const char* rows = read(*buffers, p, other, n, now, stride);
          loops.across(cascade.memory, {rows, n, now, n * compute_bytes, begin + i, params});
        } else {
          const char* lines = read(*buffers, p, stride, now, n, other);
          loops.along(cascade.memory, {lines, now, n, now * compute_bytes, begin + i, params});
        }
        if (settled != nullptr) {
          if (settled->load(std::memory_order_relaxed)) return;
          if (cascade.settled()) return settled->store(true, std::memory_order_relaxed);
        }
        cascade.step();
      }
      begin += run;
      skip = 0;
      at.next();
    }
  }
  void write(const Place& to, const void* acc) const {
    alignas(64) char finished[kMaxBlockLines * 16], converted[kMaxBlockLines * 16];
    bool whole = to.n <= kMaxBlockLines;
    Scratch memory(whole ? 0 : to.n * 32);
    char* first = whole ? finished : memory.get();
    char* second = whole ? converted : first + to.n * 16;
    auto put = [&](ScalarType from, ScalarType as, char* target, int64_t stride) {
      const char* result = first;
      if (from != as) {
        get_convert(from, as)(first, second, to.n);
        result = second;
      }
      auto size = static_cast<int64_t>(element_size(as));
      move_elements(result, size, target, to.n == 1 ? size : stride, to.n, size);
    };
    loops.finish(acc, first, to.n, params);
    put(loops.out, out_type, to.out, kept.empty() ? 0 : kept[0].out);
    if (values == nullptr) return;
    loops.finish_values(acc, first, to.n);
    put(type, in_type, to.values, kept.empty() ? 0 : kept[0].values);
  }
  void whole_blocks(int64_t first, int64_t last) const {
    Scratch memory(levels * Cascade::bytes_of(loops, block));
    for (int64_t b = first; b < last; ++b) {
      Place at = place(b);
      Cascade cascade(loops, memory.get(), at.n, across);
      std::atomic<bool> settled{false};
      fold(at.in, 0, length, cascade, loops.settled >= 0 ? &settled : nullptr);
      write(at, cascade.result());
    }
  }
  void run() const {
    int64_t work = block * length;
    int64_t parts = std::min(std::min(length, kMaxParts), work / kPartWork);
    if (parts <= 1 || blocks >= kMaxParts) {
      parallel_for(0, blocks, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(work, 1)),
                   [&](int64_t begin, int64_t end) { whole_blocks(begin, end); });
    } else {
      for (int64_t b = 0; b < blocks; ++b) in_parts(b, parts);
    }
  }
  // One block by several threads: Note [The same bits for any number of threads].
  void in_parts(int64_t index, int64_t parts) const {
    Place at = place(index);
    int64_t part_bytes = Cascade::bytes_of(loops, at.n);
    Scratch partial(parts * part_bytes);
    char* results = partial.get();
    std::atomic<bool> settled{false};
    int64_t each = (length + parts - 1) / parts;
    parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
      Scratch memory(levels * part_bytes);
      for (int64_t p = first; p < last; ++p) {
        Cascade cascade(loops, memory.get(), at.n, across);
        fold(at.in, p * each, std::min(length, (p + 1) * each), cascade,
             loops.settled >= 0 ? &settled : nullptr);
        std::memcpy(results + p * part_bytes, cascade.result(), static_cast<size_t>(part_bytes));
      }
    });
    for (int64_t apart = 1; apart < parts; apart *= 2) {
      for (int64_t p = 0; p + apart < parts; p += 2 * apart) {
        loops.merge(results + p * part_bytes, results + (p + apart) * part_bytes, at.n);
      }
    }
    write(at, results);
  }
};

int64_t stride_bytes(const TensorBase& t, size_t d) {
  return t.strides()[d] * static_cast<int64_t>(t.itemsize());
}

// Whether all elements lie side by side, few enough for one step, and give one result. Such a
// reduction needs no plan.
bool is_one_step(const TensorBase& in, const TensorBase& out) {
  const auto bytes = static_cast<int64_t>(in.itemsize());
  return out.numel() == 1 && in.is_contiguous() && in.numel() > 0 &&
         in.numel() * bytes <= kPieceBytes;
}
void reduce_one_step(const ReduceLoops& loops, const TensorBase& in, const TensorBase& out,
                     const void* params) {
  Scratch memory(loops.acc_bytes);
  const auto bytes = static_cast<int64_t>(in.itemsize());
  loops.init(memory.get(), 1);
  loops.along(memory.get(),
              {static_cast<const char*>(in.data_ptr()), in.numel(), 1, bytes, 0, params});
  alignas(64) char finished[64], converted[64];
  loops.finish(memory.get(), finished, 1, params);
  const char* result = finished;
  if (loops.out != out.dtype()) {
    get_convert(loops.out, out.dtype())(finished, converted, 1);
    result = converted;
  }
  std::memcpy(out.data_ptr(), result, out.itemsize());
}

}  // namespace

void reduce_tensor(const ReduceTable& table, ScalarType type, const TensorBase& in, DimMask mask,
                   const TensorBase& out, const void* params, const TensorBase& values) {
  if (in.device() != kCPU) {
    static_assert(kLineParamBytes == kParamBytes);
    auto reduce = device_lines(table.name, in.device().type()).reduce;
    return require_on_device(reduce(table.name, type, in, mask.to_ullong(), out, params, values),
                             table.name, in);
  }
  // int64 holds all numbers of uint16 and uint32, which have no loops of their own.
  if (type == kUInt16 || type == kUInt32) type = kLong;
  int at = loop_index(loop_type(type)), from = loop_index(in.dtype());
  bool known = at >= 0 && at < kLoopTypes && table.loops[at].along != nullptr && from >= 0 &&
               loop_index(out.dtype()) >= 0;
  LAMELLA_CHECK_NOT_IMPLEMENTED(known, table.name,
                                ": expected a dtype that it has a kernel for, got ", in.dtype());
  if (out.numel() == 0) return;
  if (in.dtype() == loop_type(type) && !values.defined() && is_one_step(in, out)) {
    return reduce_one_step(table.loops[at], in, out, params);
  }
  Reduction r{table.loops[at],
              loop_type(type),
              in.dtype(),
              out.dtype(),
              params,
              static_cast<const char*>(in.data_ptr()),
              static_cast<char*>(out.data_ptr())};
  r.bytes = static_cast<int64_t>(in.itemsize());
  if (values.defined()) r.values = static_cast<char*>(values.data_ptr());
  bool keeps = in.dim() == out.dim();
  // A tensor without elements may have any strides, so nothing is computed from them.
  bool empty = in.numel() == 0;
  if (empty) r.length = 0;
  auto step = [&](size_t d) { return empty ? 0 : stride_bytes(in, d); };
  size_t o = 0;
  for (size_t d = 0; d < static_cast<size_t>(in.dim()); ++d) {
    int64_t size = in.sizes()[d];
    if (mask[d]) {
      if (!empty && size != 1) {
        r.length *= size;
        r.reduced.add({size, stride_bytes(in, d), 0, 0});
      }
    } else {
      r.outputs *= size;
      size_t to = keeps ? d : o;
      if (size != 1) {
        r.kept.add({size, step(d), stride_bytes(out, to),
                    values.defined() ? stride_bytes(values, to) : 0});
      }
    }
    if (keeps || !mask[d]) ++o;
  }
  const ReduceSource& source = table.sources[from];
  if (r.in_type == r.type) {
    r.plan(r.loops.along, r.loops.across);
  } else {
    r.convert = get_convert(r.in_type, r.type);
    bool reads = source.along != nullptr && source.computes == r.type;
    r.plan(reads ? source.along : nullptr, reads ? source.across : nullptr);
  }
  r.run();
}

}  // namespace lamella::native
