// The driver of pointwise kernels: brings any operands to contiguous runs of the loop's type.
#include "lamella/kernels/cpu/pointwise.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "lamella/api/functions.h"
#include "lamella/kernels/cpu/convert.h"
#include "lamella/kernels/tensor_iterator_config.h"

namespace lamella::native {
namespace {

constexpr int kMaxInputs = 3;

ScalarType stored_type(LoopOut out, ScalarType type) {
  switch (out) {
    case LoopOut::kBool:
      return kBool;
    case LoopOut::kReal:
      return to_real_type(type);
    case LoopOut::kComplex:
      return to_complex_type(type);
    default:
      return type;
  }
}

template <class T>
void store(const Scalar& number, char* to) {
  *reinterpret_cast<T*>(to) = number.to<T>();
}
void store_number(ScalarType type, const Scalar& number, char* to) {
  switch (type) {
#define LAMELLA_SCALAR_TYPE(T, name, code, text, ...) \
  case ScalarType::name:                              \
    return store<T>(number, to);
#include "lamella/core/scalar_type.def"
    default:
      LAMELLA_INTERNAL_ASSERT(false, "no numbers of ", type);
  }
}

LoopFn loop_of(const LoopTable& table, ScalarType type) {
  int at = loop_index(type);
  if (at < 0 || at >= kLoopTypes) return nullptr;
  if (table.loops[at] != nullptr || table.others == nullptr) return table.loops[at];
  return table.others[at];
}
// uint16 and uint32 are computed as int64 if the table has no loop for them: int64 holds all their
// values, and a result that is too large wraps when it is stored.
ScalarType widened(const LoopTable& table, ScalarType type) {
  bool holds = type == kUInt16 || type == kUInt32;
  return holds && loop_of(table, type) == nullptr ? kLong : type;
}

[[noreturn]] LAMELLA_COLD void throw_no_loop(const LoopTable& table, ScalarType type) {
  std::string list;
  const char* last = nullptr;
  auto add = [&](ScalarType t) {
    if (last != nullptr) list += str(list.empty() ? "" : ", ", last);
    last = dtype_name(t);
  };
  for (int i = 0; i < kLoopTypes; ++i) {
    if (loop_of(table, widened(table, kLoopOrder[i])) == nullptr) continue;
    if (kLoopOrder[i] == kFloat) {
      add(kHalf);
      add(kBFloat16);
    }
    add(kLoopOrder[i]);
  }
  throw NotImplementedError(str(table.name, ": expected dtype ", list, list.empty() ? "" : " or ",
                                last == nullptr ? "none" : last, ", got ", type));
}

// ---- Operands between memory and the loop ----

// One operand between memory and the loop.
struct Port {
  int64_t bytes;       // of an element in memory
  int64_t loop_bytes;  // of an element in the loop
  ConvertFn convert;   // null: the types are the same
  alignas(64) char buffer[kChunk * 16];
  const char* filled_from = nullptr;  // buffer holds this one element
  int64_t filled = 0;                 // number of copies in the buffer
};

// Runs the loop over contiguous memory.
struct Runner {
  LoopFn loop;               // may be null beside a `with_number`, which then always runs
  NumberLoopFn with_number;  // may be null
  const void* params;
  int count;   // of operands
  int number;  // the operand that is one number; -1: none

  // True if the loop reads the number directly, rather than from a buffer of copies.
  bool reads_number() const { return with_number != nullptr; }
  void operator()(char* const* data, int64_t n) const {
    if (loop == nullptr || (number >= 0 && with_number != nullptr)) {
      with_number(data, n, params, number);
    } else {
      loop(data, n, params);
    }
  }
};

void set_port(Port& port, ScalarType memory, ScalarType loop, bool output) {
  port.bytes = static_cast<int64_t>(element_size(memory));
  port.loop_bytes = static_cast<int64_t>(element_size(loop));
  port.convert =
      memory == loop ? nullptr : get_convert(output ? loop : memory, output ? memory : loop);
}

struct Ports {
  explicit Ports(const Runner& with) : runner(with) {}

  const Runner& runner;
  Port port[kMaxInputs + 1];  // the output first
  alignas(64) char gather[kChunk * 16];

  // Copies `rows` runs of `n` elements into the buffer, or returns their own address if they are
  // one contiguous run already.
  char* load(Port& port, char* data, int64_t stride, int64_t row_stride, int64_t n, int64_t rows) {
    if (stride == 0 && (rows == 1 || row_stride == 0)) {
      int64_t count = n * rows;
      if (port.filled_from != data || port.filled < count) {
        char* element = data;
        if (port.convert != nullptr) {
          port.convert(data, gather, 1);
          element = gather;
        }
        fill_elements(element, port.buffer, count, port.loop_bytes);
        port.filled_from = data;
        port.filled = count;
      }
      return port.buffer;
    }
    bool one_run = stride == port.bytes && (rows == 1 || row_stride == n * stride);
    if (port.convert == nullptr && one_run) return data;
    port.filled_from = nullptr;
    if (one_run) {
      port.convert(data, port.buffer, n * rows);
      return port.buffer;
    }
    char* to = port.convert == nullptr ? port.buffer : gather;
    for (int64_t j = 0; j < rows; ++j) {
      char* place = to + j * n * port.bytes;
      if (stride == 0) {
        fill_elements(data + j * row_stride, place, n, port.bytes);
      } else {
        move_elements(data + j * row_stride, stride, place, port.bytes, n, port.bytes);
      }
    }
    if (port.convert != nullptr) port.convert(gather, port.buffer, n * rows);
    return port.buffer;
  }

  // `streams`: the contiguous output is written with stores that bypass the caches.
  void run(char* const* data, const int64_t* strides, const int64_t* row_strides, int64_t n,
           int64_t rows, bool streams = false) {
    char* p[kMaxInputs + 1];
    for (int i = 1; i < runner.count; ++i) {
      p[i] = i == runner.number && runner.reads_number()
                 ? data[i]
                 : load(port[i], data[i], strides[i], row_strides[i], n, rows);
    }
    const Port& out = port[0];
    bool one_run = strides[0] == out.bytes && (rows == 1 || row_strides[0] == n * strides[0]);
    bool straight = one_run && !streams;
    if (straight && out.convert == nullptr) {
      p[0] = data[0];
      runner(p, n * rows);
      return;
    }
    p[0] = port[0].buffer;
    runner(p, n * rows);
    const char* from = out.buffer;
    if (out.convert != nullptr) {
      char* to = straight ? data[0] : gather;
      out.convert(out.buffer, to, n * rows);
      if (straight) return;
      from = gather;
    }
    if (streams) return tile_loops_on(kCPU).stream(from, data[0], n * rows * out.bytes);
    for (int64_t j = 0; j < rows; ++j) {
      move_elements(from + j * n * out.bytes, out.bytes, data[0] + j * row_strides[0], strides[0],
                    n, out.bytes);
    }
  }
};

// ---- Contiguous operands ----

constexpr int64_t kLine = 64;  // bytes of a cache line
// A chunk has so many bytes of the widest operand. With longer chunks reads wait for writes; with
// shorter ones the overhead of calls dominates.
constexpr int64_t kStreamedChunkBytes = 2048;

// Runs over n contiguous elements, through a buffer that is copied to the output with stores that
// bypass the caches. The caller must call end_stream() after the last run.
void run_streamed(const Runner& runner, char* const* data, const int64_t* bytes, int64_t n) {
  const TileLoops& moves = tile_loops_on(kCPU);
  alignas(kLine) char buffer[kChunk * 16];
  char* p[kMaxInputs + 1];
  for (int i = 0; i < runner.count; ++i) p[i] = data[i];
  auto step = [&](int64_t now) {
    for (int i = 0; i < runner.count; ++i) {
      if (i != runner.number) p[i] += now * bytes[i];
    }
    n -= now;
  };
  const int64_t chunk =
      std::min(kChunk, kStreamedChunkBytes / *std::max_element(bytes, bytes + runner.count));
  auto place = reinterpret_cast<uintptr_t>(data[0]) % kLine;
  int64_t head = place == 0 ? 0 : (kLine - static_cast<int64_t>(place)) / bytes[0];
  if (head != 0) {
    head = std::min(head, n);
    runner(p, head);
    step(head);
  }
  while (n > 0) {
    int64_t now = std::min(chunk, n);
    char* out = std::exchange(p[0], buffer);
    runner(p, now);
    p[0] = out;
    step(now);
    // Prefetches the next chunk's operands while this one is written.
    for (int i = 1; i < runner.count; ++i) {
      if (i == runner.number) continue;
      for (int64_t k = 0; k < now * bytes[i]; k += kLine) __builtin_prefetch(p[i] + k);
    }
    moves.stream(buffer, out, now * bytes[0]);
  }
}

void run_flat(const Runner& runner, char* const* data, const int64_t* bytes, int64_t n) {
  int64_t moved = 0;
  bool in_place = false;
  for (int i = 0; i < runner.count; ++i) {
    if (i == runner.number) continue;
    moved += n * bytes[i];
    in_place |= i != 0 && data[i] == data[0];
  }
  bool streams = moved >= kStreamedBytes && !in_place &&
                 reinterpret_cast<uintptr_t>(data[0]) % static_cast<uintptr_t>(bytes[0]) == 0;
  const int number = runner.number;
  // Half a grain, so that more than one grain of elements is divided among two threads.
  parallel_for(0, n, kGrainSize / 2, [&](int64_t begin, int64_t end) {
    char* p[kMaxInputs + 1];
    for (int i = 0; i < runner.count; ++i) p[i] = data[i] + (i == number ? 0 : begin * bytes[i]);
    // A loop without a form for numbers reads a run of copies, which all chunks share.
    alignas(64) char repeated[kChunk * 16];
    bool chunks = number >= 0 && !runner.reads_number();
    if (chunks) {
      p[number] = repeated;
      fill_elements(data[number], repeated, std::min(kChunk, end - begin), bytes[number]);
    }
    if (streams) {
      run_streamed(runner, p, bytes, end - begin);
      tile_loops_on(kCPU).end_stream();
      return;
    }
    if (!chunks) return runner(p, end - begin);
    for (int64_t i = begin; i < end; i += kChunk) {
      runner(p, std::min(kChunk, end - i));
      for (int k = 0; k < runner.count; ++k) {
        if (k != number) p[k] += kChunk * bytes[k];
      }
    }
  });
}

// ---- Everything else ----

// Columns of a tile of transposed operands, and its bytes. A tile has as many rows as elements fit
// a cache line.
constexpr int64_t kTileColumns = 128;
constexpr int64_t kTileBytes = kTileColumns * kLine;

// Whether an operand of these strides is contiguous along the outer dimension alone.
bool is_turned(int64_t bytes, int64_t stride, int64_t row_stride) {
  return row_stride == bytes && (stride >= kLine || stride <= -kLine);
}
bool any_turned(const TensorIteratorBase& iter) {
  for (int i = 1; iter.ndim() > 1 && i < iter.ntensors(); ++i) {
    if (is_turned(iter.element_size(i), iter.stride(i, 0), iter.stride(i, 1))) return true;
  }
  return false;
}

// Runs over a plane with transposed operands: these are copied to rows tile by tile, so that every
// cache line is read once.
void run_turned(Ports& ports, char* const* data, const int64_t* strides, const int64_t* row_strides,
                const bool* turned, int64_t size0, int64_t size1) {
  const TileLoops& moves = tile_loops_on(kCPU);
  const int count = ports.runner.count;
  alignas(kLine) char tiles[kMaxInputs][kTileBytes];
  int64_t most = 1;  // largest element size of the transposed operands
  for (int i = 1; i < count; ++i) {
    if (turned[i]) most = std::max(most, ports.port[i].bytes);
  }
  const int64_t tile_rows = kLine / most;
  char* p[kMaxInputs + 1];
  int64_t steps[kMaxInputs + 1];
  for (int i = 0; i < count; ++i) steps[i] = turned[i] ? ports.port[i].bytes : strides[i];
  for (int64_t k = 0; k < size0; k += kTileColumns) {
    int64_t columns = std::min(kTileColumns, size0 - k);
    for (int64_t j = 0; j < size1; j += tile_rows) {
      int64_t rows = std::min(tile_rows, size1 - j);
      for (int i = 1; i < count; ++i) {
        if (!turned[i]) continue;
        // The next tile's lines: below this one, or at the top of the next columns.
        int64_t next =
            j + rows < size1 ? rows * row_strides[i] : columns * strides[i] - j * row_strides[i];
        moves.turn(data[i] + k * strides[i] + j * row_strides[i], strides[i], tiles[i - 1], rows,
                   columns, ports.port[i].bytes, next);
        ports.port[i].filled_from = nullptr;
      }
      for (int64_t r = 0; r < rows; ++r) {
        for (int i = 0; i < count; ++i) {
          p[i] = turned[i] ? tiles[i - 1] + r * columns * steps[i]
                           : data[i] + k * strides[i] + (j + r) * row_strides[i];
        }
        ports.run(p, steps, row_strides, columns, 1);
      }
    }
  }
}

// `type` is what the loop reads, `out_type` what it writes.
LAMELLA_NOINLINE void run_general(TensorIteratorBase& iter, const LoopTable& table,
                                  const Runner& runner, ScalarType type, ScalarType out_type) {
  const int count = runner.count;
  LAMELLA_INTERNAL_ASSERT(iter.ntensors() == count);
  for (int i = 0; i < count; ++i) {
    LAMELLA_CHECK_NOT_IMPLEMENTED(loop_index(iter.dtype(i)) >= 0, table.name,
                                  ": expected a dtype with arithmetic, got ", iter.dtype(i));
  }
  const bool widens = type != loop_type(type);
  const ConvertFn widen = widens ? get_convert(type, kFloat) : nullptr;
  // At least one input is read beside the output.
  const bool streamed = iter.numel() >= kStreamedBytes / (2 * iter.element_size(0)) &&
                        reinterpret_cast<uintptr_t>(iter.data_ptr(0)) %
                                static_cast<uintptr_t>(iter.element_size(0)) ==
                            0;
  auto walk = [&](char** data, const int64_t* strides, int64_t size0, int64_t size1) {
    Ports ports(runner);
    const int64_t* row_strides = strides + count;
    bool direct = true, has_turned = false;
    int repeated = -1;  // the input that is one number along a row
    int gathered = 0;   // operands that are not contiguous, or of another type
    bool turned[kMaxInputs + 1] = {};
    for (int i = 0; i < count; ++i) {
      Port& port = ports.port[i];
      ScalarType wanted = i == 0 ? out_type : table.first_is_bool && i == 1 ? kBool : type;
      bool is_read = i == runner.number && runner.reads_number();
      if (is_read) wanted = iter.dtype(i);
      set_port(port, iter.dtype(i), wanted, i == 0);
      if (port.convert == nullptr && (strides[i] == port.bytes || is_read)) continue;
      direct = false;
      if (port.convert == nullptr && strides[i] == 0 && i != 0) repeated = i;
      ++gathered;
      turned[i] =
          i != 0 && size0 >= 16 && size1 >= 4 && is_turned(port.bytes, strides[i], row_strides[i]);
      has_turned |= turned[i];
    }
    char* p[kMaxInputs + 1];
    Runner by_row = runner;
    float number;
    if (count == 3 && gathered == 1 && repeated >= 0 && runner.number < 0 &&
        runner.reads_number() && size0 >= kLine) {
      by_row.number = repeated;
      direct = true;
    }
    if (direct) {  // rows are runs
      int64_t bytes[kMaxInputs + 1];
      bool streams = streamed && size0 >= kChunk && strides[0] == ports.port[0].bytes;
      for (int i = 0; i < count; ++i) {
        bytes[i] = ports.port[i].bytes;
        streams &= i == 0 || data[i] != data[0];
      }
      for (int64_t j = 0; j < size1; ++j) {
        for (int i = 0; i < count; ++i) p[i] = data[i] + j * row_strides[i];
        if (by_row.number != runner.number && widens) {
          widen(p[repeated], &number, 1);
          p[repeated] = reinterpret_cast<char*>(&number);
        }
        streams ? run_streamed(by_row, p, bytes, size0) : by_row(p, size0);
      }
      if (streams) tile_loops_on(kCPU).end_stream();
      return;
    }
    if (has_turned) return run_turned(ports, data, strides, row_strides, turned, size0, size1);
    // Short rows share a chunk; long ones are cut.
    int64_t rows = size0 < kChunk / 2 ? kChunk / size0 : 1;
    bool streams = streamed && size0 >= kChunk && strides[0] == ports.port[0].bytes &&
                   reinterpret_cast<uintptr_t>(data[0]) % static_cast<uintptr_t>(kLine) == 0 &&
                   (size1 == 1 || row_strides[0] % kLine == 0);
    int64_t widest = strides[0];
    for (int i = 1; i < count; ++i) {
      streams &= data[i] != data[0];
      widest = std::max(widest, std::abs(strides[i]));
    }
    // As in run_streamed(); a chunk of any type fills whole lines.
    const int64_t chunk =
        streams ? std::clamp(kStreamedChunkBytes / widest / kLine * kLine, kLine, kChunk) : kChunk;
    for (int64_t j = 0; j < size1; j += rows) {
      int64_t now = rows < size1 - j ? rows : size1 - j;
      for (int64_t k = 0; k < size0; k += chunk) {
        int64_t n = chunk < size0 - k ? chunk : size0 - k;
        for (int i = 0; i < count; ++i) p[i] = data[i] + j * row_strides[i] + k * strides[i];
        // Prefetches the next chunk's operands while this one is computed.
        for (int i = 1; streams && i < count; ++i) {
          if (strides[i] <= 0 || strides[i] > kLine) continue;
          for (int64_t at = n * strides[i]; at < 2 * n * strides[i]; at += kLine) {
            __builtin_prefetch(p[i] + at);
          }
        }
        ports.run(p, strides, row_strides, n, now, streams);
      }
    }
    if (streams) tile_loops_on(kCPU).end_stream();
  };
  if (!any_turned(iter)) return iter.for_each(walk);
  // Whole rows, and many of them, so that tiles fill.
  const int64_t row = iter.shape()[0];
  parallel_for(
      0, iter.numel() / row, std::max(kTileColumns, kGrainSize / row),
      [&](int64_t begin, int64_t end) { iter.serial_for_each(walk, begin * row, end * row); });
}

// True if every operand except the number is contiguous.
bool is_flat(const TensorIteratorBase& iter, int number) {
  if (iter.is_simple()) return true;
  if (!iter.is_trivial_1d()) return false;
  for (int i = 0; i < iter.ntensors(); ++i) {
    if (i != number && iter.stride(i, 0) != iter.element_size(i) && iter.numel() > 1) return false;
  }
  return true;
}

// True if the operands have the dtypes that the loop reads and writes.
bool has_types(const TensorIteratorBase& iter, const LoopTable& table, int number, ScalarType type,
               ScalarType out_type) {
  if (iter.dtype(0) != out_type) return false;
  for (int i = 1; i < iter.ntensors(); ++i) {
    if (i != number && iter.dtype(i) != (table.first_is_bool && i == 1 ? kBool : type)) {
      return false;
    }
  }
  return true;
}

// complex32 has no loops and no conversions here: its values are computed with as complex64.
bool has_complex_halves(const TensorIteratorBase& iter) {
  for (int i = 0; i < iter.ntensors(); ++i) {
    if (iter.dtype(i) == kComplexHalf) return true;
  }
  return false;
}
LAMELLA_COLD void run_in_complex64(TensorIteratorBase& iter, const LoopTable& table,
                                   const Scalar* scalars) {
  const ScalarType common = iter.common_dtype();
  const ScalarType wide = common == kComplexHalf ? kComplexFloat : common;
  if (loop_of(table, widened(table, loop_type(wide))) == nullptr) throw_no_loop(table, common);
  const Tensor& out = iter.output();
  Tensor made = out.scalar_type() == kComplexHalf ? out.to(kComplexFloat) : out;
  std::vector<Tensor> inputs;
  for (int i = 1; i < iter.ntensors(); ++i) {
    Tensor input = iter.tensor(i);
    if (!input.defined()) {  // a number
      input = out.new_empty({}, iter.dtype(i));
      std::memcpy(input.data_ptr(), iter.data_ptr(i), static_cast<size_t>(iter.element_size(i)));
    }
    // Numbers of wider types become complex32 first, before or behind the tensor.
    inputs.push_back(table.first_is_bool && i == 1 ? input : input.to(common).to(wide));
  }
  if (table.first_is_bool) {
    out.copy_(inputs[1].where(inputs[0], inputs[2]));
    return;
  }
  TensorIteratorConfig config;
  config.set_name(table.name)
      .add_output(made)
      .set_check_mem_overlap(false)
      .check_all_same_dtype(false)
      .promote_inputs_to_common_dtype(true)
      .resize_outputs(false);
  for (const Tensor& input : inputs) config.add_input(input);
  TensorIterator wider = config.build();
  run_pointwise(wider, table, scalars);
  if (!made.is_same(out)) out.copy_(made);
}

}  // namespace

void run_pointwise(TensorIteratorBase& iter, const LoopTable& table, const Scalar* scalars) {
  const ScalarType common = iter.common_dtype();
  ScalarType type = loop_type(common);
  const bool is_small = type != common;
  // A selection only copies bits, so small types can use the loop of an integer type.
  int at = loop_index(is_small && table.first_is_bool ? kShort : type);
  LoopFn loop = at >= 0 && at < kLoopTypes ? table.loops[at] : nullptr;
  if (LAMELLA_UNLIKELY(loop == nullptr)) {
    if (common == kComplexHalf) return run_in_complex64(iter, table, scalars);
    type = widened(table, type);
    loop = loop_of(table, type);
    if (loop == nullptr) throw_no_loop(table, common);
  }
  alignas(16) char params[kMaxParams * kParamBytes];
  for (int i = 0; i < table.params; ++i) {
    store_number(type, scalars[i], params + i * kParamBytes);
  }
  int64_t n = iter.numel();
  const int number = iter.number_at();
  Runner runner{loop, nullptr, params, table.inputs + 1, number};
  if (LAMELLA_LIKELY(!is_small && iter.is_simple() && iter.uniform_inputs() && type == common &&
                     !table.first_is_bool && iter.dtype(0) == stored_type(table.out, type) &&
                     (n == 1 || (number < 0 && n <= kGrainSize)))) {
    loop(iter.data_ptrs(), n, params);
    return;
  }
  if (n == 0) return;
  if (type == kFloat && !is_small) runner.with_number = table.number[0];
  if (type == kDouble) runner.with_number = table.number[1];
  ScalarType out_type = stored_type(table.out, type);
  if (is_small) {
    NumberLoopFn small = table.small[common == kHalf ? 0 : 1];
    ScalarType small_out = stored_type(table.out, common);
    bool converts = small != nullptr && has_types(iter, table, number, common, small_out);
    if (converts) {
      runner.loop = nullptr;
      runner.with_number = small;
    }
    if (converts || table.first_is_bool) {
      type = common;
      out_type = small_out;
    }
  }
  if (is_flat(iter, number) && has_types(iter, table, number, type, out_type)) {
    int64_t bytes[kMaxInputs + 1];
    for (int i = 0; i < runner.count; ++i) bytes[i] = iter.element_size(i);
    char* data[kMaxInputs + 1];
    for (int i = 0; i < runner.count; ++i) data[i] = static_cast<char*>(iter.data_ptr(i));
    return run_flat(runner, data, bytes, n);
  }
  if (has_complex_halves(iter)) return run_in_complex64(iter, table, scalars);
  run_general(iter, table, runner, type, out_type);
}

void copy_converted(const TensorBase& to, const TensorBase& from) {
  TensorIterator iter = TensorIteratorConfig()
                            .set_name("copy")
                            .add_output(to)
                            .add_input(from)
                            .set_check_mem_overlap(false)
                            .check_all_same_dtype(false)
                            .resize_outputs(false)
                            .build();
  ConvertFn convert = to.dtype() == from.dtype() ? nullptr : get_convert(from.dtype(), to.dtype());
  auto to_bytes = iter.element_size(0), from_bytes = iter.element_size(1);
  iter.for_each([&](char** data, const int64_t* strides, int64_t n) {
    if (convert == nullptr) {
      move_elements(data[1], strides[1], data[0], strides[0], n, to_bytes);
      return;
    }
    alignas(64) char gathered[kChunk * 16], converted[kChunk * 16];
    for (int64_t i = 0; i < n; i += kChunk) {
      int64_t now = kChunk < n - i ? kChunk : n - i;
      move_elements(data[1] + i * strides[1], strides[1], gathered, from_bytes, now, from_bytes);
      convert(gathered, converted, now);
      move_elements(converted, to_bytes, data[0] + i * strides[0], strides[0], now, to_bytes);
    }
  });
}

}  // namespace lamella::native
