// cat: tensors one after the other along a dimension.
#include <vector>

#include "lamella/core/checked_size.h"
#include "lamella/kernels/cpu/copy.h"
#include "lamella/kernels/cpu/movement.h"
#include "lamella/kernels/native.h"
#include "lamella/kernels/parallel.h"

namespace lamella {

namespace {
// Tensors of shape [0] are skipped, whatever the others' shape.
bool is_skipped(const Tensor& tensor) { return tensor.dim() == 1 && tensor.numel() == 0; }
}  // namespace

namespace meta {
LAMELLA_META_FUNC(cat)(TensorList tensors, int64_t dim) {
  LAMELLA_CHECK_VALUE(!tensors.empty(), "cat: expected 'tensors' not to be empty");
  const Tensor* model = nullptr;
  ScalarType dtype = tensors[0].scalar_type();
  bool one_format = true;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    LAMELLA_CHECK(tensor.dim() > 0, "cat: expected 'tensors' to have at least 1 dimension, got ",
                  "a tensor with 0 at position ", i);
    check_no_overlap(0, "tensors", tensor);
    if (tensor.scalar_type() != dtype) {
      dtype = promote_types(dtype, tensor.scalar_type());
    }
    if (is_skipped(tensor)) continue;
    if (model == nullptr) model = &tensor;
    one_format &= tensor.suggest_memory_format() == model->suggest_memory_format();
  }
  if (model == nullptr) {
    model = &tensors[0];
    dim = 0;  // all tensors are empty, so any dimension is accepted
  }
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
constexpr int64_t kCatGrain = 1 << 19;  // bytes

// Contiguous tensors of one dtype: the result has a row for each outer position, in which each
// tensor has one block.
struct Blocks {
  std::vector<const char*> from;
  std::vector<int64_t> bytes;  // size of each tensor's block
  int64_t outer = 1, row = 0;  // number of rows, bytes in a row
};

// Copies the tensors one after the other, for a result of one row.
void join_pieces(const Blocks& blocks, char* to) {
  const bool stream = blocks.row >= kStreamBytes;
  for (size_t k = 0; k < blocks.from.size(); ++k) {
    const char* from = blocks.from[k];
    parallel_for(0, blocks.bytes[k], kCatGrain, [&](int64_t begin, int64_t end) {
      movement_on(kCPU, 1).plane({to + begin, {1, 0}}, {const_cast<char*>(from) + begin, {1, 0}},
                                 end - begin, 1, stream);
    });
    to += blocks.bytes[k];
  }
}

void cat_blocks(TensorList tensors, size_t dim, const Tensor& out) {
  Blocks blocks;
  for (size_t d = 0; d < dim; ++d) blocks.outer *= out.sizes()[d];
  if (blocks.outer == 0) return;
  bool alike = true;
  for (const Tensor& tensor : tensors) {
    int64_t bytes = static_cast<int64_t>(tensor.nbytes()) / blocks.outer;
    if (bytes == 0) continue;
    blocks.from.push_back(static_cast<const char*>(tensor.const_data_ptr()));
    blocks.bytes.push_back(bytes);
    blocks.row += bytes;
    alike &= bytes == blocks.bytes[0];
  }
  auto* to = static_cast<char*>(out.data_ptr());
  if (blocks.outer == 1) return join_pieces(blocks, to);
  const auto count = static_cast<int64_t>(blocks.from.size());
  const int64_t first = blocks.bytes[0];
  const bool elements = alike && first == static_cast<int64_t>(out.itemsize());
  parallel_for(0, blocks.outer, kCatGrain / blocks.row + 1, [&](int64_t begin, int64_t end) {
    // The written piece stays in the first-level cache while all tensors are copied into it.
    const int64_t piece = 16384 / blocks.row + 1;
    std::vector<const char*> sources(blocks.from);
    for (int64_t i = begin; i < end; i += piece) {
      const int64_t now = end - i < piece ? end - i : piece;
      char* at = to + i * blocks.row;
      if (elements) {
        for (size_t k = 0; k < sources.size(); ++k) sources[k] = blocks.from[k] + i * first;
        movement_on(kCPU, first).interleave(at, sources.data(), count, now);
        continue;
      }
      for (size_t k = 0; k < sources.size(); ++k) {
        const int64_t bytes = blocks.bytes[k];
        auto* from = const_cast<char*>(blocks.from[k] + i * bytes);
        movement_on(kCPU, 1).plane({at, {1, blocks.row}}, {from, {1, bytes}}, bytes, now, false);
        at += bytes;
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
