// ModuleDict, ParameterDict and ParameterList of lamella::nn: modules and parameters by name or by
// index. They have no forward().
#pragma once
#include "lamella/nn/modules.h"

namespace lamella::nn {

LAMELLA_LAZY class ModuleDictImplOf : public Cloneable<ModuleDictImplOf<lazy_>> {
 public:
  using Entries = OrderedDict<std::string, std::shared_ptr<ModuleOf<lazy_>>>;

  ModuleDictImplOf() = default;
  explicit ModuleDictImplOf(const Entries& modules) { update(modules); }
  explicit ModuleDictImplOf(
      const std::vector<std::pair<std::string, std::shared_ptr<ModuleOf<lazy_>>>>& modules) {
    for (auto& [name, module] : modules) insert(name, module);
  }
  void reset() override {}
  LAMELLA_SHOWN_AS("ModuleDict")
  std::shared_ptr<ModuleOf<lazy_>> clone(
      const std::optional<Device>& device = std::nullopt) const override {
    auto twin = std::make_shared<ModuleDictImplOf>();
    for (auto& item : items()) twin->insert(item.key(), item.value()->clone(device));
    return twin;
  }

  const auto& items() const { return this->named_children().items(); }
  std::vector<std::string> keys() const { return this->named_children().keys(); }
  std::vector<std::shared_ptr<ModuleOf<lazy_>>> values() const { return this->children(); }
  auto begin() const { return items().begin(); }
  auto end() const { return items().end(); }
  size_t size() const noexcept { return items().size(); }
  bool empty() const noexcept { return size() == 0; }
  bool contains(const std::string& name) const { return this->named_children().contains(name); }
  void clear() { this->forget_all(); }
  std::shared_ptr<ModuleOf<lazy_>> operator[](const std::string& name) const {
    return this->named_children()[name];
  }
  template <class M>
  auto& at(const std::string& name) const {
    return detail::cast_module<M>(*(*this)[name]);
  }
  // Removes a module and returns it.
  std::shared_ptr<ModuleOf<lazy_>> pop(const std::string& name) {
    auto module = (*this)[name];
    this->unregister_module(name);
    return module;
  }
  // Inserts the modules and replaces those of equal names.
  void update(const Entries& modules) {
    for (auto& item : modules) insert(item.key(), item.value());
  }
  void update(const ModuleDictImplOf& other) {
    for (auto& item : other) insert(item.key(), item.value());
  }
  void update(
      const std::vector<std::pair<std::string, std::shared_ptr<ModuleOf<lazy_>>>>& modules) {
    for (auto& [name, module] : modules) insert(name, module);
  }

 private:
  void insert(const std::string& name, std::shared_ptr<ModuleOf<lazy_>> module) {
    if (contains(name)) {
      this->replace_module(name, std::move(module));
    } else {
      this->register_module(name, std::move(module));
    }
  }
};
LAMELLA_LAZY_MODULE(ModuleDict)

// The base of ParameterList and ParameterDict; prints each parameter's dtype and shape.
LAMELLA_LAZY class ParametersOf : public ModuleOf<lazy_> {
 public:
  auto begin() { return entries().begin(); }
  auto end() { return entries().end(); }
  auto begin() const { return entries().begin(); }
  auto end() const { return entries().end(); }
  size_t size() const noexcept { return entries().size(); }

 protected:
  Named<Tensor>& entries() { return this->own_parameters(); }
  const Named<Tensor>& entries() const { return const_cast<ParametersOf*>(this)->own_parameters(); }
  static Tensor copy_of(const Tensor& parameter, const std::optional<Device>& device) {
    NoGradGuard guard;
    Tensor copy = parameter.clone();
    if (device) copy = copy.to(*device, copy.scalar_type());
    return copy.set_requires_grad(parameter.requires_grad());
  }
  void show_entries(std::ostream& stream, const char* name) const {
    detail::show(stream, "torch::nn::", name, "(\n");
    for (auto& item : entries()) {
      detail::show(stream, "(", item.key(), "): Parameter containing: [");
      if (item.value().defined()) {
        detail::show(stream, toString(item.value().scalar_type()), " of size ",
                     item.value().sizes());
      } else {
        detail::show(stream, "undefined");
      }
      detail::show(stream, "]\n");
    }
    detail::show(stream, ")");
  }
};

LAMELLA_LAZY class ParameterListImplOf : public ParametersOf<lazy_> {
 public:
  ParameterListImplOf() = default;
  template <class... T>
    requires(sizeof...(T) > 0 && (std::is_same_v<std::remove_cvref_t<T>, Tensor> && ...))
  explicit ParameterListImplOf(T&&... parameters) {
    (append(parameters), ...);
  }
  void pretty_print(std::ostream& stream) const override {
    this->show_entries(stream, "ParameterList");
  }
  std::shared_ptr<ModuleOf<lazy_>> clone(
      const std::optional<Device>& device = std::nullopt) const override {
    auto twin = std::make_shared<ParameterListImplOf>();
    for (auto& item : *this) twin->append(this->copy_of(item.value(), device));
    return twin;
  }
  // Keeps the parameter's requires_grad.
  void append(const Tensor& parameter) {
    const bool trained = parameter.requires_grad();
    this->register_parameter(std::to_string(this->size()), parameter, trained);
  }
  void append(const typename Named<Tensor>::Item& item) { append(item.value()); }
  template <class Container>
  void extend(const Container& parameters) {
    for (const auto& parameter : parameters) append(parameter);
  }
  void operator+=(const ParameterListImplOf& other) { extend(other); }
  Tensor& operator[](size_t i) { return at(i); }
  const Tensor& operator[](size_t i) const { return const_cast<ParameterListImplOf*>(this)->at(i); }
  Tensor& at(size_t i) {
    LAMELLA_CHECK_INDEX(i < this->size(), "ParameterList: expected an index below ", this->size(),
                        ", got ", i);
    return this->entries()[i].value();
  }
  bool is_empty() const noexcept { return this->size() == 0; }
};
LAMELLA_LAZY_MODULE(ParameterList)

LAMELLA_LAZY class ParameterDictImplOf : public ParametersOf<lazy_> {
 public:
  ParameterDictImplOf() = default;
  explicit ParameterDictImplOf(const Named<Tensor>& parameters) {
    for (auto& item : parameters) insert(item.key(), item.value());
  }
  void pretty_print(std::ostream& stream) const override {
    this->show_entries(stream, "ParameterDict");
  }
  std::shared_ptr<ModuleOf<lazy_>> clone(
      const std::optional<Device>& device = std::nullopt) const override {
    auto twin = std::make_shared<ParameterDictImplOf>();
    for (auto& item : *this) twin->insert(item.key(), this->copy_of(item.value(), device));
    return twin;
  }
  Tensor& insert(const std::string& key, const Tensor& parameter) {
    return this->register_parameter(key, parameter, parameter.requires_grad());
  }
  // Removes a parameter and returns it.
  Tensor pop(const std::string& key) {
    Tensor parameter = get(key);
    this->entries().erase(key);
    return parameter;
  }
  // Replaces parameters that the dictionary has.
  void update(const Named<Tensor>& parameters) {
    for (auto& item : parameters) get(item.key()) = item.value();
  }
  void update(const ParameterDictImplOf& other) { update(other.entries()); }
  std::vector<std::string> keys() const { return this->entries().keys(); }
  std::vector<Tensor> values() const { return this->entries().values(); }
  bool empty() const noexcept { return this->size() == 0; }
  bool contains(const std::string& key) const noexcept { return this->entries().contains(key); }
  void clear() { this->entries().clear(); }
  Tensor& get(const std::string& key) { return this->entries()[key]; }
  const Tensor& get(const std::string& key) const { return this->entries()[key]; }
  Tensor& operator[](const std::string& key) { return get(key); }
  const Tensor& operator[](const std::string& key) const { return get(key); }
};
LAMELLA_LAZY_MODULE(ParameterDict)

}  // namespace lamella::nn
