// The contents of an archive: a tree of named values.
#pragma once
#include <memory>
#include <vector>

#include "lamella/api/functions.h"
#include "lamella/core/ivalue.h"

namespace lamella::serialize {

// Named values, in insertion order.
LAMELLA_LAZY struct ArchiveTreeOf {
  enum class Kind : uint8_t { kParameter, kBuffer, kAttribute };
  struct Entry {
    std::string key;
    Kind kind;
    IValue value;
    std::shared_ptr<ArchiveTreeOf> inner;  // a tree inside, in place of `value`
  };
  const Entry* find(std::string_view key) const {
    for (const Entry& entry : entries) {
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }
  std::vector<Entry> entries;
};
using ArchiveTree = ArchiveTreeOf<>;

namespace detail {

struct StorageName {
  ScalarType dtype;
  const char* name;
};
inline constexpr StorageName kStorages[] = {
    {kFloat, "FloatStorage"},
    {kDouble, "DoubleStorage"},
    {kHalf, "HalfStorage"},
    {kBFloat16, "BFloat16Storage"},
    {kLong, "LongStorage"},
    {kInt, "IntStorage"},
    {kShort, "ShortStorage"},
    {kChar, "CharStorage"},
    {kByte, "ByteStorage"},
    {kBool, "BoolStorage"},
    {kComplexFloat, "ComplexFloatStorage"},
    {kComplexDouble, "ComplexDoubleStorage"},
};

}  // namespace detail
}  // namespace lamella::serialize
