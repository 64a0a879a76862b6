// Pool: the strings, types and attributes of a bytecode, each read when it is first used. Internal
// to lamella/graph/stablehlo.
#pragma once
#include "lamella/graph/stablehlo/bytes.h"

namespace lamella::hlo::stablehlo {

class Pool {
 public:
  Pool(const Source& source, Arena& arena) : source_(source), arena_(arena) {}

  void read_strings(Bytes in);
  // `names` are those of the dialects.
  void read_entries(Bytes in, Bytes data, const std::vector<std::string_view>& names);

  std::string_view string(Bytes& in) { return string_at(in, in.number()); }
  std::string_view string_at(Bytes& in, uint64_t index) const;
  const Type* type(Bytes& in) { return type_at(in, in.number()); }
  const Type* type_at(Bytes& in, uint64_t index);
  const Attribute* attribute(Bytes& in) { return attribute_at(in, in.number()); }
  const Attribute* attribute_at(Bytes& in, uint64_t index);

 private:
  template <class T>
  struct Entry {
    size_t begin, end;
    std::string_view dialect;
    bool is_text;  // MLIR's text of it
    bool is_open = false;
    T* made = nullptr;
  };
  template <class T>
  T* get(Bytes& in, std::vector<Entry<T>>& entries, uint64_t index, const char* what,
         void (Pool::*read)(Bytes&, const Entry<T>&, T*));
  void read_type(Bytes& in, const Entry<Type>& entry, Type* made);
  void read_builtin_type(Bytes& in, Type* made);
  void read_vhlo_type(Bytes& in, Type* made);
  void read_attribute(Bytes& in, const Entry<Attribute>& entry, Attribute* made);
  void read_builtin_attribute(Bytes& in, Attribute* made);
  void read_vhlo_attribute(Bytes& in, Attribute* made);
  void read_sdy_attribute(Bytes& in, Attribute* made);  // sdy.cpp
  void read_elements(Bytes& in, Attribute* made);
  void read_number(Bytes& in, Attribute* made);
  void read_list(Bytes& in, Attribute* made);
  void read_dictionary(Bytes& in, Attribute* made);
  void add_integers(Attribute* made, std::string_view name, const std::vector<int64_t>& numbers);
  void add(Attribute* made, std::string_view name, const Attribute* value) {
    made->entries.push_back({name, value});
  }
  const Attribute* integer(int64_t value);

  const Source& source_;
  Arena& arena_;
  std::vector<std::string_view> strings_;
  std::vector<Entry<Type>> types_;
  std::vector<Entry<Attribute>> attributes_;
  int depth_ = 0;
};

}  // namespace lamella::hlo::stablehlo
