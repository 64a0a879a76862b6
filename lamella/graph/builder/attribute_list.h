// AttributeList: collects the attributes of an instruction before it is added. Internal to
// lamella/graph/builder.
#pragma once
#include <string_view>
#include <vector>

#include "lamella/graph/hlo/module.h"

namespace lamella::hlo {

// Values are copied into the module's arena. Setting a key again replaces it.
class AttributeList {
 public:
  explicit AttributeList(Module& module) : module_(module) {}

  void integer(AttributeKey key, int64_t value);
  void flag(AttributeKey key, bool value) { integer(key, value ? 1 : 0); }
  void real(AttributeKey key, double value);
  void integers(AttributeKey key, std::span<const int64_t> values);
  void text(AttributeKey key, std::string_view text);  // Word, String and Text
  void window(std::span<const WindowDimension> dimensions);
  void padding(std::span<const PaddingDimension> dimensions);
  void slice(std::span<const SliceDimension> dimensions);
  void dim_labels(ConvolutionDimensions dimensions);
  void computation(AttributeKey key, Computation* computation);
  void computations(AttributeKey key, std::span<Computation* const> computations);
  void shape(AttributeKey key, const Shape& shape);
  void shapes(AttributeKey key, std::span<const Shape> shapes);
  void aliases(std::vector<OperandAlias> aliases);

  bool has(AttributeKey key) const;
  // In the order of attribute.def.
  std::span<const Attribute> sorted();

 private:
  Attribute& made(AttributeKey key, size_t size);

  Module& module_;
  std::vector<Attribute> list_;
};

}  // namespace lamella::hlo
