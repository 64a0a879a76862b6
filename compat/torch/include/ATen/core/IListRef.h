// ITensorListRef, IOptTensorListRef: borrowed lists of tensors and of optional tensors, whichever
// class holds the entries. None may outlive them.
#pragma once
#include <ATen/core/List.h>
#include <torch/standard_headers.h>

#include "lamella/api/optional_tensor_ref.h"

namespace lamella {

template <class T>
class IListRef {
  static constexpr bool kOptional = std::is_same_v<T, OptionalTensorRef>;
  enum class Kind : uint8_t { kNone, kBoxed, kUnboxed, kMaterialized };
  // The entries of a List, and of what materialize() gives.
  using Boxed = std::conditional_t<kOptional, std::optional<Tensor>, T>;
  using Whole = std::conditional_t<kOptional, T, std::reference_wrapper<const T>>;
  using Reference = std::conditional_t<kOptional, T, const T&>;
  struct Borrowed {
    template <class E>
    const E& entry(size_t at) const {
      return static_cast<const E*>(first)[at];
    }
    Reference read(size_t at) const {
      LAMELLA_CHECK(kind != Kind::kNone, "IListRef: expected a list of tensors, got None");
      if (kind == Kind::kMaterialized) return entry<Whole>(at);
      if (kind == Kind::kUnboxed) return entry<T>(at);
      const Boxed& boxed = entry<Boxed>(at);
      if constexpr (kOptional) {
        return boxed ? T(*boxed) : T();
      } else {
        return boxed;
      }
    }
    bool operator==(const Borrowed&) const = default;
    const void* first = nullptr;
    size_t size = 0;
    Kind kind = Kind::kNone;
  };

 public:
  using Materialized = std::vector<Whole>;
  class iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using reference = Reference;
    using pointer = void;
    iterator() = default;
    iterator(const Borrowed& list, size_t at) : list_(list), at_(at) {}
    reference operator*() const { return list_.read(at_); }
    iterator& operator++() { return ++at_, *this; }
    iterator& operator--() { return --at_, *this; }
    iterator operator++(int) { return {list_, at_++}; }
    iterator operator--(int) { return {list_, at_--}; }
    bool operator==(const iterator& other) const = default;

   private:
    Borrowed list_;
    size_t at_ = 0;
  };
  using const_iterator = iterator;
  using value_type = T;

  IListRef() = default;
  IListRef(const List<Boxed>& list) : IListRef(list.vec(), Kind::kBoxed) {}  // NOLINT: implicit
  template <class Entries = Materialized>
    requires(!std::is_constructible_v<ArrayRef<T>, Entries>)
  IListRef(const Entries& list) : IListRef(list, Kind::kMaterialized) {}  // NOLINT
  template <class... A>
    requires std::is_constructible_v<ArrayRef<T>, A...>
  IListRef(A&&... entries)  // NOLINT: implicit
      : IListRef(ArrayRef<T>(std::forward<A>(entries)...), Kind::kUnboxed) {}
  IListRef(const std::initializer_list<T>& entries)  // NOLINT: implicit
      : IListRef(ArrayRef<T>(entries), Kind::kUnboxed) {}

  bool isNone() const { return list_.kind == Kind::kNone; }
  bool isBoxed() const { return list_.kind == Kind::kBoxed; }
  bool isUnboxed() const { return list_.kind == Kind::kUnboxed; }
  bool isMaterialized() const { return list_.kind == Kind::kMaterialized; }
  size_t size() const {
    LAMELLA_CHECK(!isNone(), "IListRef: expected a list of tensors, got None");
    return list_.size;
  }
  bool empty() const { return size() == 0; }
  iterator begin() const { return {list_, 0}; }
  iterator end() const { return {list_, list_.size}; }
  typename iterator::reference front() const { return *begin(); }
  Materialized materialize() const { return {begin(), end()}; }

 private:
  template <class Entries>
  IListRef(const Entries& entries, Kind kind) : list_{entries.data(), entries.size(), kind} {}

  Borrowed list_;
};

using ITensorListRef = IListRef<Tensor>;
using ITensorListRefIterator = ITensorListRef::iterator;
using MaterializedITensorListRef = ITensorListRef::Materialized;
using IOptTensorListRef = IListRef<OptionalTensorRef>;
using IOptTensorListRefIterator = IOptTensorListRef::iterator;

}  // namespace lamella
