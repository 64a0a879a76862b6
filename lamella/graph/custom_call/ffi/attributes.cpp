// Parses MLIR dictionaries into attributes.
#include "lamella/graph/custom_call/ffi/attributes.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lamella/core/half.h"
#include "lamella/graph/hlo/scanner.h"
#include "lamella/graph/hlo/small_float.h"

namespace lamella::hlo::ffi {
namespace {

// An attribute in the form that Attrs holds.
struct Made {
  AttrType type;
  void* attr;
};
struct Named {
  std::string_view name;
  Made made;
};
// The text of a number, kept until its type is known.
struct Number {
  std::string_view text;
  size_t at;
};

struct TypeName {
  std::string_view text;
  ElementType type;
};
// Types with different names in MLIR and HLO. The names of 8-bit floats differ only in case.
constexpr TypeName type_names[] = {
    {"i1", ElementType::PRED},  {"i2", ElementType::S2},     {"i4", ElementType::S4},
    {"i8", ElementType::S8},    {"i16", ElementType::S16},   {"i32", ElementType::S32},
    {"i64", ElementType::S64},  {"index", ElementType::S64}, {"si2", ElementType::S2},
    {"si4", ElementType::S4},   {"si8", ElementType::S8},    {"si16", ElementType::S16},
    {"si32", ElementType::S32}, {"si64", ElementType::S64},  {"ui2", ElementType::U2},
    {"ui4", ElementType::U4},   {"ui8", ElementType::U8},    {"ui16", ElementType::U16},
    {"ui32", ElementType::U32}, {"ui64", ElementType::U64},
};

std::optional<ElementType> type_from_name(std::string_view name) {
  for (const TypeName& one : type_names) {
    if (one.text == name) return one.type;
  }
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  std::optional<ElementType> found = element_from_name(lower);
  if (found.has_value() && is_floating(*found)) return found;
  return std::nullopt;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Reader {
 public:
  Reader(std::string_view text, std::pmr::memory_resource* memory)
      : s_(text, "backend_config"), memory_(memory) {}

  const Attrs* read() {
    if (s_.at_end()) return dictionary_of({});
    if (s_.peek() != '{') s_.fail("expected '{' to begin the attributes, got ", s_.next());
    const Attrs* attrs = dictionary();
    if (!s_.at_end()) s_.fail("expected the end after the attributes, got ", s_.next());
    return attrs;
  }

 private:
  template <class T>
  T* make(const T& value) {
    return new (memory_->allocate(sizeof(T), alignof(T))) T(value);
  }
  template <class T>
  T* many(size_t count) {
    return static_cast<T*>(memory_->allocate(std::max<size_t>(count, 1) * sizeof(T), alignof(T)));
  }
  std::string_view keep(std::string_view text) {
    char* to = many<char>(text.size());
    std::copy(text.begin(), text.end(), to);
    return {to, text.size()};
  }

  // ---- Dictionaries ---------------------------------------------------------------------------

  const Attrs* dictionary() {
    // Limits the recursion, which could otherwise exhaust the stack.
    if (++depth_ > 64) s_.fail("expected at most 64 nested dictionaries and lists");
    std::vector<Named> entries;
    s_.expect('{');
    while (!s_.take('}')) {
      s_.skip();
      size_t at = s_.position();
      std::string_view name = keep(s_.peek() == '"' ? std::string_view(quoted()) : bare_name());
      for (const Named& other : entries) {
        if (other.name == name) s_.fail_at(at, str("expected one '", name, "', got another"));
      }
      entries.push_back({name, s_.take('=') ? value() : truth(true)});
      if (s_.peek() != '}') s_.expect(',');
    }
    --depth_;
    return dictionary_of(std::move(entries));
  }
  const Attrs* dictionary_of(std::vector<Named> entries) {
    std::sort(entries.begin(), entries.end(),
              [](const Named& a, const Named& b) { return a.name < b.name; });
    Attrs attrs{};
    attrs.struct_size = LAMELLA_FFI_SIZE(Attrs, attrs);
    attrs.size = static_cast<int64_t>(entries.size());
    attrs.types = many<AttrType>(entries.size());
    attrs.names = many<ByteSpan*>(entries.size());
    attrs.attrs = many<void*>(entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      attrs.types[i] = entries[i].made.type;
      attrs.names[i] = make(ByteSpan{entries[i].name.data(), entries[i].name.size()});
      attrs.attrs[i] = entries[i].made.attr;
    }
    return make(attrs);
  }
  std::string_view bare_name() {
    std::string_view found = s_.word();
    if (found.empty()) s_.fail("expected the name of an attribute, got ", s_.next());
    return found;
  }
  // A quoted string; the escapes are \n, \t, \\, \" and a backslash with two hexadecimal digits.
  std::string quoted() {
    s_.expect('"');
    std::string_view text = s_.text();
    size_t begin = s_.position() - 1;
    std::string out;
    for (size_t i = begin + 1; i < text.size(); ++i) {
      char c = text[i];
      if (c == '"') {
        s_.seek(i + 1);
        return out;
      }
      if (c != '\\') {
        out += c;
        continue;
      }
      char next = i + 1 < text.size() ? text[i + 1] : '\0';
      if (next == '"' || next == '\\' || next == 'n' || next == 't') {
        out += next == 'n' ? '\n' : next == 't' ? '\t' : next;
        ++i;
        continue;
      }
      int high = hex_digit(next), low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        s_.fail_at(i, "expected an escape: \\n, \\t, \\\\, \\\" or two hexadecimal digits");
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
    s_.fail_at(begin, "expected '\"' to end the string, got the end");
  }

  // ---- Values ---------------------------------------------------------------------------------

  Made value() {
    char c = s_.peek();
    if (c == '"') {
      std::string_view text = keep(quoted());
      return {AttrType::String, make(ByteSpan{text.data(), text.size()})};
    }
    if (c == '{') return {AttrType::Dictionary, const_cast<Attrs*>(dictionary())};
    if (c == '[') return list();
    if (c == '-' || (c >= '0' && c <= '9')) {
      Number found = number();
      ElementType type = s_.take(':') ? element_type() : natural_type(found);
      return scalar(type, {&found, 1});
    }
    size_t at = s_.position();
    std::string_view found = s_.word();
    if (found == "true" || found == "false") return truth(found == "true");
    if (found == "unit") return truth(true);
    if (found == "array") return dense_array();
    if (found == "dense") return dense_elements();
    s_.seek(at);
    s_.fail("expected a number, true, false, a string, a dictionary, array<...>, dense<...> or a ",
            "list of scalars, got ", s_.next());
  }
  Made truth(bool yes) {
    return {AttrType::Scalar, make(Scalar{data_type(ElementType::PRED), make(yes)})};
  }
  Made scalar(ElementType type, std::span<const Number> numbers) {
    void* to = memory_->allocate(static_cast<size_t>(element_bytes(type)), 16);
    store(type, to, numbers);
    return {AttrType::Scalar, make(Scalar{data_type(type), to})};
  }
  // [1 : i32, 2 : i32]
  Made list() {
    if (++depth_ > 64) s_.fail("expected at most 64 nested dictionaries and lists");
    std::vector<const Scalar*> found;
    s_.expect('[');
    while (!s_.take(']')) {
      s_.skip();
      size_t at = s_.position();
      Made one = value();
      if (one.type != AttrType::Scalar) {
        s_.fail_at(at, "expected a list of scalars, got something else in it");
      }
      found.push_back(static_cast<const Scalar*>(one.attr));
      if (found.back()->dtype != found.front()->dtype) {
        s_.fail_at(at, str("expected a list of scalars of one type, got ",
                           name_of(found.front()->dtype), " and ", name_of(found.back()->dtype)));
      }
      if (s_.peek() != ']') s_.expect(',');
    }
    --depth_;
    DataType type = found.empty() ? data_type(ElementType::S64) : found.front()->dtype;
    auto bytes = static_cast<size_t>(element_bytes(static_cast<ElementType>(type)));
    auto* data =
        static_cast<std::byte*>(memory_->allocate(std::max<size_t>(1, bytes * found.size()), 16));
    for (size_t i = 0; i < found.size(); ++i) std::memcpy(data + i * bytes, found[i]->value, bytes);
    return {AttrType::Array, make(Array{type, found.size(), data})};
  }
  static std::string_view name_of(DataType type) {
    return element_name(static_cast<ElementType>(type));
  }
  // array<i64: 1, 2>, array<i64>
  Made dense_array() {
    s_.expect('<');
    ElementType type = element_type();
    std::vector<Number> numbers;
    if (s_.take(':')) {
      while (s_.peek() != '>') {
        element(&numbers);
        if (s_.peek() != '>') s_.expect(',');
      }
    }
    s_.expect('>');
    return array(type, numbers, numbers.size() / parts(type));
  }
  // dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  Made dense_elements() {
    s_.expect('<');
    size_t at = s_.position();
    std::vector<Number> numbers;
    std::string raw;
    bool is_raw = s_.peek() == '"';
    bool one = !is_raw && s_.peek() != '[';
    if (is_raw) {
      raw = quoted();
    } else if (s_.peek() != '>') {
      elements(&numbers);
    }
    s_.expect('>');
    s_.expect(':');
    if (!s_.take("tensor") && !s_.take("vector")) s_.fail("expected tensor<...>, got ", s_.next());
    s_.expect('<');
    size_t count = 1;
    while (s_.peek() >= '0' && s_.peek() <= '9') {
      auto size = static_cast<size_t>(s_.integer());
      if (__builtin_mul_overflow(count, size, &count)) s_.fail("expected fewer elements");
      s_.expect('x');
    }
    ElementType type = element_type();
    s_.expect('>');
    if (is_raw) return raw_array(type, raw, count, at);
    size_t given = numbers.size() / parts(type);
    if (one && count != 0) {
      if (given != 1) s_.fail_at(at, str("expected one element, got ", given));
    } else if (given != count) {
      s_.fail_at(at, str("expected ", count, " elements, got ", given));
    }
    return array(type, numbers, count);
  }
  void elements(std::vector<Number>* numbers) {
    if (!s_.take('[')) return element(numbers);
    if (++depth_ > 64) s_.fail("expected at most 64 nested dictionaries and lists");
    while (!s_.take(']')) {
      elements(numbers);
      if (s_.peek() != ']') s_.expect(',');
    }
    --depth_;
  }
  // A number, true, false, or the two parts of a complex one.
  void element(std::vector<Number>* numbers) {
    if (s_.take('(')) {
      numbers->push_back(number());
      s_.expect(',');
      numbers->push_back(number());
      s_.expect(')');
      return;
    }
    char c = s_.peek();
    if (c == 't' || c == 'f') {
      size_t at = s_.position();
      std::string_view found = s_.word();
      if (found != "true" && found != "false") {
        s_.fail_at(at, str("expected a number, true or false, got '", found, "'"));
      }
      numbers->push_back({found == "true" ? "1" : "0", at});
      return;
    }
    numbers->push_back(number());
  }
  static size_t parts(ElementType type) { return is_complex(type) ? 2 : 1; }
  // Makes an array from one number per element, or from one number for all elements.
  Made array(ElementType type, const std::vector<Number>& numbers, size_t count) {
    auto bytes = static_cast<size_t>(element_bytes(type));
    size_t total = sized(count, bytes);
    auto* data = static_cast<std::byte*>(memory_->allocate(total, 16));
    size_t each = parts(type);
    if (numbers.size() % each != 0) s_.fail("expected complex numbers (1.0,2.0)");
    bool same = numbers.size() == each;
    for (size_t i = 0; i < count; ++i) {
      if (same && i != 0) {
        std::memcpy(data + i * bytes, data, bytes);
        continue;
      }
      store(type, data + i * bytes, std::span(numbers).subspan(i * each, each));
    }
    return {AttrType::Array, make(Array{data_type(type), count, data})};
  }
  // Makes an array from "0x" and hexadecimal digits: the bytes of all elements, or of one element
  // for all.
  Made raw_array(ElementType type, std::string_view raw, size_t count, size_t at) {
    auto bytes = static_cast<size_t>(element_bytes(type));
    size_t total = sized(count, bytes);
    bool good = raw.starts_with("0x") && raw.size() % 2 == 0;
    std::vector<std::byte> given;
    for (size_t i = 2; good && i + 1 < raw.size(); i += 2) {
      int high = hex_digit(raw[i]), low = hex_digit(raw[i + 1]);
      good = high >= 0 && low >= 0;
      given.push_back(static_cast<std::byte>(high * 16 + low));
    }
    if (!good) s_.fail_at(at, "expected 0x and hexadecimal digits in pairs");
    auto* data = static_cast<std::byte*>(memory_->allocate(total, 16));
    if (given.size() == count * bytes) {
      std::copy(given.begin(), given.end(), data);
    } else if (given.size() == bytes) {
      for (size_t i = 0; i < count; ++i) std::copy(given.begin(), given.end(), data + i * bytes);
    } else if (type == ElementType::PRED && given.size() == (count + 7) / 8) {  // bits
      for (size_t i = 0; i < count; ++i) data[i] = (given[i / 8] >> (i % 8)) & std::byte{1};
    } else {
      s_.fail_at(at, str("expected ", count * bytes, " bytes, got ", given.size()));
    }
    if (type == ElementType::PRED) {
      for (size_t i = 0; i < count; ++i) data[i] = std::byte{data[i] != std::byte{0}};
    }
    return {AttrType::Array, make(Array{data_type(type), count, data})};
  }
  // Checks the total size, because a short text may state a huge number of elements.
  size_t sized(size_t count, size_t bytes) {
    size_t total = 0;
    if (__builtin_mul_overflow(count, bytes, &total) || total > size_t{1} << 32) {
      s_.fail("expected an array of at most 4 GiB, got ", count, " elements");
    }
    return std::max<size_t>(total, 1);
  }

  // ---- Numbers --------------------------------------------------------------------------------

  ElementType element_type() {
    s_.skip();
    size_t at = s_.position();
    std::string_view name = s_.word();
    if (name == "complex" && s_.take('<')) {
      ElementType part = element_type();
      s_.expect('>');
      ElementType whole = complex_of_part(part);
      if (whole == ElementType::Invalid) {
        s_.fail_at(at, str("expected complex<f32> or complex<f64>, got complex<",
                           element_name(part), ">"));
      }
      return whole;
    }
    std::optional<ElementType> found = type_from_name(name);
    if (!found.has_value()) {
      s_.seek(at);
      s_.fail("expected an element type (i1 to i64, ui8 to ui64, f16, bf16, f32, f64, ...), got ",
              s_.next());
    }
    return *found;
  }
  Number number() {
    s_.skip();
    std::string_view text = s_.text();
    size_t begin = s_.position(), end = begin;
    auto is = [&](char c) { return end < text.size() && text[end] == c; };
    if (is('-') || is('+')) ++end;
    size_t digits = end;
    if (text.substr(end, 2) == "0x") {
      for (end += 2; end < text.size() && hex_digit(text[end]) >= 0;) ++end;
      digits += 2;
    } else {
      auto run = [&] {
        while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
      };
      run();
      if (is('.')) {
        ++end;
        run();
      }
      if (is('e') || is('E')) {
        ++end;
        if (is('-') || is('+')) ++end;
        run();
      }
    }
    if (end == digits) s_.fail("expected a number, got ", s_.next());
    s_.seek(end);
    return {text.substr(begin, end - begin), begin};
  }
  static ElementType natural_type(const Number& n) {
    bool whole = n.text.find("0x") != std::string_view::npos ||
                 n.text.find_first_of(".eE") == std::string_view::npos;
    return whole ? ElementType::S64 : ElementType::F64;
  }
  [[noreturn]] void wrong(const Number& n, ElementType type) {
    s_.fail_at(n.at, str("expected a number of type ", element_name(type), ", got ", n.text));
  }
  // The magnitude and sign of an integer; throws if it is not an integer of at most 64 bits.
  uint64_t magnitude(const Number& n, ElementType type, bool* negative) {
    std::string_view text = n.text;
    *negative = text.starts_with('-');
    if (*negative || text.starts_with('+')) text.remove_prefix(1);
    int base = 10;
    if (text.starts_with("0x")) {
      text.remove_prefix(2);
      base = 16;
    }
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size()) wrong(n, type);
    return value;
  }
  void store_integer(ElementType type, void* to, const Number& n) {
    bool negative = false;
    uint64_t size = magnitude(n, type, &negative);
    int bits = type == ElementType::PRED ? 1 : element_bits(type);
    bool is_signed = element_kind(type) == ElementKind::Signed;
    // Signless types accept both notations: 255 and -1 are the same i8.
    uint64_t most = bits == 64 ? std::numeric_limits<uint64_t>::max() : (uint64_t{1} << bits) - 1;
    uint64_t least = is_signed ? uint64_t{1} << (bits - 1) : 0;
    if (negative ? size > least : size > most) wrong(n, type);
    uint64_t value = negative ? 0 - size : size;
    if (is_signed && bits < 8 && ((value >> (bits - 1)) & 1) != 0) value |= ~most;
    std::memcpy(to, &value, static_cast<size_t>(element_bytes(type)));
  }
  template <class T>
  T real(const Number& n, ElementType type) {
    std::string_view text = n.text;
    if (text.starts_with('+')) text.remove_prefix(1);
    T value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) wrong(n, type);
    return value;
  }
  void store_float(ElementType type, void* to, const Number& n) {
    if (n.text.starts_with("0x")) {  // its bits
      bool negative = false;
      uint64_t bits = magnitude(n, type, &negative);
      int width = element_bits(type);
      if (width < 64 && (bits >> width) != 0) wrong(n, type);
      std::memcpy(to, &bits, static_cast<size_t>(element_bytes(type)));
    } else if (type == ElementType::F64) {
      auto value = real<double>(n, type);
      std::memcpy(to, &value, sizeof(value));
    } else if (type == ElementType::F32) {
      auto value = real<float>(n, type);
      std::memcpy(to, &value, sizeof(value));
    } else if (type == ElementType::F16) {
      Half value(real<float>(n, type));
      std::memcpy(to, &value, sizeof(value));
    } else if (type == ElementType::BF16) {
      BFloat16 value(real<float>(n, type));
      std::memcpy(to, &value, sizeof(value));
    } else {
      uint8_t code = encode_small_float(type, real<double>(n, type));
      std::memcpy(to, &code, 1);
    }
  }
  void store(ElementType type, void* to, std::span<const Number> numbers) {
    if (is_complex(type)) {
      if (numbers.size() != 2) wrong(numbers[0], type);
      ElementType part = part_of_complex(type);
      store_float(part, to, numbers[0]);
      store_float(part, static_cast<std::byte*>(to) + element_bytes(part), numbers[1]);
    } else if (is_floating(type)) {
      store_float(type, to, numbers[0]);
    } else {
      store_integer(type, to, numbers[0]);
    }
  }

  Scanner s_;
  std::pmr::memory_resource* memory_;
  int depth_ = 0;
};

}  // namespace

AttributeDictionary::AttributeDictionary(std::string_view text)
    : memory_(std::make_unique<std::pmr::monotonic_buffer_resource>(512)) {
  attrs_ = Reader(text, memory_.get()).read();
}

}  // namespace lamella::hlo::ffi
