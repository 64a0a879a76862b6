# Installs the public headers: those reachable from lamella/*.h, from lamella/abi/abi.h and operators.h, from
# lamella/dispatch/load_library.h, from the generated API and from compat/. Runs inside
# `cmake --install`, with LAMELLA_SOURCE_DIR, LAMELLA_GENERATED_DIR and
# LAMELLA_COMPAT_VIEW (compat/CMakeLists.txt) set.

cmake_policy(VERSION 3.22)
file(GLOB roots RELATIVE "${LAMELLA_SOURCE_DIR}" "${LAMELLA_SOURCE_DIR}/lamella/*.h"
     "${LAMELLA_SOURCE_DIR}/lamella/abi/abi.h" "${LAMELLA_SOURCE_DIR}/lamella/abi/operators.h"
     "${LAMELLA_SOURCE_DIR}/lamella/dispatch/load_library.h")
file(GLOB_RECURSE generated RELATIVE "${LAMELLA_GENERATED_DIR}"
     "${LAMELLA_GENERATED_DIR}/lamella/api/*.h")
set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")

# file(INSTALL) keeps the time stamp of a file that did not change, so dependents are not rebuilt.
set(CMAKE_INSTALL_MESSAGE NEVER)
function(install_header root file dest)
  get_filename_component(dir "${dest}/${file}" DIRECTORY)
  file(INSTALL DESTINATION "${prefix}/${dir}" TYPE FILE FILES "${root}/${file}")
endfunction()

set(todo ${roots})
function(append_includes file)
  file(STRINGS "${file}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*[\"<]lamella/")
  set(found ${todo})
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[ \t]*#[ \t]*include[ \t]*[\"<]([^\">]*)[\">].*" "\\1" name "${line}")
    list(APPEND found "${name}")
  endforeach()
  set(todo "${found}" PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY "${prefix}/include/lamella_compat")
foreach(root "${LAMELLA_SOURCE_DIR}/compat/torch/include" "${LAMELLA_SOURCE_DIR}/compat/xla"
             "${LAMELLA_COMPAT_VIEW}")
  file(GLOB_RECURSE compat RELATIVE "${root}" "${root}/*.h" "${root}/*.hpp"
       "${root}/*.cuh")
  list(FILTER compat EXCLUDE REGEX "^lamella/")
  foreach(file IN LISTS compat)
    append_includes("${root}/${file}")
    install_header("${root}" "${file}" include/lamella_compat)
  endforeach()
endforeach()
list(APPEND todo lamella/nn.h ${generated})

# ATen/ops/NAME.h for each operator: all of them, as ATen/Functions.h.
foreach(file IN LISTS generated)
  if(file MATCHES "^lamella/api/ops/(.*)\\.h$")
    set(header "${prefix}/include/lamella_compat/ATen/ops/${CMAKE_MATCH_1}.h")
    if(NOT EXISTS "${header}")
      file(WRITE "${header}"
           "// at::${CMAKE_MATCH_1}.\n#pragma once\n#include <ATen/Functions.h>\n")
    endif()
  endif()
endforeach()

set(seen "")
while(todo)
  list(POP_FRONT todo file)
  if(file IN_LIST seen)
    continue()
  endif()
  list(APPEND seen "${file}")
  set(root "")
  foreach(place "${LAMELLA_SOURCE_DIR}" "${LAMELLA_GENERATED_DIR}" "${LAMELLA_COMPAT_VIEW}")
    if(NOT root AND EXISTS "${place}/${file}")
      set(root "${place}")
    endif()
  endforeach()
  if(NOT root)
    message(FATAL_ERROR "public headers include \"${file}\", which does not exist")
  endif()
  append_includes("${root}/${file}")
  install_header("${root}" "${file}" include)
endwhile()
