// Debug mode: before each collective the ranks compare what they are about to call.
#pragma once
#include "lamella/distributed/collective.h"

namespace lamella::distributed {

// Throws on every rank of the group, listing each rank's call, unless all ranks call the same
// operator with matching arguments; also if a rank makes no call within LAMELLA_DISTRIBUTED_TIMEOUT
// seconds (default 30). send and recv involve only two ranks, so they are not compared.
void agree(const Collective& asked, const Group& group);

}  // namespace lamella::distributed
