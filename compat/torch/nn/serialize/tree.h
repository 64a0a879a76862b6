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
  // The tree inside under a name; it is added if there is none.
  ArchiveTreeOf* inside(const std::string& name) {
    for (Entry& entry : entries) {
      if (entry.key == name && entry.inner != nullptr) return entry.inner.get();
    }
    entries.push_back({name, Kind::kAttribute, IValue(), std::make_shared<ArchiveTreeOf>()});
    return entries.back().inner.get();
  }
  // The tree for the last part of a name, which is left in `name`; each part before one of the
  // separators is a tree inside. Trees end recursively, so their depth has a limit.
  ArchiveTreeOf* place(std::string* name, const char* separators) {
    ArchiveTreeOf* to = this;
    int depth = 0;
    for (size_t end; (end = name->find_first_of(separators)) != std::string::npos;) {
      LAMELLA_CHECK(++depth < kMostInside, "load: expected a name of at most ", kMostInside,
                    " parts, got more");
      to = to->inside(name->substr(0, end));
      name->erase(0, end + 1);
    }
    return to;
  }
  static constexpr int kMostInside = 200;
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
