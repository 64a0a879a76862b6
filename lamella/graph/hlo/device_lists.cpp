// Reading shardings and lists of devices.
#include "lamella/graph/hlo/device_lists.h"

#include <algorithm>
#include <vector>

#include "lamella/graph/hlo/attribute_scanner.h"

namespace lamella::hlo {
namespace {

using Numbers = std::vector<int64_t>;

Numbers numbers_between(Scanner& s, char open, char close) {
  Numbers numbers;
  s.expect(open);
  do {
    numbers.push_back(s.integer());
  } while (s.take(','));
  s.expect(close);
  return numbers;
}
int64_t product(Scanner& s, const Numbers& numbers) {
  int64_t made = 1;
  for (int64_t n : numbers) {
    if (__builtin_mul_overflow(made, n, &made)) s.fail("expected fewer devices");
  }
  return made;
}

// [4], [2,2]T(1,0): returns the number of devices.
int64_t scan_iota(Scanner& s) {
  Numbers sizes = numbers_between(s, '[', ']');
  if (sizes.size() > 1) {
    s.expect('T');
    size_t at = s.position();
    Numbers order = numbers_between(s, '(', ')');
    auto rank = static_cast<int64_t>(sizes.size());
    bool good = order.size() == sizes.size() &&
                std::ranges::all_of(order, [&](int64_t d) { return d >= 0 && d < rank; });
    if (!good) s.fail_at(at, str("expected an order of ", rank, " dimensions"));
  }
  return product(s, sizes);
}

// [2,2]<=[4], [2,2]0,1,2,3: tiles, and as many devices.
Numbers scan_tiles(Scanner& s, bool may_list) {
  size_t at = s.position();
  Numbers tiles = numbers_between(s, '[', ']');
  int64_t devices = 0;
  if (s.take("<=")) {
    devices = scan_iota(s);
  } else if (may_list) {
    do {
      s.integer();
      ++devices;
    } while (s.take(','));
  } else {
    s.fail("expected '<=', got ", s.next());
  }
  if (devices != product(s, tiles)) {
    s.fail_at(at, str("expected ", product(s, tiles), " devices for the tiles, got ", devices));
  }
  return tiles;
}

// ---- Meshes ------------------------------------------------------------------------------------

std::string_view axis_name(Scanner& s) {
  const char quote = s.peek();
  if (quote != '\'' && quote != '"') s.fail("expected an axis in quotes, got ", s.next());
  s.take(quote);
  size_t begin = s.position(), end = s.text().find(quote, begin);
  if (end == std::string_view::npos) s.fail("expected a quote to end the axis, got the end");
  s.seek(end + 1);
  return s.text().substr(begin, end - begin);
}

struct Axis {
  std::string_view name;
  int64_t size;
};
// One axis of a list, or the part of it that 'name':(before)size means.
struct AxisPart {
  size_t axis;
  int64_t begin, end;  // the parts of one axis overlap if these ranges of factors do
  int64_t size;
};

class Mesh {
 public:
  explicit Mesh(Scanner& s) : s_(s) {
    is_maximal_ = s.word() == "maximal_mesh";
    s.expect('[');
    if (is_maximal_) {
      s.expect("device_id");
      s.expect('=');
      s.integer();
      s.expect(']');
      return;
    }
    Numbers sizes;
    while (!s.take(']')) {
      std::string_view name = axis_name(s);
      s.expect('=');
      for (const Axis& before : axes_) {
        if (before.name == name) s.fail("expected each axis once, got '", name, "' again");
      }
      axes_.push_back({name, s.integer()});
      sizes.push_back(axes_.back().size);
      if (sizes.back() <= 0) s.fail("expected a positive size of '", name, "'");
      if (s.peek() != ']') s.expect(',');
    }
    size_t at = s.position();
    if (!s.take(',') || !at_word(s, "device_ids")) {
      s.seek(at);
      return;
    }
    s.word();
    s.expect('=');
    s.expect('(');
    int64_t devices = 0;
    if (s.peek() == '[') {
      devices = scan_iota(s);
      s.expect(')');
    } else {
      s.seek(s.position() - 1);
      devices = static_cast<int64_t>(numbers_between(s, '(', ')').size());
    }
    if (devices != product(s, sizes)) {
      s.fail_at(at, str("expected ", product(s, sizes), " device_ids, got ", devices));
    }
  }
  bool is_maximal() const { return is_maximal_; }

  // {'a', 'b':(1)2, ?}: adds the axes to `taken`, where none may be twice. Returns their product.
  int64_t scan_axes(std::vector<AxisPart>* taken, bool may_be_open) {
    int64_t size = 1;
    size_t first = taken->size();
    s_.expect('{');
    while (!s_.take('}')) {
      if (may_be_open && s_.take('?')) {
        s_.expect('}');
        break;
      }
      AxisPart part = scan_axis();
      for (const AxisPart& before : *taken) {
        if (before.axis == part.axis && before.begin < part.end && part.begin < before.end) {
          s_.fail("expected each axis once, got '", axes_[part.axis].name, "' again");
        }
      }
      bool continues = taken->size() > first && taken->back().axis == part.axis &&
                       taken->back().end == part.begin;
      if (may_be_open && continues) {
        s_.fail("expected adjacent parts of axis '", axes_[part.axis].name, "' as one part");
      }
      taken->push_back(part);
      size *= part.size;
      if (s_.peek() != '}') s_.expect(',');
    }
    return size;
  }

 private:
  AxisPart scan_axis() {
    size_t at = s_.position();
    std::string_view name = axis_name(s_);
    size_t axis = 0;
    while (axis < axes_.size() && axes_[axis].name != name) ++axis;
    if (axis == axes_.size()) {  // also by number
      auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), axis);
      bool is_number = error == std::errc() && end == name.data() + name.size();
      if (!is_number || axis >= axes_.size()) {
        s_.fail_at(at, str("expected an axis of the mesh, got '", name, "'"));
      }
    }
    int64_t whole = axes_[axis].size;
    if (!s_.take(':')) return {axis, 1, std::max<int64_t>(whole, 2), whole};
    s_.expect('(');
    int64_t before = s_.integer();
    s_.expect(')');
    int64_t size = s_.integer(), after = 0;
    bool good = before > 0 && size > 1 && size < whole &&
                !__builtin_mul_overflow(before, size, &after) && whole % after == 0;
    if (!good) {
      s_.fail_at(at, str("expected a part of axis '", axes_[axis].name, "' of size ", whole,
                         ", got (", before, ")", size));
    }
    return {axis, before, after, size};
  }

  Scanner& s_;
  bool is_maximal_ = false;
  std::vector<Axis> axes_;
};

bool at_mesh(Scanner& s) { return at_word(s, "mesh") || at_word(s, "maximal_mesh"); }

void scan_metadata(Scanner& s) { skip_brackets(s, '{'); }

void scan_mesh_sharding(Scanner& s) {
  Mesh mesh(s);
  std::vector<AxisPart> taken;
  auto operation = [&] {  // of unreduced axes
    if (s.peek() == '{' || s.peek() == '}' || s.peek() == ',') return;
    std::string_view word = s.word();
    if (word != "sum" && word != "max" && word != "min") {
      s.fail("expected sum, max or min, got '", word, "'");
    }
  };
  if (!mesh.is_maximal()) {
    s.take(',');
    if (s.peek() == '[') {
      s.expect('[');
      while (!s.take(']')) {
        mesh.scan_axes(&taken, true);
        if (s.peek() != ']') s.expect(',');
      }
    } else {
      std::string_view word = s.word();
      if (word == "unreduced") {
        if (s.take('=')) operation();
        if (s.peek() == '{') mesh.scan_axes(&taken, false);
      } else if (word != "replicated" && word != "manual") {
        s.fail("expected the axes of each dimension, got '", word, "'");
      }
    }
  }
  while (s.take(',')) {
    std::string_view word = s.word();
    s.expect('=');
    if (word == "metadata") {
      scan_metadata(s);
      continue;
    }
    if (word != "replicated" && word != "unreduced" && word != "manual") {
      s.fail("expected replicated, unreduced, manual or metadata, got '", word, "'");
    }
    if (word == "unreduced") operation();
    mesh.scan_axes(&taken, false);
  }
  s.expect('}');
}

// What follows the opening brace.
void scan_one_sharding(Scanner& s) {
  if (at_mesh(s)) return scan_mesh_sharding(s);
  size_t begin = s.position();
  std::string_view kind;
  int64_t devices = 0;
  bool has_tiles = false;
  while (!s.take('}')) {
    std::string_view word = s.word();
    if (word == "replicated" || word == "manual" || word == "unknown" || word == "unreduced" ||
        word == "maximal") {
      if (kind.empty() || word == "replicated") kind = word;
    } else if (word == "device") {
      s.expect('=');
      s.integer();
      devices = 1;
    } else if (word == "devices") {
      s.expect('=');
      scan_tiles(s, true);
      has_tiles = true;
    } else if (word == "metadata") {
      s.expect('=');
      scan_metadata(s);
    } else if (word == "last_tile_dims") {
      s.expect('=');
      s.expect('{');
      while (!s.take('}')) {
        std::string_view type = s.word();
        if (type != "replicated" && type != "manual" && type != "unreduced" && type != "maximal") {
          s.fail("expected the kind of a dimension, got '", type, "'");
        }
        if (s.peek() != '}') s.expect(',');
      }
    } else if (word == "shard_as" || word == "shard_like") {
      s.integer();
    } else if (word != "last_tile_dim_replicate") {
      s.fail("expected a sharding, got ", word.empty() ? s.next() : str("'", word, "'"));
    }
  }
  if (kind == "maximal" ? devices != 1 || has_tiles : kind.empty() && !has_tiles) {
    s.fail_at(begin, "expected the devices of the sharding, got none");
  }
  if (!kind.empty() && kind != "maximal" && (devices != 0 || has_tiles)) {
    s.fail_at(begin, str("expected no devices with '", kind, "', got some"));
  }
}

}  // namespace

void scan_replica_groups(Scanner& s) {
  if (at_mesh(s)) {
    size_t at = s.position();
    Mesh mesh(s);
    std::vector<AxisPart> taken;
    if (mesh.scan_axes(&taken, false) < 2) {
      s.fail_at(at, "expected groups of several devices, got one device in each");
    }
    return;
  }
  if (s.peek() == '[') {
    size_t at = s.position();
    if (scan_tiles(s, false).size() != 2) {
      s.fail_at(at, "expected the number of groups and their size");
    }
    return;
  }
  if (s.peek() != '{') s.fail("expected a list of groups, got ", s.next());
  s.expect('{');
  while (!s.take('}')) {
    s.expect('{');
    while (!s.take('}')) {
      s.integer();
      if (s.peek() != '}') s.expect(',');
    }
    if (s.peek() != '}') s.expect(',');
  }
}

void scan_sharding(Scanner& s) {
  s.expect('{');
  if (s.take('}')) return;
  if (s.peek() != '{') return scan_one_sharding(s);
  do {
    s.expect('{');
    scan_one_sharding(s);
  } while (s.take(','));
  s.expect('}');
}

}  // namespace lamella::hlo
