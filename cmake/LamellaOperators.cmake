# lamella_add_operators(TARGET target YAML file... [NAMESPACE ns] [TAGS file...] [METHODS]
#                       [AUTOCAST file...]
#                       [PYTHON_MODULE name] [DERIVATIVES file... [DERIVATIVES_HEADER header...]])
#
# Gives a library target the operators that YAML files declare. At build time lamella-gen writes,
# and the target compiles, <target>/register.cpp: schemas and kernels, registered when the library
# is loaded. These headers are for the target and for targets that link it:
#   <target>/functions.h           ns::name(...), ns::name_out(...), ns::redispatch::name(...)
#   <target>/native_functions.h    the kernels to write, in ns::native
#   <target>/structured_kernels.h  the structured kernels to write, in ns::meta and ns::native
#   <target>/tensor.h              with METHODS: ns::methods::Tensor, which has the method variants
# NAMESPACE is for operators that name none; TAGS are further tag files, AUTOCAST files like
# Lamella's ops/autocast.yaml, where a class is another one for each device type. PYTHON_MODULE puts
# <name>.py and <name>.pyi beside the library: importing it loads the library. With METHODS it adds
# the method variants to lamella.Tensor. DERIVATIVES are files like Lamella's ops/derivatives.yaml,
# for operators of YAML; the target then compiles <target>/derivatives.cpp as well. Their formulas
# see namespace lamella, the operators' namespaces, and what DERIVATIVES_HEADER declares: a header
# as the target's sources would include it.

include_guard(GLOBAL)

function(lamella_add_operators)
  cmake_parse_arguments(ARG "METHODS" "TARGET;NAMESPACE;PYTHON_MODULE"
                        "YAML;TAGS;AUTOCAST;DERIVATIVES;DERIVATIVES_HEADER" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "lamella_add_operators: unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_TARGET OR NOT ARG_YAML)
    message(FATAL_ERROR "lamella_add_operators: expected TARGET and YAML")
  endif()
  if(NOT TARGET ${ARG_TARGET})
    message(FATAL_ERROR "lamella_add_operators: '${ARG_TARGET}' is not a target")
  endif()
  if(TARGET Lamella::lamella-gen)
    set(generator Lamella::lamella-gen)
  elseif(TARGET lamella-gen)
    set(generator lamella-gen)
  else()
    message(FATAL_ERROR "lamella_add_operators: this installation was built without lamella-gen")
  endif()

  set(dir "${CMAKE_CURRENT_BINARY_DIR}/${ARG_TARGET}_operators")
  set(stamp "${dir}/generated.stamp")
  set(inputs "")
  foreach(file IN LISTS ARG_YAML ARG_TAGS ARG_AUTOCAST ARG_DERIVATIVES)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND inputs "${file}")
  endforeach()
  set(arguments --out "${dir}" --stamp "${stamp}" --target ${ARG_TARGET})
  list(GET ARG_YAML 0 first)
  get_filename_component(name "${first}" NAME)
  list(APPEND arguments --source-name "${name}")
  if(ARG_NAMESPACE)
    list(APPEND arguments --namespace ${ARG_NAMESPACE})
  endif()
  foreach(file IN LISTS ARG_TAGS)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND arguments --tags "${file}")
  endforeach()
  foreach(file IN LISTS ARG_AUTOCAST)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND arguments --autocast "${file}")
  endforeach()
  foreach(file IN LISTS ARG_DERIVATIVES)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND arguments --derivatives "${file}")
  endforeach()
  foreach(header IN LISTS ARG_DERIVATIVES_HEADER)
    list(APPEND arguments --derivatives-header "${header}")
  endforeach()
  if(ARG_METHODS)
    list(APPEND arguments --methods)
  endif()
  set(written "${dir}/${ARG_TARGET}/functions.h" "${dir}/${ARG_TARGET}/native_functions.h"
              "${dir}/${ARG_TARGET}/structured_kernels.h")
  set(sources "${dir}/${ARG_TARGET}/register.cpp")
  if(ARG_DERIVATIVES)
    list(APPEND sources "${dir}/${ARG_TARGET}/derivatives.cpp")
  endif()
  if(ARG_METHODS)
    list(APPEND written "${dir}/${ARG_TARGET}/tensor.h")
  endif()
  if(ARG_PYTHON_MODULE)
    list(APPEND arguments --python-module ${ARG_PYTHON_MODULE} --library
         $<TARGET_FILE_NAME:${ARG_TARGET}>)
    list(APPEND written "${dir}/${ARG_PYTHON_MODULE}.py" "${dir}/${ARG_PYTHON_MODULE}.pyi")
  endif()
  foreach(file IN LISTS ARG_YAML)
    get_filename_component(file "${file}" ABSOLUTE)
    list(APPEND arguments "${file}")
  endforeach()

  add_custom_command(
    OUTPUT "${stamp}"
    BYPRODUCTS ${written} ${sources}
    COMMAND ${CMAKE_COMMAND} -E make_directory "${dir}"
    COMMAND ${generator} ${arguments}
    DEPENDS ${inputs} ${generator}
    COMMENT "Generating operators of ${ARG_TARGET}"
    VERBATIM)
  add_custom_target(${ARG_TARGET}_operators DEPENDS "${stamp}")
  add_dependencies(${ARG_TARGET} ${ARG_TARGET}_operators)
  set_source_files_properties(${sources} PROPERTIES GENERATED TRUE)
  target_sources(${ARG_TARGET} PRIVATE ${sources})
  target_include_directories(${ARG_TARGET} PUBLIC $<BUILD_INTERFACE:${dir}>)
  # Its operators are found by name, so nothing else would make a linker keep the library.
  string(MAKE_C_IDENTIFIER ${ARG_TARGET} id)
  get_target_property(type ${ARG_TARGET} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_link_options(${ARG_TARGET} INTERFACE "LINKER:--no-as-needed")
  elseif(type STREQUAL "STATIC_LIBRARY")
    target_link_options(${ARG_TARGET} INTERFACE "LINKER:--undefined=lamella_operators_${id}")
    if(ARG_DERIVATIVES)
      target_link_options(${ARG_TARGET} INTERFACE "LINKER:--undefined=lamella_derivatives_${id}")
    endif()
  endif()
  if(ARG_PYTHON_MODULE)
    add_custom_command(
      TARGET ${ARG_TARGET}
      POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E copy_if_different "${dir}/${ARG_PYTHON_MODULE}.py"
              "${dir}/${ARG_PYTHON_MODULE}.pyi" $<TARGET_FILE_DIR:${ARG_TARGET}>
      VERBATIM)
  endif()
endfunction()
