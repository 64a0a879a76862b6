// The driver of pointwise kernels: brings any operands to contiguous runs of the loop's type.
#include "lamella/kernels/cpu/pointwise.h"

#include <algorithm>
#include <string>

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
#define LAMELLA_SCALAR_TYPE(T, name, code, text) \
  case ScalarType::name:                         \
    return store<T>(number, to);
#include "lamella/core/scalar_type.def"
    default:
      LAMELLA_INTERNAL_ASSERT(false, "no numbers of ", type);
  }
}

[[noreturn]] LAMELLA_COLD void throw_no_loop(const LoopTable& table, ScalarType type) {
  std::string list;
  const char* last = nullptr;
  auto add = [&](ScalarType t) {
    if (last != nullptr) list += str(list.empty() ? "" : ", ", last);
    last = dtype_name(t);
  };
  for (int i = 0; i < kLoopTypes; ++i) {
    if (table.loops[i] == nullptr && (table.others == nullptr || table.others[i] == nullptr)) {
      continue;
    }
    if (kLoopOrder[i] == kFloat) {
      add(kHalf);
      add(kBFloat16);
    }
    add(kLoopOrder[i]);
  }
  throw NotImplementedError(str(table.name, ": expected dtype ", list, list.empty() ? "" : " or ",
                                last == nullptr ? "none" : last, ", got ", type));
}

// One operand between memory and the loop.
struct Port {
  int64_t bytes;       // of an element in memory
  int64_t loop_bytes;  // of an element in the loop
  ConvertFn convert;   // null: the types are the same
  alignas(64) char buffer[kChunk * 16];
  const char* filled_from = nullptr;  // buffer holds this one element
  int64_t filled = 0;                 // so many times
};

struct Ports {
  LoopFn loop;
  const void* params;
  int inputs;
  Port out;
  Port in[kMaxInputs];
  alignas(64) char gather[kChunk * 16];

  // Brings `rows` runs of `n` elements into the buffer, or gives their own address if they are
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

  void run(char* const* data, const int64_t* strides, const int64_t* row_strides, int64_t n,
           int64_t rows) {
    char* p[kMaxInputs + 1];
    for (int i = 0; i < inputs; ++i) {
      p[i + 1] = load(in[i], data[i + 1], strides[i + 1], row_strides[i + 1], n, rows);
    }
    bool one_run = strides[0] == out.bytes && (rows == 1 || row_strides[0] == n * strides[0]);
    if (one_run && out.convert == nullptr) {
      p[0] = data[0];
      loop(p, n * rows, params);
      return;
    }
    p[0] = out.buffer;
    loop(p, n * rows, params);
    const char* from = out.buffer;
    if (out.convert != nullptr) {
      char* to = one_run ? data[0] : gather;
      out.convert(out.buffer, to, n * rows);
      if (one_run) return;
      from = gather;
    }
    for (int64_t j = 0; j < rows; ++j) {
      move_elements(from + j * n * out.bytes, out.bytes, data[0] + j * row_strides[0], strides[0],
                    n, out.bytes);
    }
  }
};

void set_port(Port& port, ScalarType memory, ScalarType loop, bool output) {
  port.bytes = static_cast<int64_t>(element_size(memory));
  port.loop_bytes = static_cast<int64_t>(element_size(loop));
  port.convert =
      memory == loop ? nullptr : get_convert(output ? loop : memory, output ? memory : loop);
}

// Everything that is not one run of the loop's own types.
LAMELLA_NOINLINE void run_general(TensorIteratorBase& iter, const LoopTable& table, LoopFn loop,
                                  ScalarType type, const void* params) {
  int count = table.inputs + 1;
  LAMELLA_INTERNAL_ASSERT(iter.ntensors() == count);
  for (int i = 0; i < count; ++i) {
    LAMELLA_CHECK_NOT_IMPLEMENTED(loop_index(iter.dtype(i)) >= 0, table.name,
                                  ": expected tensors with arithmetic, got ", iter.dtype(i));
  }
  ScalarType out_type = stored_type(table.out, type);
  iter.for_each([&](char** data, const int64_t* strides, int64_t size0, int64_t size1) {
    Ports ports;
    ports.loop = loop;
    ports.params = params;
    ports.inputs = table.inputs;
    set_port(ports.out, iter.dtype(0), out_type, true);
    bool direct = ports.out.convert == nullptr && strides[0] == ports.out.bytes;
    for (int i = 0; i < table.inputs; ++i) {
      ScalarType wanted = table.first_is_bool && i == 0 ? kBool : type;
      set_port(ports.in[i], iter.dtype(i + 1), wanted, false);
      direct &= ports.in[i].convert == nullptr && strides[i + 1] == ports.in[i].bytes;
    }
    const int64_t* row_strides = strides + count;
    char* p[kMaxInputs + 1];
    if (direct) {  // rows are runs
      for (int64_t j = 0; j < size1; ++j) {
        for (int i = 0; i < count; ++i) p[i] = data[i] + j * row_strides[i];
        loop(p, size0, params);
      }
      return;
    }
    // Short rows share a chunk; long ones are cut.
    int64_t rows = size0 < kChunk / 2 ? kChunk / size0 : 1;
    for (int64_t j = 0; j < size1; j += rows) {
      int64_t now = rows < size1 - j ? rows : size1 - j;
      for (int64_t k = 0; k < size0; k += kChunk) {
        int64_t n = kChunk < size0 - k ? kChunk : size0 - k;
        for (int i = 0; i < count; ++i) p[i] = data[i] + j * row_strides[i] + k * strides[i];
        ports.run(p, strides, row_strides, n, now);
      }
    }
  });
}

// Strides are those of neighbours in memory.
bool is_one_run(const TensorIteratorBase& iter) {
  for (int i = 0; i < iter.ntensors(); ++i) {
    if (iter.stride(i, 0) != iter.element_size(i) && iter.numel() > 1) return false;
  }
  return true;
}

}  // namespace

void run_pointwise(TensorIteratorBase& iter, const LoopTable& table, const Scalar* scalars) {
  ScalarType type = loop_type(iter.common_dtype());
  int at = loop_index(type);
  LoopFn loop = at >= 0 && at < kLoopTypes ? table.loops[at] : nullptr;
  if (LAMELLA_UNLIKELY(loop == nullptr)) {
    if (at >= 0 && at < kLoopTypes && table.others != nullptr) loop = table.others[at];
    if (loop == nullptr) throw_no_loop(table, iter.common_dtype());
  }
  alignas(16) char params[kMaxParams * kParamBytes];
  for (int i = 0; i < table.params; ++i) {
    store_number(type, scalars[i], params + i * kParamBytes);
  }
  int64_t n = iter.numel();
  if (LAMELLA_LIKELY(iter.is_simple() && iter.uniform_inputs() && !table.first_is_bool &&
                     iter.dtype(0) == stored_type(table.out, type))) {
    char* const* data = iter.data_ptrs();
    int number = iter.number_at();
    if (LAMELLA_LIKELY(n == 1 || (number < 0 && n <= kGrainSize))) {
      loop(data, n, params);
      return;
    }
    int64_t bytes[kMaxInputs + 1];
    for (int i = 0; i <= table.inputs; ++i) bytes[i] = iter.element_size(i);
    parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
      char* p[kMaxInputs + 1];
      for (int i = 0; i <= table.inputs; ++i) p[i] = data[i] + begin * bytes[i];
      if (number < 0) {
        loop(p, end - begin, params);
        return;
      }
      // The number, as a run that every chunk reads again.
      alignas(64) char repeated[kChunk * 16];
      p[number] = repeated;
      fill_elements(data[number], repeated, std::min(kChunk, end - begin), bytes[number]);
      for (int64_t i = begin; i < end; i += kChunk) {
        loop(p, std::min(kChunk, end - i), params);
        for (int k = 0; k <= table.inputs; ++k) {
          if (k != number) p[k] += kChunk * bytes[k];
        }
      }
    });
    return;
  }
  if (LAMELLA_LIKELY(iter.uniform_inputs() && iter.is_trivial_1d() && !table.first_is_bool &&
                     iter.dtype(0) == stored_type(table.out, type) && is_one_run(iter))) {
    parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
      char* p[kMaxInputs + 1];
      for (int i = 0; i <= table.inputs; ++i) {
        p[i] = static_cast<char*>(iter.data_ptr(i)) + begin * iter.element_size(i);
      }
      loop(p, end - begin, params);
    });
    return;
  }
  if (n != 0) run_general(iter, table, loop, type, params);
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
