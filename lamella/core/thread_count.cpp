// See Note [The number of threads] in thread_count.h.
#include "lamella/core/thread_count.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace lamella {
namespace {

int clamped(int64_t threads) {
  return static_cast<int>(std::clamp<int64_t>(threads, 1, kMaxThreads));
}

// The main thread's affinity stands for the process, whichever thread asks.
int threads_of_affinity() {
  for (size_t count = 1024; count <= size_t{1} << 20; count *= 2) {
    cpu_set_t* set = CPU_ALLOC(count);
    if (set == nullptr) break;
    size_t bytes = CPU_ALLOC_SIZE(count);
    bool known = sched_getaffinity(getpid(), bytes, set) == 0;
    int threads = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return threads;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

int decide() {
  int asked = detail::threads_of_variable(std::getenv("OMP_NUM_THREADS"));
  if (asked != 0) return asked;
  int threads = threads_of_affinity();
  int quota = detail::threads_of_quota();
  return clamped(quota != 0 ? std::min(threads, quota) : threads);
}

// ---- Control groups ----

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) parts.push_back(part);
  return parts;
}
bool contains(const std::vector<std::string>& list, const std::string& wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

// The folder where a hierarchy is mounted, and the group that the mount's root shows.
struct Mount {
  std::string folder, group;
};
// Lines of mountinfo are: id, parent, device, root, folder, options, ..., "-", type, source, super
// options.
bool find_mount(const std::string& root, bool second_version, Mount* found) {
  std::ifstream in(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> words = split(line, ' ');
    auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    if (second_version ? dash[1] != "cgroup2"
                       : dash[1] != "cgroup" || !contains(split(dash[3], ','), "cpu")) {
      continue;
    }
    *found = {words[4], words[3]};
    return true;
  }
  return false;
}

// The group of this process; the top group if the system does not report it.
std::string group_of_process(const std::string& root, bool second_version) {
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    // Number of the hierarchy, its controllers, the group; version 2 has no controllers here.
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (second_version ? !controllers.empty() : !contains(split(controllers, ','), "cpu")) continue;
    std::string group = line.substr(second + 1);
    return group.find("/..") == std::string::npos ? group : "";  // outside of what is mounted
  }
  return "";
}

// The quota in processors, not rounded; infinite if the files are missing or set no limit.
double quota_of_group(const std::string& folder, bool second_version) {
  double quota = -1, period = -1;
  if (second_version) {
    std::ifstream in(folder + "/cpu.max");
    in >> quota >> period;  // "max" fails to parse
  } else {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : HUGE_VAL;
}

}  // namespace

namespace detail {

int threads_of_variable(const char* text) {
  if (text == nullptr) return 0;
  char* end = nullptr;
  long long first = std::strtoll(text, &end, 10);
  while (*end == ' ') ++end;
  bool is_number = end != text && (*end == '\0' || *end == ',');
  return is_number && first >= 1 ? clamped(first) : 0;
}

int threads_of_quota(const std::string& root) {
  double least = HUGE_VAL;
  for (bool second_version : {true, false}) {
    Mount mount;
    if (!find_mount(root, second_version, &mount)) continue;
    std::string group = group_of_process(root, second_version);
    // A container sees its own group as the top of the mount.
    if (mount.group != "/" && group.compare(0, mount.group.size(), mount.group) == 0) {
      group.erase(0, mount.group.size());
    }
    // The quotas of the parent groups apply as well.
    while (true) {
      while (!group.empty() && group.back() == '/') group.pop_back();
      least = std::min(least, quota_of_group(root + mount.folder + group, second_version));
      size_t slash = group.rfind('/');
      if (slash == std::string::npos) break;
      group.erase(slash);
    }
  }
  return least == HUGE_VAL ? 0 : clamped(static_cast<int64_t>(std::ceil(std::min(least, 1e6))));
}

}  // namespace detail

int default_num_threads() {
  // Not a guarded static: a child forked while another thread reads the files would wait for that
  // thread for ever. Threads that compute it at the same time find the same number.
  static std::atomic<int> decided{0};
  int threads = decided.load(std::memory_order_relaxed);
  if (threads == 0) {
    threads = decide();
    decided.store(threads, std::memory_order_relaxed);
  }
  return threads;
}

}  // namespace lamella
