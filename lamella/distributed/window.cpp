// Implements sums through shared memory: see Note [Sums in shared memory] in window.h.
#include "lamella/distributed/window.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <cstring>

#include "lamella/distributed/group.h"

namespace lamella::distributed {
namespace {

constexpr int64_t kSlotBytes = int64_t{1} << 20;  // of one rank's values at a time
constexpr int64_t kBlockBytes = 16 << 10;  // summed at a time, so that it stays in the L1 cache
constexpr int kMaxWindows = 64;
constexpr int kMaxRanks = 256;

std::atomic<int> windows_open{0};

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

// Copies into the window with non-temporal stores. A plain store to a cache line that another core
// has read must first invalidate it there, line by line, which makes a sum of 64 MB take four times
// as long. `to` is the start of a cache line.
void stream(char* to, const char* from, int64_t bytes) {
  int64_t at = 0;
#ifdef __SSE2__
  for (; at + 64 <= bytes; at += 64) {
    for (int64_t i = at; i < at + 64; i += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
  }
  _mm_sfence();  // orders the stores before the step that is posted next
#endif
  if (at < bytes) std::memcpy(to + at, from + at, static_cast<size_t>(bytes - at));
}

void pause() {
#ifdef __SSE2__
  _mm_pause();
#endif
}

int64_t nanoseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

}  // namespace

// The state that a rank publishes, in a cache line of its own.
struct alignas(128) Window::Line {
  std::atomic<uint32_t> steps{0};     // steps that the rank has completed
  std::atomic<uint32_t> sleepers{0};  // ranks that sleep until `steps` changes
  // Arguments of its current sum, which all ranks compare.
  std::atomic<int64_t> count{0}, layout{0};
  std::atomic<int32_t> dtype{0}, reduction{0};
};

std::unique_ptr<Window> Window::open(MPI_Comm comm) {
  int rank = 0, size = 0, here = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (size == 1) return nullptr;
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &here);
  int possible = here == size && size <= kMaxRanks && windows_open.load() < kMaxWindows;
  MPI_Allreduce(MPI_IN_PLACE, &possible, 1, MPI_INT, MPI_MIN, comm);
  if (possible == 0) {
    MPI_Comm_free(&machine);
    return nullptr;
  }
  // The first rank allocates the memory of all ranks, so that it is one array.
  auto bytes = static_cast<MPI_Aint>(
      rank == 0 ? size * static_cast<int64_t>(sizeof(Line)) + (size + 1) * kSlotBytes + 4096 : 0);
  MPI_Win window = MPI_WIN_NULL;
  void* base = nullptr;
  MPI_Comm_set_errhandler(machine, MPI_ERRORS_RETURN);
  possible =
      MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, machine, &base, &window) == MPI_SUCCESS;
  MPI_Allreduce(MPI_IN_PLACE, &possible, 1, MPI_INT, MPI_MIN, comm);
  if (possible == 0) {
    if (window != MPI_WIN_NULL) MPI_Win_free(&window);
    MPI_Comm_free(&machine);
    return nullptr;
  }
  int unit = 0;
  MPI_Win_shared_query(window, 0, &bytes, &unit, &base);
  auto aligned = (reinterpret_cast<uintptr_t>(base) + sizeof(Line) - 1) / sizeof(Line);
  auto* memory = reinterpret_cast<char*>(aligned * sizeof(Line));
  new (memory + static_cast<size_t>(rank) * sizeof(Line)) Line;
  MPI_Barrier(machine);
  ++windows_open;
  return std::unique_ptr<Window>(new Window(machine, window, memory, rank, size));
}

Window::Window(MPI_Comm comm, MPI_Win window, char* memory, int rank, int size)
    : comm_(comm),
      window_(window),
      lines_(reinterpret_cast<Line*>(memory)),
      slots_(memory + static_cast<size_t>(size) * sizeof(Line)),
      rank_(rank),
      size_(size) {}

Window::~Window() {
  MPI_Win_free(&window_);
  MPI_Comm_free(&comm_);
  --windows_open;
}

char* Window::slot(int rank) const { return slots_ + rank * kSlotBytes; }
char* Window::results() const { return slots_ + size_ * kSlotBytes; }

int Window::missing(uint32_t steps) const {
  for (int r = 0; r < size_; ++r) {
    // The counters may wrap around.
    auto ahead = lines_[r].steps.load(std::memory_order_acquire) - steps;
    if (static_cast<int32_t>(ahead) < 0) return r;
  }
  return -1;
}

void Window::post(uint32_t steps) {
  Line& line = lines_[rank_];
  line.steps.store(steps);
  if (line.sleepers.load() != 0) futex(line.steps, FUTEX_WAKE, INT32_MAX, nullptr);
}

SharedSum::SharedSum(Window& window, const char* in, char* out, int64_t count, Reduction reduction,
                     ScalarType dtype, Parts parts)
    : window_(window),
      in_(in),
      out_(out),
      count_(count),
      end_(count),
      width_(static_cast<int64_t>(element_size(dtype))),
      reduction_(reduction),
      dtype_(dtype),
      parts_(parts),
      turn_(window.begun_++) {
  if (!scatters()) return;
  end_ = *std::max_element(parts.counts, parts.counts + window.size_);
  layout_ = 1;
  for (int r = 0; r < window.size_; ++r) {
    layout_ = static_cast<int64_t>(static_cast<uint64_t>(layout_) * 1000003 +
                                   static_cast<uint64_t>(parts.counts[r]));
  }
}

SharedSum::Piece SharedSum::piece(int rank) const {
  // Rounded to whole cache lines, so that no two ranks write the same line.
  int64_t unit = 128 / width_;
  if (scatters()) {
    int64_t left = std::max<int64_t>(parts_.counts[rank] - at_, 0);
    return {std::min(left, chunk_), rank * chunk_, parts_.starts[rank] + at_};
  }
  int64_t units = (chunk_ + unit - 1) / unit, n = window_.size_;
  int64_t begin = std::min(chunk_, units * rank / n * unit);
  return {std::min(chunk_, units * (rank + 1) / n * unit) - begin, begin, at_ + begin};
}

void SharedSum::copy_in() {
  for (int r = 0; r < window_.size_; ++r) {
    auto [count, place, source] = piece(r);
    if (r == window_.rank_ || count == 0) continue;
    stream(window_.slot(window_.rank_) + place * width_, in_ + source * width_, count * width_);
  }
}

void SharedSum::reduce() {
  auto [count, first, source] = piece(window_.rank_);
  const char* mine = in_ + source * width_;
  char* own = out_ + (scatters() ? at_ : source) * width_;
  ReducedType type = reduced_type(reduction_, dtype_);
  int64_t most = kBlockBytes / width_;
  alignas(64) char block[kBlockBytes];
  for (int64_t begin = 0; begin < count; begin += most) {
    int64_t n = std::min(count - begin, most), at = begin * width_, place = first * width_ + at;
    auto values = [&](int r) -> const char* {
      return r == window_.rank_ ? mine + at : window_.slot(r) + place;
    };
    std::memcpy(block, values(0), static_cast<size_t>(n * width_));
    for (int r = 1; r < window_.size_; ++r) {
      check_mpi(
          MPI_Reduce_local(values(r), block, static_cast<int>(n), type.datatype, type.operation),
          op_name());
    }
    if (reduction_ == Reduction::Mean) divide(block, n, dtype_, window_.size_);
    std::memcpy(own + at, block, static_cast<size_t>(n * width_));
    if (!scatters()) stream(window_.results() + place, block, n * width_);
  }
}

void SharedSum::copy_out() {
  for (int r = 0; r < window_.size_ && !scatters(); ++r) {
    auto [count, place, source] = piece(r);
    if (r == window_.rank_ || count == 0) continue;
    std::memcpy(out_ + source * width_, window_.results() + place * width_,
                static_cast<size_t>(count * width_));
  }
}

bool SharedSum::compare() {
  auto what = [&](int r) {
    const Window::Line& line = window_.lines_[r];
    return str(line.count.load(), " elements of ", static_cast<ScalarType>(line.dtype.load()), " (",
               word_of(static_cast<Reduction>(line.reduction.load())), ")");
  };
  bool same = true, same_layout = true;
  for (int r = 0; r < window_.size_; ++r) {
    const Window::Line& line = window_.lines_[r];
    same_layout = same_layout && line.layout.load(std::memory_order_relaxed) == layout_;
    same = same && line.count.load(std::memory_order_relaxed) == count_ &&
           line.dtype.load(std::memory_order_relaxed) == static_cast<int>(dtype_) &&
           line.reduction.load(std::memory_order_relaxed) == static_cast<int>(reduction_);
  }
  if (LAMELLA_LIKELY(same && same_layout)) return true;
  error_ = str(op_name(), ": expected all ranks of the group to pass the same");
  for (int r = 0; r < window_.size_; ++r) {
    error_ += str(r == 0 ? "; rank " : ", rank ", r, " passes ", what(r));
    if (!same_layout && window_.lines_[r].layout.load() == 0) error_ += " to all_reduce";
  }
  if (same && !same_layout) error_ += ", with other sizes or to another operator";
  return false;
}

bool SharedSum::advance() {
  for (;;) {
    switch (phase_) {
      case Phase::Begin: {
        if (turn_ != window_.ended_.load(std::memory_order_acquire)) return false;
        chunk_ = std::min(count_ - at_, kSlotBytes / width_);
        if (scatters()) chunk_ = kSlotBytes / window_.size_ / 128 * (128 / width_);
        if (at_ == 0) {
          // Relaxed stores suffice: the other ranks read these after the step posted below.
          Window::Line& line = window_.lines_[window_.rank_];
          line.count.store(count_, std::memory_order_relaxed);
          line.layout.store(layout_, std::memory_order_relaxed);
          line.dtype.store(static_cast<int>(dtype_), std::memory_order_relaxed);
          line.reduction.store(static_cast<int>(reduction_), std::memory_order_relaxed);
        }
        copy_in();
        window_.post(++window_.steps_);
        phase_ = Phase::Reduce;
        break;
      }
      case Phase::Reduce:
        if (window_.missing(window_.steps_) >= 0) return false;
        // If they differ, the second step is still posted, so that every rank has read all lines.
        if (at_ != 0 || compare()) reduce();
        window_.post(++window_.steps_);
        phase_ = Phase::CopyOut;
        break;
      case Phase::CopyOut:
        if (window_.missing(window_.steps_) >= 0) return false;
        if (!error_.empty()) {
          ++window_.ended_;
          throw Error(error_);
        }
        copy_out();
        at_ += chunk_;
        phase_ = Phase::Begin;
        if (at_ >= end_) {
          ++window_.ended_;
          return true;
        }
    }
  }
}

void SharedSum::wait_for_others() {
  uint32_t steps = window_.steps_;
  int64_t since = 0;
  for (int tries = 0;; ++tries) {
    int rank = window_.missing(steps);
    if (rank < 0) return;
    if (tries < 100) {
      pause();
      continue;
    }
    int64_t now = nanoseconds_now();
    if (since == 0) since = now;
    if (now - since < 50000) {
      sched_yield();
      continue;
    }
    // Lets MPI make progress on its own requests meanwhile.
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, window_.comm_, &flag, MPI_STATUS_IGNORE);
    std::atomic<uint32_t>& word = window_.lines_[rank].steps;
    std::atomic<uint32_t>& sleepers = window_.lines_[rank].sleepers;
    ++sleepers;
    uint32_t seen = word.load();
    timespec most{0, 1000000};
    if (static_cast<int32_t>(seen - steps) < 0) futex(word, FUTEX_WAIT, seen, &most);
    --sleepers;
  }
}

}  // namespace lamella::distributed
