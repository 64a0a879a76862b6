// Debug mode: ranks exchange descriptions of their calls before each collective.
#include "lamella/distributed/debug.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lamella/distributed/failure.h"
#include "lamella/distributed/work.h"

namespace lamella::distributed {
namespace {

constexpr int kTold = 256;  // bytes of each rank's description

// A description of the call that must be the same on all ranks of the group.
std::string words_of(const Collective& asked) {
  std::string text = name_of(asked.kind);
  if (asked.kind == Kind::Barrier) return text;
  text += str("(", asked.input.scalar_type());
  bool whole = asked.kind == Kind::AllReduce || asked.kind == Kind::Broadcast ||
               (!asked.rows && asked.kind != Kind::Scatter);
  IntArrayRef sizes = asked.input.sizes();
  // If ranks may have different numbers of rows, only the shape of a row is compared.
  text += str("[");
  for (size_t d = 0; d < sizes.size(); ++d) {
    text += d == 0 ? str("") : str(", ");
    text += d == 0 && !whole ? str("rows") : str(sizes[d]);
  }
  text += "]";
  if (!asked.input.is_cpu()) text += str(" on ", device_type_name(asked.input.device().type()));
  if (asked.kind == Kind::AllReduce || asked.kind == Kind::ReduceScatter) {
    text += str(", op=", word_of(asked.reduction));
    if (asked.deterministic) text += ", deterministic";
  }
  if (asked.kind == Kind::Broadcast || asked.kind == Kind::Gather || asked.kind == Kind::Scatter) {
    text += str(", root=", asked.peer);
  }
  if (asked.rows && asked.kind != Kind::AllToAll) text += str(", sizes=", *asked.rows);
  return text + ")";
}

double timeout() {
  const char* text = std::getenv("LAMELLA_DISTRIBUTED_TIMEOUT");
  double seconds = text == nullptr ? 0 : std::atof(text);
  return seconds > 0 ? seconds : 30;
}

// The exchange does not tell which ranks are missing, so the error reports where the other ranks of
// this machine are, from their slots.
[[noreturn]] void throw_absent(const std::string& mine, const Group& group) {
  std::vector<int> others = group.ranks;
  others.erase(others.begin() + group.rank);
  std::string where = whereabouts(others.data(), static_cast<int>(others.size()));
  throw Error(str(mine.substr(0, mine.find('(')), ": expected all ", group.size, " ranks of group ",
                  group.number, " to call it within ", timeout(), " s; this is rank ",
                  group.ranks[static_cast<size_t>(group.rank)], " with ", mine,
                  where.empty() ? "" : "; ", where));
}

}  // namespace

void agree(const Collective& asked, const Group& group) {
  if (asked.kind == Kind::Send || asked.kind == Kind::Recv || group.size == 1) return;
  std::string mine = words_of(asked);
  if (mine.size() >= kTold) mine.resize(kTold - 1);
  mine.resize(kTold, '\0');
  std::string all(static_cast<size_t>(kTold) * static_cast<size_t>(group.size), '\0');
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(mine.data(), kTold, MPI_BYTE, all.data(), kTold, MPI_BYTE, group.check,
                           &request),
            name_of(asked.kind));
  Inside inside(static_cast<int>(asked.kind), group.number == 0, /*returns=*/true);
  if (!wait_for(&request, timeout())) {
    // Leaked on purpose: the exchange is still pending, and MPI may access both texts later.
    new std::string(std::move(all));
    new std::string(mine);
    throw_absent(mine.c_str(), group);
  }
  auto told = [&](int r) { return std::string(all.data() + static_cast<size_t>(r) * kTold); };
  bool same = true;
  for (int r = 0; r < group.size; ++r) same = same && told(r) == mine.c_str();
  if (same) return;
  std::string text =
      str(name_of(asked.kind), ": expected all ranks of group ", group.number, " to call the same");
  for (int r = 0; r < group.size; ++r) {
    text += str(r == 0 ? "; rank " : ", rank ", group.ranks[static_cast<size_t>(r)], " calls ",
                told(r));
  }
  throw Error(text);
}

}  // namespace lamella::distributed
