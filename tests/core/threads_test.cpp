// The number of threads, and interrupts.
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "lamella/core/interrupt.h"
#include "lamella/core/thread_count.h"
#include "tests/core/testing.h"

namespace lamella {
namespace {

TEST(ThreadCount, OfTheVariable) {
  using detail::threads_of_variable;
  EXPECT_EQ(threads_of_variable("3"), 3);
  EXPECT_EQ(threads_of_variable(" 6 "), 6);
  EXPECT_EQ(threads_of_variable("4,2,1"), 4);
  EXPECT_EQ(threads_of_variable("100000"), kMaxThreads);
  for (const char* bad : {"", "0", "-2", "many", "2x", "1.5", "99999999999999999999999x"}) {
    EXPECT_EQ(threads_of_variable(bad), 0) << bad;
  }
  EXPECT_EQ(threads_of_variable(nullptr), 0);
}

// A system's files below a folder of its own.
struct Files {
  std::string root;
  Files() {
    char name[] = "/tmp/lamella_quota_XXXXXX";
    root = mkdtemp(name);
  }
  ~Files() { EXPECT_EQ(std::system(("rm -rf " + root).c_str()), 0); }
  void write(const std::string& path, const std::string& text) {
    std::string whole = root + path;
    for (size_t at = root.size() + 1; (at = whole.find('/', at)) != std::string::npos; ++at) {
      mkdir(whole.substr(0, at).c_str(), 0700);
    }
    std::ofstream(whole) << text;
  }
  int quota() const { return detail::threads_of_quota(root); }
};

constexpr const char* kSecond = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

TEST(ThreadCount, OfAQuotaOfVersion2) {
  Files files;
  EXPECT_EQ(files.quota(), 0);
  files.write("/proc/self/mountinfo", kSecond);
  files.write("/proc/self/cgroup", "0::/jobs/one\n");
  EXPECT_EQ(files.quota(), 0);
  files.write("/sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n");
  EXPECT_EQ(files.quota(), 0);
  files.write("/sys/fs/cgroup/jobs/one/cpu.max", "250000 100000\n");
  EXPECT_EQ(files.quota(), 3);
  // A group above has less.
  files.write("/sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  EXPECT_EQ(files.quota(), 1);
}

TEST(ThreadCount, OfAContainersQuota) {
  Files files;
  files.write("/proc/self/mountinfo", kSecond);
  files.write("/proc/self/cgroup", "0::/\n");
  files.write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(files.quota(), 2);
}

TEST(ThreadCount, OfAQuotaOfVersion1) {
  Files files;
  files.write("/proc/self/mountinfo",
              "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
              "32 31 0:29 /docker/a1 /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup "
              "cgroup rw,cpu,cpuacct\n");
  files.write("/proc/self/cgroup", "5:cpuset:/docker/a1\n4:cpu,cpuacct:/docker/a1\n");
  files.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  files.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(files.quota(), 0);
  files.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
  EXPECT_EQ(files.quota(), 4);
}

int asked = 0;

TEST(Interrupt, AsksSeldomAndThrowsWhatItIsTold) {
  set_interrupt_function([]() -> lamella_status {
    ++asked;
    return lamella_fail(LAMELLA_VALUE_ERROR, "stop", 4);
  });
  begin_interruptible_call();
  auto start = std::chrono::steady_clock::now();
  std::string text;
  while (text.empty() && std::chrono::steady_clock::now() - start < std::chrono::seconds(5)) {
    try {
      check_interrupt();
    } catch (const ValueError& e) {
      text = e.what();
    }
  }
  auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(text, "stop");
  EXPECT_GE(waited, std::chrono::milliseconds(30));
  EXPECT_LE(waited, std::chrono::milliseconds(500));
  for (int i = 0; i < 1000; ++i) check_interrupt();
  EXPECT_EQ(asked, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  count_steps(1000);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(error_of<ValueError>([] { count_steps(int64_t{1} << 40); }), "stop");
  set_interrupt_function(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(80));
  check_interrupt();
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace lamella
