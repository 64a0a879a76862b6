// Classes whose objects operators take and return, as extensions of PyTorch's write them.
#include <torch/custom_class.h>
#include <torch/script.h>

namespace {

struct Counter : torch::CustomClassHolder {
  explicit Counter(int64_t start) : value(start) {}
  int64_t increment(int64_t by) {
    value += by;
    return value;
  }
  int64_t current() const { return value; }
  int64_t value;
};

template <class T>
struct StackOf : torch::CustomClassHolder {
  explicit StackOf(std::vector<T> entries) : stack(std::move(entries)) {}
  void push(T entry) { stack.push_back(std::move(entry)); }
  T pop() {
    TORCH_CHECK(!stack.empty(), "pop: expected a stack with entries")
    T last = stack.back();
    stack.pop_back();
    return last;
  }
  c10::intrusive_ptr<StackOf> clone() const { return c10::make_intrusive<StackOf>(stack); }
  void merge(const c10::intrusive_ptr<StackOf>& other) {
    for (const T& entry : other->stack) push(entry);
  }
  std::vector<T> stack;
};
using Stack = StackOf<std::string>;

struct Linear : torch::CustomClassHolder {
  Linear(at::Tensor weight, std::optional<at::Tensor> bias)
      : weight(std::move(weight)), bias(std::move(bias)) {}
  at::Tensor forward(const at::Tensor& x) const {
    at::Tensor y = at::matmul(x, weight.t());
    return bias.has_value() ? y + *bias : y;
  }
  std::tuple<at::Tensor, std::optional<at::Tensor>> unpack() const { return {weight, bias}; }
  at::Tensor weight;
  std::optional<at::Tensor> bias;
};

// Operators that take and return objects.
c10::intrusive_ptr<Linear> prepack(at::Tensor weight, std::optional<at::Tensor> bias) {
  return c10::make_intrusive<Linear>(std::move(weight), std::move(bias));
}
at::Tensor run(const at::Tensor& x, const c10::intrusive_ptr<Linear>& packed) {
  return packed->forward(x);
}
int64_t total(std::vector<c10::intrusive_ptr<Counter>> counters) {
  int64_t sum = 0;
  for (const auto& counter : counters) sum += counter->value;
  return sum;
}

}  // namespace

static auto linear = torch::class_<Linear>("compat_classes", "Linear")
                         .def(torch::init([](at::Tensor weight, std::optional<at::Tensor> bias) {
                           return c10::make_intrusive<Linear>(std::move(weight), std::move(bias));
                         }))
                         .def("forward", &Linear::forward)
                         .def("unpack", &Linear::unpack)
                         .def_readonly("weight", &Linear::weight)
                         .def_pickle(
                             [](const c10::intrusive_ptr<Linear>& self)
                                 -> std::tuple<at::Tensor, std::optional<at::Tensor>> {
                               return {self->weight, self->bias};
                             },
                             [](std::tuple<at::Tensor, std::optional<at::Tensor>> state) {
                               return c10::make_intrusive<Linear>(std::move(std::get<0>(state)),
                                                                  std::move(std::get<1>(state)));
                             });

TORCH_LIBRARY(compat_classes, m) {
  m.class_<Counter>("Counter")
      .def(torch::init<int64_t>())
      .def("increment", &Counter::increment, "", {torch::arg("by") = 1})
      .def("current", &Counter::current)
      .def("twice", [](const c10::intrusive_ptr<Counter>& self) { return 2 * self->value; })
      .def("__len__", [](const c10::intrusive_ptr<Counter>& self) { return self->value; })
      .def_static("zero", []() { return c10::make_intrusive<Counter>(0); })
      .def_readwrite("value", &Counter::value)
      .def_property("half", [](const c10::intrusive_ptr<Counter>& self) { return self->value / 2; })
      .def_pickle([](const c10::intrusive_ptr<Counter>& self) -> int64_t { return self->value; },
                  [](int64_t state) { return c10::make_intrusive<Counter>(state); });
  m.class_<Stack>("Stack")
      .def(torch::init<std::vector<std::string>>())
      .def("push", &Stack::push)
      .def("pop", &Stack::pop)
      .def("clone", &Stack::clone)
      .def("merge", &Stack::merge)
      .def_pickle(
          [](const c10::intrusive_ptr<Stack>& self) -> std::vector<std::string> {
            return self->stack;
          },
          [](std::vector<std::string> state) {
            return c10::make_intrusive<Stack>(std::move(state));
          });
  m.def("prepack", &prepack);
  m.def("run(Tensor x, __torch__.torch.classes.compat_classes.Linear packed) -> Tensor", &run);
  m.def("total(__torch__.torch.classes.compat_classes.Counter[] counters) -> int", &total);
}
