# Builds liblamella.so from all rooms, declares the targets for users, and installs both.

get_property(rooms GLOBAL PROPERTY LAMELLA_ROOMS)
set(has_objects FALSE)
foreach(room IN LISTS rooms)
  get_target_property(type lamella_${room} TYPE)
  if(type STREQUAL "OBJECT_LIBRARY")
    set(has_objects TRUE)
  endif()
endforeach()
if(NOT has_objects)
  return()
endif()

set(exports "${PROJECT_BINARY_DIR}/exports.map")
configure_file("${PROJECT_SOURCE_DIR}/lamella/abi/exports.map.in" "${exports}" @ONLY)
file(STRINGS "${PROJECT_SOURCE_DIR}/lamella/abi/abi.h" abi_major
     REGEX "^#define LAMELLA_ABI_MAJOR [0-9]+$")
string(REGEX MATCH "[0-9]+" abi_major "${abi_major}")
add_library(lamella SHARED "${PROJECT_SOURCE_DIR}/cmake/anchor.cpp")
lamella_link_rooms(lamella ALL)
set_target_properties(lamella PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${LAMELLA_LIB_DIR}"
                                         SOVERSION "${abi_major}"
                                         CXX_VISIBILITY_PRESET hidden
                                         LINK_DEPENDS "${exports}"
                                         BUILD_WITH_INSTALL_RPATH ON
                                         INSTALL_RPATH "$ORIGIN")
# --no-undefined: a missing symbol is found here, not at the first dlopen.
target_link_options(lamella PRIVATE "-Wl,--version-script=${exports}" -Wl,-O1 -Wl,--gc-sections
                                    $<$<CONFIG:Release>:-s>)
if(NOT LAMELLA_SANITIZE)
  target_link_options(lamella PRIVATE -Wl,--no-undefined)
endif()
# Tables of operators are full of addresses: packed, their relocations take a few KB instead of 400.
# The loader knows the packed form since glibc 2.36.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,--fatal-warnings,-z,pack-relative-relocs)
check_cxx_source_compiles("
#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error the loader does not know packed relocations
#endif
int main() {}" LAMELLA_PACKS_RELOCATIONS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
if(LAMELLA_PACKS_RELOCATIONS)
  target_link_options(lamella PRIVATE -Wl,-z,pack-relative-relocs)
endif()
target_include_directories(
  lamella INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                    $<BUILD_INTERFACE:${LAMELLA_GENERATED_DIR}> $<INSTALL_INTERFACE:include>)
target_compile_features(lamella INTERFACE cxx_std_20)
# Static variables of inline functions would otherwise keep a library from being unloaded.
target_compile_options(lamella INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
# Debug builds of extensions end with a sentence where a kernel reads an optional argument that is None.
target_compile_definitions(lamella INTERFACE $<INSTALL_INTERFACE:$<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>>)
add_library(Lamella::lamella ALIAS lamella)

include(CMakePackageConfigHelpers)
set(cmake_dest lib/cmake/Lamella)
install(TARGETS lamella EXPORT LamellaTargets LIBRARY DESTINATION lib ${LAMELLA_NAMELINK})
if(TARGET lamella_blas)
  install(TARGETS lamella_blas LIBRARY DESTINATION lib)
endif()
if(TARGET lamella_codegen)
  install(TARGETS lamella-gen EXPORT LamellaTargets RUNTIME DESTINATION bin)
  if(SKBUILD)
    # A second copy, in the scripts folder of the wheel; the exported one moves with the tree.
    install(PROGRAMS $<TARGET_FILE:lamella-gen> DESTINATION "${SKBUILD_SCRIPTS_DIR}")
  endif()
endif()
install(EXPORT LamellaTargets NAMESPACE Lamella:: DESTINATION ${cmake_dest})
configure_package_config_file(cmake/LamellaConfig.cmake.in
                              "${PROJECT_BINARY_DIR}/cmake/LamellaConfig.cmake"
                              INSTALL_DESTINATION ${cmake_dest})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/LamellaConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/cmake/LamellaConfig.cmake"
              "${PROJECT_BINARY_DIR}/cmake/LamellaConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/LamellaOperators.cmake" DESTINATION ${cmake_dest})

# Installs only the headers that lamella/*.h, the generated API and the compat headers include. They
# are found at install time, so there is no list to maintain.
install(CODE "
  set(LAMELLA_SOURCE_DIR \"${PROJECT_SOURCE_DIR}\")
  set(LAMELLA_GENERATED_DIR \"${LAMELLA_GENERATED_DIR}\")
  set(LAMELLA_COMPAT_VIEW \"${PROJECT_BINARY_DIR}/compat/view\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake\")")
