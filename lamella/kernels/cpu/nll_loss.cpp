// The negative log-likelihood of a class for each element, and its backward.
#include "lamella/core/visit_dtype.h"
#include "lamella/kernels/device_lines.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"
#include "lamella/kernels/reduction.h"

namespace lamella::native {

namespace {
// `outer` samples of `classes` planes of `inner` positions; targets are [outer][inner].
struct Classes {
  int64_t outer, classes, inner;
  Dims targets;  // the shape of the targets
};

Classes classes_of(const char* op, const Tensor& self, const Tensor& target,
                   const std::optional<Tensor>& weight, int64_t rank) {
  Classes c;
  bool planes = rank == 4;
  LAMELLA_CHECK(planes ? self.dim() == 4 : self.dim() == 1 || self.dim() == 2, op,
                ": expected 'self' to have ", planes ? "4" : "1 or 2", " dimensions, got ",
                self.sizes());
  LAMELLA_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), op,
                                ": expected 'self' to be floating point, got ", self.scalar_type());
  LAMELLA_CHECK(target.scalar_type() == kLong || target.scalar_type() == kByte, op,
                ": expected 'target' to be int64 or uint8, got ", target.scalar_type());
  size_t at = self.dim() == 1 ? 0 : 1;
  c.classes = self.sizes()[at];
  c.outer = at == 0 ? 1 : self.sizes()[0];
  c.inner = product(self.sizes().slice(at + 1));
  if (at == 1) c.targets.push_back(c.outer);
  c.targets.append_all(self.sizes().slice(at + 1));
  bool one = self.dim() == 1 && target.dim() == 1 && target.numel() == 1;
  if (one) c.targets.push_back(1);
  LAMELLA_CHECK(target.sizes().equals(c.targets), op, ": expected 'target' to be of shape ",
                c.targets, ", got ", target.sizes());
  if (weight && weight->defined()) {
    LAMELLA_CHECK(weight->dim() == 1 && weight->numel() == c.classes, op,
                  ": expected 'weight' to be of shape [", c.classes, "], got ", weight->sizes());
    LAMELLA_CHECK(weight->scalar_type() == self.scalar_type(), op, ": expected 'weight' to be ",
                  self.scalar_type(), ", got ", weight->scalar_type());
  }
  return c;
}

Tensor weights(const std::optional<Tensor>& weight) {
  return weight && weight->defined() ? weight->contiguous() : Tensor();
}

// The class of element i; -1: ignored.
template <class I>
int64_t class_at(const char* op, const I* target, int64_t i, int64_t classes, int64_t ignored) {
  auto t = static_cast<int64_t>(target[i]);
  if (t == ignored) return -1;
  LAMELLA_CHECK_INDEX(t >= 0 && t < classes, op,
                      ": expected the elements of 'target' to be in [0, ", classes, "), got ", t);
  return t;
}

template <class F>
void with_types(const char* op, const Tensor& self, const Tensor& target, F&& f) {
  visit_floating(self.scalar_type(), op, [&](auto tag) {
    if (target.scalar_type() == kLong) {
      f(tag, static_cast<const int64_t*>(target.const_data_ptr()));
    } else {
      f(tag, static_cast<const uint8_t*>(target.const_data_ptr()));
    }
  });
}

std::tuple<Tensor, Tensor> forward(const char* op, const Tensor& self, const Tensor& target,
                                   const std::optional<Tensor>& weight, int64_t reduction,
                                   int64_t ignored, int64_t rank) {
  check_reduction(op, reduction);
  Classes c = classes_of(op, self, target, weight, rank);
  bool none = reduction == kReduceNone && !(self.dim() == 1);
  ScalarType dtype = self.scalar_type();
  Tensor out = new_tensor(none ? IntArrayRef(c.targets) : IntArrayRef(), dtype, self.device());
  Tensor total = new_tensor({}, dtype, self.device());
  if (self.is_meta()) return {out, total};
  Tensor x = self.contiguous(), t = target.contiguous(), w = weights(weight);
  if (self.device() != kCPU) {
    // The losses and the weights of all elements, and their sums.
    const ScalarType wide = dtype == kDouble ? kDouble : kFloat;
    Tensor both = new_tensor({2, c.outer * c.inner}, wide, self.device());
    auto on_device = device_lines(op, self.device().type()).nll;
    require_on_device(on_device(x, t, w, both, c.classes, c.inner, ignored), op, self);
    if (none) {
      out.copy_(both.select(0, 0).view(c.targets));
      total.zero_();
      return {out, total};
    }
    Tensor sums = both.sum(IntArrayRef(1));
    Tensor loss = sums.select(0, 0), weight_sum = sums.select(0, 1);
    out.copy_(reduction == kReduceMean ? loss.div(weight_sum) : loss);
    total.copy_(weight_sum);
    return {out, total};
  }
  with_types(op, x, t, [&](auto tag, const auto* targets) {
    using T = type_of<decltype(tag)>;
    using C = compute_type<T>;
    auto* from = static_cast<const T*>(x.const_data_ptr());
    auto* by = w.defined() ? static_cast<const T*>(w.const_data_ptr()) : nullptr;
    auto* to = static_cast<T*>(out.data_ptr());
    auto weight_of = [&](int64_t k) { return by == nullptr ? C(1) : static_cast<C>(by[k]); };
    int64_t count = c.outer * c.inner;
    if (none) {
      parallel_for(0, count, kGrainSize, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t k = class_at(op, targets, i, c.classes, ignored);
          int64_t at = (i / c.inner * c.classes + k) * c.inner + i % c.inner;
          to[i] = k < 0 ? T(0) : static_cast<T>(-weight_of(k) * static_cast<C>(from[at]));
        }
      });
      *static_cast<T*>(total.data_ptr()) = T(0);
      return;
    }
    double sum = 0, weight_sum = 0;
    int64_t i = 0;
    for (int64_t o = 0; o < c.outer; ++o) {
      const T* sample = from + o * c.classes * c.inner;
      for (int64_t j = 0; j < c.inner; ++j, ++i) {
        int64_t k = class_at(op, targets, i, c.classes, ignored);
        if (k < 0) continue;
        C factor = weight_of(k);
        weight_sum += static_cast<double>(factor);
        sum -= static_cast<double>(factor * static_cast<C>(sample[k * c.inner + j]));
      }
    }
    bool mean = reduction == kReduceMean;
    *to = static_cast<T>(static_cast<C>(mean ? sum / weight_sum : sum));
    *static_cast<T*>(total.data_ptr()) = static_cast<T>(static_cast<C>(weight_sum));
  });
  return {out, total};
}

Tensor backward(const char* op, const Tensor& grad, const Tensor& self, const Tensor& target,
                const std::optional<Tensor>& weight, int64_t reduction, int64_t ignored,
                const Tensor& total_weight, int64_t rank) {
  check_reduction(op, reduction);
  Classes c = classes_of(op, self, target, weight, rank);
  bool none = reduction == kReduceNone && self.dim() > 1;
  LAMELLA_CHECK(none ? grad.sizes().equals(c.targets) : grad.numel() == 1, op,
                ": expected 'grad_output' to be ", none ? "of the shape of 'target'" : "one number",
                ", got ", grad.sizes());
  LAMELLA_CHECK(grad.scalar_type() == self.scalar_type(), op, ": expected 'grad_output' to be ",
                self.scalar_type(), ", got ", grad.scalar_type());
  LAMELLA_CHECK(total_weight.numel() == 1, op, ": expected 'total_weight' to be one number, got ",
                total_weight.sizes());
  LAMELLA_CHECK(total_weight.scalar_type() == self.scalar_type(), op,
                ": expected 'total_weight' to be ", self.scalar_type(), ", got ",
                total_weight.scalar_type());
  Tensor out = new_tensor(self.sizes(), self.scalar_type(), self.device());
  if (self.is_meta()) return out;
  out.zero_();
  Tensor g = grad.contiguous(), t = target.contiguous(), w = weights(weight);
  if (self.device() != kCPU) {
    auto on_device = device_lines(op, self.device().type()).nll_backward;
    const Tensor by = reduction == kReduceMean ? total_weight : Tensor();
    require_on_device(
        on_device(none ? g : g.view(IntArrayRef()), t, w, by, out, c.classes, c.inner, ignored), op,
        self);
    return out;
  }
  with_types(op, self, t, [&](auto tag, const auto* targets) {
    using T = type_of<decltype(tag)>;
    using C = compute_type<T>;
    auto* from = g.template const_data_ptr<T>();
    auto* by = w.defined() ? static_cast<const T*>(w.const_data_ptr()) : nullptr;
    auto* to = static_cast<T*>(out.data_ptr());
    C scale = 1;
    if (reduction == kReduceMean) {
      scale = static_cast<C>(*static_cast<const T*>(total_weight.const_data_ptr()));
    }
    int64_t i = 0;
    for (int64_t o = 0; o < c.outer; ++o) {
      T* sample = to + o * c.classes * c.inner;
      for (int64_t j = 0; j < c.inner; ++j, ++i) {
        int64_t k = class_at(op, targets, i, c.classes, ignored);
        if (k < 0) continue;
        C factor = by == nullptr ? C(-1) : -static_cast<C>(by[k]);
        sample[k * c.inner + j] =
            static_cast<T>(factor * static_cast<C>(from[none ? i : 0]) / scale);
      }
    }
  });
  return out;
}
}  // namespace

std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            const std::optional<Tensor>& weight, int64_t reduction,
                                            int64_t ignore_index) {
  return forward("nll_loss", self, target, weight, reduction, ignore_index, 2);
}
Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                         const std::optional<Tensor>& weight, int64_t reduction,
                         int64_t ignore_index, const Tensor& total_weight) {
  return backward("nll_loss_backward", grad_output, self, target, weight, reduction, ignore_index,
                  total_weight, 2);
}
std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& self, const Tensor& target,
                                              const std::optional<Tensor>& weight,
                                              int64_t reduction, int64_t ignore_index) {
  return forward("nll_loss2d", self, target, weight, reduction, ignore_index, 4);
}
Tensor nll_loss2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                           const std::optional<Tensor>& weight, int64_t reduction,
                           int64_t ignore_index, const Tensor& total_weight) {
  return backward("nll_loss2d_backward", grad_output, self, target, weight, reduction, ignore_index,
                  total_weight, 4);
}

}  // namespace lamella::native
