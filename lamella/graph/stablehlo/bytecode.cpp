// Reading StableHLO's portable artifacts: MLIR's bytecode, versions 0 to 6, of the dialect vhlo.
#include <array>
#include <unordered_map>

#include "lamella/graph/stablehlo/bytecode_pool.h"
#include "lamella/graph/stablehlo/names.h"
#include "lamella/graph/stablehlo/sdy.h"

namespace lamella::hlo::stablehlo {
namespace {

// Versions of MLIR's bytecode from which something is written differently.
enum : uint64_t {
  kDialectVersions = 1,
  kLazyRegions = 2,
  kUseListOrders = 3,
  kElidedLocations = 4,
  kNativeProperties = 5,
  kNewest = 6,
};
enum Section : size_t {
  kStrings,
  kDialects,
  kData,
  kOffsets,
  kIr,
  kResources,
  kResourceOffsets,
  kDialectVersionsSection,
  kProperties,
  kSections
};

class Reader {
 public:
  Reader(std::string_view data, Arena& arena)
      : source_{data, false}, arena_(arena), pool_(source_, arena) {}

  Program run() {
    Bytes in(&source_, 0, source_.data.size());
    if (in.raw(4) != "ML\xefR") source_.fail(0, "expected MLIR's bytecode");
    version_ = in.number();
    if (version_ > kNewest) {
      in.fail("expected a version of MLIR's bytecode up to ", uint64_t{kNewest}, ", got ",
              version_);
    }
    const size_t end = source_.data.find('\0', in.position());
    if (end == std::string_view::npos) in.fail("expected the producer's name");
    producer_ = in.raw(end - in.position());
    in.byte();
    std::array<std::pair<size_t, size_t>, kSections> sections{};
    while (!in.at_end()) {
      size_t id = 0;
      Bytes body = section(in, &id);
      if (id >= kSections) body.fail("expected a section, got number ", id);
      sections[id] = {body.position(), body.position() + body.left()};
    }
    auto get = [&](Section which) {
      return Bytes(&source_, sections[which].first, sections[which].second);
    };
    pool_.read_strings(get(kStrings));
    read_dialects(get(kDialects));
    pool_.read_entries(get(kOffsets), get(kData), dialects_);
    if (sections[kProperties].second != 0) {
      Bytes properties = get(kProperties);
      for (size_t n = properties.count(); n > 0; --n) {
        const uint64_t size = properties.number();
        const size_t begin = properties.position();
        properties.raw(size);
        properties_.emplace_back(begin, begin + size);
      }
    }
    Bytes ir = get(kIr);
    std::vector<Value*> values;
    Block* top = blocks_of(ir, values, nullptr, 0, true);
    Program program{source_, nullptr};
    for (Operation* one : top->operations) {
      if (one->name == "module") program.root = one;
    }
    if (program.root == nullptr) ir.fail("expected a module");
    return program;
  }

 private:
  Bytes section(Bytes& in, size_t* id) {
    const uint8_t first = in.byte();
    *id = first & 127;
    const uint64_t size = in.number();
    if ((first & 128) != 0) {
      const uint64_t alignment = in.number();
      if (alignment == 0) in.fail("expected an alignment, got 0");
      while (in.position() % alignment != 0) in.byte();
    }
    const size_t begin = in.position();
    in.raw(size);
    return {&source_, begin, begin + size};
  }

  void read_dialects(Bytes in) {
    for (size_t n = in.count(); n > 0; --n) {
      if (version_ < kDialectVersions) {
        dialects_.push_back(pool_.string(in));
        continue;
      }
      bool has_version = false;
      dialects_.push_back(pool_.string_at(in, in.flagged(&has_version)));
      size_t id = 0;
      if (has_version) section(in, &id);
    }
    uint64_t wanted = version_ >= kElidedLocations ? in.number() : UINT64_MAX;
    while (version_ >= kElidedLocations ? names_.size() < wanted : !in.at_end()) {
      const uint64_t dialect = in.number();
      if (dialect >= dialects_.size()) in.fail("expected a dialect, got number ", dialect);
      const size_t count = in.count();
      if (count == 0) in.fail("expected the name of an operation, got none");
      for (size_t i = 0; i < count; ++i) {
        bool is_registered = true;
        const uint64_t number =
            version_ < kNativeProperties ? in.number() : in.flagged(&is_registered);
        std::string_view name = pool_.string_at(in, number);
        names_.push_back(Name{dialects_[dialect], name, nullptr});
        const bool is_sdy = dialects_[dialect] == "sdy";
        const std::string known = is_sdy ? str("sdy.", name, "_v0") : std::string(name);
        if ((is_sdy || dialects_[dialect] == "vhlo") && is_operation(known)) {
          names_.back().attributes = &own_attributes(known);
        }
      }
    }
  }

  // ---- Operations ----

  struct Name {
    std::string_view dialect;
    std::string_view text;                            // "add_v1"
    const std::vector<std::string_view>* attributes;  // NULL if the table has no such operation
  };

  Operation* operation(Bytes& in, std::vector<Value*>& values, size_t& next, int depth) {
    auto* made = arena_.make<Operation>();
    made->position = in.position();
    const uint64_t number = in.number();
    if (number >= names_.size()) in.fail("expected an operation's name, got number ", number);
    const Name& name = names_[number];
    const bool is_vhlo = name.dialect == "vhlo", is_sdy = name.dialect == "sdy";
    if ((is_vhlo || is_sdy) && name.attributes == nullptr) {
      in.fail("expected an operation of ", is_vhlo ? "VHLO" : "Shardy", ", got '", name.text, "' (",
              producer_, ")");
    }
    if (!is_vhlo && !is_sdy && name.dialect != "builtin") {
      in.fail("expected an operation of builtin or vhlo, got '", name.dialect, ".", name.text, "'");
    }
    made->name = is_vhlo ? name.text.substr(0, name.text.rfind("_v")) : name.text;
    if (is_sdy && name.text != "return") made->name = find_row(str("sdy.", name.text))->name;
    const uint8_t mask = in.byte();
    made->location = pool_.attribute(in);
    if ((mask & 1) != 0) add_dictionary(in, made, *pool_.attribute(in));
    if ((mask & 64) != 0) properties(in, made, name, is_vhlo || is_sdy);
    if ((mask & 2) != 0) {
      for (size_t n = in.count(); n > 0; --n) {
        made->results.push_back(define(in, values, next, pool_.type(in)));
      }
    }
    if ((mask & 4) != 0) {
      for (size_t n = in.count(); n > 0; --n) {
        const uint64_t value = in.number();
        if (value >= values.size() || values[value] == nullptr) {
          in.fail("expected a value that is defined above, got number ", value);
        }
        made->operands.push_back(values[value]);
      }
    }
    if ((mask & 8) != 0) in.fail("expected an operation without successors");
    if ((mask & 32) != 0) skip_use_orders(in, made->results.size());
    if ((mask & 16) != 0) regions(in, made, values, depth);
    return made;
  }
  void add_dictionary(Bytes& in, Operation* made, const Attribute& all) {
    if (all.kind != Attribute::Kind::Dictionary) in.fail("expected a dictionary of attributes");
    for (const Named& one : all.entries) made->attributes.push_back(one);
  }
  // The operation's own attributes, without their names.
  void properties(Bytes& in, Operation* made, const Name& name, bool is_known) {
    const uint64_t number = in.number();
    if (number >= properties_.size()) in.fail("expected properties, got number ", number);
    if (!is_known) return properties_of_builtin(in, made, number);
    Bytes own(&source_, properties_[number].first, properties_[number].second);
    for (std::string_view attribute : *name.attributes) {
      made->attributes.push_back({attribute, pool_.attribute(own)});
    }
    if (!own.at_end()) own.fail("expected the end of the attributes of '", name.text, "'");
  }
  // A module's: its name and its visibility, each of which may be absent.
  void properties_of_builtin(Bytes&, Operation* made, uint64_t number) {
    Bytes own(&source_, properties_[number].first, properties_[number].second);
    for (std::string_view name : {"sym_name", "sym_visibility"}) {
      if (own.at_end()) return;
      bool has = false;
      const uint64_t index = own.flagged(&has);
      if (has) made->attributes.push_back({name, pool_.attribute_at(own, index)});
    }
  }

  Value* define(Bytes& in, std::vector<Value*>& values, size_t& next, const Type* type) {
    if (next >= values.size()) in.fail("expected fewer values in a region");
    auto* made = arena_.make<Value>();
    made->type = type;
    return values[next++] = made;
  }

  void regions(Bytes& in, Operation* made, std::vector<Value*>& values, int depth) {
    if (depth >= kMostNested) in.fail("expected at most ", kMostNested, " nested regions");
    bool is_isolated = false;
    const size_t count = in.count_of(in.flagged(&is_isolated));
    if (!is_isolated) {
      for (size_t i = 0; i < count; ++i) region(in, made, values, depth);
      return;
    }
    std::vector<Value*> own;
    if (version_ < kLazyRegions) {
      for (size_t i = 0; i < count; ++i) region(in, made, own, depth);
      return;
    }
    size_t id = 0;
    Bytes body = section(in, &id);
    if (id != kIr) body.fail("expected a section of operations, got number ", id);
    for (size_t i = 0; i < count; ++i) region(body, made, own, depth);
    if (!body.at_end()) body.fail("expected the end of a region");
  }
  void region(Bytes& in, Operation* made, std::vector<Value*>& values, int depth) {
    Region& one = made->regions.emplace_back();
    const size_t before = values.size();
    blocks_of(in, values, &one, depth + 1, false);
    values.resize(before);
  }
  // The blocks of a region; at the top one block without arguments, with the number of operations.
  Block* blocks_of(Bytes& in, std::vector<Value*>& values, Region* into, int depth, bool is_top) {
    const size_t blocks = is_top ? 1 : in.count();
    if (blocks == 0) return nullptr;
    size_t next = values.size();
    if (!is_top) values.resize(next + in.count(), nullptr);
    Block* made = nullptr;
    for (size_t b = 0; b < blocks; ++b) {
      made = arena_.make<Block>();
      if (into != nullptr) into->blocks.push_back(made);
      bool has_arguments = false;
      const uint64_t operations = in.flagged(&has_arguments);
      if (has_arguments) arguments(in, made, values, next);
      for (uint64_t i = 0; i < operations; ++i) {
        made->operations.push_back(operation(in, values, next, depth));
      }
    }
    return made;
  }
  void arguments(Bytes& in, Block* made, std::vector<Value*>& values, size_t& next) {
    for (size_t n = in.count(); n > 0; --n) {
      bool has_location = true;
      const uint64_t type = version_ >= kElidedLocations ? in.flagged(&has_location) : in.number();
      const Type* found = pool_.type_at(in, type);
      if (has_location) in.number();
      made->arguments.push_back(define(in, values, next, found));
    }
    if (version_ >= kUseListOrders && in.byte() != 0) {
      skip_use_orders(in, made->arguments.size());
    }
  }
  // In which order the uses of values are listed in memory, which means nothing here.
  void skip_use_orders(Bytes& in, size_t values) {
    for (size_t n = values > 1 ? in.count() : 1; n > 0; --n) {
      if (values > 1) in.number();
      bool in_pairs = false;
      for (size_t uses = in.count_of(in.flagged(&in_pairs)); uses > 0; --uses) in.number();
    }
  }

  Source source_;
  Arena& arena_;
  Pool pool_;
  uint64_t version_ = 0;
  std::string_view producer_;
  std::vector<std::string_view> dialects_;
  std::vector<Name> names_;
  std::vector<std::pair<size_t, size_t>> properties_;
};

}  // namespace

Program read_bytecode(std::string_view data, Arena& arena) { return Reader(data, arena).run(); }

}  // namespace lamella::hlo::stablehlo
