// AutogradContext: what a Function keeps between its forward and its backward; SavedVariable.
// Public, inline over lamella/abi/autograd.h.
#pragma once
#include <sched.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamella/api/tensor.h"
#include "lamella/layers/autograd/backward.h"

namespace lamella {

namespace detail {
template <class Context>
class FunctionState;
template <class Context>
class FunctionCall;
}  // namespace detail

namespace autograd {

// A tensor kept for backward. Taking it out checks that it was not written to meanwhile.
class SavedVariable {
 public:
  SavedVariable() = default;
  // `is_output`: the tensor is an output of the node that will keep this, so that keeping it must
  // not keep the node.
  explicit SavedVariable(const Tensor& tensor, bool is_output = false) {
    if (!tensor.defined()) return;
    lamella::detail::check(lamella_saved_tensor_make(tensor.impl(), is_output ? 1 : 0, &saved_));
  }
  SavedVariable(SavedVariable&& other) noexcept : saved_(detail::take(other.saved_)) {}
  SavedVariable& operator=(SavedVariable other) noexcept {
    detail::swap_plain(saved_, other.saved_);
    return *this;
  }
  ~SavedVariable() { reset_data(); }
  void reset_data() {
    if (saved_ != nullptr) lamella_saved_tensor_release(detail::take(saved_));
  }
  // The tensor; undefined if nothing was kept. `node` is the node whose backward runs: the error
  // for a tensor written meanwhile names it, and a saved output gets it as its history.
  Tensor unpack(const GraphNodePtr& node = {}) const {
    return unpack(node ? node->handle() : nullptr);
  }
  Tensor unpack(lamella_node* node) const {
    lamella_tensor* tensor = nullptr;
    if (saved_ != nullptr) {
      lamella::detail::check(lamella_saved_tensor_unpack(saved_, node, &tensor));
    }
    return Tensor(TensorBase::adopt(tensor));
  }

 private:
  lamella_saved_tensor* saved_ = nullptr;
};

// Values by name, in the order of their first mention: the few members of a map that backward
// functions use. Value is IValue; see Note [Lazy functions] in core/macros.h.
template <class Value>
class SavedValues {
 public:
  using value_type = std::pair<std::string, Value>;
  using iterator = typename std::vector<value_type>::iterator;
  using const_iterator = typename std::vector<value_type>::const_iterator;

  // Inserts None if the name is missing.
  Value& operator[](std::string_view name) {
    iterator found = find(name);
    return found != end() ? found->second : values_.emplace_back(name, Value()).second;
  }
  Value& at(std::string_view name) {
    iterator found = find(name);
    LAMELLA_CHECK_INDEX(found != end(), "saved_data: expected a name that was stored, got '", name,
                        "'");
    return found->second;
  }
  const Value& at(std::string_view name) const { return const_cast<SavedValues*>(this)->at(name); }
  iterator find(std::string_view name) {
    iterator it = begin();
    while (it != end() && it->first != name) ++it;
    return it;
  }
  const_iterator find(std::string_view name) const {
    return const_cast<SavedValues*>(this)->find(name);
  }
  // True if the name was new; an old one keeps its value.
  template <class V>
  std::pair<iterator, bool> emplace(std::string_view name, V&& value) {
    iterator found = find(name);
    if (found != end()) return {found, false};
    values_.emplace_back(name, Value(std::forward<V>(value)));
    return {end() - 1, true};
  }
  size_t count(std::string_view name) const { return find(name) != end() ? 1 : 0; }
  bool contains(std::string_view name) const { return count(name) != 0; }
  size_t erase(std::string_view name) {
    iterator found = find(name);
    if (found == end()) return 0;
    values_.erase(found);
    return 1;
  }
  void clear() { values_.clear(); }
  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  iterator begin() { return values_.begin(); }
  iterator end() { return values_.end(); }
  const_iterator begin() const { return values_.begin(); }
  const_iterator end() const { return values_.end(); }

 private:
  std::vector<value_type> values_;
};
using SavedData = SavedValues<IValue>;

// First and one past the last index.
using IndexRange = std::pair<size_t, size_t>;

// What AutogradContext can do; T is Tensor.
template <class T>
class ContextBase {
 public:
  using variable_list = std::vector<T>;
  ContextBase() = default;
  ContextBase(const ContextBase&) = delete;
  ContextBase& operator=(const ContextBase&) = delete;
  ~ContextBase() { release_saved(); }

  // Anything but inputs and outputs, which save_for_backward() keeps without cycles.
  SavedData saved_data;

  // In forward: keeps inputs, outputs or other tensors; undefined ones are allowed. Another call
  // replaces the tensors of the former one.
  void save_for_backward(variable_list tensors) { to_save_ = std::move(tensors); }
  // In backward: the tensors of save_for_backward(). An error if one was written since, or if an
  // earlier backward without retain_graph has freed them.
  variable_list get_saved_variables() const {
    SavedList* list = hold();
    struct Drop {
      SavedList* list;
      ~Drop() { drop(list); }
    } guard{list};
    variable_list tensors;
    if (list == nullptr) return tensors;
    tensors.reserve(list->items.size());
    for (const SavedVariable& item : list->items) tensors.push_back(item.unpack(node_));
    return tensors;
  }

  // In forward: these inputs were written in place. They must be returned.
  void mark_dirty(const variable_list& inputs) { dirty_ = inputs; }
  // In forward: these outputs have no gradient.
  void mark_non_differentiable(const variable_list& outputs) { non_differentiable_ = outputs; }
  // Whether backward gets zeros (the default) or an undefined tensor for an output without a
  // gradient.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }

  // Whether the gradient of a tensor argument of forward is needed. The index counts only tensors,
  // including each tensor of a list.
  bool needs_input_grad(size_t index) const {
    return node_ != nullptr && index < lamella_node_input_count(node_) &&
           lamella_node_needs_input(node_, static_cast<uint32_t>(index)) != 0;
  }
  // Whether any gradient in these ranges is needed.
  bool needs_input_grad(std::initializer_list<IndexRange> ranges) const {
    for (const IndexRange& range : ranges) {
      for (size_t i = range.first; i < range.second; ++i) {
        if (needs_input_grad(i)) return true;
      }
    }
    return false;
  }

 private:
  template <class Context>
  friend class lamella::detail::FunctionState;
  template <class Context>
  friend class lamella::detail::FunctionCall;

  static constexpr const char* kReleased =
      "what it saved was given up by an earlier backward; pass retain_graph=True to it to go "
      "through "
      "the graph again";

  // Counted, so that backward can keep the list alive if it is released while tensors are read.
  struct SavedList {
    uint32_t references = 1;
    std::vector<SavedVariable> items;
  };
  static void drop(SavedList* list) {
    if (list != nullptr && detail::count_down(&list->references) == 0) delete list;
  }
  // A small spin lock, so that this public header need not include <mutex>.
  class Lock {
   public:
    explicit Lock(bool* flag) : flag_(flag) {
      while (__atomic_test_and_set(flag_, __ATOMIC_ACQUIRE)) sched_yield();
    }
    ~Lock() { __atomic_clear(flag_, __ATOMIC_RELEASE); }

   private:
    bool* flag_;
  };
  // Throws if it was released.
  SavedList* hold() const {
    Lock lock(&locked_);
    LAMELLA_CHECK(!released_, name_, ": ", kReleased);
    if (saved_ != nullptr) detail::count_up(&saved_->references);
    return saved_;
  }
  void release_saved() {
    SavedList* list;
    {
      Lock lock(&locked_);
      list = detail::take(saved_);
      released_ = true;
    }
    drop(list);
  }
  // After forward: saves the tensors of to_save_ for the node.
  void save_outputs_and_inputs() {
    auto* list = new SavedList;
    saved_ = list;
    list->items.reserve(to_save_.size());
    for (const T& tensor : to_save_) {
      uint32_t input = 0;
      bool is_output = tensor.requires_grad() &&
                       GraphNodePtr::adopt(lamella_tensor_node(tensor.impl(), &input)) == owner();
      list->items.emplace_back(tensor, is_output);
    }
    to_save_.clear();
  }
  GraphNodePtr owner() const {
    lamella_node_retain(node_);
    return GraphNodePtr::adopt(node_);
  }

  const char* name_ = "";
  lamella_node* node_ = nullptr;  // owns this; NULL where nothing is recorded
  variable_list to_save_, dirty_, non_differentiable_;
  SavedList* saved_ = nullptr;
  mutable bool locked_ = false;
  bool released_ = false;
  bool materialize_grads_ = true;
};

// Passed to a Function's forward and backward. Backward may run on several threads at once; the
// author of the Function must then synchronise access to saved_data.
class AutogradContext : public ContextBase<Tensor> {};

}  // namespace autograd
}  // namespace lamella
