// Reading shardings and lists of devices, whose numbers must agree with each other.
#pragma once
#include "lamella/graph/hlo/scanner.h"

namespace lamella::hlo {

// {{0,1},{2,3}}, [2,2]<=[4], [2,2]<=[2,2]T(1,0) or mesh['a'=2,'b'=2] {'a'}.
void scan_replica_groups(Scanner& s);
// {replicated}, {maximal device=1}, {devices=[2,2]<=[4] last_tile_dim_replicate},
// {mesh['a'=2] [{'a'}, {}]}, or several of these in braces.
void scan_sharding(Scanner& s);

}  // namespace lamella::hlo
