// Each thread's included and excluded dispatch keys. A new thread starts with the key ThreadInit.
#include "lamella/core/key_set.h"

extern "C" {
__thread lamella_thread_state lamella_thread = {
    lamella::detail::functionality_bit(lamella::detail::Functionality::ThreadInit), 0, 0, 0};
}
