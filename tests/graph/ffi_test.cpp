// Typed custom calls from end to end, with handlers compiled against XLA's headers
// (ffi_handlers.cpp).
#include <numeric>
#include <thread>

#include "ffi_handlers.h"
#include "ffi_run.h"
#include "lamella/custom_call.h"
#include "lamella/graph/custom_call/ffi/registration.h"
#include "lamella/graph/custom_call/ffi/runtime.h"
#include "lamella/graph/custom_call/registry.h"

XLA_FFI_DECLARE_HANDLER_SYMBOL(ffi_test_symbol);

namespace lamella::hlo {
namespace {

// "  ROOT c = SHAPE custom-call(OPERANDS), ..."
std::string call(const std::string& shape, const std::string& operands, const std::string& target,
                 const std::string& attributes = "{}", const std::string& more = "") {
  return "  ROOT c = " + shape + " custom-call(" + operands + "), custom_call_target=\"" + target +
         "\", api_version=API_VERSION_TYPED_FFI, backend_config=" + attributes + more + "\n";
}

TEST(Ffi, BuffersAndAttribute) {
  Program p("  x = f32[3] parameter(0)\n  y = f32[3] parameter(1)\n" +
            call("f32[3]", "x, y", "test.axpy", "{a = 2.0 : f32}"));
  Value out = p.run({p.argument<float>(0, {1, 2, 3}), p.argument<float>(1, {10, 20, 30})});
  EXPECT_EQ(elements<float>(out), (std::vector<float>{12, 24, 36}));
}

TEST(Ffi, DescribesBuffers) {
  Program p(
      "  a = f32[2,3] parameter(0)\n  b = (bf16[], (pred[0], c64[1,1])) parameter(1)\n"
      "  t = token[] after-all()\n" +
      call("(s4[2], (f8e4m3fn[], token[]))", "a, b, t", "test.describe"));
  auto tuple = [&] {
    const Shape* shape = p.executable().module().entry->parameters[1]->shape;
    const Shape& inner = shape->tuple_shapes()[1];
    std::vector<Value> deep{Value::zeros(&inner.tuple_shapes()[0]),
                            Value::zeros(&inner.tuple_shapes()[1])};
    std::vector<Value> all{Value::zeros(&shape->tuple_shapes()[0]), Value::tuple(&inner, deep)};
    return Value::tuple(shape, all);
  };
  EXPECT_EQ(error_of([&] { p.run({p.argument<float>(0, {}), tuple()}); }),
            "hlo: 'c' (custom-call): 'test.describe' failed: ABORTED: F32[2,3,] BF16[] PRED[0,] "
            "C64[1,1,] TOKEN[] no data -> S4[2,] F8E4M3FN[] TOKEN[] no data");
}

TEST(Ffi, SignatureAloneAndSeveralResults) {
  Program p("  x = s32[4] parameter(0)\n" + call("(s64[], s32[])", "x", "test.sum_and_max"));
  Value out = p.run({p.argument<int32_t>(0, {5, -1, 9, 2})});
  EXPECT_EQ(elements<int64_t>(out.element(0)), std::vector<int64_t>{15});
  EXPECT_EQ(elements<int32_t>(out.element(1)), std::vector<int32_t>{9});
}

// The elements lie in memory as the layouts say; what the module sees is not changed by them.
TEST(Ffi, Layouts) {
  Program p("  x = f32[2,3] parameter(0)\n" + call("f32[2,3]{0,1}", "x", "test.add_one_flat", "{}",
                                                   ", operand_layout_constraints={f32[2,3]{0,1}}"));
  Value out = p.run({p.argument<float>(0, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(elements<float>(out), (std::vector<float>{2, 3, 4, 5, 6, 7}));
  // Row-major in, column-major out: the handler moves memory only.
  Program q("  x = f32[2,3] parameter(0)\n" + call("f32[2,3]{0,1}", "x", "test.add_one_flat", "{}",
                                                   ", operand_layout_constraints={f32[2,3]{1,0}}"));
  out = q.run({q.argument<float>(0, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(elements<float>(out), (std::vector<float>{2, 4, 6, 3, 5, 7}));
}

TEST(Ffi, Aliasing) {
  Program p(
      "  x = f32[2] parameter(0)\n  y = f32[2] parameter(1)\n  c = f32[2] custom-call(x, y), "
      "custom_call_target=\"test.add_in_place\", api_version=API_VERSION_TYPED_FFI, "
      "backend_config={}, output_to_operand_aliasing={{}: (0, {})}\n"
      "  ROOT t = (f32[2], f32[2]) tuple(c, x)\n");
  Value out = p.run({p.argument<float>(0, {1, 2}), p.argument<float>(1, {10, 20})});
  EXPECT_EQ(elements<float>(out.element(0)), (std::vector<float>{11, 22}));
  EXPECT_EQ(elements<float>(out.element(1)), (std::vector<float>{1, 2}));
}

TEST(Ffi, OptionalBuffersAndTokens) {
  Program none(call("f32[1]", "", "test.optional"));
  EXPECT_EQ(elements<float>(none.run())[0], -1);
  Program both("  x = f32[1] parameter(0)\n" + call("(f32[1], f32[1])", "x", "test.optional"));
  Value out = both.run({both.argument<float>(0, {4})});
  EXPECT_EQ(elements<float>(out.element(0))[0], 4);
  EXPECT_EQ(elements<float>(out.element(1))[0], 7);
  Program token("  t = token[] after-all()\n" + call("f32[1]", "t", "test.token"));
  EXPECT_EQ(elements<float>(token.run())[0], 3);
}

TEST(Ffi, Attributes) {
  Program scalars(call("()", "", "test.scalars",
                       "{b = true, s8 = -8 : i8, s16 = -16 : i16, s32 = -32 : i32, s64 = -64, "
                       "u8 = 8 : ui8, u16 = 16 : ui16, u32 = 32 : ui32, u64 = 64 : ui64, "
                       "f32 = 1.5 : f32, f64 = 2.5, text = \"a}b\\0A\"}"));
  EXPECT_EQ(error_of([&] { scalars.run(); }),
            "hlo: 'c' (custom-call): 'test.scalars' failed: ABORTED: 1 -8 -16 -32 -64 8 16 32 64 "
            "1.5 2.5 a}b\n");
  std::string rest =
      "{numbers = array<i64: 1, 2>, reals = dense<[0.5, 1.5]> : tensor<2xf32>, "
      "color = 5 : i32, pair = {second = \"x\", first = 3}, "
      "dictionary = {inner = 7 : i32, other = 1}, either = ";
  Program one(call("()", "", "test.aggregates", rest + "\"t\"}"));
  EXPECT_EQ(error_of([&] { one.run(); }),
            "hlo: 'c' (custom-call): 'test.aggregates' failed: ABORTED: 1,2,0.5,1.5, 5 3x "
            "inner;other;7 text t");
  // In quotes, as older texts have it.
  Program quoted(call("()", "", "test.whole", "\"{first = 2, second = \\\"q\\\"}\""));
  EXPECT_EQ(error_of([&] { quoted.run(); }),
            "hlo: 'c' (custom-call): 'test.whole' failed: ABORTED: 2q");
  Program two(call("()", "", "test.aggregates", rest + "9 : i32}"));
  EXPECT_EQ(error_of([&] { two.run(); }),
            "hlo: 'c' (custom-call): 'test.aggregates' failed: ABORTED: 1,2,0.5,1.5, 5 3x "
            "inner;other;7 number 9");
  Program whole(call("()", "", "test.whole", "{first = 1, second = \"s\"}"));
  EXPECT_EQ(error_of([&] { whole.run(); }),
            "hlo: 'c' (custom-call): 'test.whole' failed: ABORTED: 1s");
  int64_t seen = 0;
  Program pointer(call("()", "", "test.pointer",
                       "{address = " + std::to_string(reinterpret_cast<intptr_t>(&seen)) + "}"));
  pointer.run();
  pointer.run();
  EXPECT_EQ(seen, 2);
}

TEST(Ffi, IdsOfRunsAndDevices) {
  Program p(call("s64[2]", "", "test.ids"));
  Value first = p.run(), second = p.run();
  EXPECT_NE(elements<int64_t>(first)[0], elements<int64_t>(second)[0]);
  EXPECT_EQ(elements<int64_t>(first)[1], 0);
}

TEST(Ffi, TheHostHasNoStream) {
  Program p(call("()", "", "test.stream"));
  std::string error = error_of([&] { p.run(); });
  EXPECT_NE(error.find("'test.stream' failed: INVALID_ARGUMENT"), std::string::npos) << error;
  EXPECT_NE(error.find("Failed to get platform stream: expected a platform with streams, got the "
                       "host"),
            std::string::npos)
      << error;
}

TEST(Ffi, ScratchMemory) {
  Program p(call("s64[3]", "", "test.scratch"));
  EXPECT_EQ(elements<int64_t>(p.run()), (std::vector<int64_t>{0, 0, 0}));
}

TEST(Ffi, RunsWaitForFutures) {
  auto text = [](int fail_at) {
    return "  x = f32[40] parameter(0)\n" +
           call("f32[1]", "x", "test.parallel_sum",
                "{fail_at = " + std::to_string(fail_at) + " : i32}");
  };
  Program good(text(-1)), bad(text(39));
  Value x = Value::uninitialized(good.executable().module().entry->parameters[0]->shape);
  std::iota(x.values<float>().begin(), x.values<float>().end(), 0.0f);
  for (int i = 0; i < 3; ++i) {
    EXPECT_LE(good.run({x}).values<float>()[0], 780.0f);
    EXPECT_EQ(error_of([&] { bad.run({x}); }),
              "hlo: 'c' (custom-call): 'test.parallel_sum' failed: DATA_LOSS: part 39");
  }
  Program size(call("s64[1]", "", "test.pool_size"));
  EXPECT_GE(elements<int64_t>(size.run())[0], 1);
}

TEST(Ffi, UserData) {
  Counter counter;
  auto data = std::make_shared<UserData>();
  data->set(Counter::id.type_id, &counter);
  CompileOptions options;
  options.user_data = data;
  Program p(call("()", "", "test.user_data"), options);
  p.run();
  p.run();
  EXPECT_EQ(counter.value, 2);
  Program without(call("()", "", "test.user_data"));
  std::string error = error_of([&] { without.run(); });
  EXPECT_NE(error.find("expected user data of type"), std::string::npos) << error;
}

TEST(Ffi, Stages) {
  trace.clear();
  {
    Program p(call("s64[3]", "", "test.stages", "{start = 5}"));
    EXPECT_EQ(trace, "+1");
    EXPECT_EQ(elements<int64_t>(p.run()), (std::vector<int64_t>{6, 15, 1115}));
    EXPECT_EQ(trace, "+1+2+3x-3-2");
    EXPECT_EQ(elements<int64_t>(p.run()), (std::vector<int64_t>{7, 16, 1116}));
  }
  EXPECT_EQ(trace, "+1+2+3x-3-2+2+3x-3-2-1");
  // All calls prepare before any is initialized.
  trace.clear();
  std::string twice = call("s64[3]", "", "test.stages", "{start = 1}");
  std::string first = twice;
  first.replace(first.find("ROOT c"), 6, "a");
  std::string second = twice;
  second.replace(second.find("ROOT c"), 6, "b");
  Program two(first + second + "  ROOT t = (s64[3], s64[3]) tuple(a, b)\n");
  two.run();
  EXPECT_EQ(trace.substr(0, 18), "+1+1+2+2+3+3xx-3-2");
  EXPECT_EQ(error_of([&] { Program(call("s64[3]", "", "test.stages", "{start = -1}")); }),
            "hlo: 'c' (custom-call): 'test.stages' failed at instantiate: INVALID_ARGUMENT: start "
            "is negative");
  Program none(call("s64[3]", "", "test.no_state"));
  std::string error = error_of([&] { none.run(); });
  EXPECT_NE(error.find("expected the state to be set, got none"), std::string::npos) << error;
}

TEST(Ffi, Failures) {
  auto said = [](const std::string& target, const std::string& attributes) {
    return error_of([&] { Program(call("()", "", target, attributes)).run(); });
  };
  const char* codes[] = {"CANCELLED",
                         "UNKNOWN",
                         "INVALID_ARGUMENT",
                         "DEADLINE_EXCEEDED",
                         "NOT_FOUND",
                         "ALREADY_EXISTS",
                         "PERMISSION_DENIED",
                         "RESOURCE_EXHAUSTED",
                         "FAILED_PRECONDITION",
                         "ABORTED",
                         "OUT_OF_RANGE",
                         "UNIMPLEMENTED",
                         "INTERNAL",
                         "UNAVAILABLE",
                         "DATA_LOSS",
                         "UNAUTHENTICATED"};
  for (int code = 1; code <= 16; ++code) {
    EXPECT_EQ(
        said("test.fails", "{code = " + std::to_string(code) + " : i32}"),
        str("hlo: 'c' (custom-call): 'test.fails' failed: ", codes[code - 1], ": it said so"));
  }
  EXPECT_EQ(said("test.throws", "{}"), "hlo: 'c' (custom-call): 'test.throws' failed: thrown");
  EXPECT_EQ(said("test.fails", "{code = }"),
            "hlo: 'c' (custom-call): backend_config: line 1, column 9: expected a number, true, "
            "false, a string, a dictionary, array<...>, dense<...> or a list of scalars, got '}'");
  // What the headers find wrong.
  std::string wrong = said("test.fails", "{code = 1 : i64}");
  EXPECT_NE(wrong.find("Wrong scalar data type: expected S32 but got S64"), std::string::npos)
      << wrong;
}

// Threads, and a handler that runs its own executable.
TEST(Ffi, FramesAreNotShared) {
  Program p("  x = f32[3] parameter(0)\n  y = f32[3] parameter(1)\n" +
            call("f32[3]", "x, y", "test.axpy", "{a = 2.0 : f32}"));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto n = static_cast<float>(t);
      for (int i = 0; i < 2000; ++i) {
        Value out = p.run({p.argument<float>(0, {n, n, n}), p.argument<float>(1, {1, 2, 3})});
        if (elements<float>(out) != std::vector<float>{2 * n + 1, 2 * n + 2, 2 * n + 3}) ++wrong;
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(wrong, 0);

  int64_t program = 0;
  Program inner(call("f32[1]", "", "test.recursive",
                     "{address = " + std::to_string(reinterpret_cast<intptr_t>(&program)) + "}"));
  program = reinterpret_cast<intptr_t>(&inner.executable());
  EXPECT_EQ(elements<float>(inner.run())[0], 2);
}

// ---- Registration -----------------------------------------------------------------------------

ffi::Handler* ours(XLA_FFI_Handler* handler) { return reinterpret_cast<ffi::Handler*>(handler); }

TEST(FfiRegistration, FunctionsAndTraits) {
  auto* function = reinterpret_cast<void*>(ffi_test_symbol);
  ASSERT_EQ(lamella_register_typed_handlers("test.symbol", nullptr, nullptr, nullptr, function, 0,
                                            "cpu", "here.cpp", 7),
            LAMELLA_OK);
  Program p("  x = f32[1] parameter(0)\n" +
            call("f32[1]", "x, x", "test.symbol", "{a = 3.0 : f32}"));
  EXPECT_EQ(elements<float>(p.run({p.argument<float>(0, {2})}))[0], 8);
  ASSERT_EQ(lamella_register_typed_handlers("test.symbol", nullptr, nullptr, nullptr,
                                            reinterpret_cast<void*>(replayable_handler), 0, "cpu",
                                            "there.cpp", 8),
            LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(),
               "hlo: expected the custom-call target 'test.symbol' to be registered for Host once; "
               "registered at here.cpp:7 and, another function, at there.cpp:8");
  EXPECT_EQ(lamella_remove_typed_handlers("test.symbol", function, "Host"), LAMELLA_OK);
  EXPECT_EQ(lamella_remove_typed_handlers("test.symbol", function, "Host"), LAMELLA_ERROR);
  EXPECT_STREQ(lamella_error_text(),
               "hlo: expected the typed handlers 'test.symbol' to be registered for Host, got none "
               "of this function");

  ffi::register_handlers("test.traits", "CUDA",
                         {nullptr, nullptr, nullptr, ours(replayable_handler)});
  TargetPointer target = find_target("test.traits", "CUDA", TargetKind::Typed);
  ASSERT_NE(target, nullptr);
  EXPECT_EQ(target->traits, ffi::trait_command_buffer_compatible);
  EXPECT_TRUE(remove_target("test.traits", "CUDA", TargetKind::Typed));
}

template <int major, int minor>
ffi::HandlerError* versioned(ffi::CallFrame* frame) {
  if (frame->extension_start != nullptr) {
    auto* extension = reinterpret_cast<ffi::MetadataExtension*>(frame->extension_start);
    extension->metadata->api_version.major_version = major;
    extension->metadata->api_version.minor_version = minor;
  }
  return nullptr;
}
ffi::HandlerError* knows_no_metadata(ffi::CallFrame* frame) {
  ffi::ErrorCreateArgs args{LAMELLA_FFI_SIZE(ffi::ErrorCreateArgs, errc), nullptr,
                            "wrong number of arguments", ffi::ErrorCode::InvalidArgument};
  return frame->api->error_create(&args);
}

TEST(FfiRegistration, Versions) {
  auto said = [](ffi::Handler* handler) {
    return error_of([&] {
      ffi::register_handlers("test.version", "Host", {nullptr, nullptr, nullptr, handler});
      remove_target("test.version", "Host", TargetKind::Typed);
    });
  };
  EXPECT_EQ(said(versioned<0, 1>), "no error");
  EXPECT_EQ(said(versioned<0, 2>), "no error");
  EXPECT_EQ(said(versioned<0, 3>), "no error");
  std::string expected =
      "hlo: expected the handler 'test.version' to be compiled against version 0.1 to 0.3 of the "
      "interface, got ";
  EXPECT_EQ(said(versioned<0, 0>), expected + "0.0");
  EXPECT_EQ(said(versioned<0, 4>), expected + "0.4");
  EXPECT_EQ(said(versioned<1, 1>), expected + "1.1");
  EXPECT_EQ(said(knows_no_metadata),
            "hlo: expected the handler 'test.version' to report the version it was compiled "
            "against, got: INVALID_ARGUMENT: wrong number of arguments");
  EXPECT_EQ(said(nullptr),
            "hlo: expected the handler 'test.version' to have a function for execute, got none");
}

// XLA's macro for registration drops the error, so the missing target tells it.
TEST(FfiRegistration, RefusalsAreTold) {
  XLA_FFI_Error* error = xla::ffi::Ffi::RegisterStaticHandler(
      XLA_FFI_GetApi(), "test.refused", "cpu", reinterpret_cast<XLA_FFI_Handler*>(versioned<0, 9>));
  std::string text =
      "hlo: expected the handler 'test.refused' to be compiled against version 0.1 to 0.3 of the "
      "interface, got 0.9";
  EXPECT_EQ(ffi::take_message(reinterpret_cast<ffi::HandlerError*>(error)),
            "INVALID_ARGUMENT: " + text);
  std::string said = error_of([&] { Program(call("()", "", "test.refused")); });
  EXPECT_EQ(said.substr(0, said.find("; near")),
            "hlo: 'c' (custom-call): expected a target that is registered for Host, got "
            "'test.refused'; its handlers were refused: " +
                text);
}

// Handlers of version 0.2 set and get states without naming a stage.
struct OldState {
  int64_t value = 41;
};
int64_t old_type = 0;
ffi::HandlerError* old_instantiate(ffi::CallFrame* frame) {
  if (frame->extension_start != nullptr) return versioned<0, 2>(frame);
  ffi::TypeId type{old_type};
  ffi::OldStateArgs args{LAMELLA_FFI_SIZE(ffi::OldStateArgs, state), nullptr, frame->ctx, &type,
                         new OldState};
  return frame->api->state_set(reinterpret_cast<ffi::StateSetArgs*>(&args));
}
ffi::HandlerError* old_execute(ffi::CallFrame* frame) {
  if (frame->extension_start != nullptr) return versioned<0, 2>(frame);
  ffi::TypeId type{old_type};
  ffi::OldStateArgs args{LAMELLA_FFI_SIZE(ffi::OldStateArgs, state), nullptr, frame->ctx, &type,
                         nullptr};
  if (auto* error = frame->api->state_get(reinterpret_cast<ffi::StateGetArgs*>(&args))) {
    return error;
  }
  auto* out = static_cast<ffi::Buffer*>(frame->rets.rets[0]);
  *static_cast<int64_t*>(out->data) = static_cast<OldState*>(args.state)->value + 1;
  return nullptr;
}
TEST(FfiRegistration, StatesOfOlderVersions) {
  ffi::register_type("test.OldState", &old_type,
                     [](void* object) { delete static_cast<OldState*>(object); });
  ffi::register_handlers("test.old", "Host", {old_instantiate, nullptr, nullptr, old_execute});
  Program p(call("s64[]", "", "test.old"));
  EXPECT_EQ(elements<int64_t>(p.run())[0], 42);
  remove_target("test.old", "Host", TargetKind::Typed);
}

TEST(FfiRegistration, Types) {
  int64_t id = 0, again = 0;
  ffi::register_type("test.type", &id, nullptr);
  EXPECT_NE(id, 0);
  EXPECT_EQ(error_of([&] { ffi::register_type("test.type", &again, nullptr); }),
            "hlo: expected the type 'test.type' of handlers to be registered once, got it again");
  again = id;
  EXPECT_EQ(error_of([&] { ffi::register_type("test.type", &again, nullptr); }), "no error");
  again = 7;
  EXPECT_EQ(
      error_of([&] { ffi::register_type("test.type", &again, nullptr); }),
      str("hlo: expected the type 'test.type' of handlers to keep its number ", id, ", got 7"));
  EXPECT_EQ(error_of([&] { ffi::register_type("test.other", &id, nullptr); }),
            str("hlo: expected the type 'test.other' of handlers to have a number of its own, got ",
                id, ", which another type has"));
}

// The table answers what is too small or comes too early with an error.
TEST(FfiRegistration, Table) {
  const ffi::Api* api = ffi::api();
  EXPECT_EQ(reinterpret_cast<const void*>(XLA_FFI_GetApi()), api);
  EXPECT_EQ(reinterpret_cast<const void*>(xla::ffi::GetXlaFfiApi()), api);
  ffi::RunIdGetArgs args{};
  args.struct_size = 8;
  EXPECT_EQ(ffi::take_message(api->run_id_get(&args)),
            "INVALID_ARGUMENT: expected RunIdGetArgs to have at least 32 bytes, got 8; this "
            "runtime has version 0.3 of the interface");
  ffi::ExecutionContext context;
  args.struct_size = sizeof(args);
  args.ctx = &context;
  EXPECT_EQ(ffi::take_message(api->run_id_get(&args)),
            "FAILED_PRECONDITION: expected the run's number to be asked for during a run, got a "
            "call that is being instantiated");
  ffi::FutureCreateArgs made{ffi::future_create_size, nullptr, nullptr};
  ASSERT_EQ(api->future_create(&made), nullptr);
  ffi::FutureSetErrorArgs failed{sizeof(ffi::FutureSetErrorArgs), nullptr, made.future, nullptr};
  EXPECT_EQ(ffi::take_message(api->future_set_error(&failed)),
            "INVALID_ARGUMENT: expected the error of a future, got a success");
  ffi::FutureSetAvailableArgs done{sizeof(ffi::FutureSetAvailableArgs), nullptr, made.future};
  EXPECT_EQ(api->future_set_available(&done), nullptr);
  EXPECT_EQ(ffi::take_message(api->future_set_available(&done)),
            "FAILED_PRECONDITION: expected the future to be completed once");
  EXPECT_EQ(ffi::await(made.future), nullptr);
}

}  // namespace
}  // namespace lamella::hlo
