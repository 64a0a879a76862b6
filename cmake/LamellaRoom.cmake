# A room is one folder of the library, built as one object library that sees only the rooms its row
# in the design allows. Rooms are put together into liblamella.so, and linked directly into tests.
#
#   lamella_room(NAME SOURCES file... [SMALL file...] [DEPENDS room...] [LIBS target...]
#                [OPTIONS flag...] [PRECOMPILE header...] [TOGETHER folder...])
#       Object library lamella_NAME. DEPENDS names rooms in any order of declaration; LIBS names
#       third-party targets. A room of headers alone gives no SOURCES. SMALL files are compiled for
#       size, into lamella_NAME_small. PRECOMPILE headers are compiled once for all files; files of
#       TOGETHER folders are compiled several at a time.
#
#   lamella_simd_sources(NAME SOURCES file... [OPTIONS flag...] [PRECOMPILE header...])
#       Compiles each file of room NAME once per CPU capability. Call after lamella_room(NAME).
#
#   lamella_link_rooms(TARGET room... | ALL [ARCHIVE])
#       Links rooms, and the rooms they depend on, into TARGET. ARCHIVE links static libraries, so
#       only the objects that are used come in; for small host tools.

include_guard(GLOBAL)

set(LAMELLA_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated" CACHE INTERNAL "generated sources")
file(MAKE_DIRECTORY "${LAMELLA_GENERATED_DIR}")

# Flags of every first-party target.
add_library(lamella_flags INTERFACE)
target_compile_features(lamella_flags INTERFACE cxx_std_20)
target_include_directories(lamella_flags INTERFACE "${PROJECT_SOURCE_DIR}"
                                                   "${LAMELLA_GENERATED_DIR}")
# GCC 12 reports overlaps and out-of-bounds accesses inside std::string that do not exist.
target_compile_options(
  lamella_flags INTERFACE -Wall -Wextra -Wno-unused-parameter
                          $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>
                          $<$<BOOL:${LAMELLA_WERROR}>:-Werror>)

# Headers of the standard library that most files read.
set(LAMELLA_STANDARD_HEADERS
    <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional> <limits> <memory> <mutex>
    <optional> <span> <sstream> <stdexcept> <string> <string_view> <tuple> <type_traits>
    <unordered_map> <unordered_set> <utility> <variant> <vector>)

# The headers must be those of rooms that the target may read; a file includes what it uses all the
# same, as it must without LAMELLA_PRECOMPILE.
function(lamella_precompile target)
  if(LAMELLA_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# Compiles the sources of each of the folders (relative to where the target is made, "." is that
# place) four at a time, where headers are precompiled too: what the four include is then read once.
# Within a folder, what stands in unnamed namespaces must have different names for that.
function(lamella_together target)
  if(NOT LAMELLA_PRECOMPILE)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(folder IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set(number 0)
    foreach(source IN LISTS sources)
      get_filename_component(place "${source}" ABSOLUTE)
      file(RELATIVE_PATH place "${CMAKE_CURRENT_SOURCE_DIR}" "${place}")
      get_filename_component(place "./${place}" DIRECTORY)
      if(place STREQUAL "./${folder}" OR (place STREQUAL "." AND folder STREQUAL "."))
        math(EXPR part "${number} / 4")
        set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}_${part}")
        math(EXPR number "${number} + 1")
      endif()
    endforeach()
  endforeach()
endfunction()

# An object library of files of the library itself.
function(lamella_objects target)
  add_library(${target} OBJECT ${ARGN})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                                             CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  # Thread-local state sits in the static block: one instruction instead of a call to find it.
  target_compile_options(${target} PRIVATE -fno-semantic-interposition -fno-plt
                                           -ftls-model=initial-exec)
  target_compile_definitions(${target} PRIVATE LAMELLA_BUILDING_LIBRARY=1)
endfunction()

function(lamella_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;SMALL;DEPENDS;LIBS;OPTIONS;PRECOMPILE;TOGETHER" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lamella_room(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  set(target lamella_${name})
  if(ARG_SOURCES)
    lamella_objects(${target} ${ARG_SOURCES})
    target_compile_options(${target} PRIVATE ${ARG_OPTIONS})
    target_link_libraries(${target} PUBLIC lamella_flags ${ARG_LIBS})
    lamella_precompile(${target} ${LAMELLA_STANDARD_HEADERS} ${ARG_PRECOMPILE})
    lamella_together(${target} ${ARG_TOGETHER})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE lamella_flags ${ARG_LIBS})
  endif()
  if(ARG_SMALL)
    # At -Os, GCC 12 takes optionals that are set for ones that may not be.
    lamella_objects(${target}_small ${ARG_SMALL})
    target_compile_options(${target}_small PRIVATE ${ARG_OPTIONS} -Os -Wno-maybe-uninitialized)
    target_link_libraries(${target}_small PUBLIC lamella_flags ${ARG_LIBS})
    lamella_precompile(${target}_small ${LAMELLA_STANDARD_HEADERS} ${ARG_PRECOMPILE})
    lamella_together(${target}_small ${ARG_TOGETHER})
  endif()
  set_property(GLOBAL APPEND PROPERTY LAMELLA_ROOMS ${name})
  set_property(GLOBAL PROPERTY LAMELLA_ROOM_DEPENDS_${name} "${ARG_DEPENDS}")
  set_property(GLOBAL PROPERTY LAMELLA_ROOM_LIBS_${name} "${ARG_LIBS}")
endfunction()

# Note [Which copy of an inline function survives]
# An inline function or template that the compiler does not inline is emitted by every object that
# uses it, and the linker keeps the first copy it meets. If that copy came from an AVX-512 object,
# a plain x86-64 machine would crash in code that looks harmless (std::vector's growth, say). Every
# object that calls such a function also carries its own copy, so linking objects in order of rising
# capability makes each call land on code that needs no more than the caller already does. Hence:
# all ordinary objects first, then DEFAULT, then AVX2, then AVX512. lamella_link_rooms keeps this
# order for every program and library. For speed, helpers of a kernel belong in a namespace named by
# CPU_CAPABILITY, which gives each capability its own copy.
set(LAMELLA_CAPABILITIES all CACHE STRING
    "CPU capabilities that kernels are built for: all, or native, the best of this machine alone")
set(LAMELLA_CPU_CAPABILITIES DEFAULT)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(LAMELLA_CPU_CAPABILITIES DEFAULT AVX2 AVX512)
  if(LAMELLA_CAPABILITIES STREQUAL "native" AND EXISTS /proc/cpuinfo)
    # What dispatch_stub.cpp asks the processor for.
    file(STRINGS /proc/cpuinfo cpu LIMIT_COUNT 1 REGEX "^flags")
    set(LAMELLA_CPU_CAPABILITIES AVX512)
    foreach(feature avx2 fma bmi1 bmi2 avx512f avx512bw avx512cd avx512dq avx512vl)
      if(NOT "${cpu} " MATCHES " ${feature} ")
        if(NOT feature MATCHES "avx512")
          set(LAMELLA_CPU_CAPABILITIES DEFAULT)
          break()
        endif()
        set(LAMELLA_CPU_CAPABILITIES AVX2)
      endif()
    endforeach()
  endif()
endif()
set(LAMELLA_CPU_CAPABILITIES ${LAMELLA_CPU_CAPABILITIES} CACHE INTERNAL
    "capabilities kernels are built for")
# The plain x86-64 build serves processors without AVX2, and is kept smaller: it has no copies of a loop
# for each of its cases, which -O3 makes.
set(LAMELLA_CPU_FLAGS_DEFAULT "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(LAMELLA_CPU_FLAGS_DEFAULT -O2 -ftree-vectorize)
endif()
# -O3 because GCC 12 vectorises nothing useful at -O2. Integers wrap around: vectors of them hold the
# bits of numbers, and lanes whose result is not used may overflow.
set(LAMELLA_SIMD_FLAGS -O3 -fno-math-errno -fno-trapping-math -fwrapv)
set(LAMELLA_CPU_FLAGS_AVX2 -march=x86-64-v3)
set(LAMELLA_CPU_FLAGS_AVX512 -march=x86-64-v4 -mprefer-vector-width=512)

function(lamella_simd_sources name)
  cmake_parse_arguments(ARG "" "" "SOURCES;OPTIONS;PRECOMPILE" ${ARGN})
  foreach(capability IN LISTS LAMELLA_CPU_CAPABILITIES)
    set(target lamella_${name}_${capability})
    lamella_objects(${target} ${ARG_SOURCES})
    # Contraction stays off, so that elements which do not fill a vector round like the others; code
    # that needs a fused multiplication calls it explicitly.
    target_compile_options(${target} PRIVATE ${LAMELLA_SIMD_FLAGS} -ffp-contract=off
                                             ${LAMELLA_CPU_FLAGS_${capability}} ${ARG_OPTIONS})
    target_compile_definitions(
      ${target} PRIVATE CPU_CAPABILITY=${capability} CPU_CAPABILITY_${capability}=1
                        LAMELLA_CPU_CAPABILITY="${capability}")
    get_property(libs GLOBAL PROPERTY LAMELLA_ROOM_LIBS_${name})
    target_link_libraries(${target} PUBLIC lamella_flags ${libs})
    lamella_precompile(${target} ${LAMELLA_STANDARD_HEADERS} ${ARG_PRECOMPILE})
  endforeach()
endfunction()

# Makes each room wait for the files that a room below it generates: a room that generates headers
# names the custom target lamella_NAME_generated. Called once, when all rooms are declared.
function(lamella_finish_rooms)
  get_property(rooms GLOBAL PROPERTY LAMELLA_ROOMS)
  foreach(room IN LISTS rooms)
    lamella_room_closure(closure ${room})
    foreach(below IN LISTS closure)
      if(TARGET lamella_${below}_generated)
        foreach(suffix "" _small _DEFAULT _AVX2 _AVX512)
          if(TARGET lamella_${room}${suffix})
            add_dependencies(lamella_${room}${suffix} lamella_${below}_generated)
          endif()
        endforeach()
      endif()
    endforeach()
  endforeach()
endfunction()

# The rooms named and everything they depend on, in order of declaration.
function(lamella_room_closure out)
  get_property(rooms GLOBAL PROPERTY LAMELLA_ROOMS)
  set(todo ${ARGN})
  if("ALL" IN_LIST todo)
    set(todo ${rooms})
  endif()
  set(seen "")
  while(todo)
    list(POP_FRONT todo room)
    if(room IN_LIST seen OR NOT room IN_LIST rooms)
      continue()
    endif()
    list(APPEND seen ${room})
    get_property(depends GLOBAL PROPERTY LAMELLA_ROOM_DEPENDS_${room})
    list(APPEND todo ${depends})
  endwhile()
  set(ordered "")
  foreach(room IN LISTS rooms)
    if(room IN_LIST seen)
      list(APPEND ordered ${room})
    endif()
  endforeach()
  set(${out} "${ordered}" PARENT_SCOPE)
endfunction()

function(lamella_link_rooms target)
  cmake_parse_arguments(ARG "ARCHIVE" "" "" ${ARGN})
  lamella_room_closure(rooms ${ARG_UNPARSED_ARGUMENTS})
  set(objects "")
  foreach(room IN LISTS rooms)
    list(APPEND objects lamella_${room})
    if(TARGET lamella_${room}_small)
      list(APPEND objects lamella_${room}_small)
    endif()
  endforeach()
  # See Note [Which copy of an inline function survives].
  foreach(capability IN LISTS LAMELLA_CPU_CAPABILITIES)
    foreach(room IN LISTS rooms)
      if(TARGET lamella_${room}_${capability})
        list(APPEND objects lamella_${room}_${capability})
      endif()
    endforeach()
  endforeach()
  if(ARG_ARCHIVE)
    foreach(object IN LISTS objects)
      get_target_property(type ${object} TYPE)
      if(type STREQUAL "OBJECT_LIBRARY" AND NOT TARGET ${object}_a)
        add_library(${object}_a STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${object}>)
        set_target_properties(${object}_a PROPERTIES LINKER_LANGUAGE CXX)
      endif()
    endforeach()
    list(REVERSE objects)
    set(archives "")
    foreach(object IN LISTS objects)
      if(TARGET ${object}_a)
        list(APPEND archives ${object}_a)
      endif()
      string(REGEX REPLACE "^lamella_" "" room ${object})
      get_property(libs GLOBAL PROPERTY LAMELLA_ROOM_LIBS_${room})
      list(APPEND archives ${libs})
    endforeach()
    target_link_libraries(${target} PRIVATE lamella_flags ${archives})
  else()
    target_link_libraries(${target} PRIVATE lamella_flags ${objects} ${CMAKE_DL_LIBS})
  endif()
endfunction()
