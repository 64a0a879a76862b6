// Handlers of typed custom calls for the test of jax.ffi: with an attribute, with an error, and
// with a state that is made when a program is compiled.
#include <memory>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error scale(ffi::Buffer<ffi::F32> x, float factor, ffi::ResultBuffer<ffi::F32> y) {
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = factor * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Scale, scale,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Attr<float>("factor")
                                  .Ret<ffi::Buffer<ffi::F32>>());

static ffi::Error refuse(ffi::AnyBuffer, ffi::Result<ffi::AnyBuffer>) {
  return ffi::Error(ffi::ErrorCode::kInvalidArgument, "refused by the handler");
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Refuse, refuse,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  int32_t calls = 0;
};
ffi::TypeId Counter::id = {};
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();

static ffi::ErrorOr<std::unique_ptr<Counter>> make_counter() { return std::make_unique<Counter>(); }
static ffi::Error count(Counter* counter, ffi::ResultBuffer<ffi::S32> calls) {
  calls->typed_data()[0] = ++counter->calls;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(MakeCounter, make_counter, ffi::Ffi::BindInstantiate());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Count, count, ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<ffi::Buffer<ffi::S32>>());

extern "C" ffi::TypeId* counter_type_id() { return &Counter::id; }
extern "C" ffi::TypeInfo* counter_type_info() { return &Counter::info; }
