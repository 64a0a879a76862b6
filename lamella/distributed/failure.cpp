// Slots and signal handlers. See Note [How a job ends] in failure.h.
#include "lamella/distributed/failure.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "lamella/distributed/collective.h"

namespace lamella::distributed {
namespace {

enum State : int { kEmpty, kRunning, kFailed, kInterrupted, kToldToEnd, kFinished };

struct Slot {
  std::atomic<int> state{kEmpty};
  std::atomic<int> rank{0};
  std::atomic<int> process{0};
  std::atomic<int> kind{-1};       // of the operator that it is in
  std::atomic<int> whole{0};       // that operator's group is that of all ranks
  std::atomic<unsigned> count{0};  // of operators so far
  char reason[232]{};
};
static_assert(sizeof(Slot) == 256 && std::atomic<int>::is_always_lock_free);

Slot* slots = nullptr;  // of the ranks of this machine
int slot_count = 0;
Slot* mine = nullptr;
MPI_Win window = MPI_WIN_NULL;
MPI_Comm machine = MPI_COMM_NULL;
std::atomic<bool> returns_to_caller{true};
struct sigaction earlier_term, earlier_int;

// Builds a line of text without heap memory, as a signal handler must.
struct Line {
  char text[512];
  size_t length = 0;
  void add(const char* more) {
    while (*more != '\0' && length < sizeof(text) - 1) text[length++] = *more++;
  }
  void add(int number) {
    char digits[12];
    int n = 0;
    unsigned value = number < 0 ? 0u - static_cast<unsigned>(number) : unsigned(number);
    if (number < 0) add("-");
    do digits[n++] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    while (n > 0 && length < sizeof(text) - 1) text[length++] = digits[--n];
  }
  void write_out() {
    text[length++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, text, length);
    (void)ignored;
  }
};

void add_place(Line& line, int kind) {
  line.add(kind < 0 ? "outside of any operator" : "in ");
  if (kind >= 0) line.add(name_of(static_cast<Kind>(kind)));
}

// Describes the rank that ended the job, as far as its slot shows.
void add_cause(Line& line) {
  for (int i = 0; i < slot_count; ++i) {
    const Slot& slot = slots[i];
    int state = slot.state.load();
    bool gone = state == kRunning && kill(slot.process.load(), 0) != 0 && errno == ESRCH;
    if (&slot == mine || (state != kFailed && state != kInterrupted && !gone)) continue;
    line.add("rank ");
    line.add(slot.rank.load());
    line.add(gone ? " died " : state == kFailed ? " failed " : " was interrupted ");
    add_place(line, slot.kind.load());
    if (state == kFailed) {
      line.add(": ");
      line.add(slot.reason);
    }
    return;
  }
  line.add("it was told to end, and no rank of this machine is known to have failed");
}

void pass_on(const struct sigaction& earlier, int number, siginfo_t* info, void* context) {
  if ((earlier.sa_flags & SA_SIGINFO) != 0) {
    earlier.sa_sigaction(number, info, context);
  } else if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN) {
    earlier.sa_handler(number);
  } else if (earlier.sa_handler == SIG_DFL) {
    sigaction(number, &earlier, nullptr);
    raise(number);
  }
}

void on_term(int number, siginfo_t* info, void* context) {
  int error = errno;
  if (mine != nullptr) {
    Line line;
    line.add("lamella.distributed: rank ");
    line.add(mine->rank.load());
    line.add(" ends ");
    add_place(line, mine->kind.load());
    line.add(": ");
    add_cause(line);
    mine->state = kToldToEnd;
    line.write_out();
  }
  errno = error;
  pass_on(earlier_term, number, info, context);
}

void on_interrupt(int number, siginfo_t* info, void* context) {
  if (mine == nullptr || mine->kind.load() < 0 || returns_to_caller.load()) {
    pass_on(earlier_int, number, info, context);
    return;
  }
  mine->state = kInterrupted;
  Line line;
  line.add("lamella.distributed: rank ");
  line.add(mine->rank.load());
  line.add(" is interrupted ");
  add_place(line, mine->kind.load());
  line.write_out();
  _exit(130);
}

double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

void open_slots(int rank) {
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine);
  int local = 0;
  MPI_Comm_rank(machine, &local);
  MPI_Comm_size(machine, &slot_count);
  // The first rank allocates the memory of all ranks, so that the slots are one array.
  auto bytes =
      static_cast<MPI_Aint>(local == 0 ? sizeof(Slot) * static_cast<size_t>(slot_count) : 0);
  void* base = nullptr;
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, machine, &base, &window);
  int unit = 0;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &base);
  slots = static_cast<Slot*>(base);
  mine = new (slots + local) Slot;
  mine->rank = rank;
  mine->process = getpid();
  mine->state = kRunning;
  MPI_Barrier(machine);
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  action.sa_sigaction = &on_term;
  sigaction(SIGTERM, &action, &earlier_term);
  action.sa_sigaction = &on_interrupt;
  action.sa_flags |= SA_ONSTACK;
  sigaction(SIGINT, &action, &earlier_int);
}

void close_slots() {
  if (mine == nullptr) return;
  sigaction(SIGTERM, &earlier_term, nullptr);
  sigaction(SIGINT, &earlier_int, nullptr);
  mine->state = kFinished;
  mine = slots = nullptr;
  slot_count = 0;
  MPI_Win_free(&window);
  MPI_Comm_free(&machine);
}

Inside::Inside(int kind, bool whole, bool returns)
    : outer_(mine->kind.load(std::memory_order_relaxed)) {
  mine->count.store(mine->count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  mine->whole.store(whole, std::memory_order_relaxed);
  mine->kind.store(kind, std::memory_order_release);
  returns_to_caller.store(returns, std::memory_order_release);
}

Inside::~Inside() {
  mine->kind.store(outer_, std::memory_order_release);
  returns_to_caller.store(true, std::memory_order_release);
}

void mark_failed(std::string_view reason) {
  if (mine == nullptr) return;
  size_t length = std::min(reason.size(), sizeof(mine->reason) - 1);
  memcpy(mine->reason, reason.data(), length);
  mine->reason[length] = '\0';
  for (size_t i = 0; i < length; ++i) {
    if (mine->reason[i] == '\n') mine->reason[i] = ' ';
  }
  mine->state = kFailed;
}

int rank_left_waiting(double seconds, const char** operator_name) {
  static thread_local Slot* watched = nullptr;
  static thread_local unsigned count = 0;
  static thread_local double since = 0;
  auto waits = [](const Slot& slot) {
    return slot.state.load() == kRunning && slot.kind.load() >= 0 && slot.whole.load() != 0;
  };
  if (watched == nullptr || !waits(*watched) || watched->count.load() != count) {
    watched = nullptr;
    for (int i = 0; i < slot_count && watched == nullptr; ++i) {
      if (&slots[i] == mine || !waits(slots[i])) continue;
      watched = &slots[i];
      count = watched->count.load();
      since = seconds_now();
    }
    return -1;
  }
  if (seconds_now() - since < seconds) return -1;
  *operator_name = name_of(static_cast<Kind>(watched->kind.load()));
  return watched->rank.load();
}

std::string whereabouts(const int* ranks, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (int s = 0; s < slot_count; ++s) {
      if (slots[s].rank.load() != ranks[i]) continue;
      int kind = slots[s].kind.load();
      if (!text.empty()) text += ", ";
      text += "rank " + std::to_string(ranks[i]) + " is ";
      text += kind < 0 ? "in no operator" : "in " + std::string(name_of(static_cast<Kind>(kind)));
    }
  }
  return text;
}

}  // namespace lamella::distributed
