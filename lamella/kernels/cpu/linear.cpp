// linear and its backward, each in one step.
#include "lamella/kernels/cpu/gemm.h"

namespace lamella::native {

namespace {
bool has(const std::optional<Tensor>& tensor) { return tensor.has_value() && tensor->defined(); }

// A tensor of any rank as a matrix with its last dimension as columns; copied if strides require
// it.
struct Rows {
  Tensor kept;
  int64_t count, columns;
  Matrices matrix;

  explicit Rows(const Tensor& tensor) : kept(tensor) {
    size_t n = tensor.sizes().size();
    columns = tensor.sizes()[n - 1];
    count = product(tensor.sizes().slice(0, n - 1));
    if (n == 2) {
      matrix = Matrices::of(tensor);
      matrix.batch = 0;
      return;
    }
    kept = tensor.contiguous();
    matrix = {kept.data_ptr(), columns, 1, 0};
  }
};

Tensor odd_linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  Tensor result = lamella::matmul(input, weight.t());
  return has(bias) ? result.add(*bias) : result;
}
}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  const char* op = "linear";
  int64_t rank = input.dim();
  LAMELLA_CHECK(rank > 0,
                "linear: expected 'input' to have at least 1 dimension, got a tensor with 0");
  LAMELLA_CHECK(weight.dim() == 2 || weight.dim() == 1,
                "linear: expected 'weight' to have 1 or 2 dimensions, got ", weight.sizes());
  int64_t features = weight.sizes()[static_cast<size_t>(weight.dim() - 1)];
  LAMELLA_CHECK(input.sizes()[static_cast<size_t>(rank - 1)] == features,
                "linear: expected 'input' to be of shape [..., ", features, "], got ",
                input.sizes());
  LAMELLA_CHECK(input.scalar_type() == weight.scalar_type(), op, ": expected 'weight' to be ",
                input.scalar_type(), ", got ", weight.scalar_type());
  if (weight.dim() == 1 || (has(bias) && bias->dim() > 1)) return odd_linear(input, weight, bias);
  int64_t width = weight.sizes()[0];
  if (has(bias)) {
    LAMELLA_CHECK(bias->numel() == width || bias->numel() == 1, op,
                  ": expected 'bias' to be of shape [", width, "], got ", bias->sizes());
    LAMELLA_CHECK(bias->scalar_type() == input.scalar_type(), op, ": expected 'bias' to be ",
                  input.scalar_type(), ", got ", bias->scalar_type());
  }
  Dims shape(input.sizes());
  shape.back() = width;
  Tensor out = new_tensor(shape, input.scalar_type(), input.device());
  if (input.is_meta() || out.numel() == 0) return out;
  Rows x(input);
  bool biased = has(bias);
  Matrices w = Matrices::given(weight);
  gemm(op, {input.scalar_type(),
            1,
            x.count,
            width,
            features,
            x.matrix,
            w.transposed(),
            {out.data_ptr(), width, 1, 0},
            1,
            biased ? 1 : 0,
            biased ? Matrices{bias->data_ptr(), 0, bias->numel() == 1 ? 0 : bias->strides()[0], 0}
                   : Matrices{},
            out.device()});
  return out;
}

std::tuple<Tensor, Tensor, Tensor> linear_backward(const Tensor& self, const Tensor& grad_output,
                                                   const Tensor& weight,
                                                   std::array<bool, 3> output_mask) {
  const char* op = "linear_backward";
  LAMELLA_CHECK(weight.dim() == 2, op, ": expected 'weight' to have 2 dimensions, got ",
                weight.sizes());
  int64_t features = weight.sizes()[1], width = weight.sizes()[0];
  Dims expected(self.sizes());
  LAMELLA_CHECK(!expected.empty() && expected.back() == features, op,
                ": expected 'self' to be of shape [..., ", features, "], got ", self.sizes());
  expected.back() = width;
  LAMELLA_CHECK(grad_output.sizes().equals(expected), op,
                ": expected 'grad_output' to be of shape ", expected, ", got ",
                grad_output.sizes());
  ScalarType dtype = self.scalar_type();
  LAMELLA_CHECK(weight.scalar_type() == dtype && grad_output.scalar_type() == dtype, op,
                ": expected 'grad_output' and 'weight' to be ", dtype, ", got ",
                grad_output.scalar_type(), " and ", weight.scalar_type());
  Tensor dx, dw, db;
  if (output_mask[0]) dx = new_tensor(self.sizes(), dtype, self.device());
  if (output_mask[1]) dw = new_tensor(weight.sizes(), dtype, self.device());
  if (self.is_meta()) {
    return {dx, dw, output_mask[2] ? new_tensor({width}, dtype, kMeta) : Tensor()};
  }
  Rows dy(grad_output);
  if (output_mask[0]) {
    Matrices w = Matrices::given(weight);
    if (width == 0) dx.zero_();
    // Gradients of complex tensors use the conjugate.
    if (is_complex(dtype)) {
      dx = lamella::matmul(grad_output, weight.conj_physical());
    } else if (width != 0) {
      gemm(op, {dtype,
                1,
                dy.count,
                features,
                width,
                dy.matrix,
                w,
                {dx.data_ptr(), features, 1, 0},
                1,
                0,
                {},
                dx.device()});
    }
  }
  if (output_mask[1]) {
    if (dy.count == 0) {
      dw.zero_();
    } else {
      Rows x(is_complex(dtype) ? self.conj_physical() : self);
      gemm(op, {dtype,
                1,
                width,
                features,
                dy.count,
                dy.matrix.transposed(),
                x.matrix,
                {dw.data_ptr(), features, 1, 0},
                1,
                0,
                {},
                dw.device()});
    }
  }
  if (output_mask[2]) {
    Dims over;
    for (int64_t d = 0; d + 1 < grad_output.dim(); ++d) over.push_back(d);
    db = over.empty() ? grad_output.clone() : grad_output.sum(over.ref());
  }
  return {dx, dw, db};
}

}  // namespace lamella::native
