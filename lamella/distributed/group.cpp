// Starting and ending the job, and its groups.
#include "lamella/distributed/group.h"

#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "lamella/distributed/device.h"
#include "lamella/distributed/failure.h"
#include "lamella/distributed/work.h"

namespace lamella::distributed {
namespace {

constexpr int64_t kMaxGroups = 4096;

std::mutex mutex;
std::array<std::atomic<Group*>, kMaxGroups> groups;  // entries stay until finalize()
int64_t group_count = 0;
std::map<std::vector<int>, int64_t> numbers;  // of the groups, by their ranks
bool began_mpi = false;
bool debug = false;

int64_t add_group(MPI_Comm comm, std::vector<int> ranks) {
  LAMELLA_CHECK(group_count < kMaxGroups, "new_group: expected at most ", kMaxGroups, " groups");
  auto* group = new Group;
  group->number = group_count;
  group->comm = comm;
  group->size = static_cast<int>(ranks.size());
  group->ranks = std::move(ranks);
  if (comm != MPI_COMM_NULL) {
    MPI_Comm_rank(comm, &group->rank);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (debug) MPI_Comm_dup(comm, &group->check);
    group->window = Window::open(comm);
  }
  numbers.emplace(group->ranks, group_count);
  groups[static_cast<size_t>(group_count)].store(group, std::memory_order_release);
  return group_count++;
}

}  // namespace

void check_mpi(int status, const char* op_name) {
  if (LAMELLA_LIKELY(status == MPI_SUCCESS)) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(str(op_name, ": ", std::string_view(text, static_cast<size_t>(length))));
}

void init(bool wants_debug) {
  std::lock_guard lock(mutex);
  if (group_count != 0) return;
  int done = 0;
  MPI_Finalized(&done);
  LAMELLA_CHECK(done == 0, "init: expected MPI not to have been ended in this process");
  MPI_Initialized(&done);
  if (done == 0) {
    int level = 0;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "init");
    began_mpi = true;
  }
  int level = 0;
  MPI_Query_thread(&level);
  LAMELLA_CHECK(level == MPI_THREAD_MULTIPLE,
                "init: expected MPI to allow several threads (MPI_THREAD_MULTIPLE)");
  debug = wants_debug;
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  open_slots(rank);
  std::vector<int> ranks(static_cast<size_t>(size));
  for (int r = 0; r < size; ++r) ranks[static_cast<size_t>(r)] = r;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "init");
  add_group(comm, std::move(ranks));
}

bool is_initialized() { return groups[0].load(std::memory_order_acquire) != nullptr; }
bool debug_mode() { return debug; }

void finalize() {
  if (!is_initialized()) return;
  wait_for_all_works();
  // A rank that ended while others still wait for it would leave them waiting forever.
  const Group& world = *groups[0].load();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(world.comm, &request);
  while (!wait_for(&request, 0.25)) {
    const char* operator_name = nullptr;
    int other = rank_left_waiting(2.0, &operator_name);
    if (other >= 0) {
      abort(str("it came to its end, while rank ", other, " waits for it in ", operator_name));
    }
  }
  stop_progress();
  close_transports();
  std::lock_guard lock(mutex);
  close_slots();
  for (int64_t i = group_count; i-- > 0;) {
    Group* group = groups[static_cast<size_t>(i)].exchange(nullptr);
    group->window.reset();
    if (group->check != MPI_COMM_NULL) MPI_Comm_free(&group->check);
    if (group->comm != MPI_COMM_NULL) MPI_Comm_free(&group->comm);
    delete group;
  }
  group_count = 0;
  numbers.clear();
  if (began_mpi) MPI_Finalize();
}

void abort(std::string_view reason) {
  if (is_initialized()) {
    mark_failed(reason);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::exit(1);
}

const Group& group_of(int64_t number, const char* op_name) {
  Group* group = number >= 0 && number < kMaxGroups
                     ? groups[static_cast<size_t>(number)].load(std::memory_order_acquire)
                     : nullptr;
  if (LAMELLA_LIKELY(group != nullptr)) return *group;
  LAMELLA_CHECK(is_initialized(), op_name,
                ": expected the job to have been started with init_process_group()");
  throw Error(str(op_name, ": expected 'group' to be one of new_group(), got ", number));
}

const Group& joined_group(int64_t number, const char* op_name) {
  const Group& group = group_of(number, op_name);
  LAMELLA_CHECK(group.rank >= 0, op_name, ": expected this rank to be a member of 'group', got ",
                group.ranks);
  return group;
}

int64_t new_group(IntArrayRef asked) {
  const Group& world = group_of(0, "new_group");
  std::vector<int> ranks;
  bool member = false;
  for (int64_t rank : asked) {
    LAMELLA_CHECK(rank >= 0 && rank < world.size, "new_group: expected 'ranks' to be below ",
                  world.size, ", got ", asked);
    for (int earlier : ranks) {
      LAMELLA_CHECK(earlier != rank, "new_group: expected 'ranks' to differ, got ", asked);
    }
    ranks.push_back(static_cast<int>(rank));
    member = member || rank == world.rank;
  }
  LAMELLA_CHECK(!ranks.empty(), "new_group: expected 'ranks' not to be empty");
  std::lock_guard lock(mutex);
  auto known = numbers.find(ranks);
  if (known != numbers.end()) return known->second;
  MPI_Comm comm = MPI_COMM_NULL;
  if (member) {
    MPI_Group all, some;
    MPI_Comm_group(world.comm, &all);
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    int status = MPI_Comm_create_group(world.comm, some, /*tag=*/0, &comm);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    check_mpi(status, "new_group");
  }
  return add_group(comm, std::move(ranks));
}

}  // namespace lamella::distributed
