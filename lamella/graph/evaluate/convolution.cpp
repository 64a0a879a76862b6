// Convolution over any number of spatial dimensions.
//
// Note [Groups of a convolution]
//   feature_group_count divides the input and output features into that many groups; an output
//   feature sums over the input features of its group. batch_group_count divides the input's batch
//   and the output features into groups; an output feature reads the batch group of equal number.
#include "lamella/core/interrupt.h"
#include "lamella/graph/evaluate/contraction.h"
#include "lamella/graph/evaluate/elements.h"

namespace lamella::hlo {
namespace {

struct Sides {
  std::vector<int64_t> input, kernel, output;  // strides
};
// The offsets of an input element and of the kernel element by which an output multiplies it.
struct Meeting {
  int64_t input;
  int64_t kernel;
};

class Convolution {
 public:
  explicit Convolution(const Instruction& i)
      : shape_{i.operand_shape(0), i.operand_shape(1), *i.shape},
        d_(*i.find(AttributeKey::DimLabels)->convolution),
        strides_{row_major_strides(shape_.input.dimensions()),
                 row_major_strides(shape_.kernel.dimensions()),
                 row_major_strides(shape_.output.dimensions())},
        feature_groups_(i.integer(AttributeKey::FeatureGroupCount, 1)),
        batch_groups_(i.integer(AttributeKey::BatchGroupCount, 1)) {
    if (const Attribute* found = i.find(AttributeKey::Window)) window_ = found->window();
    for (int64_t s : d_.output_spatial) output_sizes_.push_back(shape_.output.dimension(s));
    for (int64_t s : d_.kernel_spatial) kernel_sizes_.push_back(shape_.kernel.dimension(s));
  }

  template <class Wide>
  void run(const std::vector<Wide>& input, const std::vector<Wide>& kernel,
           std::vector<Wide>& sums) const {
    int64_t batch = shape_.output.dimension(d_.output_batch);
    int64_t outputs = shape_.output.dimension(d_.output_feature);
    int64_t features = shape_.kernel.dimension(d_.kernel_input_feature);
    auto stride = [](const std::vector<int64_t>& strides, int64_t dimension) {
      return strides[static_cast<size_t>(dimension)];
    };
    int64_t input_step = stride(strides_.input, d_.input_feature);
    int64_t kernel_step = stride(strides_.kernel, d_.kernel_input_feature);
    std::vector<Meeting> meetings;
    for (Counter at(output_sizes_); at.valid(); at.next()) {
      find_meetings(at.index(), &meetings);
      int64_t spatial = 0;
      for (size_t s = 0; s < output_sizes_.size(); ++s) {
        spatial += at[s] * stride(strides_.output, d_.output_spatial[s]);
      }
      for (int64_t n = 0; n < batch; ++n) {
        for (int64_t o = 0; o < outputs; ++o) {
          int64_t feature_group = o / (outputs / feature_groups_);
          int64_t batch_group = o / (outputs / batch_groups_);
          const Wide* from = input.data() +
                             (n + batch_group * batch) * stride(strides_.input, d_.input_batch) +
                             feature_group * features * input_step;
          const Wide* weights =
              kernel.data() + o * stride(strides_.kernel, d_.kernel_output_feature);
          count_steps(static_cast<int64_t>(meetings.size()) * features);
          Wide sum{};
          for (const Meeting& m : meetings) {
            for (int64_t f = 0; f < features; ++f) {
              sum += from[m.input + f * input_step] * weights[m.kernel + f * kernel_step];
            }
          }
          sums[static_cast<size_t>(n * stride(strides_.output, d_.output_batch) +
                                   o * stride(strides_.output, d_.output_feature) + spatial)] = sum;
        }
      }
    }
  }

 private:
  // Finds all window positions that hit input elements, not padding or holes of the dilation.
  void find_meetings(std::span<const int64_t> output, std::vector<Meeting>* meetings) const {
    meetings->clear();
    for (Counter k(kernel_sizes_); k.valid(); k.next()) {
      Meeting meeting{0, 0};
      bool inside = true;
      for (size_t s = 0; s < kernel_sizes_.size() && inside; ++s) {
        const WindowDimension& w = window_[s];
        int64_t dimension = d_.input_spatial[s];
        int64_t at = output[s] * w.stride - w.padding_low + k[s] * w.window_dilation;
        inside = at >= 0 && at % w.base_dilation == 0 &&
                 at / w.base_dilation < shape_.input.dimension(dimension);
        int64_t weight = w.reversal ? kernel_sizes_[s] - 1 - k[s] : k[s];
        meeting.input += at / w.base_dilation * strides_.input[static_cast<size_t>(dimension)];
        meeting.kernel += weight * strides_.kernel[static_cast<size_t>(d_.kernel_spatial[s])];
      }
      if (inside) meetings->push_back(meeting);
    }
  }

  struct {
    const Shape &input, &kernel, &output;
  } shape_;
  const ConvolutionDimensions& d_;
  Sides strides_;
  int64_t feature_groups_, batch_groups_;
  std::span<const WindowDimension> window_;
  std::vector<int64_t> output_sizes_, kernel_sizes_;
};

}  // namespace

Value evaluate_convolution(Step& step) {
  const Instruction& i = step.instruction;
  for (size_t n = 0; n < 2; ++n) {
    ElementType type = i.operand_shape(n).element_type();
    LAMELLA_HLO_REQUIRE(
        !is_integral(step.shape().element_type()) || is_integral(type) || type == ElementType::PRED,
        i, "expected operand ", n, " to hold integers as the result does, got ",
        element_name(type));
  }
  Convolution convolution(i);
  Value result = step.result();
  visit_wide(step.shape().element_type(), [&]<class Wide>() {
    std::vector<Wide> sums(static_cast<size_t>(step.shape().elements()));
    convolution.run(widened<Wide>(step.operands[0]), widened<Wide>(step.operands[1]), sums);
    store_wide(sums, result);
  });
  return result;
}

}  // namespace lamella::hlo
