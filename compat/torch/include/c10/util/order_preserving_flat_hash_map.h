// ska_ordered::order_preserving_flat_hash_map: a hash map that iterates in insertion order, built
// from standard containers.
#pragma once
#include <c10/lamella_names.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <list>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace ska_ordered {

// Iterators stay valid until their entry is erased. The allocator parameter exists for the
// signature only; memory comes from the standard allocator.
template <class K, class V, class Hash = std::hash<K>, class Equal = std::equal_to<K>,
          class Allocator = std::allocator<std::pair<K, V>>>
class order_preserving_flat_hash_map {
 public:
  using key_type = K;
  using mapped_type = V;
  using value_type = std::pair<K, V>;
  using iterator = typename std::list<value_type>::iterator;
  using const_iterator = typename std::list<value_type>::const_iterator;
  using size_type = size_t;

  order_preserving_flat_hash_map() = default;
  explicit order_preserving_flat_hash_map(size_t buckets) { reserve(buckets); }
  order_preserving_flat_hash_map(std::initializer_list<value_type> entries) {
    insert(entries.begin(), entries.end());
  }
  order_preserving_flat_hash_map(const order_preserving_flat_hash_map& other) {
    insert(other.begin(), other.end());
  }
  order_preserving_flat_hash_map(order_preserving_flat_hash_map&& other) noexcept { swap(other); }
  order_preserving_flat_hash_map& operator=(order_preserving_flat_hash_map other) noexcept {
    swap(other);
    return *this;
  }
  void swap(order_preserving_flat_hash_map& other) noexcept {
    entries_.swap(other.entries_);
    places_.swap(other.places_);
  }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  iterator find(const K& key) {
    auto place = places_.find(key);
    return place == places_.end() ? end() : place->second;
  }
  const_iterator find(const K& key) const {
    return const_cast<order_preserving_flat_hash_map*>(this)->find(key);
  }
  bool contains(const K& key) const { return count(key) != 0; }
  size_t count(const K& key) const { return places_.count(key); }
  // Throws std::out_of_range if the key is missing.
  V& at(const K& key) { return places_.at(key)->second; }
  const V& at(const K& key) const { return places_.at(key)->second; }
  V& operator[](const K& key) { return emplace(key, V()).first->second; }
  // The bool is false if the key exists; its entry is then kept.
  std::pair<iterator, bool> insert(const value_type& entry) {
    return emplace(entry.first, entry.second);
  }
  template <class Iterator>
  void insert(Iterator first, Iterator last) {
    for (; first != last; ++first) emplace(first->first, first->second);
  }
  template <class Key, class Value>
  std::pair<iterator, bool> emplace(Key&& key, Value&& value) {
    if (auto place = places_.find(key); place != places_.end()) return {place->second, false};
    entries_.emplace_back(std::forward<Key>(key), std::forward<Value>(value));
    iterator added = std::prev(entries_.end());
    places_.emplace(added->first, added);
    return {added, true};
  }
  template <class Value>
  std::pair<iterator, bool> insert_or_assign(const K& key, Value&& value) {
    auto result = emplace(key, V());
    result.first->second = std::forward<Value>(value);
    return result;
  }
  iterator erase(const_iterator at) {
    places_.erase(at->first);
    return entries_.erase(at);
  }
  iterator erase(const_iterator first, const_iterator last) {
    while (first != last) first = erase(first);
    return entries_.erase(first, first);
  }
  std::pair<iterator, iterator> equal_range(const K& key) {
    iterator first = find(key);
    return {first, first == end() ? first : std::next(first)};
  }
  // The same entries in any order.
  bool operator==(const order_preserving_flat_hash_map& other) const {
    return std::is_permutation(begin(), end(), other.begin(), other.end());
  }
  size_t erase(const K& key) {
    const size_t before = size();
    if (iterator at = find(key); at != end()) erase(at);
    return before - size();
  }
  void clear() {
    places_.clear();
    entries_.clear();
  }
  void reserve(size_t count) { places_.reserve(count); }

 private:
  // The call operator of PyTorch's hashes need not be constant.
  struct ConstantHash {
    size_t operator()(const K& key) const { return hash(key); }
    mutable Hash hash;
  };

  std::list<value_type> entries_;
  std::unordered_map<K, iterator, ConstantHash, Equal> places_;
};

}  // namespace ska_ordered
