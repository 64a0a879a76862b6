// The table of registered types.
#include "lamella/graph/custom_call/ffi/types.h"

#include <map>
#include <mutex>
#include <string>

#include "lamella/core/error.h"

namespace lamella::hlo::ffi {
namespace {

struct Types {
  std::mutex mutex;
  std::map<std::string, int64_t, std::less<>> by_name;
  std::map<int64_t, Deleter> by_id;
  // Starts far from XLA's numbers, because a library may be registered with both runtimes.
  int64_t next = int64_t{1} << 40;
};
// Never destroyed, because states may be deleted during process exit.
Types& types() {
  static Types& one = *new Types;
  return one;
}

}  // namespace

void register_type(std::string_view name, int64_t* id, Deleter deleter) {
  LAMELLA_CHECK(!name.empty(), "hlo: expected a type of handlers to have a name, got ''");
  Types& t = types();
  std::lock_guard<std::mutex> lock(t.mutex);
  auto named = t.by_name.find(name);
  if (*id == 0) {
    LAMELLA_CHECK(named == t.by_name.end(), "hlo: expected the type '", name,
                  "' of handlers to be registered once, got it again");
    *id = t.next++;
  } else {
    bool known = t.by_id.count(*id) != 0;
    if (named != t.by_name.end()) {
      LAMELLA_CHECK(named->second == *id, "hlo: expected the type '", name,
                    "' of handlers to keep its number ", named->second, ", got ", *id);
      return;
    }
    LAMELLA_CHECK(!known, "hlo: expected the type '", name,
                  "' of handlers to have a number of its own, got ", *id,
                  ", which another type has");
  }
  t.by_name.emplace(name, *id);
  t.by_id.emplace(*id, deleter);
}

bool find_type(int64_t id, Deleter* deleter) {
  Types& t = types();
  std::lock_guard<std::mutex> lock(t.mutex);
  auto found = t.by_id.find(id);
  if (found == t.by_id.end()) return false;
  *deleter = found->second;
  return true;
}

}  // namespace lamella::hlo::ffi
