// List<T>: an owned list with the members of PyTorch's list class that kernels and backward
// functions use. Copies share the entries until copy() is called. New code should use std::vector
// or ArrayRef instead.
#pragma once
#include <iterator>
#include <vector>

#include "lamella/core/array_ref.h"
#include "lamella/core/ivalue.h"
#include "lamella/core/shared_entries.h"

namespace lamella {

// What List<T>::operator[] gives: the entry, by conversion or by get(); assignment writes it.
template <class T>
class ListEntry {
 public:
  using Reference = typename std::vector<T>::reference;
  explicit ListEntry(Reference entry) : entry_(entry) {}
  ListEntry(const ListEntry&) = default;
  T get() const { return entry_; }
  operator T() const { return entry_; }  // NOLINT: implicit
  ListEntry& operator=(const ListEntry& other) { return *this = other.get(); }
  ListEntry& operator=(T value) {
    entry_ = std::move(value);
    return *this;
  }
  bool operator==(const T& value) const { return get() == value; }
  friend void swap(ListEntry a, ListEntry b) {
    T kept = a.get();
    a = b.get();
    b = std::move(kept);
  }

 private:
  Reference entry_;
};

// Goes over the entries of a List, which it gives as ListEntry.
template <class T>
class ListIterator {
 public:
  using Inner = typename std::vector<T>::iterator;
  using iterator_category = std::random_access_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using reference = ListEntry<T>;
  using pointer = void;

  ListIterator() = default;
  explicit ListIterator(Inner inner) : inner_(inner) {}
  Inner inner() const { return inner_; }
  reference operator*() const { return reference(*inner_); }
  reference operator[](difference_type n) const { return reference(inner_[n]); }
  const T* operator->() const { return &*inner_; }
  ListIterator& operator++() { return *this += 1; }
  ListIterator& operator--() { return *this -= 1; }
  ListIterator operator++(int) { return ListIterator(inner_++); }
  ListIterator operator--(int) { return ListIterator(inner_--); }
  ListIterator& operator+=(difference_type n) {
    inner_ += n;
    return *this;
  }
  ListIterator& operator-=(difference_type n) { return *this += -n; }
  ListIterator operator+(difference_type n) const { return ListIterator(inner_ + n); }
  ListIterator operator-(difference_type n) const { return ListIterator(inner_ - n); }
  difference_type operator-(const ListIterator& other) const { return inner_ - other.inner_; }
  bool operator==(const ListIterator& other) const { return inner_ == other.inner_; }
  auto operator<=>(const ListIterator& other) const { return inner_ <=> other.inner_; }

 private:
  Inner inner_;
};

// What operator[] of a constant list gives. ATen/core/List.h has it for optional texts.
template <class T>
struct ConstListEntry {
  using type = typename std::vector<T>::const_reference;
  static type of(type entry) { return entry; }
};

template <class T>
class List {
 public:
  using value_type = T;
  using size_type = size_t;
  using iterator = ListIterator<T>;
  using const_iterator = iterator;
  using internal_reference_type = ListEntry<T>;
  using const_reference = typename std::vector<T>::const_reference;

  List() = default;
  List(std::initializer_list<T> entries) : List(std::vector<T>(entries)) {}
  List(ArrayRef<T> entries) : List(entries.begin(), entries.end()) {}  // NOLINT: implicit
  explicit List(std::vector<T> entries) : entries_(std::move(entries)) {}
  // An empty list; the type is what T says.
  explicit List(const ValueTypePtr&) {}
  template <class Iterator>
  List(Iterator first, Iterator last) : List(std::vector<T>(first, last)) {}

  size_t size() const { return entries_->size(); }
  bool empty() const { return entries_->empty(); }
  // std::out_of_range if there is none.
  const_reference get(size_t i) const {
    check(i);
    return (*entries_)[i];
  }
  T extract(size_t i) const {
    check(i);
    T taken = T();
    std::swap(taken, static_cast<typename std::vector<T>::reference>((*entries_)[i]));
    return taken;
  }
  void set(size_t i, T entry) const {
    check(i);
    (*entries_)[i] = std::move(entry);
  }
  ListEntry<T> operator[](size_t i) {
    check(i);
    return ListEntry<T>((*entries_)[i]);
  }
  typename ConstListEntry<T>::type operator[](size_t i) const {
    return ConstListEntry<T>::of(get(i));
  }
  void push_back(T entry) const { entries_->push_back(std::move(entry)); }
  template <class... A>
  void emplace_back(A&&... arguments) const {
    entries_->emplace_back(std::forward<A>(arguments)...);
  }
  void append(const List& other) const {
    // `other` may be this list, so its size is read once.
    for (size_t i = 0, count = other.size(); i < count; ++i) push_back(other.get(i));
  }
  iterator insert(iterator at, T entry) const {
    return iterator(entries_->insert(at.inner(), std::move(entry)));
  }
  template <class... A>
  iterator emplace(iterator at, A&&... arguments) const {
    return iterator(entries_->emplace(at.inner(), std::forward<A>(arguments)...));
  }
  iterator erase(iterator at) const { return iterator(entries_->erase(at.inner())); }
  iterator erase(iterator first, iterator last) const {
    return iterator(entries_->erase(first.inner(), last.inner()));
  }
  void pop_back() const { entries_->pop_back(); }
  void clear() const { entries_->clear(); }
  void reserve(size_t count) const { entries_->reserve(count); }
  void resize(size_t count) const { entries_->resize(count); }
  void resize(size_t count, const T& entry) const { entries_->resize(count, entry); }
  List copy() const { return List(vec()); }
  // True if both share one set of entries (identity, not equality).
  bool is(const List& other) const { return entries_.is(other.entries_); }
  size_t use_count() const { return entries_.use_count(); }
  iterator begin() const { return iterator(entries_->begin()); }
  iterator end() const { return iterator(entries_->end()); }
  const std::vector<T>& vec() const { return *entries_; }
  ValueTypePtr elementType() const;
  bool operator==(const List& other) const { return vec() == other.vec(); }

 private:
  void check(size_t i) const {
    if (i >= size())
      detail::throw_out_of_range("List: expected an index below ", size(), ", got ", i);
  }

  detail::SharedEntries<std::vector<T>> entries_;
};

template <int>
List<IValue> IValue::toList() const {
  List<IValue> list;
  list.reserve(value_.size);
  switch (value_.tag) {
    case LAMELLA_INT_LIST:
      for (int64_t number : toIntList()) list.push_back(number);
      break;
    case LAMELLA_DOUBLE_LIST:
      for (double number : toDoubleList()) list.push_back(number);
      break;
    case LAMELLA_BOOL_LIST:
      for (size_t i = 0; i < value_.size; ++i) {
        list.push_back(static_cast<const uint8_t*>(value_.as.pointer)[i] != 0);
      }
      break;
    case LAMELLA_TENSOR_LIST:
      for (const TensorBase& tensor : toTensorList<TensorBase>()) list.push_back(tensor);
      break;
    default:
      for (const IValue& entry : elements()) list.push_back(entry);
  }
  return list;
}

}  // namespace lamella
