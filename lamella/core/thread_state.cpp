// What a thread adds to and takes from every call. New threads meet ThreadInit on their first call.
#include "lamella/core/key_set.h"

extern "C" {
__thread lamella_thread_state lamella_thread = {
    lamella::detail::key_bit(lamella::detail::kKeyFunctionalityThreadInit), 0, 0, 0};
}
