// OrderedDict: keys and values in insertion order, as modules keep their parameters and buffers.
#pragma once
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "lamella/core/error.h"

namespace lamella::nn {

// Entries by key, in insertion order. at() and operator[] raise IndexError for a missing key.
template <class Key, class Value>
class OrderedDict {
 public:
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    const Key& key() const { return pair_.first; }
    const Value& value() const { return pair_.second; }
    Value& value() { return pair_.second; }
    Value& operator*() { return pair_.second; }
    const Value& operator*() const { return pair_.second; }
    Value* operator->() { return &pair_.second; }
    const Value* operator->() const { return &pair_.second; }
    const std::pair<Key, Value>& pair() const { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };

  explicit OrderedDict(std::string what = "Key") : what_(std::move(what)) {}
  OrderedDict(std::initializer_list<Item> items) : items_(items), what_("Key") {}

  // The word that errors use for a key.
  const std::string& key_description() const { return what_; }
  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  const Item& front() const { return const_cast<OrderedDict*>(this)->front(); }
  const Item& back() const { return const_cast<OrderedDict*>(this)->back(); }
  Item& front() { return nonempty("front").front(); }
  Item& back() { return nonempty("back").back(); }
  template <class K = Key>
  const Value* find(const K& key) const {
    for (const Item& item : items_) {
      if (item.key() == key) return &item.value();
    }
    return nullptr;
  }
  template <class K = Key>
  Value* find(const K& key) {
    return const_cast<Value*>(std::as_const(*this).find(key));
  }
  template <class K = Key>
  bool contains(const K& key) const {
    return find(key) != nullptr;
  }
  template <class K = Key>
    requires(!std::is_integral_v<K>)
  const Value& operator[](const K& key) const {
    const Value* value = find(key);
    LAMELLA_CHECK_INDEX(value != nullptr, "nn: expected one of the names, got ", what_, " '", key,
                        "'");
    return *value;
  }
  template <class K = Key>
    requires(!std::is_integral_v<K>)
  Value& operator[](const K& key) {
    return const_cast<Value&>(std::as_const(*this)[key]);
  }
  const Item& operator[](size_t i) const { return items_[i]; }
  Item& operator[](size_t i) { return items_[i]; }
  Value& insert(Key key, Value value) {
    LAMELLA_CHECK(!contains(key), "OrderedDict: insert: expected a new key, got ", what_, " '", key,
                  "' again");
    items_.emplace_back(std::move(key), std::move(value));
    return items_.back().value();
  }
  // Inserts the entries of another dictionary, whose keys must be new.
  void update(const OrderedDict& other) {
    for (const Item& item : other) insert(item.key(), item.value());
  }
  template <class K = Key>
  void erase(const K& key) {
    for (auto it = items_.begin(); it != items_.end(); ++it) {
      if (it->key() == key) return void(items_.erase(it));
    }
  }
  void clear() { items_.clear(); }
  void reserve(size_t size) { items_.reserve(size); }
  const std::vector<Item>& items() const { return items_; }
  std::vector<Key> keys() const {
    std::vector<Key> list;
    for (const Item& item : items_) list.push_back(item.key());
    return list;
  }
  std::vector<Value> values() const {
    std::vector<Value> list;
    for (const Item& item : items_) list.push_back(item.value());
    return list;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> list;
    for (const Item& item : items_) list.push_back(item.pair());
    return list;
  }

 private:
  std::vector<Item>& nonempty(const char* what) {
    LAMELLA_CHECK(!items_.empty(), "OrderedDict: ", what, ": expected an entry, got none");
    return items_;
  }
  std::vector<Item> items_;
  std::string what_;
};
template <class Value>
using Named = OrderedDict<std::string, Value>;

}  // namespace lamella::nn
