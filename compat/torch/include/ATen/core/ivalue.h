// What PyTorch's interpreter keeps in a c10::IValue and asks of it: futures, streams, storages,
// objects with attributes, enumerators, weak references, identity and aliases.
#pragma once
#include <ATen/core/jit_type.h>
#include <c10/core/Storage.h>
#include <torch/standard_headers.h>

#include <condition_variable>

#include "lamella/core/stream.h"

namespace lamella {

// A plain value as an object.
template <class T>
class ObjectOfValue : public intrusive_ptr_target {
 public:
  explicit ObjectOfValue(T held) : value(std::move(held)) {}
  bool equal_to(const intrusive_ptr_target& other) const override {
    const T& its = static_cast<const ObjectOfValue&>(other).value;
    if constexpr (requires { value == its; }) {
      return value == its;
    } else {
      return value.is_alias_of(its);
    }
  }
  T value;
};

// A value that comes later, or the error that came instead.
class FutureOfValue : public intrusive_ptr_target {
 public:
  struct FutureError final : std::exception {
    explicit FutureError(std::string text) : text_(std::move(text)) {}
    const char* what() const noexcept override { return text_.c_str(); }

   private:
    std::string text_;
  };

  explicit FutureOfValue(ValueTypePtr type, const std::vector<Device>& = {}) : type_(type) {}
  bool completed() const {
    std::lock_guard lock(mutex_);
    return completed_;
  }
  bool hasError() const { return exception_ptr() != nullptr; }
  std::exception_ptr exception_ptr() const {
    std::lock_guard lock(mutex_);
    return error_;
  }
  ValueTypePtr elementType() const { return type_; }
  void markCompleted(IValue value = {}) { complete("markCompleted", std::move(value), nullptr); }
  void setError(std::exception_ptr error) { complete("setError", {}, std::move(error)); }
  void setErrorIfNeeded(std::exception_ptr error) {
    if (!completed()) setError(std::move(error));
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return completed_; });
  }
  void waitAndThrow() const {
    wait();
    value();
  }
  // Throws the error, if there is one.
  IValue value() const {
    std::lock_guard lock(mutex_);
    LAMELLA_CHECK(completed_, "Future: expected a completed one");
    if (error_ != nullptr) std::rethrow_exception(error_);
    return value_;
  }
  const IValue& constValue() const {
    LAMELLA_CHECK(!hasError() && completed(), "Future: expected one that has a value");
    return value_;
  }
  std::string tryRetrieveErrorMessage() const {
    LAMELLA_CHECK(hasError(), "Future: expected one with an error");
    return text_of(exception_ptr());
  }
  // Called with this future when it is completed: at once, if it is so already.
  void addCallback(std::function<void(FutureOfValue&)> callback, bool = false) {
    std::unique_lock lock(mutex_);
    if (!completed_) return callbacks_.push_back(std::move(callback));
    lock.unlock();
    callback(*this);
  }
  // A future of what the callback returns.
  intrusive_ptr<FutureOfValue> then(std::function<IValue(FutureOfValue&)> callback,
                                    ValueTypePtr type) {
    auto next = make_intrusive<FutureOfValue>(type);
    addCallback([next, callback = std::move(callback)](FutureOfValue& future) {
      IValue value;
      try {
        value = callback(future);
      } catch (...) {
        return next->setError(std::current_exception());
      }
      next->markCompleted(std::move(value));
    });
    return next;
  }

 private:
  static std::string text_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& known) {
      return known.what();
    } catch (...) {
      return "an error of unknown type";
    }
  }
  void complete(const char* name, IValue value, std::exception_ptr error) {
    std::unique_lock lock(mutex_);
    LAMELLA_CHECK(error_ == nullptr, name, ": Error already set: ", text_of(error_), "; got ",
                  error != nullptr ? text_of(error) : "a value");
    LAMELLA_CHECK(!completed_, name, ": expected a future that is not completed");
    completed_ = true;
    value_ = std::move(value);
    error_ = std::move(error);
    auto callbacks = std::move(callbacks_);
    lock.unlock();
    done_.notify_all();
    for (auto& callback : callbacks) callback(*this);
  }

  ValueTypePtr type_;
  mutable std::mutex mutex_;
  mutable std::condition_variable done_;
  bool completed_ = false;
  IValue value_;
  std::exception_ptr error_;
  std::vector<std::function<void(FutureOfValue&)>> callbacks_;
};

class BlobOfValue : public intrusive_ptr_target {};

// Types that programs declare, and objects of them.
class ProgramOfTypes {};
class ClassOfValue {
 public:
  explicit ClassOfValue(std::string name) : name_(std::move(name)) {}
  static std::shared_ptr<ClassOfValue> create(std::optional<std::string> name,
                                              std::weak_ptr<ProgramOfTypes>) {
    return std::make_shared<ClassOfValue>(name.value_or(""));
  }
  const std::string& name() const { return name_; }
  size_t numAttributes() const { return attributes_.size(); }
  size_t addAttribute(const std::string& name, ValueTypePtr type) {
    LAMELLA_CHECK(!hasAttribute(name), "addAttribute: ", name_, " has an attribute '", name, "'");
    attributes_.emplace_back(name, type);
    return attributes_.size() - 1;
  }
  std::optional<size_t> findAttributeSlot(const std::string& name) const {
    for (size_t i = 0; i < attributes_.size(); ++i) {
      if (attributes_[i].first == name) return i;
    }
    return std::nullopt;
  }
  bool hasAttribute(const std::string& name) const { return findAttributeSlot(name).has_value(); }
  size_t getAttributeSlot(const std::string& name) const {
    auto slot = findAttributeSlot(name);
    LAMELLA_CHECK(slot.has_value(), name_, ": expected an attribute, got '", name, "'");
    return *slot;
  }

 private:
  std::string name_;
  std::vector<std::pair<std::string, ValueTypePtr>> attributes_;
};
struct StrongClass {
  StrongClass(std::shared_ptr<ProgramOfTypes> program, std::shared_ptr<ClassOfValue> type)
      : cu_(std::move(program)), type_(std::move(type)) {}
  std::shared_ptr<ProgramOfTypes> cu_;
  std::shared_ptr<ClassOfValue> type_;
};
class AttributesOfValue : public intrusive_ptr_target {
 public:
  AttributesOfValue(StrongClass type, size_t slots) : type_(std::move(type)), slots_(slots) {}
  static intrusive_ptr<AttributesOfValue> create(StrongClass type, size_t slots) {
    return make_intrusive<AttributesOfValue>(std::move(type), slots);
  }
  std::shared_ptr<ClassOfValue> type() const { return type_.type_; }
  const std::string& name() const { return type_.type_->name(); }
  const std::vector<IValue>& slots() const { return slots_; }
  void setSlot(size_t slot, IValue value) {
    if (slot >= slots_.size()) slots_.resize(slot + 1);
    slots_[slot] = std::move(value);
  }
  const IValue& getSlot(size_t slot) const { return slots_.at(slot); }
  IValue getAttr(const std::string& name) const { return getSlot(slot_of(name)); }
  void setAttr(const std::string& name, IValue value) { setSlot(slot_of(name), std::move(value)); }
  // The type keeps the attribute, and the slots behind it move.
  void unsafeRemoveAttr(const std::string& name) {
    LAMELLA_CHECK(slot_of(name) < slots_.size(), this->name(), ": expected a slot of '", name, "'");
    slots_.erase(slots_.begin() + static_cast<int64_t>(slot_of(name)));
  }

 private:
  size_t slot_of(const std::string& name) const { return type_.type_->getAttributeSlot(name); }
  StrongClass type_;
  std::vector<IValue> slots_;
};
struct EnumType {
  using Entries = std::vector<std::pair<std::string, IValue>>;
  static std::shared_ptr<EnumType> create(std::string name, ValueTypePtr value, Entries entries,
                                          std::weak_ptr<ProgramOfTypes>) {
    return std::make_shared<EnumType>(EnumType{std::move(name), value, std::move(entries)});
  }
  std::string name;
  ValueTypePtr value_type;
  Entries entries;
};
class EnumOfValue : public intrusive_ptr_target {
 public:
  EnumOfValue(std::shared_ptr<EnumType> type, std::string name, IValue value)
      : type_(std::move(type)), name_(std::move(name)), value_(std::move(value)) {}
  const std::shared_ptr<EnumType>& type() const { return type_; }
  const std::string& name() const { return name_; }
  const IValue& value() const { return value_; }
  bool equal_to(const intrusive_ptr_target& other) const override {
    const auto& its = static_cast<const EnumOfValue&>(other);
    return type_->name == its.type_->name && name_ == its.name_;
  }

 private:
  std::shared_ptr<EnumType> type_;
  std::string name_;
  IValue value_;
};

#define LAMELLA_NAME_CLASS(Class, text) \
  template <>                           \
  inline const char* detail::class_name<Class> = text;
LAMELLA_NAME_CLASS(ObjectOfValue<Stream>, "Stream")
LAMELLA_NAME_CLASS(ObjectOfValue<TensorMemory>, "Storage")
LAMELLA_NAME_CLASS(FutureOfValue, "Future")
LAMELLA_NAME_CLASS(BlobOfValue, "Blob")
LAMELLA_NAME_CLASS(AttributesOfValue, "Object")
LAMELLA_NAME_CLASS(EnumOfValue, "Enum")
#undef LAMELLA_NAME_CLASS
template <>
inline constexpr bool detail::converts_to_value<Stream> = true;
template <>
inline constexpr bool detail::converts_to_value<TensorMemory> = true;
template <class T>
  requires(std::is_same_v<T, Stream> || std::is_same_v<T, TensorMemory>)
struct abi::ToValue<T> {
  static IValue get(const T& value) { return IValue(make_intrusive<ObjectOfValue<T>>(value)); }
};
template <>
inline constexpr bool detail::converts_to_value<c10::Storage> = true;
template <>
struct abi::ToValue<c10::Storage> : abi::ToValue<TensorMemory> {};

// ---- Identity, aliases, hashes -----------------------------------------------------------------

namespace detail {
// The address of a value's object, or of the memory of a tensor; NULL for plain values.
inline const void* alias_of(const IValue& value) {
  if (!value.isPtrType()) return nullptr;
  if (value.isTensor() && value.value().as.tensor->storage != nullptr) {
    return value.value().as.tensor->storage;
  }
  return value.internalToPointer();
}
}  // namespace detail
template <int>
bool IValue::is(const IValue& other) const {
  const bool none = isNone() || (isTensor() && value_.as.tensor == nullptr);
  if (none) return other.isNone() || (other.isTensor() && other.value_.as.tensor == nullptr);
  if (isPtrType()) return tag() == other.tag() && value_.as.pointer == other.value_.as.pointer;
  return *this == other;
}
template <int>
bool IValue::isAliasOf(const IValue& other) const {
  return tag() == other.tag() && isPtrType() && detail::alias_of(*this) == detail::alias_of(other);
}
// The result for two tensors is a tensor of bools, one for each element.
template <int>
IValue IValue::equals(const IValue& other) const {
  if (isTensor() && other.isTensor()) return toTensor().eq(other.toTensor());
  return *this == other;
}
template <int>
size_t IValue::hash() const {
  const auto mixed = [](size_t a, size_t b) { return a ^ (b + 0x9e3779b9 + (a << 6) + (a >> 2)); };
  switch (tag()) {
    case LAMELLA_NONE:
      return 0;
    case LAMELLA_DOUBLE:
      return std::hash<double>()(value_.as.d);
    case LAMELLA_STRING:
      return std::hash<std::string_view>()(toStringView());
    case LAMELLA_TUPLE: {
      size_t all = value_.size;
      for (const IValue& entry : elements()) all = mixed(all, entry.hash());
      return all;
    }
    case LAMELLA_TENSOR:
    case LAMELLA_BOOL:
    case LAMELLA_INT:
    case LAMELLA_DEVICE:
      return mixed(tag(), std::hash<int64_t>()(value_.as.i));
    default:
      LAMELLA_CHECK_TYPE(isStorage(), "hash: expected a value that has a hash, got one of type ",
                         detail::type_text(*this));
      return reinterpret_cast<size_t>(toStorage().unsafeGetStorageImpl());
  }
}

struct HashOfAlias {
  size_t operator()(const IValue& value) const {
    return reinterpret_cast<size_t>(detail::alias_of(value)) >> 4;
  }
};
struct SameAlias {
  bool operator()(const IValue& a, const IValue& b) const { return a.isAliasOf(b); }
};
struct IValue::HashAliasedIValues : std::unordered_set<IValue, HashOfAlias, SameAlias> {};
template <int lazy_>
void IValue::getSubValues(detail::Lazily<lazy_, HashAliasedIValues>& values) const {
  const auto add = [&](const auto& entries) {
    values.insert(*this);
    for (const IValue& entry : entries) entry.getSubValues(values);
  };
  if (isTensor()) {
    values.insert(*this);
  } else if (isList()) {
    add(toListRef());
  } else if (isTuple() || isGenericDict()) {
    add(elements());
  } else if (holds<AttributesOfValue>()) {
    add(toCustomClass<AttributesOfValue>()->slots());
  }
}

// A value that does not keep its tensor or object alive; all others are kept.
class WeakIValue {
 public:
  WeakIValue() = default;
  WeakIValue(const IValue& value) {  // NOLINT: implicit
    if (value.isTensor()) {
      tensor_ = WeakTensorRef(value.toTensor<TensorBase>());
      is_tensor_ = true;
    } else if (value.isCustomClass()) {
      using Object = intrusive_ptr<intrusive_ptr_target>;
      auto& object = const_cast<intrusive_ptr_target&>(intrusive_ptr_target::of(value));
      object_ = weak_intrusive_ptr<intrusive_ptr_target>(Object::reclaim_copy(&object));
    } else {
      value_ = value;
    }
  }
  // None where it has ended.
  IValue lock() const {
    if (is_tensor_) return tensor_.expired() ? IValue() : IValue(tensor_.lock());
    auto object = object_.lock();
    return object.defined() ? object->boxed_again() : value_;
  }
  size_t use_count() const { return is_tensor_ ? tensor_.use_count() : object_.use_count(); }
  size_t weak_use_count() const {
    return is_tensor_ ? tensor_.weak_use_count() : object_.weak_use_count();
  }

 private:
  bool is_tensor_ = false;
  WeakTensorRef tensor_;
  weak_intrusive_ptr<intrusive_ptr_target> object_{intrusive_ptr<intrusive_ptr_target>()};
  IValue value_;
};

class TupleElements {
 public:
  TupleElements() = default;
  explicit TupleElements(std::vector<IValue> entries) : entries_(std::move(entries)) {}
  template <class... T>
    requires(sizeof...(T) > 0 && (std::is_convertible_v<T, IValue> && ...))
  explicit TupleElements(T... entries) : entries_{IValue(std::move(entries))...} {}
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  IValue& operator[](size_t i) { return entries_[i]; }
  const IValue& operator[](size_t i) const { return entries_[i]; }
  IValue& at(size_t i) { return entries_.at(i); }
  const IValue& at(size_t i) const { return entries_.at(i); }
  const IValue& back() const { return entries_.back(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  void setContents(std::vector<IValue> entries) { entries_ = std::move(entries); }
  const std::vector<IValue>& vec() const& { return entries_; }
  std::vector<IValue> vec() && { return std::move(entries_); }
  operator ArrayRef<IValue>() const { return entries_; }  // NOLINT

 private:
  std::vector<IValue> entries_;
};

}  // namespace lamella

namespace caffe2 {
using Blob = lamella::BlobOfValue;
}  // namespace caffe2
namespace torch::jit {
using CompilationUnit = lamella::ProgramOfTypes;
}  // namespace torch::jit
namespace c10 {
using ClassType = lamella::ClassOfValue;
using ClassTypePtr = std::shared_ptr<ClassType>;
using CompilationUnit = lamella::ProgramOfTypes;
using StrongTypePtr = lamella::StrongClass;
namespace ivalue {
using Future = lamella::FutureOfValue;
using Object = lamella::AttributesOfValue;
using EnumHolder = lamella::EnumOfValue;
using lamella::TupleElements;
}  // namespace ivalue
}  // namespace c10
