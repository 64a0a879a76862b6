// Debug mode: before each collective the ranks compare what they are about to call.
#pragma once
#include "lamella/distributed/collective.h"

namespace lamella::distributed {

// Throws on every rank of the group, and says who calls what, unless all call the same operator
// with arguments that go together; also if a rank does not come within LAMELLA_DISTRIBUTED_TIMEOUT
// seconds (30). Only the two ends of send and recv would know each other, so these are not
// compared.
void agree(const Collective& asked, const Group& group);

}  // namespace lamella::distributed
