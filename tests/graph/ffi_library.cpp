// A library of handlers that includes only XLA's headers, neither a runtime nor Lamella.
// test_hlo_ffi.py loads it and registers its functions in JAX and in Lamella.
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace {
namespace ffi = xla::ffi;
using ffi::AnyBuffer;
using ffi::Error;
using ffi::ErrorCode;

// ---- Attributes as text -----------------------------------------------------------------------

template <class T>
void print_number(std::ostream& out, T value) {
  if constexpr (sizeof(T) == 1) {
    out << static_cast<int>(value);
  } else {
    out.precision(17);
    out << value;
  }
}
void print_numbers(std::ostream& out, XLA_FFI_DataType type, const void* data, size_t count) {
  auto as = [&]<class T>(T) {
    for (size_t i = 0; i < count; ++i) {
      out << " ";
      print_number(out, static_cast<const T*>(data)[i]);
    }
  };
  switch (type) {
    case XLA_FFI_DataType_PRED:
      return as(uint8_t{});
    case XLA_FFI_DataType_S8:
      return as(int8_t{});
    case XLA_FFI_DataType_S16:
      return as(int16_t{});
    case XLA_FFI_DataType_S32:
      return as(int32_t{});
    case XLA_FFI_DataType_S64:
      return as(int64_t{});
    case XLA_FFI_DataType_U8:
      return as(uint8_t{});
    case XLA_FFI_DataType_U16:
      return as(uint16_t{});
    case XLA_FFI_DataType_U32:
      return as(uint32_t{});
    case XLA_FFI_DataType_U64:
      return as(uint64_t{});
    case XLA_FFI_DataType_F32:
      return as(float{});
    case XLA_FFI_DataType_F64:
      return as(double{});
    default:
      out << " ?";
  }
}
void print(std::ostream& out, const XLA_FFI_Attrs& attrs) {
  out << "{";
  for (int64_t i = 0; i < attrs.size; ++i) {
    out << (i == 0 ? "" : ", ") << std::string_view(attrs.names[i]->ptr, attrs.names[i]->len)
        << "=";
    void* attr = attrs.attrs[i];
    switch (attrs.types[i]) {
      case XLA_FFI_AttrType_STRING: {
        auto* text = static_cast<XLA_FFI_ByteSpan*>(attr);
        out << "'" << std::string_view(text->ptr, text->len) << "'";
        break;
      }
      case XLA_FFI_AttrType_DICTIONARY:
        print(out, *static_cast<XLA_FFI_Attrs*>(attr));
        break;
      case XLA_FFI_AttrType_SCALAR: {
        auto* scalar = static_cast<XLA_FFI_Scalar*>(attr);
        out << scalar->dtype;
        print_numbers(out, scalar->dtype, scalar->value, 1);
        break;
      }
      case XLA_FFI_AttrType_ARRAY: {
        auto* array = static_cast<XLA_FFI_Array*>(attr);
        out << "[" << array->dtype;
        print_numbers(out, array->dtype, array->data, array->size);
        out << "]";
        break;
      }
    }
  }
  out << "}";
}

struct Printed {
  std::string text;
};
// Writes what it was given into a result of bytes: dtypes, sizes, attributes.
Error describe(Printed given, ffi::RemainingArgs args, ffi::ResultBufferR1<ffi::U8> out) {
  std::stringstream text;
  for (size_t i = 0; i < args.size(); ++i) {
    AnyBuffer one = *args.get<AnyBuffer>(i);
    text << one.element_type() << "(";
    for (int64_t d : one.dimensions()) text << d << ",";
    text << ") ";
  }
  std::string all = text.str() + given.text;
  if (all.size() > out->element_count()) return Error::Internal("result is too small for " + all);
  for (size_t i = 0; i < out->element_count(); ++i) {
    out->typed_data()[i] = i < all.size() ? static_cast<uint8_t>(all[i]) : 0;
  }
  return Error::Success();
}

// ---- Memory as it lies ------------------------------------------------------------------------

// out = in + counter, in the order of memory; any layouts.
Error add_places(ffi::Buffer<ffi::F32> in, ffi::ResultBuffer<ffi::F32> out) {
  for (size_t i = 0; i < in.element_count(); ++i) {
    out->typed_data()[i] = in.typed_data()[i] + static_cast<float>(i);
  }
  return Error::Success();
}

// ---- Errors, futures, states ------------------------------------------------------------------

Error positive(ffi::Buffer<ffi::F32> in, ffi::ResultBuffer<ffi::F32> out) {
  for (size_t i = 0; i < in.element_count(); ++i) {
    if (in.typed_data()[i] <= 0) {
      return Error(ErrorCode::kOutOfRange,
                   "expected positive numbers, got " + std::to_string(in.typed_data()[i]));
    }
    out->typed_data()[i] = in.typed_data()[i];
  }
  return Error::Success();
}

// Twice the numbers, by a thread that is not the caller's; fails if asked.
ffi::Future later(ffi::Buffer<ffi::F32> in, ffi::ResultBuffer<ffi::F32> out, bool failing) {
  ffi::Promise promise;
  ffi::Future future(promise);
  std::thread([=, promise = std::move(promise)]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    for (size_t i = 0; i < in.element_count(); ++i) {
      out->typed_data()[i] = 2 * in.typed_data()[i];
    }
    if (failing) {
      promise.SetError(Error(ErrorCode::kDataLoss, "too late"));
    } else {
      promise.SetAvailable();
    }
  }).detach();
  return future;
}

struct Calls {
  static ffi::TypeId id;
  explicit Calls(int64_t first) : next(first) {}
  int64_t next;
};
ffi::TypeId Calls::id = {};
constexpr ffi::TypeInfo calls_info = ffi::MakeTypeInfo<Calls>();

ffi::ErrorOr<std::unique_ptr<Calls>> make_calls(int64_t first) {
  return std::make_unique<Calls>(first);
}
Error count_call(Calls* calls, ffi::ResultBufferR0<ffi::S32> out) {
  *out->typed_data() = static_cast<int32_t>(calls->next++);
  return Error::Success();
}

}  // namespace

template <>
struct xla::ffi::AttrDecoding<Printed> {
  using Type = Printed;
  static std::optional<Printed> Decode(XLA_FFI_AttrType type, void* attr, DiagnosticEngine&) {
    std::stringstream out;
    print(out, *static_cast<const XLA_FFI_Attrs*>(attr));
    return Printed{out.str()};
  }
};

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Describe, describe,
    ffi::Ffi::Bind().Attrs<Printed>().RemainingArgs().Ret<ffi::BufferR1<ffi::U8>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    AddPlaces, add_places,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Positive, positive, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Later, later,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>().Attr<bool>(
        "failing"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(CallsInstantiate, make_calls,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("first"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    CallsExecute, count_call,
    ffi::Ffi::Bind().Ctx<ffi::State<Calls>>().Ret<ffi::BufferR0<ffi::S32>>());
extern "C" XLA_FFI_TypeId* CallsTypeId() { return &Calls::id; }
extern "C" const XLA_FFI_TypeInfo* CallsTypeInfo() { return &calls_info; }
