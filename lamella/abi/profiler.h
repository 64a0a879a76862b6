/* The profiler's part of the C ABI. Pure C. lamella/profiler.h is the C++ over it.
 *
 * Note [What a profile sees]
 *   While a profile runs, every operator that is called on its thread, or on a thread that begins
 * to call operators meanwhile, is an event: its name, the tensors it was given, its time. So are
 * the compiling of programs (a pass each) and their running (a step each), and ranges that the
 * caller names. Events nest as calls do; an event's own time is without those inside of it. One
 * profile runs at a time.
 */
#ifndef LAMELLA_ABI_PROFILER_H_
#define LAMELLA_ABI_PROFILER_H_

#include "lamella/abi/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lamella_profile lamella_profile;
typedef struct lamella_profile_event {
  const char* name;
  const char* kind;      /* "operator", "compile", "run" or "range" */
  const char* arguments; /* of operators: dtypes and sizes of the tensors, "float32[2, 3]" */
  int64_t start_ns;      /* since the beginning of the profile */
  int64_t duration_ns;
  int64_t own_ns;
  uint32_t thread; /* 1 for the first thread that had an event in this process, and so on */
} lamella_profile_event;

/* Fails if a profile is running. */
LAMELLA_ABI_API lamella_status lamella_profiler_start(void) LAMELLA_ABI_NOEXCEPT;
/* Ends the profile and returns its events by start, owned by the caller. Fails if none is
 * running. */
LAMELLA_ABI_API lamella_status lamella_profiler_stop(lamella_profile** profile)
    LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_profile_free(lamella_profile* profile) LAMELLA_ABI_NOEXCEPT;
/* A range from here to the leave() that belongs to it, on this thread; nothing if no profile runs.
 */
LAMELLA_ABI_API void lamella_profiler_enter(const char* name) LAMELLA_ABI_NOEXCEPT;
LAMELLA_ABI_API void lamella_profiler_leave(void) LAMELLA_ABI_NOEXCEPT;

LAMELLA_ABI_API void lamella_profile_each(const lamella_profile* profile,
                                          void (*each)(void* context,
                                                       const lamella_profile_event* event),
                                          void* context) LAMELLA_ABI_NOEXCEPT;
/* Texts live as long as the profile, or until the next one of their kind.
 * A line for each name, the largest first by "own", "total", "mean" or "calls" (NULL: "own"); at
 * most `rows` lines, all if that is negative. */
LAMELLA_ABI_API const char* lamella_profile_table(lamella_profile* profile, const char* sort_by,
                                                  int64_t rows) LAMELLA_ABI_NOEXCEPT;
/* JSON in Chrome's trace event format, which ui.perfetto.dev reads. */
LAMELLA_ABI_API const char* lamella_profile_trace(lamella_profile* profile) LAMELLA_ABI_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
