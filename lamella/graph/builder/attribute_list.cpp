// Setting attributes.
#include "lamella/graph/builder/attribute_list.h"

#include <algorithm>

namespace lamella::hlo {

Attribute& AttributeList::made(AttributeKey key, size_t size) {
  auto found = std::find_if(list_.begin(), list_.end(),
                            [&](const Attribute& one) { return one.key == key; });
  Attribute& one = found != list_.end() ? *found : list_.emplace_back();
  one.key = key;
  one.size = static_cast<uint32_t>(size);
  one.integer = 0;
  return one;
}

void AttributeList::integer(AttributeKey key, int64_t value) { made(key, 0).integer = value; }
void AttributeList::real(AttributeKey key, double value) { made(key, 0).real = value; }
void AttributeList::integers(AttributeKey key, std::span<const int64_t> values) {
  made(key, values.size()).integer_data = module_.arena().copy(values).data();
}
void AttributeList::text(AttributeKey key, std::string_view text) {
  made(key, text.size()).text_data = module_.arena().copy(text).data();
}
void AttributeList::window(std::span<const WindowDimension> dimensions) {
  made(AttributeKey::Window, dimensions.size()).window_data =
      module_.arena().copy(dimensions).data();
}
void AttributeList::padding(std::span<const PaddingDimension> dimensions) {
  made(AttributeKey::Padding, dimensions.size()).padding_data =
      module_.arena().copy(dimensions).data();
}
void AttributeList::slice(std::span<const SliceDimension> dimensions) {
  made(AttributeKey::Slice, dimensions.size()).slice_data = module_.arena().copy(dimensions).data();
}
void AttributeList::dim_labels(ConvolutionDimensions dimensions) {
  made(AttributeKey::DimLabels, 0).convolution =
      module_.arena().make<ConvolutionDimensions>(std::move(dimensions));
}
void AttributeList::computation(AttributeKey key, Computation* computation) {
  made(key, 0).computation = computation;
}
void AttributeList::computations(AttributeKey key, std::span<Computation* const> computations) {
  made(key, computations.size()).computation_data = module_.arena().copy(computations).data();
}
void AttributeList::shape(AttributeKey key, const Shape& shape) {
  made(key, 0).shape = module_.intern(shape);
}
void AttributeList::shapes(AttributeKey key, std::span<const Shape> shapes) {
  std::vector<const Shape*> list;
  for (const Shape& one : shapes) list.push_back(module_.intern(one));
  made(key, list.size()).shape_data =
      module_.arena().copy(std::span<const Shape* const>(list)).data();
}
void AttributeList::aliases(std::vector<OperandAlias> aliases) {
  auto* kept = module_.arena().make<std::vector<OperandAlias>>(std::move(aliases));
  made(AttributeKey::OutputToOperandAliasing, kept->size()).alias_data = kept->data();
}

bool AttributeList::has(AttributeKey key) const {
  return std::any_of(list_.begin(), list_.end(),
                     [&](const Attribute& one) { return one.key == key; });
}
std::span<const Attribute> AttributeList::sorted() {
  std::sort(list_.begin(), list_.end(),
            [](const Attribute& a, const Attribute& b) { return a.key < b.key; });
  return list_;
}

}  // namespace lamella::hlo
