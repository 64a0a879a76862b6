// A profile as a table, and as a trace for Perfetto and Chrome.
#include <algorithm>
#include <cstdio>
#include <map>

#include "lamella/layers/profile/profile.h"

namespace lamella::profile {
namespace {

struct Row {
  std::string_view name;
  const char* kind = "";
  int64_t calls = 0, total = 0, own = 0;
  int64_t mean() const { return total / calls; }
};

void append_json(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  out += '"';
}

template <class... Values>
void append(std::string& out, const char* format, Values... values) {
  char line[128];
  std::snprintf(line, sizeof line, format, values...);
  out += line;
}

}  // namespace

void find_own_times(std::vector<Event>& events) {
  std::map<uint32_t, std::vector<Event*>> open;  // by thread, from outside in
  for (Event& event : events) {
    event.own = event.end - event.start;
    std::vector<Event*>& around = open[event.thread];
    while (!around.empty() && around.back()->end < event.end) around.pop_back();
    if (!around.empty()) around.back()->own -= event.end - event.start;
    around.push_back(&event);
  }
}

std::string table_of(const std::vector<Event>& events, std::string_view sort_by, int64_t rows) {
  std::map<std::pair<std::string_view, std::string_view>, Row> by_name;
  int64_t sum = 0;
  for (const Event& event : events) {
    Row& row = by_name[{event.kind, event.name}];
    row.name = event.name;
    row.kind = event.kind;
    ++row.calls;
    row.total += event.end - event.start;
    row.own += event.own;
    sum += event.own;
  }
  std::vector<Row> sorted;
  for (const auto& [key, row] : by_name) sorted.push_back(row);
  auto key_of = [&](const Row& row) {
    if (sort_by == "total") return row.total;
    if (sort_by == "mean") return row.mean();
    return sort_by == "calls" ? row.calls : row.own;
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Row& a, const Row& b) { return key_of(a) > key_of(b); });
  if (rows >= 0 && static_cast<size_t>(rows) < sorted.size()) {
    sorted.resize(static_cast<size_t>(rows));
  }
  size_t width = 4;
  for (const Row& row : sorted) width = std::max(width, row.name.size());
  auto padded = [&](std::string_view name) {
    return std::string(name) + std::string(width - name.size(), ' ');
  };
  std::string out = padded("name");
  append(out, "  %-8s  %8s  %12s  %12s  %12s  %6s\n", "kind", "calls", "total ms", "own ms",
         "mean us", "share");
  for (const Row& row : sorted) {
    out += padded(row.name);
    append(out, "  %-8s  %8lld  %12.3f  %12.3f  %12.3f  %5.1f%%\n", row.kind,
           static_cast<long long>(row.calls), static_cast<double>(row.total) * 1e-6,
           static_cast<double>(row.own) * 1e-6, static_cast<double>(row.mean()) * 1e-3,
           sum == 0 ? 0.0 : 100.0 * static_cast<double>(row.own) / static_cast<double>(sum));
  }
  return out;
}

std::string trace_of(const std::vector<Event>& events) {
  std::string out = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  bool first = true;
  for (const Event& event : events) {
    out += first ? "\n" : ",\n";
    first = false;
    out += "{\"ph\": \"X\", \"pid\": 1, \"name\": ";
    append_json(out, event.name);
    append(out, ", \"cat\": \"%s\", \"tid\": %u, \"ts\": %.3f, \"dur\": %.3f", event.kind,
           event.thread, static_cast<double>(event.start) * 1e-3,
           static_cast<double>(event.end - event.start) * 1e-3);
    if (!event.arguments.empty()) {
      out += ", \"args\": {\"arguments\": ";
      append_json(out, event.arguments);
      out += '}';
    }
    out += '}';
  }
  out += "\n]}\n";
  return out;
}

}  // namespace lamella::profile
