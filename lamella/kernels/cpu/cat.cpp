// cat: tensors one after the other along a dimension.
#include <cstring>

#include "lamella/core/checked_size.h"
#include "lamella/kernels/cpu/copy.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella {

namespace {
// Tensors of shape [0] are skipped, whatever the others' shape.
bool is_skipped(const Tensor& tensor) { return tensor.dim() == 1 && tensor.numel() == 0; }
}  // namespace

namespace meta {
LAMELLA_META_FUNC(cat)(TensorList tensors, int64_t dim) {
  LAMELLA_CHECK(!tensors.empty(), "cat: expected 'tensors' not to be empty");
  const Tensor* model = nullptr;
  ScalarType dtype = tensors[0].scalar_type();
  bool one_format = true;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    LAMELLA_CHECK(tensor.dim() > 0, "cat: expected 'tensors' to have dimensions, got one without ",
                  "at position ", i);
    check_no_overlap(0, "tensors", tensor);
    if (tensor.scalar_type() != dtype) {
      dtype = promote_types(dtype, tensor.scalar_type());
    }
    if (is_skipped(tensor)) continue;
    if (model == nullptr) model = &tensor;
    one_format &= tensor.suggest_memory_format() == model->suggest_memory_format();
  }
  if (model == nullptr) model = &tensors[0];
  if (output_mode() != OutputMode::kFunctional && can_cast(dtype, maybe_get_output(0).dtype())) {
    dtype = maybe_get_output(0).dtype();
  }
  dim = maybe_wrap_dim(dim, model->dim(), "cat");
  native::Dims shape(model->sizes());
  CheckedSize total(0, "cat");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (is_skipped(tensor)) continue;
    bool fits = tensor.dim() == model->dim();
    for (size_t d = 0; fits && d < shape.size(); ++d) {
      fits = static_cast<int64_t>(d) == dim || tensor.sizes()[d] == shape[d];
    }
    if (!fits) {
      std::string expected = "[";
      for (size_t d = 0; d < shape.size(); ++d) {
        expected +=
            (d ? ", " : "") + (static_cast<int64_t>(d) == dim ? std::string("*") : str(shape[d]));
      }
      LAMELLA_CHECK(false, "cat: expected 'tensors' to be of shape ", expected, "], got ",
                    tensor.sizes(), " at position ", i);
    }
    total += tensor.sizes()[static_cast<size_t>(dim)];
  }
  shape[static_cast<size_t>(dim)] = total.value();
  MemoryFormat format = one_format ? model->suggest_memory_format() : MemoryFormat::Contiguous;
  native::Dims strides = native::strides_in_format(shape, format);
  set_output_raw_strided(0, shape, strides, tensors[0].options().dtype(dtype));
}
}  // namespace meta

namespace native {

namespace {
// All contiguous and of one dtype: each outer position is a row of blocks.
void cat_blocks(TensorList tensors, size_t dim, const Tensor& out) {
  int64_t outer = 1;
  for (size_t d = 0; d < dim; ++d) outer *= out.sizes()[d];
  if (outer == 0) return;
  int64_t row = static_cast<int64_t>(out.nbytes()) / outer;
  auto* to = static_cast<char*>(out.data_ptr());
  int64_t grain = row == 0 ? outer : (1 << 19) / row + 1;
  parallel_for(0, outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      char* at = to + i * row;
      for (const Tensor& tensor : tensors) {
        auto block = static_cast<size_t>(static_cast<int64_t>(tensor.nbytes()) / outer);
        if (block == 0) continue;
        std::memcpy(
            at, static_cast<const char*>(tensor.const_data_ptr()) + static_cast<size_t>(i) * block,
            block);
        at += block;
      }
    }
  });
}
}  // namespace

LAMELLA_IMPL_FUNC(cat_cpu)(TensorList tensors, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  auto d = static_cast<size_t>(maybe_wrap_dim(dim, out.dim(), "cat"));
  bool blocks = out.is_contiguous();
  for (const Tensor& tensor : tensors) {
    blocks &= tensor.is_contiguous() && tensor.scalar_type() == out.scalar_type();
  }
  if (blocks) return cat_blocks(tensors, d, out);
  auto* to = static_cast<char*>(out.data_ptr());
  for (const Tensor& tensor : tensors) {
    if (tensor.numel() == 0) continue;
    copy_strided(tensor.sizes().data(), tensor.dim(), {to, out.strides().data(), out.scalar_type()},
                 {tensor.data_ptr(), tensor.strides().data(), tensor.scalar_type()});
    to += tensor.sizes()[d] * out.strides()[d] * out.element_size();
  }
}

}  // namespace native
}  // namespace lamella
