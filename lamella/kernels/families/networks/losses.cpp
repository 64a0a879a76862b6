// Losses that compare every class with the target class, and connectionist temporal classification.
#include <cmath>
#include <limits>

#include "lamella/kernels/families/families.h"

namespace aten::native {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor reduced(const Tensor& losses, int64_t reduction) {
  return reduction == 0 ? losses : reduction == 1 ? losses.mean() : losses.sum();
}

}  // namespace

Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p,
                         const Scalar& margin, const std::optional<Tensor>& weight,
                         int64_t reduction) {
  const char* op = "multi_margin_loss";
  const double power = p.toDouble();
  LAMELLA_CHECK(power == 1 || power == 2, op, ": expected 'p' to be 1 or 2, got ", p);
  LAMELLA_CHECK(self.dim() <= 2, op, ": expected 'self' to have at most 2 dimensions, got ",
                self.sizes());
  const Tensor x = self.dim() == 2 ? self : self.reshape({1, -1});
  const Tensor right = target.dim() == 0 ? target.unsqueeze(0) : target;
  LAMELLA_CHECK(right.dim() == 1 && right.size(0) == x.size(0), op, ": expected 'target' to have ",
                x.size(0), " elements, got ", target.sizes());
  const Tensor at = right.unsqueeze(1);
  Tensor z = x.sub(x.gather(1, at)).add(margin).clamp_min(0);
  if (power == 2) z = z.mul(z);
  if (weight.has_value() && weight->defined()) {
    LAMELLA_CHECK(weight->dim() == 1 && weight->size(0) == x.size(1), op,
                  ": expected 'weight' to be of shape [", x.size(1), "], got ", weight->sizes());
    z = z.mul(weight->index_select(0, right).unsqueeze(1));
  }
  z = z.scatter(1, at, 0).sum(IntArrayRef(int64_t{1})).div(static_cast<double>(x.size(1)));
  return reduced(self.dim() < 2 ? z.squeeze(0) : z, reduction);
}

Tensor multilabel_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  const char* op = "multilabel_margin_loss";
  LAMELLA_CHECK(self.dim() <= 2, op, ": expected 'self' to have at most 2 dimensions, got ",
                self.sizes());
  LAMELLA_CHECK(target.sizes() == self.sizes(), op, ": expected 'target' to have the shape ",
                self.sizes(), ", got ", target.sizes());
  const int64_t classes = self.dim() == 0 ? 1 : self.size(-1);
  const Tensor x = self.reshape({-1, classes}), labels = target.reshape({-1, classes});
  // Labels count up to the first negative one.
  const Tensor valid = labels.lt(0).to(kLong).cumsum(1).eq(0);
  const Tensor real = valid.to(x.scalar_type());
  const Tensor is_target = lamella::zeros({x.size(0), classes + 1}, x.options())
                               .scatter(1, lamella::where(valid, labels, classes), 1)
                               .narrow(1, 0, classes);
  const Tensor rights = x.gather(1, lamella::where(valid, labels, 0));
  Tensor z = x.unsqueeze(1).sub(rights.unsqueeze(2)).add(1).clamp_min(0);
  z = z.mul(real.unsqueeze(2)).mul(is_target.neg().add(1).unsqueeze(1));
  z = z.sum({1, 2}).div(static_cast<double>(classes));
  return reduced(self.dim() < 2 ? z.squeeze(0) : z, reduction);
}

// ---- Connectionist temporal classification (A. Graves et al., 2006) ----

namespace {

double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return a == -kInf ? a : a + std::log1p(std::exp(b - a));
}

// Reads the elements one by one, because the memory of wrapped tensors cannot be read directly.
Dims lengths_of(const Tensor& t, const char* name) {
  LAMELLA_CHECK_TYPE(is_integral(t.scalar_type(), false), "ctc_loss: expected '", name,
                     "' to be integers, got ", t.scalar_type());
  const Tensor flat = t.reshape({-1});
  Dims result;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    result.push_back(flat.select(0, i).item().toLong());
  }
  return result;
}

struct Sequences {
  Tensor log_probs, targets;  // float64 [T, N, C] and int64, dense
  Dims starts;                // position of each example's first label
  int64_t steps, batch, classes, states;
};
Sequences sequences(const char* op, const Tensor& log_probs, const Tensor& targets,
                    IntArrayRef input_lengths, IntArrayRef target_lengths, int64_t blank) {
  LAMELLA_CHECK(log_probs.dim() == 3, op, ": expected 'log_probs' to have 3 dimensions, got ",
                log_probs.sizes());
  LAMELLA_CHECK_TYPE(is_integral(targets.scalar_type(), false), op,
                     ": expected 'targets' to be integers, got ", targets.scalar_type());
  Sequences s;
  s.steps = log_probs.size(0), s.batch = log_probs.size(1), s.classes = log_probs.size(2);
  const auto n = static_cast<size_t>(s.batch);
  LAMELLA_CHECK(input_lengths.size() == n && target_lengths.size() == n, op, ": expected ", n,
                " 'input_lengths' and 'target_lengths', got ", input_lengths.size(), " and ",
                target_lengths.size());
  LAMELLA_CHECK(blank >= 0 && blank < s.classes, op, ": expected 'blank' to be in [0, ",
                s.classes - 1, "], got ", blank);
  LAMELLA_CHECK(targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == s.batch), op,
                ": expected 'targets' to have 1 dimension, or 2 of which the first is ", s.batch,
                ", got ", targets.sizes());
  int64_t longest = 0, total = 0;
  for (size_t i = 0; i < n; ++i) {
    LAMELLA_CHECK(input_lengths[i] >= 0 && input_lengths[i] <= s.steps, op,
                  ": expected 'input_lengths' in [0, ", s.steps, "], got ", input_lengths[i]);
    LAMELLA_CHECK(
        target_lengths[i] >= 0 && (targets.dim() == 1 || target_lengths[i] <= targets.size(1)), op,
        ": expected 'target_lengths' within 'targets', got ", target_lengths[i]);
    s.starts.push_back(targets.dim() == 1 ? total : static_cast<int64_t>(i) * targets.size(1));
    total += target_lengths[i];
    longest = std::max(longest, target_lengths[i]);
  }
  LAMELLA_CHECK(targets.dim() == 2 || total <= targets.size(0), op,
                ": expected 'targets' to have at least ", total, " elements, got ",
                targets.numel());
  s.states = 2 * longest + 1;
  s.log_probs = log_probs.to(kDouble).contiguous();
  s.targets = targets.to(kLong).contiguous();
  const auto* labels = s.targets.const_data_ptr<int64_t>();
  for (size_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < target_lengths[i]; ++k) {
      const int64_t label = labels[s.starts[i] + k];
      LAMELLA_CHECK_INDEX(label >= 0 && label < s.classes, op, ": expected 'targets' in [0, ",
                          s.classes - 1, "], got ", label);
    }
  }
  return s;
}

// The label of a state of the sequence, which has blanks before, between and after its labels.
int64_t label_of(const int64_t* labels, int64_t state, int64_t blank) {
  return state % 2 == 0 ? blank : labels[state / 2];
}
bool may_skip(const int64_t* labels, int64_t state) {
  return state % 2 == 1 && state >= 3 && labels[state / 2] != labels[state / 2 - 1];
}

}  // namespace

std::tuple<Tensor, Tensor> ctc_loss_cpu(const Tensor& log_probs, const Tensor& targets,
                                        IntArrayRef input_lengths, IntArrayRef target_lengths,
                                        int64_t blank, bool zero_infinity) {
  (void)zero_infinity;
  const Sequences s =
      sequences("_ctc_loss", log_probs, targets, input_lengths, target_lengths, blank);
  const auto f64 = s.log_probs.options();
  const Tensor loss = lamella::empty({s.batch}, f64);
  const Tensor alpha = lamella::full({s.batch, s.steps, s.states}, -kInf, f64);
  const auto* lp = s.log_probs.const_data_ptr<double>();
  const auto* all = s.targets.const_data_ptr<int64_t>();
  auto* losses = loss.mutable_data_ptr<double>();
  auto* alphas = alpha.mutable_data_ptr<double>();
  in_parallel(s.batch, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t time = input_lengths[static_cast<size_t>(n)];
      const int64_t length = target_lengths[static_cast<size_t>(n)], last = 2 * length;
      const int64_t* labels = all + s.starts[static_cast<size_t>(n)];
      double* a = alphas + n * s.steps * s.states;
      if (time == 0) {
        losses[n] = length == 0 ? 0 : kInf;
        continue;
      }
      auto log_prob = [&](int64_t t, int64_t state) {
        return lp[(t * s.batch + n) * s.classes + label_of(labels, state, blank)];
      };
      a[0] = log_prob(0, 0);
      if (length > 0) a[1] = log_prob(0, 1);
      for (int64_t t = 1; t < time; ++t) {
        const double* before = a;
        a += s.states;
        for (int64_t k = 0; k <= last; ++k) {
          double sum = before[k];
          if (k > 0) sum = log_add(sum, before[k - 1]);
          if (may_skip(labels, k)) sum = log_add(sum, before[k - 2]);
          a[k] = sum + log_prob(t, k);
        }
      }
      losses[n] = -(length > 0 ? log_add(a[last], a[last - 1]) : a[0]);
    }
  });
  return {loss.to(log_probs.scalar_type()), alpha.to(log_probs.scalar_type())};
}
std::tuple<Tensor, Tensor> ctc_loss_meta(const Tensor& log_probs, const Tensor& targets,
                                         IntArrayRef input_lengths, IntArrayRef target_lengths,
                                         int64_t blank, bool zero_infinity) {
  (void)targets, (void)input_lengths, (void)blank, (void)zero_infinity;
  int64_t longest = 0;
  for (int64_t n : target_lengths) longest = std::max(longest, n);
  const int64_t batch = log_probs.size(1);
  return {lamella::empty({batch}, log_probs.options()),
          lamella::empty({batch, log_probs.size(0), 2 * longest + 1}, log_probs.options())};
}

// The gradient of the input of the log_softmax that computed log_probs: exp(log_probs) minus each
// step's contribution to the probability of the sequence.
Tensor ctc_loss_backward_cpu(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                             IntArrayRef input_lengths, IntArrayRef target_lengths,
                             const Tensor& neg_log_likelihood, const Tensor& log_alpha,
                             int64_t blank, bool zero_infinity) {
  const Sequences s =
      sequences("_ctc_loss_backward", log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor result = lamella::zeros(log_probs.sizes(), s.log_probs.options());
  const Tensor grads = grad.to(kDouble).contiguous(),
               nll = neg_log_likelihood.to(kDouble).contiguous(),
               alpha = log_alpha.to(kDouble).contiguous();
  const auto* lp = s.log_probs.const_data_ptr<double>();
  const auto* all = s.targets.const_data_ptr<int64_t>();
  const auto *g = grads.const_data_ptr<double>(), *likelihood = nll.const_data_ptr<double>(),
             *alphas = alpha.const_data_ptr<double>();
  auto* out = result.mutable_data_ptr<double>();
  in_parallel(s.batch, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> beta(static_cast<size_t>(s.states)), shares;
    for (int64_t n = begin; n < end; ++n) {
      const double loss = likelihood[n];
      if (zero_infinity && loss == kInf) continue;
      const int64_t time = input_lengths[static_cast<size_t>(n)];
      const int64_t length = target_lengths[static_cast<size_t>(n)], last = 2 * length;
      const int64_t* labels = all + s.starts[static_cast<size_t>(n)];
      for (int64_t t = time; t-- > 0;) {
        const double* row = lp + (t * s.batch + n) * s.classes;
        const double* a = alphas + (n * s.steps + t) * s.states;
        // Ascending order, so that a state's successors still have the values of the next step.
        for (int64_t k = 0; k <= last; ++k) {
          double sum;
          if (t == time - 1) {
            sum = k >= last - 1 ? 0 : -kInf;
          } else {
            sum = beta[static_cast<size_t>(k)];
            if (k < last) sum = log_add(sum, beta[static_cast<size_t>(k + 1)]);
            if (k + 2 <= last && may_skip(labels, k + 2)) {
              sum = log_add(sum, beta[static_cast<size_t>(k + 2)]);
            }
          }
          beta[static_cast<size_t>(k)] = sum + row[label_of(labels, k, blank)];
        }
        shares.assign(static_cast<size_t>(s.classes), -kInf);
        for (int64_t k = 0; k <= last; ++k) {
          double& share = shares[static_cast<size_t>(label_of(labels, k, blank))];
          share = log_add(share, a[k] + beta[static_cast<size_t>(k)]);
        }
        for (int64_t c = 0; c < s.classes; ++c) {
          out[(t * s.batch + n) * s.classes + c] =
              g[n] * (std::exp(row[c]) - std::exp(shares[static_cast<size_t>(c)] + loss - row[c]));
        }
      }
    }
  });
  return result.to(log_probs.scalar_type());
}
Tensor ctc_loss_backward_meta(const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                              IntArrayRef input_lengths, IntArrayRef target_lengths,
                              const Tensor& neg_log_likelihood, const Tensor& log_alpha,
                              int64_t blank, bool zero_infinity) {
  (void)grad, (void)targets, (void)input_lengths, (void)target_lengths, (void)neg_log_likelihood,
      (void)log_alpha, (void)blank, (void)zero_infinity;
  return lamella::empty(log_probs.sizes(), log_probs.options());
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                IntArrayRef target_lengths, int64_t blank, int64_t reduction, bool zero_infinity) {
  const bool batched = log_probs.dim() == 3;
  const Tensor rows = batched ? log_probs : log_probs.unsqueeze(1);
  Tensor loss = std::get<0>(
      aten::_ctc_loss(rows, targets, input_lengths, target_lengths, blank, zero_infinity));
  if (zero_infinity) loss = lamella::where(loss.eq(kInf), lamella::zeros_like(loss), loss);
  if (reduction == 1) {
    Dims lengths(target_lengths.begin(), target_lengths.end());
    for (int64_t& n : lengths) n = std::max<int64_t>(n, 1);
    std::vector<Tensor> each;
    for (size_t i = 0; i < lengths.size(); ++i) {
      each.push_back(loss.select(0, static_cast<int64_t>(i)).div(static_cast<double>(lengths[i])));
    }
    return lamella::stack(each).mean();
  }
  if (reduction == 2) return loss.sum();
  return batched ? loss : loss.squeeze(0);
}
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, int64_t reduction,
                bool zero_infinity) {
  return aten::ctc_loss(log_probs, targets, lengths_of(input_lengths, "input_lengths"),
                        lengths_of(target_lengths, "target_lengths"), blank, reduction,
                        zero_infinity);
}

}  // namespace aten::native
