// Decodes call frames and checks every shape.
#include "lamella/graph/custom_call/lapack/call.h"

#include <cstring>

namespace lamella::hlo::lapack {
namespace {

ElementType type_of(ffi::DataType type) {
  return static_cast<ElementType>(static_cast<uint8_t>(type));
}
const ffi::Buffer& buffer_of(const void* argument) {
  return *static_cast<const ffi::Buffer*>(argument);
}
std::string text_of(const ffi::Buffer& b) {
  std::string text = str(element_name(type_of(b.dtype)), "[");
  for (int64_t i = 0; i < b.rank; ++i) text += str(i == 0 ? "" : ",", b.dims[i]);
  return text + "]";
}

}  // namespace

ElementType element_type_of(const ffi::CallFrame& frame, size_t operand) {
  return type_of(buffer_of(frame.args.args[operand]).dtype);
}

LapackCall::LapackCall(const ffi::CallFrame& frame, int64_t operands, int64_t results,
                       int64_t inner)
    : frame_(frame) {
  LAMELLA_CHECK(frame.args.size == operands, "expected ", operands, " operands, got ",
                frame.args.size);
  LAMELLA_CHECK(frame.rets.size == results, "expected ", results, " results, got ",
                frame.rets.size);
  const ffi::Buffer& first = buffer_of(frame.args.args[0]);
  LAMELLA_CHECK(first.rank >= inner, "expected operand 0 to have at least ", inner,
                " dimensions, got ", text_of(first));
  leading_ = {first.dims, static_cast<size_t>(first.rank - inner)};
  for (int64_t size : leading_) batch_ *= size;
}

LapackCall::DecodedBuffer LapackCall::buffer(bool operand, int64_t number, ElementType type,
                                             int64_t inner) const {
  const auto n = static_cast<size_t>(number);
  const ffi::Buffer& b = buffer_of(operand ? frame_.args.args[n] : frame_.rets.rets[n]);
  const auto before = static_cast<int64_t>(leading_.size());
  bool fits = type_of(b.dtype) == type && b.rank == before + inner;
  for (int64_t i = 0; fits && i < before; ++i) fits = b.dims[i] == leading_[static_cast<size_t>(i)];
  if (!fits) {
    std::string wants = str(element_name(type), "[");
    for (int64_t i = 0; i < before; ++i) wants += str(leading_[static_cast<size_t>(i)], ",");
    for (int64_t i = 0; i < inner; ++i) wants += i == 0 && inner == 2 ? "m," : "n,";
    if (wants.back() == ',') wants.pop_back();
    throw Error(str("expected ", operand ? "operand " : "result ", number, " to be ", wants,
                    "], got ", text_of(b)));
  }
  DecodedBuffer place{b.data, {0, 0}};
  for (int64_t i = 0; i < inner; ++i) {
    int64_t size = b.dims[before + i];
    LAMELLA_CHECK(size <= std::numeric_limits<Int>::max(), "expected sizes below 2^31, got ",
                  text_of(b));
    place.sizes[i] = static_cast<Int>(size);
  }
  return place;
}

const ffi::Scalar& LapackCall::scalar(std::string_view name, ElementType type) const {
  const ffi::Attrs& attrs = frame_.attrs;
  for (int64_t i = 0; i < attrs.size; ++i) {
    const ffi::ByteSpan& one = *attrs.names[i];
    if (std::string_view(one.ptr, one.len) != name) continue;
    LAMELLA_CHECK(attrs.types[i] == ffi::AttrType::Scalar, "expected attribute '", name,
                  "' to be a number");
    const auto& value = *static_cast<const ffi::Scalar*>(attrs.attrs[i]);
    LAMELLA_CHECK(type_of(value.dtype) == type, "expected attribute '", name, "' to be of type ",
                  element_name(type), ", got ", element_name(type_of(value.dtype)));
    return value;
  }
  throw Error(str("expected an attribute '", name, "'"));
}
char LapackCall::letter(std::string_view name, std::string_view allowed) const {
  auto value = static_cast<char>(*static_cast<const uint8_t*>(scalar(name, ElementType::U8).value));
  if (allowed.find(value) == std::string_view::npos) {
    std::string list;
    for (char c : allowed)
      list += str(list.empty() ? "" : ", ", static_cast<int>(c), " ('", c, "')");
    throw Error(str("expected attribute '", name, "' to be one of ", list, ", got ",
                    static_cast<int>(static_cast<uint8_t>(value))));
  }
  return value;
}
bool LapackCall::flag(std::string_view name) const {
  return *static_cast<const uint8_t*>(scalar(name, ElementType::PRED).value) != 0;
}
Int LapackCall::integer(std::string_view name) const {
  return *static_cast<const int32_t*>(scalar(name, ElementType::S32).value);
}

void LapackCall::copy(const void* from, void* to, size_t bytes) {
  if (from != to && bytes != 0) std::memmove(to, from, bytes);
}

}  // namespace lamella::hlo::lapack
