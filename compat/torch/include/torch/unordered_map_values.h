// std::unordered_map as a parameter or a return type: a dictionary. It is a separate header because
// <unordered_map> is expensive to include.
#pragma once
#include <unordered_map>

#include "lamella/dispatch/schema_text.h"
#include "lamella/dispatch/whole_values.h"

template <class K, class V>
inline constexpr bool lamella::detail::converts_to_value<std::unordered_map<K, V>> = true;

namespace lamella::abi {

template <class K, class V>
struct FromValue<std::unordered_map<K, V>> {
  static std::unordered_map<K, V> get(const IValue& v) {
    ArrayRef<IValue> entries = v.elements();
    std::unordered_map<K, V> result;
    for (size_t i = 0; i + 1 < entries.size(); i += 2) {
      result.emplace(FromValue<K>::get(entries[i]), FromValue<V>::get(entries[i + 1]));
    }
    return result;
  }
};
template <class K, class V>
struct ToValue<std::unordered_map<K, V>> {
  static IValue get(const std::unordered_map<K, V>& map) {
    std::vector<IValue> items;
    for (const auto& [key, value] : map) {
      items.push_back(ToValue<K>::get(key));
      items.push_back(ToValue<V>::get(value));
    }
    return IValue::dict(ArrayRef<IValue>(items));
  }
};
template <class K, class V>
struct SchemaText<std::unordered_map<K, V>> : SchemaText<Dict<K, V>> {};
template <class K, class V>
struct Param<std::unordered_map<K, V>> : ValueParam<std::unordered_map<K, V>> {};
template <class K, class V>
inline constexpr bool is_dict<std::unordered_map<K, V>> = true;

}  // namespace lamella::abi
