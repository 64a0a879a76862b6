// The graph rows: the cost of one custom call in a program of many, and reading and verifying HLO
// text. `graph count ROW N` only runs a program of N custom calls 1,000 times, for an instruction
// counter. `graph LIBRARY` also measures the library's typed handler BenchIncrement, which
// bench/graph.py builds and measures in JAX.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "bench/timing.h"
#include "lamella/custom_call.h"
#include "lamella/graph/client/compile.h"
#include "lamella/graph/custom_call/ffi/runtime.h"
#include "lamella/graph/hlo/module.h"

using namespace lamella::hlo;
using bench::median_ns;
using bench::report;
namespace ffi = lamella::hlo::ffi;

namespace {

void increment(void* out, const void** in) {
  *static_cast<float*>(out) = *static_cast<const float*>(in[0]) + 1;
}
void increment_or_fail(void* out, const void** in, XlaCustomCallStatus*) { increment(out, in); }
LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("bench_increment", increment, "Host");
LAMELLA_REGISTER_CUSTOM_CALL_TARGET_WITH_SYM("bench_increment_or_fail", increment_or_fail, "Host");

// A chain of custom calls on f32[1].
std::string chain(const std::string& attributes, int calls) {
  std::string text = "HloModule chain\nENTRY main {\n  v0 = f32[1]{0} parameter(0)\n";
  for (int i = 1; i <= calls; ++i) {
    std::string n = std::to_string(i);
    text += (i == calls ? "  ROOT v" : "  v") + n + " = f32[1]{0} custom-call(v" +
            std::to_string(i - 1) + "), custom_call_target=" + attributes + "\n";
  }
  return text + "}\n";
}

struct Program {
  std::unique_ptr<Executable> executable;
  std::vector<Value> arguments;
  Program(const std::string& attributes, int calls)
      : executable(compile(parse_module(chain(attributes, calls)))) {
    arguments.push_back(Value::zeros(executable->module().entry->parameters[0]->shape));
  }
  float run() const { return executable->run(arguments).values<float>()[0]; }
};

const char* attributes_of(const std::string& row) {
  if (row == "status") {
    return "\"bench_increment_or_fail\", api_version=API_VERSION_STATUS_RETURNING";
  }
  if (row == "typed") {
    return "\"bench_typed\", api_version=API_VERSION_TYPED_FFI, backend_config={}";
  }
  return "\"bench_increment\"";
}

// Nanoseconds of one more call in a program that has many.
double call_ns(const char* kind) {
  constexpr int few = 100, many = 1100;
  Program small(attributes_of(kind), few), large(attributes_of(kind), many);
  double ns = median_ns([&] { large.run(); }, 20) - median_ns([&] { small.run(); }, 200);
  return ns / (many - few);
}
// The same, less what the function itself takes.
void report_call(const char* row, const char* kind) {
  float x = 0;
  const void* in[] = {&x};
  void (*volatile function)(void*, const void**) = increment;
  report(row, call_ns(kind) - median_ns([&] { function(&x, in); }));
}
// Nanoseconds of a typed handler of one array by itself, with a frame made beforehand.
double handler_ns(ffi::Handler* handler) {
  float data[2] = {0, 0};
  int64_t size = 1;
  ffi::Buffer buffers[2] = {};
  void* pointers[2] = {&buffers[0], &buffers[1]};
  for (int i = 0; i < 2; ++i) {
    buffers[i] = {LAMELLA_FFI_SIZE(ffi::Buffer, dims),
                  nullptr,
                  static_cast<ffi::DataType>(ElementType::F32),
                  &data[i],
                  1,
                  &size};
  }
  auto arg = ffi::ArgType::Buffer;
  auto ret = ffi::RetType::Buffer;
  ffi::CallFrame frame{};
  frame.struct_size = ffi::call_frame_size;
  frame.api = ffi::api();
  frame.stage = ffi::Stage::Execute;
  frame.args = {LAMELLA_FFI_SIZE(ffi::Args, args), nullptr, 1, &arg, &pointers[0]};
  frame.rets = {LAMELLA_FFI_SIZE(ffi::Rets, rets), nullptr, 1, &ret, &pointers[1]};
  frame.attrs.struct_size = LAMELLA_FFI_SIZE(ffi::Attrs, attrs);
  return median_ns([&] {
    if (handler(&frame) != nullptr) std::abort();
  });
}
void report_typed_call(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* handler = library != nullptr ? dlsym(library, "BenchIncrement") : nullptr;
  if (handler == nullptr ||
      lamella_register_typed_handlers("bench_typed", nullptr, nullptr, nullptr, handler, 0, "Host",
                                      nullptr, 0) != LAMELLA_OK) {
    std::fprintf(stderr, "%s: expected a handler BenchIncrement\n", path);
    std::exit(1);
  }
  report("typed call", call_ns("typed") - handler_ns(reinterpret_cast<ffi::Handler*>(handler)));
}

// 10,000 instructions of the kinds that programs are made of.
std::string large_text() {
  std::string text =
      "HloModule large, entry_computation_layout={(f32[128,64]{1,0})->f32[128,64]{1,0}}\n\n"
      "ENTRY main {\n  v0 = f32[128,64]{1,0} parameter(0)\n";
  for (int i = 1; i < 10000; ++i) {
    std::string n = std::to_string(i), before = std::to_string(i - 1);
    std::string begin = std::string(i == 9999 ? "  ROOT v" : "  v") + n + " = f32[128,64]{1,0} ";
    switch (i % 4) {
      case 0:
        text += begin + "tanh(v" + before + ")";
        break;
      case 1:
        text += begin + "add(v" + before + ", v" + std::to_string(i / 2) + ")";
        break;
      case 2:
        text += begin + "multiply(v" + before + ", v0)";
        break;
      default:
        text += begin + "reverse(v" + before + "), dimensions={0,1}";
    }
    text += ", metadata={op_name=\"jit(f)/layer_" + n +
            "\" source_file=\"model.py\" source_line=" + std::to_string(i % 500) + "}\n";
  }
  return text + "}\n";
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 4 && std::strcmp(arguments[1], "count") == 0) {
    Program program(attributes_of(arguments[2]), std::atoi(arguments[3]));
    float sum = 0;
    for (int i = 0; i < 1000; ++i) sum += program.run();
    return sum < 0;
  }
  report_call("custom call", "original");
  report_call("custom call with a status", "status");
  if (count == 2) report_typed_call(arguments[1]);
  std::string text = large_text();
  double parse = median_ns([&] { parse_module(text, false); }, 1, 31);
  std::printf("{\"row\": \"parsing HLO text, MB/s\", \"ns\": %.1f}\n",
              static_cast<double>(text.size()) * 1e3 / parse);
  auto module = parse_module(text);
  report("verifying 10,000 instructions", median_ns([&] { verify(*module); }, 1, 31));
}
