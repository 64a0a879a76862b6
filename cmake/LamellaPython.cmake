# The Python extension module.
#
#   lamella_python_extension(NAME SOURCES file... [LIBS target...] [PRECOMPILE header...])
#       Module lamella/NAME for the interpreter in Python3_EXECUTABLE. It finds liblamella.so beside
#       the package in a wheel (lamella/lib) and two folders up in the installed tree.

include_guard(GLOBAL)
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter Development.Module)

function(lamella_python_extension name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;PRECOMPILE" ${ARGN})
  Python3_add_library(${name} MODULE WITH_SOABI ${ARG_SOURCES})
  set_target_properties(
    ${name} PROPERTIES CXX_VISIBILITY_PRESET hidden
                       VISIBILITY_INLINES_HIDDEN ON
                       LIBRARY_OUTPUT_DIRECTORY "${LAMELLA_LIB_DIR}/python/lamella"
                       BUILD_WITH_INSTALL_RPATH ON
                       INSTALL_RPATH "$ORIGIN/lib:$ORIGIN/../..")
  target_link_libraries(${name} PRIVATE lamella_flags lamella ${ARG_LIBS})
  target_compile_options(${name} PRIVATE -fno-semantic-interposition -fno-plt)
  # The given headers come first, because Python.h must precede the standard library's headers.
  lamella_precompile(${name} ${ARG_PRECOMPILE} ${LAMELLA_STANDARD_HEADERS})
  install(TARGETS ${name} LIBRARY DESTINATION "${LAMELLA_INSTALL_PYTHON}" COMPONENT python OPTIONAL)
endfunction()
