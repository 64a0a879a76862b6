// Handlers compiled against XLA's own headers from the jaxlib wheel, with every kind of argument,
// result, attribute and context.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <sstream>
#include <thread>

#include "ffi_handlers.h"
#include "ffi_run.h"

namespace {
namespace ffi = xla::ffi;
using ffi::AnyBuffer;
using ffi::Error;
using ffi::ErrorCode;

// ---- Buffers ----------------------------------------------------------------------------------

Error Axpy(float a, ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::F32> y,
           ffi::ResultBuffer<ffi::F32> out) {
  for (size_t i = 0; i < x.element_count(); ++i) {
    out->typed_data()[i] = a * x.typed_data()[i] + y.typed_data()[i];
  }
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kAxpy, Axpy,
                       ffi::Ffi::Bind()
                           .Attr<float>("a")
                           .Arg<ffi::Buffer<ffi::F32>>()
                           .Arg<ffi::Buffer<ffi::F32>>()
                           .Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.axpy", "Host", kAxpy);

std::string Describe(const AnyBuffer& buffer) {
  std::stringstream out;
  out << buffer.element_type() << "[";
  for (int64_t d : buffer.dimensions()) out << d << ",";
  out << "]" << (buffer.untyped_data() == nullptr ? " no data" : "");
  return out.str();
}
// Any buffers: says what they are in an error, which is how tests see it.
Error DescribeAll(ffi::RemainingArgs args, ffi::RemainingRets rets) {
  std::string out;
  for (size_t i = 0; i < args.size(); ++i) out += Describe(*args.get<AnyBuffer>(i)) + " ";
  out += "->";
  for (size_t i = 0; i < rets.size(); ++i) out += " " + Describe(**rets.get<AnyBuffer>(i));
  return Error(ErrorCode::kAborted, out);
}
XLA_FFI_DEFINE_HANDLER(kDescribe, DescribeAll, ffi::Ffi::Bind().RemainingArgs().RemainingRets());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.describe", "cpu", kDescribe);

// Memory as it lies: out[i] = in[i] + 1, whatever the layouts.
Error AddOneFlat(AnyBuffer in, ffi::Result<AnyBuffer> out) {
  for (size_t i = 0; i < in.element_count(); ++i) {
    out->typed_data<float>()[i] = in.typed_data<float>()[i] + 1;
  }
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kAddOneFlat, AddOneFlat, ffi::Ffi::Bind().Arg<AnyBuffer>().Ret<AnyBuffer>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.add_one_flat", "Host", kAddOneFlat);

// Bound by the signature alone. Two results; ranks and types are checked by the headers.
Error SumAndMax(ffi::BufferR1<ffi::S32> in, ffi::ResultBufferR0<ffi::S64> sum,
                ffi::ResultBufferR0<ffi::S32> most) {
  auto* data = in.typed_data();
  *sum->typed_data() = std::accumulate(data, data + in.element_count(), int64_t{0});
  *most->typed_data() = *std::max_element(data, data + in.element_count());
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kSumAndMax, SumAndMax);
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.sum_and_max", "Host", kSumAndMax);

Error AddInPlace(ffi::Buffer<ffi::F32> a, ffi::Buffer<ffi::F32> b,
                 ffi::ResultBuffer<ffi::F32> out) {
  if (out->untyped_data() != a.untyped_data()) return Error::Internal("not in place");
  for (size_t i = 0; i < a.element_count(); ++i) out->typed_data()[i] += b.typed_data()[i];
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kAddInPlace, AddInPlace);
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.add_in_place", "Host", kAddInPlace);

Error Optional(std::optional<ffi::Buffer<ffi::F32>> b, ffi::ResultBuffer<ffi::F32> out,
               std::optional<ffi::Result<ffi::Buffer<ffi::F32>>> other) {
  out->typed_data()[0] = b.has_value() ? b->typed_data()[0] : -1;
  if (other.has_value()) (*other)->typed_data()[0] = 7;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kOptional, Optional,
                       ffi::Ffi::Bind()
                           .OptionalArg<ffi::Buffer<ffi::F32>>()
                           .Ret<ffi::Buffer<ffi::F32>>()
                           .OptionalRet<ffi::Buffer<ffi::F32>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.optional", "Host", kOptional);

Error TakeToken(ffi::Token, ffi::ResultBuffer<ffi::F32> out) {
  out->typed_data()[0] = 3;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kToken, TakeToken,
                       ffi::Ffi::Bind().Arg<ffi::Token>().Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.token", "Host", kToken);

// ---- Attributes -------------------------------------------------------------------------------

enum class Color : int32_t { kRed = 1, kBlue = 5 };
struct Pair {
  int64_t first;
  std::string_view second;
};

Error Scalars(bool b, int8_t s8, int16_t s16, int32_t s32, int64_t s64, uint8_t u8, uint16_t u16,
              uint32_t u32, uint64_t u64, float f32, double f64, std::string_view text) {
  std::stringstream out;
  out << b << " " << int{s8} << " " << s16 << " " << s32 << " " << s64 << " " << int{u8} << " "
      << u16 << " " << u32 << " " << u64 << " " << f32 << " " << f64 << " " << text;
  return Error(ErrorCode::kAborted, out.str());
}
XLA_FFI_DEFINE_HANDLER(kScalars, Scalars,
                       ffi::Ffi::Bind()
                           .Attr<bool>("b")
                           .Attr<int8_t>("s8")
                           .Attr<int16_t>("s16")
                           .Attr<int32_t>("s32")
                           .Attr<int64_t>("s64")
                           .Attr<uint8_t>("u8")
                           .Attr<uint16_t>("u16")
                           .Attr<uint32_t>("u32")
                           .Attr<uint64_t>("u64")
                           .Attr<float>("f32")
                           .Attr<double>("f64")
                           .Attr<std::string_view>("text"));
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.scalars", "Host", kScalars);

using Either = std::variant<int32_t, std::string_view>;
Error Aggregates(ffi::Span<const int64_t> numbers, ffi::Span<const float> reals, Color color,
                 Pair pair, ffi::Dictionary dictionary, Either either) {
  std::stringstream out;
  for (int64_t n : numbers) out << n << ",";
  for (float n : reals) out << n << ",";
  out << " " << static_cast<int>(color) << " " << pair.first << pair.second << " ";
  for (std::string_view name : dictionary) out << name << ";";
  out << *dictionary.get<int32_t>("inner") << " ";
  if (std::holds_alternative<int32_t>(either)) {
    out << "number " << std::get<int32_t>(either);
  } else {
    out << "text " << std::get<std::string_view>(either);
  }
  return Error(ErrorCode::kAborted, out.str());
}
}  // namespace
XLA_FFI_REGISTER_ENUM_ATTR_DECODING(Color);
XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(Pair, StructMember<int64_t>("first"),
                                      StructMember<std::string_view>("second"));
namespace {
XLA_FFI_DEFINE_HANDLER(kAggregates, Aggregates,
                       ffi::Ffi::Bind()
                           .Attr<ffi::Span<const int64_t>>("numbers")
                           .Attr<ffi::Span<const float>>("reals")
                           .Attr<Color>("color")
                           .Attr<Pair>("pair")
                           .Attr<ffi::Dictionary>("dictionary")
                           .Attr<Either>("either"));
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.aggregates", "Host", kAggregates);

Error Whole(Pair pair) {
  return Error(ErrorCode::kAborted, std::to_string(pair.first) + std::string(pair.second));
}
XLA_FFI_DEFINE_HANDLER(kWhole, Whole, ffi::Ffi::Bind().Attrs<Pair>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.whole", "Host", kWhole);

Error AtPointer(int64_t* address) {
  *address += 1;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kPointer, AtPointer,
                       ffi::Ffi::Bind().Attr<ffi::Pointer<int64_t>>("address"));
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.pointer", "Host", kPointer);

// ---- Contexts ---------------------------------------------------------------------------------

Error Ids(ffi::RunId run, int32_t device, ffi::ResultBuffer<ffi::S64> out) {
  out->typed_data()[0] = run.run_id;
  out->typed_data()[1] = device;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(
    kIds, Ids,
    ffi::Ffi::Bind().Ctx<ffi::RunId>().Ctx<ffi::DeviceOrdinal>().Ret<ffi::Buffer<ffi::S64>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.ids", "Host", kIds);

Error WantsStream(void*) { return Error::Success(); }
XLA_FFI_DEFINE_HANDLER(kStream, WantsStream, ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.stream", "Host", kStream);

Error Scratch(ffi::ScratchAllocator scratch, ffi::ResultBuffer<ffi::S64> out) {
  std::optional<void*> a = scratch.Allocate(1000, 16), b = scratch.Allocate(1 << 20, 4096);
  if (!a.has_value() || !b.has_value()) return Error::Internal("no memory");
  std::memset(*a, 1, 1000);
  std::memset(*b, 1, 1 << 20);
  out->typed_data()[0] = reinterpret_cast<intptr_t>(*a) % 64;
  out->typed_data()[1] = reinterpret_cast<intptr_t>(*b) % 4096;
  out->typed_data()[2] = scratch.Allocate(8, 3).has_value() ? 1 : 0;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kScratch, Scratch,
                       ffi::Ffi::Bind().Ctx<ffi::ScratchAllocator>().Ret<ffi::Buffer<ffi::S64>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.scratch", "Host", kScratch);

// Sums by tasks of the pool, and completes when the last of them is done.
ffi::Future ParallelSum(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> in,
                        ffi::ResultBuffer<ffi::F32> out, int32_t fail_at) {
  auto parts = static_cast<int64_t>(in.element_count());
  auto sum = std::make_shared<std::atomic<int64_t>>(0);
  auto left = std::make_shared<std::atomic<int64_t>>(parts);
  ffi::CountDownPromise promise(parts);
  ffi::Future future(promise);
  float* to = out->typed_data();
  for (int64_t i = 0; i < parts; ++i) {
    pool.Schedule([=, x = in.typed_data()[i]]() mutable {
      *sum += static_cast<int64_t>(x);
      if (--*left == 0) *to = static_cast<float>(*sum);
      if (i == parts - 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      promise.CountDown(1, i == fail_at ? Error(ErrorCode::kDataLoss, "part " + std::to_string(i))
                                        : Error::Success());
    });
  }
  return future;
}
XLA_FFI_DEFINE_HANDLER(kParallelSum, ParallelSum,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::ThreadPool>()
                           .Arg<ffi::Buffer<ffi::F32>>()
                           .Ret<ffi::Buffer<ffi::F32>>()
                           .Attr<int32_t>("fail_at"));
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.parallel_sum", "Host", kParallelSum);

Error PoolSize(ffi::ThreadPool pool, ffi::ResultBuffer<ffi::S64> out) {
  out->typed_data()[0] = pool.num_threads();
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kPoolSize, PoolSize,
                       ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Ret<ffi::Buffer<ffi::S64>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.pool_size", "Host", kPoolSize);

}  // namespace
ffi::TypeId Counter::id = {};
namespace {
constexpr ffi::TypeInfo kCounterInfo = ffi::MakeTypeInfo<Counter>();
XLA_FFI_REGISTER_TYPE(XLA_FFI_GetApi(), "test.Counter", &Counter::id, &kCounterInfo);

Error AddToUserData(Counter* counter) {
  counter->value += 1;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kUserData, AddToUserData, ffi::Ffi::Bind().Ctx<ffi::UserData<Counter>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.user_data", "Host", kUserData);

// ---- Stages -----------------------------------------------------------------------------------

// Each state adds itself to the trace when it is made, and when it goes.
}  // namespace
std::string trace;
namespace {
template <int number>
struct Traced {
  static ffi::TypeId id;
  int64_t value;
  explicit Traced(int64_t v) : value(v) { trace += "+" + std::to_string(number); }
  ~Traced() { trace += "-" + std::to_string(number); }
};
template <int number>
ffi::TypeId Traced<number>::id = {};
constexpr ffi::TypeInfo kTraced1 = ffi::MakeTypeInfo<Traced<1>>();
constexpr ffi::TypeInfo kTraced2 = ffi::MakeTypeInfo<Traced<2>>();
constexpr ffi::TypeInfo kTraced3 = ffi::MakeTypeInfo<Traced<3>>();
XLA_FFI_REGISTER_TYPE(XLA_FFI_GetApi(), "test.Traced1", &Traced<1>::id, &kTraced1);
XLA_FFI_REGISTER_TYPE(XLA_FFI_GetApi(), "test.Traced2", &Traced<2>::id, &kTraced2);
XLA_FFI_REGISTER_TYPE(XLA_FFI_GetApi(), "test.Traced3", &Traced<3>::id, &kTraced3);

ffi::ErrorOr<std::unique_ptr<Traced<1>>> Instantiate(int64_t start) {
  if (start < 0) return ffi::Unexpected(Error::InvalidArgument("start is negative"));
  return std::make_unique<Traced<1>>(start);
}
ffi::ErrorOr<std::unique_ptr<Traced<2>>> Prepare(Traced<1>* first) {
  return std::make_unique<Traced<2>>(first->value + 10);
}
ffi::ErrorOr<std::unique_ptr<Traced<3>>> Initialize(Traced<2>* second) {
  return std::make_unique<Traced<3>>(second->value + 100);
}
Error Execute(Traced<1>* first, Traced<2>* second, Traced<3>* third,
              ffi::ResultBuffer<ffi::S64> out) {
  trace += "x";
  first->value += 1;
  third->value += 1000;
  out->typed_data()[0] = first->value;
  out->typed_data()[1] = second->value;
  out->typed_data()[2] = third->value;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kInstantiate, Instantiate,
                       ffi::Ffi::BindInstantiate().Attr<int64_t>("start"));
XLA_FFI_DEFINE_HANDLER(kPrepare, Prepare, ffi::Ffi::BindPrepare().Ctx<ffi::State<Traced<1>>>());
XLA_FFI_DEFINE_HANDLER(kInitialize, Initialize,
                       ffi::Ffi::BindInitialize().Ctx<ffi::Prepared<Traced<2>>>());
XLA_FFI_DEFINE_HANDLER(kExecute, Execute,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::State<Traced<1>>>()
                           .Ctx<ffi::Prepared<Traced<2>>>()
                           .Ctx<ffi::Initialized<Traced<3>>>()
                           .Ret<ffi::Buffer<ffi::S64>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.stages", "Host",
                         {kInstantiate, kPrepare, kInitialize, kExecute});
// Without the stage that makes the state.
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.no_state", "Host", kExecute);

// ---- Failures ---------------------------------------------------------------------------------

Error Fails(int32_t code) { return Error(static_cast<ErrorCode>(code), "it said so"); }
XLA_FFI_DEFINE_HANDLER(kFails, Fails, ffi::Ffi::Bind().Attr<int32_t>("code"));
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.fails", "Host", kFails);

Error Throws() { throw std::runtime_error("thrown"); }
XLA_FFI_DEFINE_HANDLER(kThrows, Throws, ffi::Ffi::Bind());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.throws", "Host", kThrows);

Error Recursive(int64_t* program, ffi::ResultBuffer<ffi::F32> out) {
  auto* inner = reinterpret_cast<const lamella::hlo::Executable*>(*program);
  out->typed_data()[0] = 1;
  if (inner != nullptr) {
    *program = 0;
    out->typed_data()[0] += inner->run({}).values<float>()[0];
  }
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(
    kRecursive, Recursive,
    ffi::Ffi::Bind().Attr<ffi::Pointer<int64_t>>("address").Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.recursive", "Host", kRecursive);

Error Replayable() { return Error::Success(); }
XLA_FFI_DEFINE_HANDLER(kReplayable, Replayable, ffi::Ffi::Bind(),
                       {ffi::Traits::kCmdBufferCompatible});

}  // namespace

XLA_FFI_Error* replayable_handler(XLA_FFI_CallFrame* frame) { return kReplayable(frame); }

XLA_FFI_DEFINE_HANDLER_SYMBOL(ffi_test_symbol, Axpy,
                              ffi::Ffi::Bind()
                                  .Attr<float>("a")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
