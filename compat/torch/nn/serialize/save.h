// save() and load() of tensors, modules and optimizers.
#pragma once
#include "lamella/api/tensor_of.h"
#include "lamella/core/warning.h"
#include "lamella/nn/modules.h"
#include "lamella/nn/optimizers.h"
#include "lamella/nn/serialize/archive.h"

namespace lamella::nn {

// Writes parameters and buffers by name, and inner modules as inner archives.
LAMELLA_LAZY void write_module(serialize::OutputArchiveOf<lazy_>& archive,
                               const ModuleOf<lazy_>& module) {
  for (auto& item : module.named_parameters(false)) archive.write(item.key(), item.value());
  for (auto& item : module.named_buffers(false)) archive.write(item.key(), item.value(), true);
  for (auto& child : module.named_children()) {
    if (!child.value()->is_serializable()) continue;
    serialize::OutputArchiveOf<lazy_> inner;
    write_module(inner, *child.value());
    archive.write(child.key(), inner);
  }
}
namespace detail {
// Each of a module's tensors, followed by the tensor read for it.
using Readings = std::vector<Tensor>;
LAMELLA_LAZY void find_readings(serialize::InputArchiveOf<lazy_>& archive,
                                const ModuleOf<lazy_>& module, Readings* readings) {
  for (auto& list : {module.named_parameters(false), module.named_buffers(false)}) {
    for (auto& item : list) {
      Tensor found;
      archive.read(item.key(), found);
      for (const Tensor& each : {item.value(), found}) readings->push_back(each);
    }
  }
  for (auto& child : module.named_children()) {
    if (!child.value()->is_serializable()) continue;
    serialize::InputArchiveOf<lazy_> inner;
    // A state dictionary has no entry for a module without parameters and buffers.
    const bool is_empty = child.value()->parameters().empty() && child.value()->buffers().empty();
    if (is_empty && !archive.try_read(child.key(), inner)) continue;
    if (!is_empty) archive.read(child.key(), inner);
    find_readings(inner, *child.value(), readings);
  }
}
}  // namespace detail
// The module stays unchanged if the archive lacks something.
LAMELLA_LAZY void read_module(serialize::InputArchiveOf<lazy_>& archive, ModuleOf<lazy_>& module) {
  detail::Readings readings;
  detail::find_readings(archive, module, &readings);
  NoGradGuard guard;
  for (size_t i = 0; i < readings.size(); i += 2) readings[i].set_data(readings[i + 1]);
}
template <class M>
  requires std::is_base_of_v<Module, M>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const std::shared_ptr<M>& module) {
  LAMELLA_CHECK(module != nullptr, "save: expected a module, got an empty holder");
  write_module(archive, *module);
  return archive;
}
template <class M>
  requires std::is_base_of_v<Module, M>
serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                    const std::shared_ptr<M>& module) {
  LAMELLA_CHECK(module != nullptr, "load: expected a module, got an empty holder");
  read_module(archive, *module);
  return archive;
}
template <class M>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const ModuleHolder<M>& holder) {
  return archive << holder.ptr();
}
template <class M>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, ModuleHolder<M>& holder) {
  return archive >> holder.ptr();
}

}  // namespace lamella::nn

namespace lamella::optim {

namespace detail {

// Calls f with the name and the value of each part that a class lists.
template <class T, class F>
void each_listed(T& of, F&& f) {
  std::string_view names = T::kListed;
  auto next = [&] {
    std::string name(names.substr(0, names.find('(')));
    names.remove_prefix(std::min(names.size(), name.size() + 4));  // with "(), " behind it
    return name;
  };
  std::apply([&](auto&... value) { (f(next(), value), ...); }, of.listed());
}
// The same for an object of one of the classes; false for one of another.
template <class... T, class Base, class F>
bool each_listed_of(Base& of, F&& f) {
  auto is = [&](auto* typed) {
    if (typed != nullptr) each_listed(*typed, f);
    return typed != nullptr;
  };
  return (is(dynamic_cast<T*>(&of)) || ...);
}
template <int lazy_, class F>
void with_options(OptimizerOptionsOf<lazy_>& options, F&& f) {
  const bool is_known =
      each_listed_of<SGDOptionsOf<lazy_>, PlainAdamOptions<lazy_>, DecoupledAdamOptions<lazy_>,
                     AdagradOptionsOf<lazy_>, RMSpropOptionsOf<lazy_>, LBFGSOptionsOf<lazy_>>(
          options, f);
  LAMELLA_CHECK_NOT_IMPLEMENTED(is_known,
                                "save: expected an optimizer of this library, got another one");
}
template <int lazy_, class F>
void with_state(OptimizerParamStateOf<lazy_>& state, F&& f) {
  each_listed_of<SGDParamStateOf<lazy_>, AdamParamStateOf<lazy_>, AdagradParamStateOf<lazy_>,
                 RMSpropParamStateOf<lazy_>, LBFGSParamStateOf<lazy_>>(state, f);
}

LAMELLA_LAZY struct ValueWriter {
  serialize::OutputArchiveOf<lazy_>& archive;
  template <class T>
  void operator()(const std::string& name, const T& value) {
    if constexpr (std::is_same_v<T, Tensor>) {
      if (value.defined()) archive.write(name, IValue(value));
    } else if constexpr (std::is_same_v<T, std::tuple<double, double>>) {
      archive.write(name, IValue::tuple({IValue(std::get<0>(value)), IValue(std::get<1>(value))}));
    } else if constexpr (std::is_same_v<T, std::deque<Tensor>>) {
      archive.write(name, IValue(std::vector<Tensor>(value.begin(), value.end())));
    } else if constexpr (requires { value.has_value(); }) {
      archive.write(name, value ? IValue(*value) : IValue());
    } else {
      archive.write(name, IValue(value));
    }
  }
};
LAMELLA_LAZY struct ValueReader {
  serialize::InputArchiveOf<lazy_>& archive;
  template <class T>
  void operator()(const std::string& name, T& value) {
    if constexpr (std::is_same_v<T, Tensor>) {
      value = Tensor();
      archive.try_read(name, value);
    } else {
      IValue read;
      archive.read(name, read);
      if constexpr (requires { value.has_value(); }) {
        value.reset();
        if (!read.isNone()) value = read.template to<typename T::value_type>();
      } else if constexpr (std::is_same_v<T, std::deque<Tensor>>) {
        auto list = read.template to<std::vector<Tensor>>();
        value.assign(list.begin(), list.end());
      } else if constexpr (std::is_same_v<T, std::tuple<double, double>>) {
        LAMELLA_CHECK(read.isTuple() && read.elements().size() == 2, "load: expected '", name,
                      "' to be two numbers");
        value = {read.elements()[0].toDouble(), read.elements()[1].toDouble()};
      } else if constexpr (std::is_same_v<T, bool>) {
        value = read.toBool();
      } else if constexpr (std::is_same_v<T, int64_t>) {
        value = read.toInt();
      } else {
        value = read.toDouble();
      }
    }
  }
};

// Reads the state of parameter number `at` from a file of PyTorch before 1.5, where each part of
// the states is a list over the parameters, such as step_buffers, and L-BFGS has one state.
LAMELLA_LAZY struct OldReader {
  serialize::InputArchiveOf<lazy_>& archive;
  size_t at;
  bool* found;
  void operator()(const std::string& name, Tensor& value) { *found |= find(name, value); }
  template <class T>
  void operator()(const std::string& name, T& value) {
    Tensor number;
    if constexpr (std::is_same_v<T, std::deque<Tensor>>) {
      for (Tensor each; archive.try_read(str(name, "/", value.size()), each); each = Tensor()) {
        value.push_back(each);
      }
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (find(name, number)) value = number.item().template to<T>();
    }
  }
  bool find(std::string name, Tensor& value) {
    if (at == 0 && archive.try_read(name, value)) return true;
    if (size_t short_form = name.find("avg"); short_form != name.npos) {
      name.replace(short_form, 3, "average");
    }
    name += name.ends_with("_buffer") ? "s/" : "_buffers/";
    return archive.try_read(name + std::to_string(at), value);
  }
};

}  // namespace detail

// PyTorch's format: "state" maps each parameter's address to its state, and "param_groups" has the
// addresses and options of each group.
LAMELLA_LAZY serialize::OutputArchiveOf<lazy_>& operator<<(
    serialize::OutputArchiveOf<lazy_>& archive, const OptimizerOf<lazy_>& optimizer) {
  auto count = [](size_t n) { return lamella::tensor(static_cast<int64_t>(n)); };
  auto name_of = [](const Tensor& param) {
    return std::to_string(reinterpret_cast<size_t>(param.impl()));
  };
  serialize::OutputArchiveOf<lazy_> states, groups;
  groups.write("param_groups/size", count(optimizer.param_groups().size()));
  size_t number = 0;
  for (const auto& group : optimizer.param_groups()) {
    serialize::OutputArchiveOf<lazy_> one, options;
    one.write("params/size", count(group.params().size()));
    for (size_t i = 0; i < group.params().size(); ++i) {
      const Tensor& param = group.params()[i];
      one.write("params/" + std::to_string(i), IValue(name_of(param)));
      auto* state = const_cast<OptimizerOf<lazy_>&>(optimizer).find_state(param);
      if (state == nullptr) continue;
      serialize::OutputArchiveOf<lazy_> mine;
      detail::with_state(*state, detail::ValueWriter<lazy_>{mine});
      states.write(name_of(param), mine);
    }
    detail::with_options(group.options(), detail::ValueWriter<lazy_>{options});
    one.write("options", options);
    groups.write("param_groups/" + std::to_string(number++), one);
  }
  archive.write("pytorch_version", IValue("1.5.0"));
  archive.write("state", states);
  archive.write("param_groups", groups);
  return archive;
}
// Reads into an optimizer of the same class with equally many groups and parameters.
LAMELLA_LAZY serialize::InputArchiveOf<lazy_>& operator>>(serialize::InputArchiveOf<lazy_>& archive,
                                                          OptimizerOf<lazy_>& optimizer) {
  auto count = [](serialize::InputArchiveOf<lazy_>& from, const char* key) {
    Tensor number;
    from.read(key, number);
    return static_cast<size_t>(number.item().template to<int64_t>());
  };
  serialize::InputArchiveOf<lazy_> states, groups;
  IValue version;
  if (!archive.try_read("pytorch_version", version)) {
    LAMELLA_WARN("load: the optimizer's file has the old serialization format; save it again");
    auto& params = optimizer.param_groups().at(0).params();
    for (size_t i = 0; i < params.size(); ++i) {
      bool found = false;
      detail::with_state(optimizer.state_of(params[i]),
                         detail::OldReader<lazy_>{archive, i, &found});
      if (!found) optimizer.state().erase(params[i].impl());
    }
    return archive;
  }
  archive.read("state", states);
  archive.read("param_groups", groups);
  const size_t group_count = count(groups, "param_groups/size");
  LAMELLA_CHECK(group_count == optimizer.param_groups().size(), "load: expected ",
                optimizer.param_groups().size(), " groups of parameters, got ", group_count);
  for (size_t g = 0; g < group_count; ++g) {
    auto& group = optimizer.param_groups()[g];
    serialize::InputArchiveOf<lazy_> one, options;
    groups.read("param_groups/" + std::to_string(g), one);
    const size_t param_count = count(one, "params/size");
    LAMELLA_CHECK(param_count == group.params().size(), "load: expected ", group.params().size(),
                  " parameters in group ", g, ", got ", param_count);
    one.read("options", options);
    detail::with_options(group.options(), detail::ValueReader<lazy_>{options});
    for (size_t i = 0; i < param_count; ++i) {
      IValue name;
      one.read("params/" + std::to_string(i), name);
      serialize::InputArchiveOf<lazy_> mine;
      if (!states.try_read(std::string(name.toStringView()), mine)) continue;
      detail::with_state(optimizer.state_of(group.params()[i]), detail::ValueReader<lazy_>{mine});
    }
  }
  return archive;
}

}  // namespace lamella::optim

namespace lamella {

// Writes a tensor, a module or an optimizer to a file, a stream or a function.
template <class Value, class... To>
void save(const Value& value, To&&... to) {
  detail::Lazily<sizeof...(To), serialize::OutputArchive> archive;
  archive << value;
  archive.save_to(std::forward<To>(to)...);
}
template <class... To>
void save(const std::vector<Tensor>& tensors, To&&... to) {
  detail::Lazily<sizeof...(To), serialize::OutputArchive> archive;
  for (size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
  archive.save_to(std::forward<To>(to)...);
}
// Writes a module's parameters and buffers to a safetensors file, which load() and Python's
// lamella.load() read.
LAMELLA_LAZY void save_file(const nn::ModuleOf<lazy_>& module, const std::string& filename) {
  std::map<std::string, Tensor> tensors;
  for (auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value());
  for (auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value());
  save_file(tensors, filename);
}
// Reads into a tensor, or into a module or an optimizer that is constructed like the saved one.
template <class Value, class... From>
void load(Value& value, From&&... from) {
  detail::Lazily<sizeof...(From), serialize::InputArchive> archive;
  archive.load_from(std::forward<From>(from)...);
  archive >> value;
}
template <class... From>
void load(std::vector<Tensor>& tensors, From&&... from) {
  detail::Lazily<sizeof...(From), serialize::InputArchive> archive;
  archive.load_from(std::forward<From>(from)...);
  for (Tensor tensor; archive.try_read(std::to_string(tensors.size()), tensor); tensor = Tensor()) {
    tensors.push_back(tensor);
  }
}

}  // namespace lamella
