// Attributes of typed custom calls, from the text to the handlers' arguments.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <random>

#include "lamella/core/error.h"
#include "lamella/graph/custom_call/ffi/attributes.h"

namespace lamella::hlo::ffi {
namespace {

std::string name_of(DataType type) {
  return std::string(element_name(static_cast<ElementType>(type)));
}
// One attribute in a notation of the test: "f32 1.5", "[s32 1 2]", "'text'", "{a=s8 1}".
std::string number_text(DataType dtype, const void* data) {
  auto as = [&]<class T>(T) {
    T value;
    std::memcpy(&value, data, sizeof(value));
    return value;
  };
  using enum ElementType;
  switch (static_cast<ElementType>(dtype)) {
    case PRED:
      return as(uint8_t{}) == 1 ? "true" : as(uint8_t{}) == 0 ? "false" : "neither";
    case S4:
    case S8:
      return std::to_string(as(int8_t{}));
    case S16:
      return std::to_string(as(int16_t{}));
    case S32:
      return std::to_string(as(int32_t{}));
    case S64:
      return std::to_string(as(int64_t{}));
    case U8:
    case F8E4M3FN:
      return std::to_string(as(uint8_t{}));
    case U16:
    case F16:
    case BF16:
      return std::to_string(as(uint16_t{}));
    case U32:
      return std::to_string(as(uint32_t{}));
    case U64:
      return std::to_string(as(uint64_t{}));
    case F32:
      return str(as(float{}));
    case F64:
      return str(as(double{}));
    case C64:
      return str(as(std::complex<float>{}).real(), "+", as(std::complex<float>{}).imag(), "i");
    default:
      return "?";
  }
}
std::string text_of(const Attrs& attrs);
std::string text_of(AttrType type, const void* attr) {
  if (type == AttrType::String) {
    auto* span = static_cast<const ByteSpan*>(attr);
    return str("'", std::string_view(span->ptr, span->len), "'");
  }
  if (type == AttrType::Dictionary) return text_of(*static_cast<const Attrs*>(attr));
  if (type == AttrType::Scalar) {
    auto* scalar = static_cast<const Scalar*>(attr);
    return name_of(scalar->dtype) + " " + number_text(scalar->dtype, scalar->value);
  }
  auto* array = static_cast<const Array*>(attr);
  std::string out = "[" + name_of(array->dtype);
  for (size_t i = 0; i < array->size; ++i) {
    auto bytes = static_cast<size_t>(element_bytes(static_cast<ElementType>(array->dtype)));
    out += " " + number_text(array->dtype, static_cast<const char*>(array->data) + i * bytes);
  }
  return out + "]";
}
std::string text_of(const Attrs& attrs) {
  std::string out = "{";
  for (int64_t i = 0; i < attrs.size; ++i) {
    if (i != 0) out += ", ";
    out += std::string(attrs.names[i]->ptr, attrs.names[i]->len) + "=" +
           text_of(attrs.types[i], attrs.attrs[i]);
  }
  return out + "}";
}
std::string read(std::string_view text) { return text_of(AttributeDictionary(text).attrs()); }

// Text, as MLIR prints it, and what it says.
TEST(FfiAttributes, Forms) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "{}"},
      {"{}", "{}"},
      {"{v = true, w = false}", "{v=pred true, w=pred false}"},
      {"{v, w = unit}", "{v=pred true, w=pred true}"},
      {"{v = -1 : i8}", "{v=s8 -1}"},
      {"{v = 255 : i8}", "{v=s8 -1}"},
      {"{v = -8 : i4}", "{v=s4 -8}"},
      {"{v = 1 : i16}", "{v=s16 1}"},
      {"{v = -9223372036854775808 : i64}", "{v=s64 -9223372036854775808}"},
      {"{v = 7}", "{v=s64 7}"},
      {"{v = 3 : index}", "{v=s64 3}"},
      {"{v = 3 : si32}", "{v=s32 3}"},
      {"{v = 76 : ui8}", "{v=u8 76}"},
      {"{v = 4294967295 : ui32}", "{v=u32 4294967295}"},
      {"{v = 18446744073709551615 : ui64}", "{v=u64 18446744073709551615}"},
      {"{v = 0x10 : i32}", "{v=s32 16}"},
      {"{v = 1.500000e+00 : f64}", "{v=f64 1.5}"},
      {"{v = 1.5}", "{v=f64 1.5}"},
      {"{v = 1.000000e-01 : f32}", "{v=f32 0.1}"},
      {"{v = 0x7F800000 : f32}", "{v=f32 inf}"},
      {"{v = 0xFFF0000000000000 : f64}", "{v=f64 -inf}"},
      {"{v = 1.500000e+00 : f16}", "{v=f16 15872}"},
      {"{v = 1.500000e+00 : bf16}", "{v=bf16 16320}"},
      {"{v = 0x3FC0 : bf16}", "{v=bf16 16320}"},
      {"{v = 1.000000e+00 : f8E4M3FN}", "{v=f8e4m3fn 56}"},
      {"{v = \"s\"}", "{v='s'}"},
      {"{v = \"\"}", "{v=''}"},
      {"{v = \"q\\22\\\\\\0A\\09\\C3\\A9}\"}", "{v='q\"\\\n\t\xc3\xa9}'}"},
      {"{v = \"\\\"\\n\\t\"}", "{v='\"\n\t'}"},
      {"{v = array<i64: 1, 2>}", "{v=[s64 1 2]}"},
      {"{v = array<i32>}", "{v=[s32]}"},
      {"{v = array<i1: true, false>}", "{v=[pred true false]}"},
      {"{v = array<f32: 1.5, -2.0>}", "{v=[f32 1.5 -2]}"},
      {"{v = dense<[1, 2]> : tensor<2xi32>}", "{v=[s32 1 2]}"},
      {"{v = dense<[[1, 2], [3, 4]]> : tensor<2x2xui8>}", "{v=[u8 1 2 3 4]}"},
      {"{v = dense<7> : tensor<3xi64>}", "{v=[s64 7 7 7]}"},
      {"{v = dense<3> : tensor<i32>}", "{v=[s32 3]}"},
      {"{v = dense<> : tensor<0xf32>}", "{v=[f32]}"},
      {"{v = dense<> : tensor<1x0xi8>}", "{v=[s8]}"},
      {"{v = dense<[true, false]> : tensor<2xi1>}", "{v=[pred true false]}"},
      {"{v = dense<[0x7F800000, 1.000000e-30]> : tensor<2xf32>}", "{v=[f32 inf 1e-30]}"},
      {"{v = dense<[(1.0,2.0), (3.0,-4.0)]> : tensor<2xcomplex<f32>>}", "{v=[c64 1+2i 3+-4i]}"},
      {"{v = dense<(1.0,2.0)> : tensor<2xcomplex<f32>>}", "{v=[c64 1+2i 1+2i]}"},
      {"{v = dense<\"0x01000200\"> : tensor<2xi16>}", "{v=[s16 1 2]}"},
      {"{v = dense<\"0x0100\"> : tensor<2xi16>}", "{v=[s16 1 1]}"},
      {"{v = dense<\"0x0100FF\"> : tensor<3xi1>}", "{v=[pred true false true]}"},
      {"{v = [1, 2]}", "{v=[s64 1 2]}"},
      {"{v = [1 : i32]}", "{v=[s32 1]}"},
      {"{v = [1.500000e+00, 2.0]}", "{v=[f64 1.5 2]}"},
      {"{v = [true, false]}", "{v=[pred true false]}"},
      {"{v = []}", "{v=[s64]}"},
      {"{v = {b = \"x\", a = {}}}", "{v={a={}, b='x'}}"},
      {"{z = 1 : i8, \"0\" = 0 : i8, A = 5 : i8, a = 2 : i8, \"we ird\" = 3 : i8, x.y = 1 : i8}",
       "{0=s8 0, A=s8 5, a=s8 2, we ird=s8 3, x.y=s8 1, z=s8 1}"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(read(text), expected) << text;
}

TEST(FfiAttributes, RoundsOnceToFloat) {
  // 1 + 2^-24 + 2^-54: as a double it becomes a tie, which would go down.
  AttributeDictionary read("{v = 1.00000005960464483090 : f32}");
  auto* scalar = static_cast<const Scalar*>(read.attrs().attrs[0]);
  EXPECT_EQ(*static_cast<float*>(scalar->value), 1.00000005960464483090f);
}

TEST(FfiAttributes, KeepsItsPlaceWhenMoved) {
  AttributeDictionary first("{v = 1 : i32}");
  const Attrs* before = &first.attrs();
  AttributeDictionary second = std::move(first);
  EXPECT_EQ(&second.attrs(), before);
}

TEST(FfiAttributes, Mistakes) {
  const std::pair<const char*, const char*> rows[] = {
      {"3", "line 1, column 1: expected '{' to begin the attributes, got '3'"},
      {"{v = 1 : i32", "line 1, column 13: expected ',', got the end"},
      {"{v = 1} w", "line 1, column 9: expected the end after the attributes, got 'w'"},
      {"{v = 1, v = 2}", "line 1, column 9: expected one 'v', got another"},
      {"{= 1}", "line 1, column 2: expected the name of an attribute, got '='"},
      {"{v = i32}",
       "line 1, column 6: expected a number, true, false, a string, a dictionary, array<...>, "
       "dense<...> or a list of scalars, got 'i32'"},
      {"{v = 300 : ui8}", "line 1, column 6: expected a number of type u8, got 300"},
      {"{v = -1 : ui8}", "line 1, column 6: expected a number of type u8, got -1"},
      {"{v = -129 : i8}", "line 1, column 6: expected a number of type s8, got -129"},
      {"{v = 1.5 : i8}", "line 1, column 6: expected a number of type s8, got 1.5"},
      {"{v = 2 : i1}", "line 1, column 6: expected a number of type pred, got 2"},
      {"{v = 1 : i99}",
       "line 1, column 10: expected an element type (i1 to i64, ui8 to ui64, f16, bf16, f32, f64, "
       "...), got 'i99'"},
      {"{v = 0x7FC00000 : f16}", "line 1, column 6: expected a number of type f16, got 0x7FC00000"},
      {"{v = - : i8}", "line 1, column 6: expected a number, got '-'"},
      {"{v = \"x}", "line 1, column 6: expected '\"' to end the string, got the end"},
      {"{v = \"\\q\"}",
       "line 1, column 7: expected an escape: \\n, \\t, \\\\, \\\" or two hexadecimal digits"},
      {"{v = [1 : i32, 2 : i64]}",
       "line 1, column 16: expected a list of scalars of one type, got s32 and s64"},
      {"{v = [\"a\"]}", "line 1, column 7: expected a list of scalars, got something else in it"},
      {"{v = dense<[1, 2]> : tensor<3xi32>}", "line 1, column 12: expected 3 elements, got 2"},
      {"{v = dense<\"0x01\"> : tensor<3xi32>}", "line 1, column 12: expected 12 bytes, got 1"},
      {"{v = dense<\"01\"> : tensor<3xi32>}",
       "line 1, column 12: expected 0x and hexadecimal digits in pairs"},
      {"{v = dense<1> : tensor<999999999999xi32>}",
       "line 1, column 41: expected an array of at most 4 GiB, got 999999999999 elements"},
      {"{v = dense<1> : tensor<9999999999x9999999999xi32>}",
       "line 1, column 45: expected fewer elements"},
  };
  for (const auto& [text, expected] : rows) {
    try {
      read(text);
      ADD_FAILURE() << "no error for " << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.msg(), str("backend_config: ", expected)) << text;
    }
  }
  EXPECT_THROW(read(std::string(1000, '{')), Error);
  EXPECT_THROW(read("{v = " + std::string(1000, '[')), Error);
}

// Any text is read or refused with a place in it.
TEST(FfiAttributes, Mutations) {
  const std::string seeds[] = {
      "{a = 1 : i32, \"b c\" = \"q\\22\\\\\\0A}\", d = {e = true, f = array<i64: 1, -2>}}",
      "{v = dense<[[1, 2], [3, 4]]> : tensor<2x2xui8>, w = dense<(1.0,2.0)> : "
      "tensor<complex<f32>>}",
      "{v = dense<\"0x0100FF\"> : tensor<3xi1>, w = [1.5, 2.0], x, y = 0x7F800000 : f32}",
  };
  const std::string letters = "{}[]<>()\"\\:=,.-+ 019aexi fnu\x01\xff";
  std::mt19937 random(0);
  auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  int refused = 0;
  for (int round = 0; round < 100000; ++round) {
    std::string text = seeds[static_cast<size_t>(round) % std::size(seeds)];
    for (size_t change = 1 + below(3); change > 0; --change) {
      size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = letters[below(letters.size())];
          break;
        case 1:
          text.insert(at, 1, letters[below(letters.size())]);
          break;
        case 2:
          text.erase(at, 1 + below(4));
          break;
        default:
          text.insert(at, text.substr(below(text.size()), 1 + below(12)));
      }
      if (text.empty()) text = "{";
    }
    try {
      AttributeDictionary dictionary(text);
      EXPECT_GE(dictionary.attrs().size, 0);
    } catch (const Error& e) {
      ++refused;
      ASSERT_EQ(e.msg().substr(0, 21), "backend_config: line ") << text;
      ASSERT_NE(e.msg().find(", column "), std::string::npos) << text;
    }
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace lamella::hlo::ffi
