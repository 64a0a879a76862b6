// List<T>: an owned list with the members of PyTorch's list class that kernels and backward
// functions use. New code has no need of it: std::vector and ArrayRef do.
#pragma once
#include <vector>

#include "lamella/core/array_ref.h"
#include "lamella/core/ivalue.h"

namespace lamella {

// What List<T>::operator[] gives: the entry, by conversion or by get().
template <class T>
class ListEntry {
 public:
  explicit ListEntry(const T& entry) : entry_(&entry) {}
  const T& get() const { return *entry_; }
  operator const T&() const { return *entry_; }  // NOLINT: implicit

 private:
  const T* entry_;
};

template <class T>
class List {
 public:
  using const_iterator = typename std::vector<T>::const_iterator;

  List() = default;
  List(std::initializer_list<T> entries) : entries_(entries) {}
  List(ArrayRef<T> entries) : entries_(entries.begin(), entries.end()) {}  // NOLINT: implicit
  explicit List(std::vector<T> entries) : entries_(std::move(entries)) {}

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  // IndexError if there is none.
  const T& get(size_t i) const {
    LAMELLA_CHECK_INDEX(i < size(), "List: expected an index below ", size(), ", got ", i);
    return entries_[i];
  }
  ListEntry<T> operator[](size_t i) const { return ListEntry<T>(get(i)); }
  void push_back(T entry) { entries_.push_back(std::move(entry)); }
  void reserve(size_t count) { entries_.reserve(count); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  const std::vector<T>& vec() const { return entries_; }

 private:
  std::vector<T> entries_;
};

inline List<IValue> IValue::toList() const {
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
