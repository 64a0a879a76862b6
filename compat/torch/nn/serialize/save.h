// save() and load() of tensors, modules and optimizers.
#pragma once
#include "lamella/api/tensor_of.h"
#include "lamella/nn/modules.h"
#include "lamella/nn/optimizers.h"
#include "lamella/nn/serialize/archive.h"

namespace lamella::nn {

// Writes parameters and buffers by name, and inner modules as inner archives.
LAMELLA_LAZY void write_module(serialize::OutputArchiveOf<lazy_>& archive, const Module& module) {
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
LAMELLA_LAZY void find_readings(serialize::InputArchiveOf<lazy_>& archive, const Module& module,
                                Readings* readings) {
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
LAMELLA_LAZY void read_module(serialize::InputArchiveOf<lazy_>& archive, Module& module) {
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

// Calls f with the name in files and the value of each of the optimizer's options.
template <int lazy_, class F>
void with_options(OptimizerOptionsOf<lazy_>& options, F&& f) {
  auto adam = [&](auto& each) {
    f("lr", each.lr());
    f("betas", each.betas());
    f("eps", each.eps());
    f("weight_decay", each.weight_decay());
    f("amsgrad", each.amsgrad());
  };
  if (auto* sgd = dynamic_cast<SGDOptionsOf<lazy_>*>(&options)) {
    f("lr", sgd->lr());
    f("momentum", sgd->momentum());
    f("dampening", sgd->dampening());
    f("weight_decay", sgd->weight_decay());
    f("nesterov", sgd->nesterov());
  } else if (auto* plain = dynamic_cast<PlainAdamOptions<lazy_>*>(&options)) {
    adam(*plain);
  } else if (auto* decoupled = dynamic_cast<DecoupledAdamOptions<lazy_>*>(&options)) {
    adam(*decoupled);
  } else if (auto* adagrad = dynamic_cast<AdagradOptionsOf<lazy_>*>(&options)) {
    f("lr", adagrad->lr());
    f("lr_decay", adagrad->lr_decay());
    f("weight_decay", adagrad->weight_decay());
    f("initial_accumulator_value", adagrad->initial_accumulator_value());
    f("eps", adagrad->eps());
  } else if (auto* rmsprop = dynamic_cast<RMSpropOptionsOf<lazy_>*>(&options)) {
    f("lr", rmsprop->lr());
    f("alpha", rmsprop->alpha());
    f("eps", rmsprop->eps());
    f("weight_decay", rmsprop->weight_decay());
    f("momentum", rmsprop->momentum());
    f("centered", rmsprop->centered());
  } else if (auto* lbfgs = dynamic_cast<LBFGSOptionsOf<lazy_>*>(&options)) {
    f("lr", lbfgs->lr());
    f("max_iter", lbfgs->max_iter());
    f("max_eval", lbfgs->max_eval());
    f("tolerance_grad", lbfgs->tolerance_grad());
    f("tolerance_change", lbfgs->tolerance_change());
    f("history_size", lbfgs->history_size());
    f("line_search_fn", lbfgs->line_search_fn());
  } else {
    LAMELLA_CHECK_NOT_IMPLEMENTED(false,
                                  "save: expected an optimizer of this library, got another one");
  }
}
template <int lazy_, class State, class F>
void with_state(OptimizerOptionsOf<lazy_>& options, State& state, F&& f) {
  if (dynamic_cast<SGDOptionsOf<lazy_>*>(&options) != nullptr) {
    f("momentum_buffer", state.first);
    return;
  }
  if (dynamic_cast<LBFGSOptionsOf<lazy_>*>(&options) != nullptr) {
    auto& lbfgs = static_cast<LBFGSParamStateOf<lazy_>&>(state);
    f("func_evals", lbfgs.func_evals());
    f("n_iter", lbfgs.n_iter());
    f("t", lbfgs.t());
    f("prev_loss", lbfgs.prev_loss());
    f("d", lbfgs.d());
    f("H_diag", lbfgs.H_diag());
    f("prev_flat_grad", lbfgs.prev_flat_grad());
    f("old_dirs", lbfgs.old_dirs());
    f("old_stps", lbfgs.old_stps());
    f("ro", lbfgs.ro());
    f("al", lbfgs.al());
    return;
  }
  f("step", state.steps);
  if (dynamic_cast<AdagradOptionsOf<lazy_>*>(&options) != nullptr) {
    f("sum", state.first);
    return;
  }
  if (dynamic_cast<RMSpropOptionsOf<lazy_>*>(&options) != nullptr) {
    f("square_avg", state.second);
    f("momentum_buffer", state.first);
    f("grad_avg", state.largest);
    return;
  }
  f("exp_avg", state.first);
  f("exp_avg_sq", state.second);
  f("max_exp_avg_sq", state.largest);
}

struct ValueWriter {
  serialize::OutputArchive& archive;
  template <class T>
  void operator()(const char* name, const T& value) {
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
struct ValueReader {
  serialize::InputArchive& archive;
  template <class T>
  void operator()(const char* name, T& value) {
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
      detail::with_state(group.options(), *state, detail::ValueWriter{mine});
      states.write(name_of(param), mine);
    }
    detail::with_options(group.options(), detail::ValueWriter{options});
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
    detail::with_options(group.options(), detail::ValueReader{options});
    for (size_t i = 0; i < param_count; ++i) {
      IValue name;
      one.read("params/" + std::to_string(i), name);
      serialize::InputArchiveOf<lazy_> mine;
      if (!states.try_read(std::string(name.toStringView()), mine)) continue;
      detail::with_state(group.options(), optimizer.state_of(group.params()[i]),
                         detail::ValueReader{mine});
    }
  }
  return archive;
}

}  // namespace lamella::optim

namespace lamella {

// Writes a tensor, a module or an optimizer to a file, a stream or a function.
template <class Value, class... To>
void save(const Value& value, To&&... to) {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<To>(to)...);
}
template <class... To>
void save(const std::vector<Tensor>& tensors, To&&... to) {
  serialize::OutputArchive archive;
  for (size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
  archive.save_to(std::forward<To>(to)...);
}
// Writes a module's parameters and buffers to a safetensors file, which load() and Python's
// lamella.load() read.
LAMELLA_LAZY void save_file(const nn::Module& module, const std::string& filename) {
  std::map<std::string, Tensor> tensors;
  for (auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value());
  for (auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value());
  save_file(tensors, filename);
}
// Reads into a tensor, or into a module or an optimizer that is constructed like the saved one.
template <class Value, class... From>
void load(Value& value, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  archive >> value;
}
template <class... From>
void load(std::vector<Tensor>& tensors, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  for (Tensor tensor; archive.try_read(std::to_string(tensors.size()), tensor); tensor = Tensor()) {
    tensors.push_back(tensor);
  }
}

}  // namespace lamella
