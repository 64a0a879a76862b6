// Module: a tree of named parameters, buffers and modules; and ModuleHolder, which passes modules
// as values the way PyTorch does. All of it is nominally a template (Note [Lazy functions] of
// macros.h), so files that include it without using modules do not pay for it.
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <typeinfo>

#include "lamella/core/dict.h"
#include "lamella/layers/autograd/grad_mode.h"
#include "lamella/nn/ordered_dict.h"
#include "lamella/nn/shown.h"

namespace lamella::nn {

template <class Contained>
class ModuleHolder;

namespace detail {
// The module class of a holder; for a module class, the class itself.
template <class T>
struct ContainedIn {
  using type = T;
};
template <class T>
  requires requires { typename T::ContainedType; }
struct ContainedIn<T> {
  using type = typename T::ContainedType;
};
}  // namespace detail

// The base of all modules, which are held by shared pointers.
LAMELLA_LAZY class ModuleOf : public std::enable_shared_from_this<ModuleOf<lazy_>> {
 public:
  using Module = ModuleOf;
  ModuleOf() = default;
  explicit ModuleOf(std::string name) : name_(std::move(name)) {}
  virtual ~ModuleOf() = default;

  // The given name, or else the name of the class. The classes of this library have PyTorch's
  // names, such as "torch::nn::LinearImpl", because programs compare with these.
  const std::string& name() const {
    if (name_.empty()) name_ = detail::class_name(typeid(*this).name());
    return name_;
  }
  // Writes the name and the options; operator<< adds the modules inside.
  virtual void pretty_print(std::ostream& stream) const { detail::show(stream, name()); }
  // A copy with its own parameters and buffers. Only modules that derive from Cloneable have it.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& = std::nullopt) const {
    LAMELLA_CHECK_NOT_IMPLEMENTED(false, "clone: expected a module that derives from Cloneable");
    return nullptr;
  }

  // Becomes a clone of a module of the same class, which belongs to the module that is cloned.
  virtual void clone_(Module& other, const std::optional<Device>& device) {
    copy_from(other, device);
  }

  // False if files have no entry for this module.
  virtual bool is_serializable() const { return true; }

  // Parameters of inner modules have names such as "conv.weight".
  Named<Tensor> named_parameters(bool recurse = true) const {
    return collect<&Module::parameters_>(recurse);
  }
  std::vector<Tensor> parameters(bool recurse = true) const {
    return named_parameters(recurse).values();
  }
  Named<Tensor> named_buffers(bool recurse = true) const {
    return collect<&Module::buffers_>(recurse);
  }
  std::vector<Tensor> buffers(bool recurse = true) const { return named_buffers(recurse).values(); }
  const Named<std::shared_ptr<Module>>& named_children() const { return children_; }
  std::vector<std::shared_ptr<Module>> children() const { return children_.values(); }
  // This module first, then the inner ones, each with its path.
  Named<std::shared_ptr<Module>> named_modules(const std::string& prefix = "",
                                               bool include_self = true) {
    Named<std::shared_ptr<Module>> all;
    LAMELLA_CHECK(!include_self || !this->weak_from_this().expired(),
                  "Module: modules: expected a module that a shared pointer holds; pass "
                  "include_self=false for the modules inside alone");
    if (include_self) all.insert(prefix, this->shared_from_this());
    for (auto& child : children_) {
      std::string path = prefix.empty() ? child.key() : prefix + "." + child.key();
      for (auto& inner : child.value()->named_modules(path)) all.insert(inner.key(), *inner);
    }
    return all;
  }
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) {
    return named_modules("", include_self).values();
  }
  // Include serialize/save.h to use save() and load().
  template <class Archive>
  void save(Archive& archive) const {
    write_module(archive, *this);
  }
  template <class Archive>
  void load(Archive& archive) {
    read_module(archive, *this);
  }
  // Calls the function with each module, this one first; with its path as well where the function
  // takes one. The function takes a module, or a shared pointer to it.
  template <class F>
    requires(!std::is_convertible_v<F, std::string>)
  void apply(const F& function, const std::string& prefix = "") {
    apply_to(*this, function, prefix);
  }
  template <class F>
    requires(!std::is_convertible_v<F, std::string>)
  void apply(const F& function, const std::string& prefix = "") const {
    apply_to(*this, function, prefix);
  }

  virtual void train(bool on = true) {
    for (auto& child : children_) child.value()->train(on);
    is_training_ = on;
  }
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return is_training_; }
  virtual void zero_grad(bool set_to_none = true) {
    for (Tensor& parameter : parameters()) {
      if (!parameter.grad().defined()) continue;
      if (set_to_none) {
        parameter.mutable_grad() = Tensor();
      } else {
        parameter.grad().detach().zero_();
      }
    }
  }
  // The dtype applies to floating-point parameters and buffers, the device to all.
  virtual void to(Device device, ScalarType dtype, bool non_blocking = false) {
    convert(device, dtype, non_blocking);
  }
  virtual void to(ScalarType dtype, bool non_blocking = false) {
    convert(std::nullopt, dtype, non_blocking);
  }
  virtual void to(Device device, bool non_blocking = false) {
    convert(device, std::nullopt, non_blocking);
  }

  // This module as a T, such as Linear or LinearImpl, or null if it is of another class.
  template <class T>
  auto* as() noexcept {
    return dynamic_cast<typename detail::ContainedIn<T>::type*>(this);
  }
  template <class T>
  const auto* as() const noexcept {
    return dynamic_cast<const typename detail::ContainedIn<T>::type*>(this);
  }

  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true) {
    check_name(name, parameters_);
    if (tensor.defined()) tensor.set_requires_grad(requires_grad);
    return parameters_.insert(std::move(name), std::move(tensor));
  }
  Tensor& register_buffer(std::string name, Tensor tensor) {
    check_name(name, buffers_);
    return buffers_.insert(std::move(name), std::move(tensor));
  }
  template <class T>
  std::shared_ptr<T> register_module(std::string name, std::shared_ptr<T> module) {
    check_name(name, children_);
    children_.insert(std::move(name), module);
    return module;
  }
  template <class T>
  std::shared_ptr<T> register_module(std::string name, ModuleHolder<T> holder) {
    return register_module(std::move(name), holder.ptr());
  }
  template <class T>
  std::shared_ptr<T> replace_module(const std::string& name, std::shared_ptr<T> module) {
    children_[name] = module;
    return module;
  }
  template <class T>
  std::shared_ptr<T> replace_module(const std::string& name, const ModuleHolder<T>& holder) {
    return replace_module(name, holder.ptr());
  }
  void unregister_module(const std::string& name) {
    LAMELLA_CHECK(children_.contains(name), "Module: expected one of its modules, got '", name,
                  "'");
    children_.erase(name);
  }

 protected:
  Named<Tensor>& own_parameters() { return parameters_; }
  void forget_all() {
    parameters_.clear();
    buffers_.clear();
    children_.clear();
  }
  // Copies the values of all parameters, buffers and modules of `other`.
  void copy_from(const Module& other, std::optional<Device> device) {
    NoGradGuard guard;
    auto copy = [&](Named<Tensor>& to, const Named<Tensor>& from) {
      for (auto& item : from) {
        const Tensor& value = *item;
        if (!value.defined()) continue;
        Tensor twin = device ? value.to(*device, value.scalar_type(), false, true) : value.clone();
        to[item.key()].set_data(twin);
      }
    };
    copy(parameters_, other.parameters_);
    copy(buffers_, other.buffers_);
    for (auto& child : other.children_) {
      Module* twin = children_.contains(child.key()) ? children_[child.key()].get() : nullptr;
      LAMELLA_CHECK(twin != nullptr, "clone: expected reset() to register '", child.key(), "'");
      twin->clone_(*child.value(), device);
    }
    is_training_ = other.is_training_;
  }

 private:
  template <class Self, class F>
  static void apply_to(Self& self, const F& function, const std::string& prefix) {
    if constexpr (requires { function(self); }) {
      function(self);
    } else if constexpr (requires { function(prefix, self); }) {
      function(prefix, self);
    } else if constexpr (requires { function(self.shared_from_this()); }) {
      function(self.shared_from_this());
    } else {
      function(prefix, self.shared_from_this());
    }
    for (auto& child : self.children_) {
      Self& inner = *child.value();
      inner.apply(function, prefix.empty() ? child.key() : prefix + "." + child.key());
    }
  }
  template <Named<Tensor> Module::*field>
  Named<Tensor> collect(bool recurse) const {
    Named<Tensor> all;
    for (auto& item : this->*field) {
      if (item.value().defined()) all.insert(item.key(), item.value());
    }
    if (recurse) {
      for (auto& child : children_) {
        for (auto& item : child.value()->template collect<field>(true)) {
          all.insert(child.key() + "." + item.key(), item.value());
        }
      }
    }
    return all;
  }
  void convert(std::optional<Device> device, std::optional<ScalarType> dtype, bool non_blocking) {
    for (auto& child : children_) child.value()->convert(device, dtype, non_blocking);
    for (auto* list : {&parameters_, &buffers_}) {
      for (auto& item : *list) {
        Tensor& value = item.value();
        if (!value.defined()) continue;
        ScalarType type = dtype && value.is_floating_point() ? *dtype : value.scalar_type();
        value.set_data(value.data().to(device.value_or(value.device()), type, non_blocking));
      }
    }
  }
  template <class List>
  void check_name(const std::string& name, const List& list) const {
    const std::string& what = list.key_description();
    LAMELLA_CHECK_VALUE(!name.empty() && name.find('.') == std::string::npos,
                        "Module: expected a name without a dot, got ", what, " '", name, "'");
    LAMELLA_CHECK_VALUE(
        !parameters_.contains(name) && !buffers_.contains(name) && !children_.contains(name),
        "Module: expected a new name, got ", what, " '", name, "' again");
  }

  friend std::ostream& operator<<(std::ostream& stream, const Module& self) {
    self.print_tree(stream, "");
    return stream;
  }
  void print_tree(std::ostream& stream, const std::string& indent) const {
    pretty_print(stream);
    if (children_.is_empty()) return;
    detail::show(stream, "(\n");
    for (auto& child : children_) {
      detail::show(stream, indent, "  (", child.key(), "): ");
      child.value()->print_tree(stream, indent + "  ");
      detail::show(stream, "\n");
    }
    detail::show(stream, indent, ")");
  }

  mutable std::string name_;
  Named<Tensor> parameters_{"Parameter"}, buffers_{"Buffer"};
  Named<std::shared_ptr<Module>> children_{"Submodule"};
  bool is_training_ = true;
};
using Module = ModuleOf<>;

// A module that creates its parameters in reset(), which makes clone() possible.
template <class Derived, int lazy_ = 0>
class Cloneable : public ModuleOf<lazy_> {
 public:
  using ModuleOf<lazy_>::ModuleOf;
  virtual void reset() = 0;
  std::shared_ptr<ModuleOf<lazy_>> clone(
      const std::optional<Device>& device = std::nullopt) const override {
    auto twin = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    twin->forget_all();
    twin->reset();
    twin->copy_from(*this, device);
    return twin;
  }
  void clone_(ModuleOf<lazy_>& other, const std::optional<Device>& device) override {
    if constexpr (std::is_copy_assignable_v<Derived>) {
      auto twin = std::dynamic_pointer_cast<Derived>(other.clone(device));
      LAMELLA_CHECK(twin != nullptr, "clone: expected modules of one class, got ", this->name(),
                    " and ", other.name());
      static_cast<Derived&>(*this) = *twin;
    } else {
      ModuleOf<lazy_>::clone_(other, device);
    }
  }
};

namespace detail {
template <class M, class Any>
auto& cast_module(Any& module) {
  auto* cast = module.template as<M>();
  LAMELLA_CHECK_TYPE(cast != nullptr, "nn: expected the type of the module, ", module.name(),
                     ", got another one");
  return *cast;
}
}  // namespace detail

// A shared pointer to a module. It is constructed with the module's arguments and called as a
// function.
template <class Contained>
class ModuleHolder {
 public:
  using ContainedType = Contained;
  using Impl [[maybe_unused]] = Contained;

  ModuleHolder()
    requires std::is_default_constructible_v<Contained>
      : impl_(std::make_shared<Contained>()) {}
  ModuleHolder()
    requires(!std::is_default_constructible_v<Contained>)
  = default;
  ModuleHolder(std::nullptr_t) {}                                                // NOLINT
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}  // NOLINT
  template <class Head, class... Tail>
    requires(!(sizeof...(Tail) == 0 &&
               (std::is_base_of_v<ModuleHolder, std::remove_cvref_t<Head>> ||
                std::is_convertible_v<Head, std::shared_ptr<Contained>>)))
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : impl_(std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}

  explicit operator bool() const noexcept { return impl_ != nullptr; }
  bool is_empty() const noexcept { return impl_ == nullptr; }
  Contained* get() const { return checked().get(); }
  Contained* operator->() const { return get(); }
  Contained& operator*() const { return *get(); }
  const std::shared_ptr<Contained>& ptr() const { return checked(); }
  operator std::shared_ptr<Contained>() const { return checked(); }  // NOLINT: implicit
  template <class... A>
  decltype(auto) operator()(A&&... arguments) const {
    return get()->forward(std::forward<A>(arguments)...);
  }
  // An entry of a container of modules or parameters.
  template <class Index>
  decltype(auto) operator[](Index&& index) const {
    return (*get())[std::forward<Index>(index)];
  }

 private:
  const std::shared_ptr<Contained>& checked() const {
    LAMELLA_CHECK(impl_ != nullptr, "ModuleHolder: expected a module, got an empty holder");
    return impl_;
  }
  std::shared_ptr<Contained> impl_;
};

template <class M>
std::ostream& operator<<(std::ostream& stream, const ModuleHolder<M>& holder) {
  return stream << *holder;
}

}  // namespace lamella::nn

// Defines Name, the holder of NameImpl, where NameImplOf is nominally a template.
#define LAMELLA_LAZY_MODULE(Name)    \
  using Name##Impl = Name##ImplOf<>; \
  using Name = ModuleHolder<Name##Impl>;
// Used in a class template T with modules as members: the type nn::Name, which is instantiated only
// when T is.
#define LAMELLA_PART(T, Name) \
  using Name = typename ::lamella::detail::Later<T, ::lamella::nn::Name>::type
// Defines Name, a class derived from the holder of NameImpl.
#define LAMELLA_MODULE(Name)                                     \
  class Name : public ::lamella::nn::ModuleHolder<Name##Impl> {  \
   public:                                                       \
    using ::lamella::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
    using Impl [[maybe_unused]] = Name##Impl;                    \
  }
