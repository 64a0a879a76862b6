// Rules for searching and counting, for ranges between tensors, and for the fused steps of
// optimizers.
#include "lamella/layers/vmap/rules_common.h"

namespace lamella::vmap {
namespace {

// ---- Searching --------------------------------------------------------------------------------

Tensor searchsorted(BatchedCall& call, In sorted_sequence, In self, bool out_int32, bool right,
                    std::optional<std::string_view> side, In sorter) {
  auto search = [&](const Tensor& sequence, const Tensor& values, const Tensor& order) {
    return lamella::searchsorted(sequence, values, out_int32, right, side, or_none(order));
  };
  if (sorted_sequence.rank() != 1) {
    return search(front(call, sorted_sequence), front(call, self), front(call, sorter));
  }
  if (!sorted_sequence.batched && !sorter.batched) {
    return search(sorted_sequence.value, self.value, sorter.value);
  }
  Tensor values = front(call, self);
  Tensor found = search(front(call, sorted_sequence),
                        values.reshape({call.batch_size(), self.numel()}), front(call, sorter));
  return found.view(values.sizes());
}
In number(const Scalar& value, const In& like) {
  ScalarType dtype = lamella::result_type(like.value, value);
  return {lamella::full({}, value, like.value.options().dtype(dtype)), false};
}
Tensor searchsorted_number(BatchedCall& call, In sorted_sequence, const Scalar& self,
                           bool out_int32, bool right, std::optional<std::string_view> side,
                           In sorter) {
  return searchsorted(call, sorted_sequence, number(self, sorted_sequence), out_int32, right, side,
                      sorter);
}
Tensor bucketize(BatchedCall& call, In self, In boundaries, bool out_int32, bool right) {
  LAMELLA_CHECK(boundaries.rank() == 1,
                "bucketize: expected 'boundaries' to have 1 dimension, got ", boundaries.sizes());
  return searchsorted(call, boundaries, self, out_int32, right, std::nullopt, {});
}
Tensor bucketize_number(BatchedCall& call, const Scalar& self, In boundaries, bool out_int32,
                        bool right) {
  return bucketize(call, number(self, boundaries), boundaries, out_int32, right);
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  Tensor found = elements.unsqueeze(-1).eq(test_elements.reshape({-1})).any(-1);
  return invert ? found.logical_not() : found;
}
Tensor isin_number(const Tensor& elements, const Scalar& test_element, bool, bool invert) {
  return invert ? elements.ne(test_element) : elements.eq(test_element);
}
Tensor number_isin(const Scalar& element, const Tensor& test_elements, bool, bool invert) {
  Tensor found = test_elements.eq(element).any();
  return invert ? found.logical_not() : found;
}

// ---- Counting and order -----------------------------------------------------------------------

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  LAMELLA_CHECK(bins > 0, "histc: expected 'bins' of at least 1, got ", bins);
  Tensor values = self.reshape({-1}).to(kDouble);
  double from = min.toDouble(), to = max.toDouble();
  Tensor low = lamella::full({}, from, values.options());
  Tensor high = lamella::full({}, to, values.options());
  if (from == to && values.numel() > 0) {
    low = values.amin(IntArrayRef(int64_t{0}));
    high = values.amax(IntArrayRef(int64_t{0}));
    Tensor widening = low.eq(high).to(kDouble);
    low = low.sub(widening);
    high = high.add(widening);
  }
  Tensor inside = values.ge(low).logical_and(values.le(high));
  Tensor places = values.sub(low).div(high.sub(low)).mul(static_cast<double>(bins));
  places = places.masked_fill(inside.logical_not(), 0).to(kLong).clamp_max(bins - 1);
  return lamella::zeros({bins}, self.options())
      .scatter_add(0, places, inside.to(self.scalar_type()));
}

Tensor median(const Tensor& self) { return std::get<0>(self.reshape({-1}).median(0)); }
Tensor nanmedian(const Tensor& self) { return std::get<0>(self.reshape({-1}).nanmedian(0)); }
Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return lamella::linalg_vector_norm(self.sub(other), p);
}
Tensor norm(const Tensor& self, const Scalar& p) { return lamella::linalg_vector_norm(self, p); }
Tensor norm_as(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype) {
  return lamella::linalg_vector_norm(self, p.value_or(Scalar(2)), std::nullopt, false, dtype);
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  LAMELLA_CHECK(
      num_classes > 0,
      "one_hot: expected 'num_classes' of at least 1 under vmap, where the largest class ",
      "may differ between examples, got ", num_classes);
  Tensor classes = lamella::arange(num_classes, TensorOptions(kLong).device(self.device()));
  return self.unsqueeze(-1).eq(classes).to(kLong);
}

// ---- Ranges between tensors -------------------------------------------------------------------

// Each element is computed from the nearer end, as the operator does, so both ends are exact.
Tensor spaced(const Tensor& start, const Tensor& end, int64_t steps,
              std::optional<ScalarType> dtype) {
  LAMELLA_CHECK(steps >= 0, "linspace: expected 'steps' of at least 0, got ", steps);
  LAMELLA_CHECK(start.dim() == 0, "linspace: expected 'start' to have no dimensions, got ",
                start.sizes());
  LAMELLA_CHECK(end.dim() == 0, "linspace: expected 'end' to have no dimensions, got ",
                end.sizes());
  bool complex_ends = start.is_complex() || end.is_complex();
  ScalarType type = dtype.value_or(lamella::result_type(
      lamella::empty({0}), complex_ends ? Scalar(complex<double>(0, 0)) : Scalar(0.0)));
  ScalarType wide = is_complex(type) ? kComplexDouble : kDouble;
  Tensor from = start, to = end;
  if (is_integral(type, true)) {
    from = from.to(type);
    to = to.to(type);
  }
  from = from.to(wide);
  to = to.to(wide);
  if (steps == 1) return from.unsqueeze(0).to(type);
  Tensor i = lamella::arange(steps, TensorOptions(kDouble).device(start.device()));
  Tensor step = to.sub(from).div(static_cast<double>(steps - 1));
  Tensor first = from.add(step.mul(i));
  Tensor last = to.sub(step.mul(i.neg().add(static_cast<double>(steps - 1))));
  return lamella::where(i.lt(static_cast<double>(steps / 2)), first, last).to(type);
}
Tensor as_tensor(const Scalar& number, const Tensor& like) {
  ScalarType type = number.isComplex() ? kComplexDouble : kDouble;
  return lamella::full({}, number, TensorOptions(type).device(like.device()));
}
Tensor linspace(const Tensor& start, const Tensor& end, int64_t steps,
                std::optional<ScalarType> dtype) {
  return spaced(start, end, steps, dtype);
}
Tensor linspace_to_number(const Tensor& start, const Scalar& end, int64_t steps,
                          std::optional<ScalarType> dtype) {
  return spaced(start, as_tensor(end, start), steps, dtype);
}
Tensor linspace_from_number(const Scalar& start, const Tensor& end, int64_t steps,
                            std::optional<ScalarType> dtype) {
  return spaced(as_tensor(start, end), end, steps, dtype);
}
// Computed in double precision, then converted to the result's dtype.
Tensor logspace(const Tensor& start, const Tensor& end, int64_t steps, double base,
                std::optional<ScalarType> dtype) {
  bool is_wide = start.is_complex() || end.is_complex() || (dtype && is_complex(*dtype));
  Tensor powers = spaced(start, end, steps, is_wide ? kComplexDouble : kDouble);
  ScalarType type = dtype.value_or(lamella::result_type(
      lamella::empty({0}), is_wide ? Scalar(complex<double>(0, 0)) : Scalar(0.0)));
  return lamella::pow(Scalar(base), powers).to(type);
}
Tensor logspace_to_number(const Tensor& start, const Scalar& end, int64_t steps, double base,
                          std::optional<ScalarType> dtype) {
  return logspace(start, as_tensor(end, start), steps, base, dtype);
}
Tensor logspace_from_number(const Scalar& start, const Tensor& end, int64_t steps, double base,
                            std::optional<ScalarType> dtype) {
  return logspace(as_tensor(start, end), end, steps, base, dtype);
}

// ---- Fused steps of optimizers ----------------------------------------------------------------
//
// These decompose into operators on each parameter, since learning rates and step counts may differ
// between examples. A step with found_inf set changes nothing.

struct Common {
  Tensor rate;  // undefined: `lr`
  double lr = 0, weight_decay = 0;
  bool maximize = false;
  std::optional<Tensor> grad_scale, found_inf;

  Tensor scaled(const Tensor& x) const { return rate.defined() ? x.mul(rate) : x.mul(lr); }
  // The gradient of a step; a scale is taken out of `given` as well, as the kernels do.
  Tensor gradient(const Tensor& given) const {
    Tensor g = given;
    if (grad_scale) {
      g = g.div(grad_scale->reshape({}));
      write(given, g);
    }
    return maximize ? g.neg() : g;
  }
  void write(Tensor to, const Tensor& value) const {
    to.copy_(found_inf ? lamella::where(found_inf->reshape({}).ne(0), to, value) : value);
  }
};

struct Sgd {
  double momentum, dampening;
  bool nesterov, is_first_step;
};
void sgd(TensorList self, TensorList grads, TensorList buffers, const Sgd& step,
         const Common& common) {
  for (size_t i = 0; i < self.size(); ++i) {
    Tensor g = common.gradient(grads[i]);
    if (common.weight_decay != 0) g = g.add(self[i], common.weight_decay);
    if (step.momentum != 0) {
      Tensor buffer =
          step.is_first_step ? g : buffers[i].mul(step.momentum).add(g, 1 - step.dampening);
      common.write(buffers[i], buffer);
      g = step.nesterov ? g.add(buffer, step.momentum) : buffer;
    }
    common.write(self[i], self[i].sub(common.scaled(g)));
  }
}
void fused_sgd(TensorList self, TensorList grads, TensorList momentum_buffer_list,
               double weight_decay, double momentum, double lr, double dampening, bool nesterov,
               bool maximize, bool is_first_step, const std::optional<Tensor>& grad_scale,
               const std::optional<Tensor>& found_inf) {
  sgd(self, grads, momentum_buffer_list, {momentum, dampening, nesterov, is_first_step},
      {Tensor(), lr, weight_decay, maximize, grad_scale, found_inf});
}
void fused_sgd_rate(TensorList self, TensorList grads, TensorList momentum_buffer_list,
                    double weight_decay, double momentum, const Tensor& lr, double dampening,
                    bool nesterov, bool maximize, bool is_first_step,
                    const std::optional<Tensor>& grad_scale,
                    const std::optional<Tensor>& found_inf) {
  sgd(self, grads, momentum_buffer_list, {momentum, dampening, nesterov, is_first_step},
      {lr, 0, weight_decay, maximize, grad_scale, found_inf});
}

struct Adam {
  TensorList self, grads, averages, squares, largest, steps;
  double beta1, beta2, eps;
  bool amsgrad, decoupled;
};
void adam(const Adam& a, const Common& common) {
  for (size_t i = 0; i < a.self.size(); ++i) {
    Tensor x = a.self[i], g = common.gradient(a.grads[i]);
    if (common.weight_decay != 0) {
      if (a.decoupled) {
        x = x.sub(common.scaled(x).mul(common.weight_decay));
      } else {
        g = g.add(x, common.weight_decay);
      }
    }
    Tensor average = a.averages[i].mul(a.beta1).add(g, 1 - a.beta1);
    Tensor square = a.squares[i].mul(a.beta2).add(g.mul(g), 1 - a.beta2);
    Tensor count = a.steps[i].to(kDouble);
    Tensor correction1 = lamella::pow(Scalar(a.beta1), count).neg().add(1).to(x.scalar_type());
    Tensor correction2 = lamella::pow(Scalar(a.beta2), count).neg().add(1).to(x.scalar_type());
    Tensor scale = square;
    if (a.amsgrad) {
      scale = lamella::maximum(a.largest[i], square);
      common.write(a.largest[i], scale);
    }
    Tensor denominator = scale.sqrt().div(correction2.sqrt()).add(a.eps);
    common.write(a.averages[i], average);
    common.write(a.squares[i], square);
    common.write(a.self[i], x.sub(common.scaled(average.div(correction1).div(denominator))));
  }
}
template <bool decoupled>
void fused_adam(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1,
                double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                const std::optional<Tensor>& grad_scale, const std::optional<Tensor>& found_inf) {
  adam({self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, beta1, beta2, eps,
        amsgrad, decoupled},
       {Tensor(), lr, weight_decay, maximize, grad_scale, found_inf});
}
template <bool decoupled>
void fused_adam_rate(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                     TensorList max_exp_avg_sqs, TensorList state_steps, const Tensor& lr,
                     double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
                     bool maximize, const std::optional<Tensor>& grad_scale,
                     const std::optional<Tensor>& found_inf) {
  adam({self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, beta1, beta2, eps,
        amsgrad, decoupled},
       {lr, 0, weight_decay, maximize, grad_scale, found_inf});
}

constexpr NamedRule kRules[] = {
    {"searchsorted", &typed<&searchsorted>},
    {"searchsorted_number", &typed<&searchsorted_number>},
    {"bucketize", &typed<&bucketize>},
    {"bucketize_number", &typed<&bucketize_number>},
    {"isin", &decomposed<&isin>},
    {"isin_number", &decomposed<&isin_number>},
    {"number_isin", &decomposed<&number_isin>},
    {"histc", &decomposed<&histc>},
    {"median", &decomposed<&median>},
    {"nanmedian", &decomposed<&nanmedian>},
    {"dist", &decomposed<&dist>},
    {"norm", &decomposed<&norm>},
    {"norm_as", &decomposed<&norm_as>},
    {"one_hot", &decomposed<&one_hot>},
    {"linspace", &decomposed<&linspace>},
    {"linspace_to_number", &decomposed<&linspace_to_number>},
    {"linspace_from_number", &decomposed<&linspace_from_number>},
    {"logspace", &decomposed<&logspace>},
    {"logspace_from_number", &decomposed<&logspace_from_number>},
    {"logspace_to_number", &decomposed<&logspace_to_number>},
    {"fused_sgd", &decomposed<&fused_sgd>},
    {"fused_sgd_rate", &decomposed<&fused_sgd_rate>},
    {"fused_adam", &decomposed<&fused_adam<false>>},
    {"fused_adam_rate", &decomposed<&fused_adam_rate<false>>},
    {"fused_adamw", &decomposed<&fused_adam<true>>},
    {"fused_adamw_rate", &decomposed<&fused_adam_rate<true>>},
};

}  // namespace

NamedRules misc_rules() { return kRules; }

}  // namespace lamella::vmap
