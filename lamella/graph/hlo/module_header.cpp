// Parsing the part of a module's text before its computations.
#include "lamella/graph/hlo/module_header.h"

#include "lamella/core/error.h"
#include "lamella/graph/hlo/attribute_scanner.h"

namespace lamella::hlo {
namespace {

void entry_layout(Scanner& s, ShapeReader& shapes, Module* module) {
  s.expect('{');
  s.expect('(');
  while (!s.take(')')) {
    module->entry_parameter_layouts.push_back(shapes.read(s));
    if (s.peek() != ')') s.expect(',');
  }
  s.expect("->");
  module->entry_result_layout = shapes.read(s);
  s.expect('}');
}

// { {0}: (1, {}, may-alias), ... }
void input_output_aliases(Scanner& s, Module* module) {
  s.expect('{');
  while (!s.take('}')) {
    InputOutputAlias alias;
    alias.output = scan_braced_integers(s);
    s.expect(':');
    s.expect('(');
    alias.parameter = s.integer();
    s.expect(',');
    alias.parameter_index = scan_braced_integers(s);
    if (s.take(',')) {
      std::string_view kind = s.word();
      if (kind != "may-alias" && kind != "must-alias") {
        s.fail("expected may-alias or must-alias, got '", kind, "'");
      }
      alias.must = kind == "must-alias";
    }
    s.expect(')');
    module->input_output_aliases.push_back(std::move(alias));
    if (s.peek() != '}') s.expect(',');
  }
}

// { (0, {}), (1, {0}) }
void buffer_donors(Scanner& s) {
  s.expect('{');
  while (!s.take('}')) {
    s.expect('(');
    s.integer();
    s.expect(',');
    scan_braced_integers(s);
    s.expect(')');
    if (s.peek() != '}') s.expect(',');
  }
}

// The attributes that are kept as written.
void other_attribute(Scanner& s, std::string_view key) {
  if (key == "replica_count" || key == "num_partitions") {
    s.integer();
  } else if (key == "alias_passthrough_params") {
    scan_boolean(s);
  } else if (key == "buffer_donor") {
    buffer_donors(s);
  } else if (key == "frontend_attributes") {
    scan_text_value(s, AttributeKey::FrontendAttributes);
  } else {
    skip_value(s);
  }
}

void header_line(Scanner& s, ShapeReader& shapes, Module* module) {
  s.expect("HloModule");
  std::string_view name = scan_name(s);
  if (name.empty()) s.fail("expected the module's name, got ", s.next());
  module->name = name;
  while (s.take(',')) {
    std::string_view key = s.word();
    if (key.empty()) s.fail("expected an attribute of the module, got ", s.next());
    s.expect('=');
    if (key == "is_scheduled") {
      module->is_scheduled = scan_boolean(s);
    } else if (key == "input_output_alias") {
      input_output_aliases(s, module);
    } else if (key == "entry_computation_layout") {
      entry_layout(s, shapes, module);
    } else {
      s.skip();
      size_t begin = s.position();
      other_attribute(s, key);
      module->attributes.emplace_back(key, s.from(begin));
    }
  }
}

// FileNames, FunctionNames, FileLocations, StackFrames: each is a word followed by lines that hold
// a number and a string, or a number and a list in braces.
void source_tables(Scanner& s, Module* module) {
  s.skip();
  const size_t begin = s.position();
  size_t end = begin;
  auto is_digit = [&] { return s.peek() >= '0' && s.peek() <= '9'; };
  for (;;) {
    std::string_view word = s.word();
    bool table = word == "FileNames" || word == "FunctionNames" || word == "FileLocations" ||
                 word == "StackFrames";
    if (!table || s.peek() == '{' || s.peek() == '(') break;  // a computation begins
    end = s.position();
    while (is_digit()) {
      s.integer();
      skip_value(s);
      end = s.position();
    }
  }
  s.seek(end);
  if (end > begin) {
    module->attributes.emplace_back(kSourceTables, s.text().substr(begin, end - begin));
  }
}

}  // namespace

bool computation_follows(Scanner& s) {
  size_t begin = s.position();
  bool found = at_word(s, "ENTRY") || (!scan_name(s).empty() && s.peek() == '{');
  s.seek(begin);
  return found;
}
bool instruction_follows(Scanner& s) {
  if (s.peek() == '\0' || at_word(s, "HloModule") || computation_follows(s)) return false;
  size_t begin = s.position();
  bool found = at_word(s, "ROOT") || shape_follows(s) || (!scan_name(s).empty() && s.peek() == '=');
  s.seek(begin);
  return found;
}

void scan_header(Scanner& s, ShapeReader& shapes, Module* module) {
  header_line(s, shapes, module);
  source_tables(s, module);
}

}  // namespace lamella::hlo
