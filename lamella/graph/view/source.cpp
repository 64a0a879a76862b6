// Parses metadata and the tables FileNames, FunctionNames, FileLocations and StackFrames.
#include "lamella/graph/view/source.h"

#include <charconv>

#include "lamella/graph/hlo/attribute_scanner.h"

namespace lamella::hlo {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

std::string value_of(const Fields& fields, std::string_view name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return "";
}
int64_t number_of(const Fields& fields, std::string_view name) {
  std::string text = value_of(fields, name);
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Fields metadata_fields(std::string_view text) {
  Fields fields;
  Arena arena;
  Scanner s(text, "hlo");
  try {
    s.expect('{');
    while (!s.take('}')) {
      std::string name(s.word());
      s.expect('=');
      if (s.peek() == '"') {
        fields.emplace_back(std::move(name), std::string(scan_quoted(s, arena)));
      } else {
        s.skip();
        size_t begin = s.position();
        if (s.word().empty()) skip_value(s);
        fields.emplace_back(std::move(name), std::string(s.from(begin)));
      }
      s.take(',');
    }
  } catch (const Error&) {
    return fields;  // the fields before the error
  }
  return fields;
}

std::string op_name(const Instruction& instruction) {
  return value_of(metadata_fields(instruction.text(AttributeKey::Metadata)), "op_name");
}

Sources::Sources(const Module& module) {
  std::string_view tables;
  for (const auto& [key, value] : module.attributes) {
    if (key == kSourceTables) tables = value;
  }
  Arena arena;
  Scanner s(tables, "hlo");
  try {
    while (!s.at_end()) {
      std::string_view table = s.word();
      while (s.peek() >= '0' && s.peek() <= '9') {
        int64_t number = s.integer();
        if (s.peek() == '"') {
          auto& names = table == "FileNames" ? files_ : functions_;
          names[number] = scan_quoted(s, arena);
          continue;
        }
        s.skip();
        size_t begin = s.position();
        skip_value(s);
        Fields fields = metadata_fields(s.from(begin));
        if (table == "FileLocations") {
          locations_[number] = {number_of(fields, "file_name_id"),
                                number_of(fields, "function_name_id"), number_of(fields, "line"),
                                number_of(fields, "column")};
        } else {
          frames_[number] = {number_of(fields, "file_location_id"),
                             number_of(fields, "parent_frame_id")};
        }
      }
    }
  } catch (const Error&) {
    return;  // the entries before the error are kept
  }
}

std::vector<SourceFrame> Sources::frames(const Instruction& instruction) const {
  std::vector<SourceFrame> found;
  std::string_view text = instruction.text(AttributeKey::Metadata);
  if (text.empty()) return found;
  Fields fields = metadata_fields(text);
  if (std::string file = value_of(fields, "source_file"); !file.empty()) {
    found.push_back({file, "", number_of(fields, "source_line"), 0});
    return found;
  }
  auto name = [](const auto& names, int64_t number) {
    auto at = names.find(number);
    return at == names.end() ? std::string() : at->second;
  };
  // The stated parent is the frame's number plus 1; 0 or the frame itself means no parent.
  int64_t number = number_of(fields, "stack_frame_id");
  for (auto at = frames_.find(number); at != frames_.end() && found.size() <= frames_.size();
       at = frames_.find(number)) {
    auto location = locations_.find(at->second.location);
    if (location == locations_.end()) break;
    const Location& l = location->second;
    found.push_back({name(files_, l.file), name(functions_, l.function), l.line, l.column});
    int64_t parent = at->second.parent - 1;
    if (parent >= number) break;
    number = parent;
  }
  return found;
}

std::string Sources::place(const Instruction& instruction) const {
  std::vector<SourceFrame> all = frames(instruction);
  if (all.empty()) return "";
  const SourceFrame& one = all.front();
  std::string text = one.line > 0 ? str(one.file, ":", one.line) : one.file;
  return one.function.empty() ? text : str(text, " (", one.function, ")");
}

}  // namespace lamella::hlo
