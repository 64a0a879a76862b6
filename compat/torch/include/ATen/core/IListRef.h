// ITensorListRef, IOptTensorListRef: borrowed lists of tensors and of optional tensors, whichever
// class holds the entries. None may outlive them.
#pragma once
#include <ATen/core/List.h>
#include <functional>

#include "lamella/api/optional_tensor_ref.h"

namespace lamella {

namespace detail {
// The entries of a List, of an ArrayRef and of what materialize() gives, and how each is read.
template <class T>
struct ListRefEntry {
  using Boxed = T;
  using Whole = std::reference_wrapper<const T>;
  using Reference = const T&;
  static const T& read(const T& entry) { return entry; }
};
template <>
struct ListRefEntry<OptionalTensorRef> {
  using Boxed = std::optional<Tensor>;
  using Whole = OptionalTensorRef;
  using Reference = OptionalTensorRef;
  static OptionalTensorRef read(const OptionalTensorRef& entry) { return entry; }
  static OptionalTensorRef read(const Boxed& entry) {
    return entry ? OptionalTensorRef(*entry) : OptionalTensorRef();
  }
};
enum class ListRefKind : uint8_t { kNone, kBoxed, kUnboxed, kMaterialized };
}  // namespace detail

template <class T>
class IListRefIterator {
  using Entry = detail::ListRefEntry<T>;

 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using reference = typename Entry::Reference;
  using pointer = void;

  IListRefIterator() = default;
  IListRefIterator(const void* entries, detail::ListRefKind kind, size_t at)
      : entries_(entries), at_(at), kind_(kind) {}
  reference operator*() const {
    using Kind = detail::ListRefKind;
    LAMELLA_CHECK(kind_ != Kind::kNone, "IListRef: expected a list of tensors, got None");
    if (kind_ == Kind::kBoxed) return Entry::read(entry<typename Entry::Boxed>());
    if (kind_ == Kind::kUnboxed) return Entry::read(entry<T>());
    return Entry::read(entry<typename Entry::Whole>());
  }
  IListRefIterator& operator++() { return ++at_, *this; }
  IListRefIterator& operator--() { return --at_, *this; }
  IListRefIterator operator++(int) { return {entries_, kind_, at_++}; }
  IListRefIterator operator--(int) { return {entries_, kind_, at_--}; }
  bool operator==(const IListRefIterator& other) const = default;

 private:
  template <class E>
  const E& entry() const {
    return static_cast<const E*>(entries_)[at_];
  }
  const void* entries_ = nullptr;
  size_t at_ = 0;
  detail::ListRefKind kind_ = detail::ListRefKind::kNone;
};

template <class T>
using MaterializedIListRef = std::vector<typename detail::ListRefEntry<T>::Whole>;

template <class T>
class IListRef {
  using Kind = detail::ListRefKind;

 public:
  using boxed_type = List<typename detail::ListRefEntry<T>::Boxed>;
  using unboxed_type = ArrayRef<T>;
  using iterator = IListRefIterator<T>;
  using const_iterator = iterator;
  using value_type = typename iterator::value_type;

  IListRef() = default;
  IListRef(const boxed_type& list) : IListRef(list.vec(), Kind::kBoxed) {}  // NOLINT: implicit
  template <class Entries = MaterializedIListRef<T>>
    requires(!std::is_constructible_v<unboxed_type, Entries>)
  IListRef(const Entries& list) : IListRef(list, Kind::kMaterialized) {}  // NOLINT
  template <class... A>
    requires std::is_constructible_v<unboxed_type, A...>
  IListRef(A&&... entries)  // NOLINT: implicit
      : IListRef(unboxed_type(std::forward<A>(entries)...), Kind::kUnboxed) {}
  IListRef(const std::initializer_list<T>& entries)  // NOLINT: implicit
      : IListRef(unboxed_type(entries), Kind::kUnboxed) {}

  bool isNone() const { return kind_ == Kind::kNone; }
  bool isBoxed() const { return kind_ == Kind::kBoxed; }
  bool isUnboxed() const { return kind_ == Kind::kUnboxed; }
  bool isMaterialized() const { return kind_ == Kind::kMaterialized; }
  size_t size() const {
    LAMELLA_CHECK(!isNone(), "IListRef: expected a list of tensors, got None");
    return size_;
  }
  bool empty() const { return size() == 0; }
  iterator begin() const { return {entries_, kind_, 0}; }
  iterator end() const { return {entries_, kind_, size_}; }
  typename iterator::reference front() const { return *begin(); }
  MaterializedIListRef<T> materialize() const { return {begin(), end()}; }

 private:
  template <class Entries>
  IListRef(const Entries& entries, Kind kind)
      : entries_(entries.data()), size_(entries.size()), kind_(kind) {}

  const void* entries_ = nullptr;
  size_t size_ = 0;
  Kind kind_ = Kind::kNone;
};

using ITensorListRef = IListRef<Tensor>;
using ITensorListRefIterator = IListRefIterator<Tensor>;
using MaterializedITensorListRef = MaterializedIListRef<Tensor>;
using IOptTensorListRef = IListRef<OptionalTensorRef>;
using IOptTensorListRefIterator = IListRefIterator<OptionalTensorRef>;
using MaterializedIOptTensorListRef = MaterializedIListRef<OptionalTensorRef>;

}  // namespace lamella
