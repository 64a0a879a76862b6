// Debug mode: before each collective the ranks compare what they are about to call.
#pragma once
#include "lamella/distributed/collective.h"

namespace lamella::distributed {

// Throws on every rank of the group, and lists what each rank calls, unless all call one operator
// with arguments that go together; also if a rank does not come within LAMELLA_DISTRIBUTED_TIMEOUT
// seconds (30). send and recv involve only two ranks of the group, so they are not compared.
void agree(const Collective& asked, const Group& group);

}  // namespace lamella::distributed
