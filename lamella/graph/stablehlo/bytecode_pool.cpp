// Reading the strings, types and attributes of MLIR's bytecode: of the dialects builtin and vhlo.
#include "lamella/graph/stablehlo/bytecode_pool.h"

#include <cstring>

#include "lamella/graph/stablehlo/names.h"

namespace lamella::hlo::stablehlo {
namespace {

using Kind = Attribute::Kind;

// Those that no module has.
std::string_view foreign_type(uint64_t code) {
  switch (code) {
    case 24:
      return "!quant.uniform";
    case 25:
      return "tensor<*>";
    case 26:
      return "!shape.witness";
    case 30:
      return "!quant.uniform of an axis";
    case 33:
      return "none";
    case 34:
      return "tf32";
    case 38:
      return "f6E2M3FN";
    case 39:
      return "f6E3M2FN";
    default:
      return {};
  }
}

}  // namespace

void Pool::read_strings(Bytes in) {
  std::vector<uint64_t> sizes(in.count());
  for (size_t i = sizes.size(); i-- > 0;) sizes[i] = in.number();  // the last comes first
  for (uint64_t size : sizes) {
    std::string_view text = in.raw(size);
    if (text.empty() || text.back() != '\0') in.fail("expected a zero behind a string");
    strings_.push_back(text.substr(0, text.size() - 1));
  }
}
std::string_view Pool::string_at(Bytes& in, uint64_t index) const {
  if (index >= strings_.size()) {
    in.fail("expected one of ", strings_.size(), " strings, got number ", index);
  }
  return strings_[index];
}

void Pool::read_entries(Bytes in, Bytes data, const std::vector<std::string_view>& names) {
  const uint64_t attributes = in.number(), types = in.number();
  size_t at = data.position();
  const size_t end = at + data.left();
  auto group = [&](auto& entries, uint64_t wanted) {
    while (entries.size() < wanted) {
      uint64_t dialect = in.number();
      if (dialect >= names.size()) in.fail("expected a dialect, got number ", dialect);
      const size_t count = in.count();
      for (size_t i = 0; i < count; ++i) {
        bool is_encoded = false;
        uint64_t size = in.flagged(&is_encoded);
        if (size > end - at) in.fail("expected entries within their section, got ", size, " bytes");
        entries.push_back({at, at + size, names[dialect], !is_encoded});
        at += size;
      }
      if (count == 0) in.fail("expected an entry, got none");
    }
  };
  group(attributes_, attributes);
  group(types_, types);
}

template <class T>
T* Pool::get(Bytes& in, std::vector<Entry<T>>& entries, uint64_t index, const char* what,
             void (Pool::*read)(Bytes&, const Entry<T>&, T*)) {
  if (index >= entries.size()) {
    in.fail("expected one of ", entries.size(), " ", what, ", got number ", index);
  }
  Entry<T>& entry = entries[index];
  if (entry.made != nullptr) return entry.made;
  if (entry.is_open) in.fail("expected ", what, " that do not contain themselves");
  if (depth_ >= kMostNested) in.fail("expected at most ", kMostNested, " nested ", what);
  ++depth_;
  entry.is_open = true;
  T* made = arena_.make<T>();
  Bytes data(&source_, entry.begin, entry.end);
  (this->*read)(data, entry, made);
  if (!entry.is_text && !data.at_end()) {
    data.fail("expected the end of one of the ", what, ", got ", data.left(), " bytes more");
  }
  --depth_;
  entry.made = made;
  return made;
}
const Type* Pool::type_at(Bytes& in, uint64_t index) {
  return get(in, types_, index, "types", &Pool::read_type);
}
const Attribute* Pool::attribute_at(Bytes& in, uint64_t index) {
  return get(in, attributes_, index, "attributes", &Pool::read_attribute);
}

// ---- Types -------------------------------------------------------------------------------------

void Pool::read_type(Bytes& in, const Entry<Type>& entry, Type* made) {
  if (entry.is_text) {
    made->name = in.raw(in.left());
    while (!made->name.empty() && made->name.back() == '\0') made->name.remove_suffix(1);
  } else if (entry.dialect == "builtin") {
    read_builtin_type(in, made);
  } else if (entry.dialect == "vhlo") {
    read_vhlo_type(in, made);
  } else if (entry.dialect == "stablehlo") {  // of Shardy's operations: it has a token alone
    if (in.number() != 0) in.fail("expected a token as the type of stablehlo");
    made->kind = Type::Kind::Token;
  } else {
    in.fail("expected a type of builtin or vhlo, got one of '", entry.dialect, "'");
  }
}
void Pool::read_builtin_type(Bytes& in, Type* made) {
  made->kind = Type::Kind::Element;
  switch (uint64_t code = in.number()) {
    case 0: {
      uint64_t word = in.number();  // the width, and two bits that say whether it has a sign
      auto found = integer_type(word >> 2, (word & 3) == 2);
      if (!found) in.fail("expected an integer type of 1 to 64 bits, got ", word >> 2);
      made->element = *found;
      return;
    }
    case 1:
      made->element = ElementType::S64;
      return;
    case 2:
      made->kind = Type::Kind::Function;
      for (auto* list : {&made->parts, &made->results}) {
        for (size_t n = in.count(); n > 0; --n) list->push_back(type(in));
      }
      return;
    case 3:
      made->element = ElementType::BF16;
      return;
    case 4:
      made->element = ElementType::F16;
      return;
    case 5:
      made->element = ElementType::F32;
      return;
    case 6:
      made->element = ElementType::F64;
      return;
    case 9:
      made->element = complex_of_part(type(in)->element);
      if (made->element == ElementType::Invalid) in.fail("expected a complex type of f32 or f64");
      return;
    case 12:
      made->kind = Type::Kind::Other;
      made->name = "none";
      return;
    case 13:
      made->kind = Type::Kind::Tensor;
      made->sizes = in.signed_numbers();
      made->element = type(in)->element;
      return;
    default:
      in.fail("expected a type of builtin that StableHLO has, got code ", code);
  }
}
void Pool::read_vhlo_type(Bytes& in, Type* made) {
  using K = Type::Kind;
  const uint64_t code = in.number();
  if (auto found = element_of_code(code)) {
    made->kind = K::Element;
    made->element = *found;
    return;
  }
  auto types = [&](std::vector<const Type*>& list) {
    for (size_t n = in.count(); n > 0; --n) list.push_back(type(in));
  };
  auto element = [&] {
    const Type* one = type(in);
    if (one->kind == K::Other) {
      made->kind = K::Other;
      made->name = one->name;
    } else if (one->kind != K::Element) {
      in.fail("expected the type of an element");
    }
    made->element = one->element;
  };
  made->kind = K::Other;
  made->name = foreign_type(code);
  switch (code) {
    case 1:
      made->kind = K::Element;
      element();
      made->element = complex_of_part(made->element);
      if (made->element == ElementType::Invalid) in.fail("expected a complex type of f32 or f64");
      return;
    case 8:
      made->kind = K::Function;
      types(made->parts);
      types(made->results);
      return;
    case 20:
    case 21:
      made->kind = K::Tensor;
      if (code == 21) {
        const Attribute* encoding = attribute(in);
        for (const Attribute* one : encoding->list) made->bounds.push_back(one->integer);
      }
      made->sizes = in.signed_numbers();
      element();
      return;
    case 22:
      made->kind = K::Token;
      return;
    case 23:
    case 42:
      made->kind = code == 23 ? K::Tuple : K::Future;
      return types(made->parts);
    case 24:
    case 30:
      in.raw(in.left());
      return;
    case 25:
      type(in);
      return;
    case 41:
      made->kind = K::Buffer;
      made->sizes = in.signed_numbers();
      return element();
    default:
      if (made->name.empty()) in.fail("expected a type of VHLO, got code ", code);
  }
}

// ---- Attributes --------------------------------------------------------------------------------

void Pool::read_attribute(Bytes& in, const Entry<Attribute>& entry, Attribute* made) {
  if (entry.is_text) {
    made->kind = Kind::Word;
    made->text = in.raw(in.left());
    while (!made->text.empty() && made->text.back() == '\0') made->text.remove_suffix(1);
  } else if (entry.dialect == "builtin") {
    read_builtin_attribute(in, made);
  } else if (entry.dialect == "vhlo") {
    read_vhlo_attribute(in, made);
  } else if (entry.dialect == "sdy") {
    read_sdy_attribute(in, made);
  } else {
    in.fail("expected an attribute of builtin or vhlo, got one of '", entry.dialect, "'");
  }
}

void Pool::read_list(Bytes& in, Attribute* made) {
  made->kind = Kind::List;
  for (size_t n = in.count(); n > 0; --n) made->list.push_back(attribute(in));
}
void Pool::read_dictionary(Bytes& in, Attribute* made) {
  made->kind = Kind::Dictionary;
  for (size_t n = in.count(); n > 0; --n) {
    std::string_view name = attribute(in)->text;
    made->entries.push_back({name, attribute(in)});
  }
}
// An integer or a float of the type that precedes it.
void Pool::read_number(Bytes& in, Attribute* made) {
  made->type = type(in);
  const ElementType element = made->type->element;
  if (made->type->kind != Type::Kind::Element || is_complex(element)) {
    in.fail("expected the type of a number");
  }
  if (is_floating(element)) {
    made->kind = Kind::Real;
    made->real = real_of_bits(in.integer(element_bits(element)), element);
  } else {
    const int bits = element == ElementType::PRED ? 1 : element_bits(element);
    made->kind = element == ElementType::PRED ? Kind::Boolean : Kind::Integer;
    made->integer = integer_of_bits(in.integer(bits), element);
  }
}

void Pool::read_builtin_attribute(Bytes& in, Attribute* made) {
  switch (uint64_t code = in.number()) {
    case 0:
      return read_list(in, made);
    case 1:
      return read_dictionary(in, made);
    case 2:
      made->kind = Kind::String;
      made->text = string(in);
      return;
    case 3:
      made->kind = Kind::String;
      made->text = string(in);
      type(in);
      return;
    case 4:
      made->kind = Kind::Symbol;
      made->text = attribute(in)->text;
      return;
    case 6:
      made->kind = Kind::TypeOf;
      made->type = type(in);
      return;
    case 7:
      return;
    case 8:
    case 9:
      return read_number(in, made);
    case 10: {  // a call: what is called, and the place of the call
      const Attribute* callee = attribute(in);
      attribute(in);
      *made = *callee;
      return;
    }
    case 11:
      made->kind = Kind::Location;
      made->file = attribute(in)->text;
      made->integer = static_cast<int64_t>(in.number());
      in.number();
      return;
    case 12:
    case 13:
      made->kind = Kind::Location;
      for (size_t n = in.count(); n > 0; --n) {
        const Attribute* part = attribute(in);
        if (made->text.empty() && made->file.empty()) *made = *part;
      }
      if (code == 13) attribute(in);
      return;
    case 14: {
      std::string_view name = attribute(in)->text;
      *made = *attribute(in);
      made->kind = Kind::Location;
      made->text = name;
      return;
    }
    case 15:
      made->kind = Kind::Location;
      return;
    case 18: {  // elements, of operations that are not StableHLO's
      made->kind = Kind::Elements;
      made->type = type(in);
      made->text = in.raw(in.number());
      int64_t count = 1;
      for (int64_t size : made->type->sizes) count *= size;
      made->is_splat = count != 1;
      if (count != 1 &&
          made->text.size() != static_cast<size_t>(element_bytes(made->type->element))) {
        made->is_splat = false;
      }
      return;
    }
    case 22: {  // from a line and column to others; numbers that say nothing are left out
      made->kind = Kind::Location;
      made->file = attribute(in)->text;
      const size_t count = in.count();
      for (size_t i = 0; i < count; ++i) {
        const uint64_t number = in.number();
        if (i == 0) made->integer = static_cast<int64_t>(number);
      }
      return;
    }
    default:
      in.fail("expected an attribute of builtin that StableHLO has, got code ", code);
  }
}

const Attribute* Pool::integer(int64_t value) {
  auto* made = arena_.make<Attribute>();
  made->kind = Kind::Integer;
  made->integer = value;
  return made;
}
void Pool::add_integers(Attribute* made, std::string_view name,
                        const std::vector<int64_t>& numbers) {
  auto* list = arena_.make<Attribute>();
  list->kind = Kind::List;
  for (int64_t one : numbers) list->list.push_back(integer(one));
  add(made, name, list);
}

void Pool::read_vhlo_attribute(Bytes& in, Attribute* made) {
  const uint64_t code = in.number();
  if (const char* const* names = enumerators(code)) {
    made->kind = Kind::Word;
    const uint64_t value = in.number();
    for (uint64_t i = 0; names[i] != nullptr; ++i) {
      if (i == value) made->text = names[i];
    }
    if (made->text.empty()) in.fail("expected the number of an enumerator, got ", value);
    return;
  }
  made->kind = Kind::Dictionary;
  switch (code) {
    case 1:
      return read_list(in, made);
    case 2:
      made->kind = Kind::Boolean;
      made->integer = in.number() != 0 ? 1 : 0;
      return;
    case 6:
      return read_dictionary(in, made);
    case 8:
    case 9:
      return read_number(in, made);
    case 10:
      add_integers(made, "output_tuple_indices", in.signed_numbers());
      add(made, "operand_index", integer(in.signed_number()));
      return add_integers(made, "operand_tuple_indices", in.signed_numbers());
    case 14:
      made->kind = Kind::String;
      made->text = string(in);
      return;
    case 15:
      return read_elements(in, made);
    case 17:
      made->kind = Kind::TypeOf;
      made->type = type(in);
      return;
    case 18:
      made->kind = Kind::List;
      for (int64_t bound : in.signed_numbers()) made->list.push_back(integer(bound));
      return;
    case 20: {
      for (const char* name : {"atol", "rtol"}) {
        auto* one = arena_.make<Attribute>();
        one->kind = Kind::Real;
        one->real = real_of_bits(in.integer(64), ElementType::F64);
        add(made, name, one);
      }
      add(made, "ulps", integer(in.signed_number()));
      return add(made, "mode", attribute(in));
    }
    case 21:
      add(made, "pre_size", integer(in.signed_number()));
      return add(made, "size", integer(in.signed_number()));
    case 22:
      add(made, "name", attribute(in));
      if (in.number() != 0) add(made, "sub_axis_info", attribute(in));
      return;
    case 23:
      add(made, "mesh", attribute(in));
      return add(made, "axes", attribute(in));
    case 24:
      add(made, "name", attribute(in));
      return add(made, "size", integer(in.signed_number()));
    case 25: {
      add(made, "axes", attribute(in));
      bool has = false;
      uint64_t index = in.flagged(&has);
      if (has) add(made, "device_ids", attribute_at(in, index));
      return;
    }
    default:
      in.fail("expected an attribute of VHLO, got code ", code);
  }
}

// Bytes of all elements, or of one that stands for all. Those of pred may be bits.
void Pool::read_elements(Bytes& in, Attribute* made) {
  made->kind = Kind::Elements;
  made->type = type(in);
  std::string_view data = in.raw(in.number());
  const Shape shape = shape_of(*made->type, [&](const std::string& why) { in.fail(why); });
  if (!shape.is_array()) in.fail("expected the elements of an array");
  const auto count = static_cast<uint64_t>(shape.elements());
  if (shape.element_type() == ElementType::PRED && !(data.size() == count && count > 1)) {
    const bool is_splat = count > 1 && data.size() == 1 && (data[0] == '\xff' || count > 8);
    if (!is_splat) {
      if (data.size() != (count + 7) / 8)
        in.fail("expected ", count, " bits, got ", data.size(), " bytes");
      std::string bytes(count, '\0');
      for (uint64_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(data[i / 8] >> (i % 8) & 1);
      made->text = arena_.copy(bytes);
      return;
    }
    made->is_splat = true;
    made->text = data[0] != '\0' ? std::string_view("\1", 1) : std::string_view("\0", 1);
    return;
  }
  const auto size = static_cast<uint64_t>(element_bytes(shape.element_type()));
  made->is_splat = data.size() == size && count != 1;
  made->text = data;
  if (!made->is_splat && (data.size() % size != 0 || data.size() / size != count)) {
    in.fail("expected ", count, " elements of ", size, " bytes, got ", data.size(), " bytes");
  }
}

}  // namespace lamella::hlo::stablehlo
