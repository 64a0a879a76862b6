// Runs a target on mutated seeds: the same inputs for the same --seed, with any compiler.
//   fuzz_x [--seed N] [--runs N] [--seconds N]     mutates
//   fuzz_x FILE...                                 reads each file once
// An input that crashes the process, or takes longer than 20 seconds, is saved as
// crash-<target>-<hash> in the working folder, and the exit status is nonzero.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "target.h"

// The address sanitizer has it, where it is linked.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace lamella::fuzz {
namespace {

constexpr size_t kLongest = 1 << 16;
constexpr unsigned kSecondsPerInput = 20;

const char* program = "";
std::string& input = *new std::string;  // the one being read; kept for what exits report

// Only what a signal handler may do.
void keep_input() {
  static volatile sig_atomic_t kept = 0;
  if (kept != 0) return;
  kept = 1;
  uint64_t hash = 1469598103934665603u;
  for (char c : input) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  char path[128];
  std::snprintf(path, sizeof path, "crash-%s-%016llx", program,
                static_cast<unsigned long long>(hash));
  int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (file < 0) return;
  size_t written = 0;
  while (written < input.size()) {
    ssize_t some = write(file, input.data() + written, input.size() - written);
    if (some <= 0) break;
    written += static_cast<size_t>(some);
  }
  close(file);
  dprintf(STDERR_FILENO, "%s: the input is kept as %s\n", program, path);
}
void on_signal(int number) {
  if (number == SIGALRM) {
    dprintf(STDERR_FILENO, "%s: an input took longer than %u s\n", program, kSecondsPerInput);
  }
  keep_input();
  std::signal(number, SIG_DFL);
  if (number == SIGALRM) _exit(1);
  raise(number);
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed), seeds_(seeds()), words_(words()) {
    for (int64_t number : kHostile) numbers_.push_back(std::to_string(number));
    if (seeds_.empty()) seeds_.emplace_back();
  }
  std::string next() {
    std::string text = pick(seeds_);
    for (size_t edits = 1 + below(6); edits > 0; --edits) edit(text);
    if (text.size() > kLongest) text.resize(kLongest);
    return text;
  }

 private:
  // Not the standard distributions: they differ between libraries.
  size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }
  const std::string& pick(const std::vector<std::string>& from) { return from[below(from.size())]; }
  void edit(std::string& text) {
    size_t at = below(text.size() + 1);
    size_t length = 1 + below(below(4) == 0 ? 64 : 8);
    switch (below(9)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        return;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        return;
      case 2:
        text.erase(std::min(at, text.size()), length);
        return;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), length));
        return;
      case 4: {
        const std::string& other = pick(seeds_);
        text.insert(at, other.substr(below(other.size() + 1), 4 * length));
        return;
      }
      case 5:
        if (!words_.empty()) text.insert(at, pick(words_));
        return;
      case 6: {  // another number in place of one
        size_t begin = text.find_first_of("0123456789", at);
        if (begin == std::string::npos) return;
        size_t end = text.find_first_not_of("0123456789", begin);
        text.replace(begin, (end == std::string::npos ? text.size() : end) - begin, pick(numbers_));
        return;
      }
      case 7: {
        int64_t number = kHostile[below(std::size(kHostile))];
        if (text.size() < sizeof number) return;
        std::memcpy(text.data() + below(text.size() - sizeof number + 1), &number, sizeof number);
        return;
      }
      default: {  // one byte many times
        text.insert(at, below(200), text.empty() ? '(' : text[below(text.size())]);
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> seeds_, words_, numbers_;
};

void read(std::string text) {
  input = std::move(text);
  alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  alarm(0);
}

int run(int count, char** arguments) {
  uint64_t seed = 7, runs = 10000, seconds = 0;
  program = std::strrchr(arguments[0], '/') != nullptr ? std::strrchr(arguments[0], '/') + 1
                                                       : arguments[0];
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) {
    std::signal(signal, on_signal);
  }
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(keep_input);
  } else {
    rlimit memory{rlim_t{4} << 30, rlim_t{4} << 30};
    setrlimit(RLIMIT_AS, &memory);
  }
  bool files = false;
  for (int n = 1; n < count; ++n) {
    std::string_view name = arguments[n];
    if (name.starts_with("--") && n + 1 < count) {
      uint64_t value = std::strtoull(arguments[++n], nullptr, 10);
      (name == "--seed" ? seed : name == "--runs" ? runs : seconds) = value;
      continue;
    }
    std::ifstream file(arguments[n], std::ios::binary);
    read(std::string(std::istreambuf_iterator<char>(file), {}));
    files = true;
  }
  if (files) return 0;
  for (const std::string& one : seeds()) read(one);
  Mutator mutator(seed);
  auto start = std::chrono::steady_clock::now();
  auto passed = [&] { return std::chrono::steady_clock::now() - start; };
  uint64_t done = 0;
  for (; seconds != 0 ? passed() < std::chrono::seconds(seconds) : done < runs; ++done) {
    read(mutator.next());
  }
  std::printf("%s: %llu inputs of seed %llu, no findings\n", program,
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(seed));
  return 0;
}

}  // namespace

void found(std::string_view what) {
  std::fprintf(stderr, "%s: %.*s\n", program, static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace lamella::fuzz

int main(int count, char** arguments) { return lamella::fuzz::run(count, arguments); }
