# C++ tests: one GoogleTest program per call, registered with ctest under the same name.
#
#   lamella_add_test(NAME SOURCES file... [ROOMS room... | ALL] [LIBS target...]
#                    [CAPABILITIES] [LABELS label...] [TIMEOUT seconds] [ENV name=value...])
#       ROOMS links rooms directly, so a test may reach what the library hides; without it the test
#       is an ordinary user of liblamella.so. CAPABILITIES runs the test once per CPU capability.
#
# Tests are not part of `all`; the target `lamella_tests` builds them.

include_guard(GLOBAL)
find_package(GTest REQUIRED)
find_package(Threads REQUIRED)

add_custom_target(lamella_tests)

# Programs without code, whose precompiled headers are those of all tests of a kind: users of
# liblamella.so, of programs of HLO and of PyTorch's names, and tests of rooms.
function(lamella_test_headers kind)
  cmake_parse_arguments(ARG "" "" "LIBS;HEADERS" ${ARGN})
  set(name lamella_test_${kind})
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp" CONTENT "")
  add_executable(${name} "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} lamella_flags GTest::gtest_main Threads::Threads)
  lamella_precompile(${name} ${LAMELLA_STANDARD_HEADERS} <gtest/gtest.h> ${ARG_HEADERS})
endfunction()
set(LAMELLA_TEST_HEADERS "${PROJECT_SOURCE_DIR}/lamella")
lamella_test_headers(room HEADERS ${LAMELLA_TEST_HEADERS}/dispatch/library.h)
lamella_test_headers(user LIBS lamella HEADERS ${LAMELLA_TEST_HEADERS}/dispatch/library.h)
if(TARGET lamella_graph)
  lamella_test_headers(graph LIBS lamella lamella_graph
                       HEADERS ${LAMELLA_TEST_HEADERS}/custom_call.h ${LAMELLA_TEST_HEADERS}/graph/execute/executor.h)
endif()
if(TARGET Lamella::compat)
  lamella_test_headers(compat LIBS Lamella::compat HEADERS <torch/torch.h>)
endif()

function(lamella_add_test name)
  cmake_parse_arguments(ARG "CAPABILITIES" "TIMEOUT" "SOURCES;ROOMS;LIBS;LABELS;ENV" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lamella_add_test(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  if(ARG_ROOMS)
    lamella_link_rooms(${name} ${ARG_ROOMS})
  else()
    target_link_libraries(${name} PRIVATE lamella_flags lamella)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest_main Threads::Threads)
  set(kind user)
  if(ARG_ROOMS)
    set(kind room)
  elseif(ARG_LIBS MATCHES "Lamella::compat|seeds_myops")
    set(kind compat)
  elseif(ARG_LIBS MATCHES "lamella_graph")
    set(kind graph)
  endif()
  if(LAMELLA_PRECOMPILE)
    target_precompile_headers(${name} REUSE_FROM lamella_test_${kind})
    set(c ${ARG_SOURCES})
    list(FILTER c INCLUDE REGEX "\\.c$")
    set_source_files_properties(${c} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
  # What is tested is optimised as it is installed; the tests themselves only take longer to compile.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  # The library of matrix products is looked for beside liblamella.so, or where this points.
  set(env "LAMELLA_LIBRARY_PATH=${LAMELLA_LIB_DIR}" ${ARG_ENV})
  if(LAMELLA_SANITIZE)
    # Tests ask for more memory than there is, and expect an error rather than the end.
    list(APPEND env "ASAN_OPTIONS=allocator_may_return_null=1:halt_on_error=1")
    # Children of tests with threads begin threads of their own.
    list(APPEND env "TSAN_OPTIONS=allocator_may_return_null=1:halt_on_error=1:die_after_fork=0")
    list(APPEND env "UBSAN_OPTIONS=print_stacktrace=1")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_dependencies(lamella_tests ${name})
  if(ARG_CAPABILITIES)
    foreach(capability IN LISTS LAMELLA_CPU_CAPABILITIES)
      string(TOLOWER ${capability} lower)
      add_test(NAME ${name}.${lower} COMMAND ${name})
      set_tests_properties(
        ${name}.${lower} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" ENVIRONMENT
                                    "${env};LAMELLA_CPU_CAPABILITY=${lower}")
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                                            ENVIRONMENT "${env}")
  endif()
endfunction()
