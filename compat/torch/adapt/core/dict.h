// Dict<K, V>: a dictionary that keeps the order of insertion, with the members of PyTorch's. Copies
// share the entries, until copy() is asked for.
#pragma once
#include <utility>
#include <vector>

#include "lamella/core/error.h"
#include "lamella/core/shared_entries.h"

namespace lamella {

class ValueTypePtr;

// One entry, with the members of PyTorch's entries beside those of a pair.
template <class K, class V>
class DictEntry {
 public:
  DictEntry(K key, V value) : key_(std::move(key)), value_(std::move(value)) {}
  const K& key() const { return key_; }
  const V& value() const { return value_; }
  void setValue(V value) const { value_ = std::move(value); }

 private:
  K key_;
  mutable V value_;
};

// Searches entry by entry: dictionaries that operators take are short.
template <class K, class V>
class Dict {
 public:
  using key_type = K;
  using mapped_type = V;
  Dict() = default;
  // An empty dictionary; the types are what K and V say.
  Dict(const ValueTypePtr&, const ValueTypePtr&) {}

  using iterator = typename std::vector<DictEntry<K, V>>::const_iterator;

  size_t size() const { return entries_->size(); }
  bool empty() const { return entries_->empty(); }
  iterator begin() const { return entries_->begin(); }
  iterator end() const { return entries_->end(); }
  iterator find(const K& key) const {
    iterator it = begin();
    while (it != end() && !same(it->key(), key)) ++it;
    return it;
  }
  bool contains(const K& key) const { return find(key) != end(); }
  size_t count(const K& key) const { return contains(key) ? 1 : 0; }
  // std::out_of_range if the key is missing.
  const V& at(const K& key) const {
    iterator it = find(key);
    if (it == end()) detail::throw_out_of_range("Dict: expected a key that it has");
    return it->value();
  }
  // Returns the entry and whether it was inserted; an existing entry is kept unchanged.
  std::pair<iterator, bool> insert(K key, V value) const {
    iterator it = find(key);
    if (it != end()) return {it, false};
    entries_->emplace_back(std::move(key), std::move(value));
    return {end() - 1, true};
  }
  // For arguments from which K and V can be constructed but not converted, such as string_view.
  template <class Key, class Value>
    requires(!(std::is_convertible_v<Key, K> && std::is_convertible_v<Value, V>))
  std::pair<iterator, bool> insert(Key&& key, Value&& value) const {
    return insert(K(std::forward<Key>(key)), V(std::forward<Value>(value)));
  }
  std::pair<iterator, bool> insert_or_assign(K key, V value) const {
    iterator it = find(key);
    if (it == end()) return insert(std::move(key), std::move(value));
    it->setValue(std::move(value));
    return {it, false};
  }
  void erase(iterator it) const { entries_->erase(it); }
  size_t erase(const K& key) const {
    iterator it = find(key);
    if (it == end()) return 0;
    erase(it);
    return 1;
  }
  void clear() const { entries_->clear(); }
  void reserve(size_t count) const { entries_->reserve(count); }
  Dict copy() const {
    Dict twin;
    *twin.entries_ = *entries_;
    return twin;
  }
  // The same keys with equal values, in any order.
  bool operator==(const Dict& other) const {
    if (size() != other.size()) return false;
    for (const auto& entry : *this) {
      iterator it = other.find(entry.key());
      if (it == other.end() || !(it->value() == entry.value())) return false;
    }
    return true;
  }
  size_t use_count() const { return entries_.use_count(); }
  ValueTypePtr keyType() const;
  ValueTypePtr valueType() const;
  // True if both share one set of entries (identity, not equality).
  bool is(const Dict& other) const { return entries_.is(other.entries_); }

 private:
  // Tensors are equal keys if they are the same one.
  static bool same(const K& a, const K& b) {
    if constexpr (requires { a.is_same(b); }) {
      return a.is_same(b);
    } else {
      return a == b;
    }
  }

  detail::SharedEntries<std::vector<DictEntry<K, V>>> entries_;
};

}  // namespace lamella
