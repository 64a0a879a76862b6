// bind_module<M>(module, "Name"): a class of pybind11 for a module of networks, and a Python class
// beside it, which is a torch.nn.Module and holds one of them.
#pragma once
#include "lamella/api/pybind_casters.h"
#include "lamella/nn/module.h"

namespace lamella::pybind {

template <class Value>
pybind11::dict dict_of(const nn::OrderedDict<std::string, Value>& entries) {
  pybind11::dict made;
  for (const auto& item : entries) made[item.key().c_str()] = item.value();
  return made;
}

// The class of nn::Module, one for each extension. The Python class needs no other members.
LAMELLA_LAZY void bind_base_module() {
  using M = nn::ModuleOf<lazy_>;
  static const bool bound [[maybe_unused]] = [] {
    pybind11::class_<M, std::shared_ptr<M>>(pybind11::handle(), "Module", pybind11::module_local())
        .def("train", &M::train)
        .def("clone", [](const M& self) { return self.clone(); })
        .def("name", &M::name)
        .def_property_readonly("training", &M::is_training)
        .def("parameters", [](const M& self) { return dict_of(self.named_parameters(false)); })
        .def("buffers", [](const M& self) { return dict_of(self.named_buffers(false)); })
        .def("modules", [](const M& self) { return dict_of(self.named_children()); })
        .release();
    return true;
  }();
}

template <class M, bool without_forward = false>
auto bind_module(pybind11::module_ module, const char* name) {
  bind_base_module();
  pybind11::class_<M, nn::Module, std::shared_ptr<M>> made(module.def_submodule("cpp"), name);
  if constexpr (!without_forward && requires { &M::forward; }) {
    made.def("forward", &M::forward).def("__call__", &M::forward);
  }
  module.attr(name) =
      pybind11::module_::import("lamella.compat._cpp_modules").attr("wrapper")(name, made);
  return made;
}

}  // namespace lamella::pybind
