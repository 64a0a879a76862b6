// Typed handlers for CUDA, through a fake driver.
#include "fake_cuda.h"
#include "ffi_run.h"
#include "xla/ffi/api/ffi.h"

namespace {
namespace xffi = xla::ffi;

// Enqueues y = 2 x, with a copy in scratch memory of the device between them.
xffi::Error twice(void* stream, xffi::ScratchAllocator scratch, xffi::Buffer<xffi::F32> x,
                  xffi::ResultBuffer<xffi::F32> y, bool failing) {
  if (failing) return xffi::Error(xffi::ErrorCode::kAborted, "asked to");
  std::optional<void*> memory = scratch.Allocate(x.size_bytes());
  if (!memory.has_value()) return xffi::Error::Internal("no memory");
  auto* between = static_cast<float*>(fake_memory(*memory));
  auto* from = static_cast<const float*>(fake_memory(x.untyped_data()));
  auto* to = static_cast<float*>(fake_memory(y->untyped_data()));
  size_t count = x.element_count();
  fake_enqueue(stream, [=] {
    for (size_t i = 0; i < count; ++i) to[i] = 2 * from[i];
  });
  for (size_t i = 0; i < count; ++i) between[i] = 0;
  return xffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER(handler, twice,
                       xffi::Ffi::Bind()
                           .Ctx<xffi::PlatformStream<void*>>()
                           .Ctx<xffi::ScratchAllocator>()
                           .Arg<xffi::Buffer<xffi::F32>>()
                           .Ret<xffi::Buffer<xffi::F32>>()
                           .Attr<bool>("failing"));
XLA_FFI_REGISTER_HANDLER(XLA_FFI_GetApi(), "test.cuda_twice", "CUDA", handler);

}  // namespace

namespace lamella::hlo {
namespace {

std::string text(bool failing) {
  return str("  x = f32[2,2] parameter(0)\n  ROOT c = f32[2,2]{0,1} custom-call(x), ",
             "custom_call_target=\"test.cuda_twice\", api_version=API_VERSION_TYPED_FFI, ",
             "operand_layout_constraints={f32[2,2]{1,0}}, ", "backend_config={failing = ", failing,
             "}\n");
}
CompileOptions cuda() {
  CompileOptions options;
  options.platform = "CUDA";
  return options;
}

TEST(FfiCuda, BuffersLieOnTheDevice) {
  int64_t before = fake_blocks_in_use();
  {
    Program p(text(false), cuda());
    for (int again = 0; again < 3; ++again) {
      Value out = p.run({p.argument<float>(0, {1, 2, 3, 4})});
      EXPECT_EQ(elements<float>(out), (std::vector<float>{2, 6, 4, 8}));
    }
    EXPECT_EQ(fake_blocks_in_use(), before + 1);
  }
  EXPECT_EQ(fake_blocks_in_use(), before);
}

TEST(FfiCuda, Failures) {
  Program p(text(true), cuda());
  EXPECT_EQ(error_of([&] { p.run({p.argument<float>(0, {1, 2, 3, 4})}); }),
            "hlo: 'c' (custom-call): 'test.cuda_twice' failed: ABORTED: asked to");
  Program q(text(false), cuda());
  fake_fail_synchronize(700);
  std::string said = error_of([&] { q.run({q.argument<float>(0, {1, 2, 3, 4})}); });
  EXPECT_EQ(said.substr(0, 55), "hlo: 'c' (custom-call): 'test.cuda_twice' failed: CUDA:") << said;
  std::string host = error_of([] { Program(text(false)); });
  EXPECT_NE(host.find("expected a target that is registered for Host, got 'test.cuda_twice'; it is "
                      "registered for CUDA"),
            std::string::npos)
      << host;
}

}  // namespace
}  // namespace lamella::hlo
