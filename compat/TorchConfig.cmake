# find_package(Torch): Lamella's headers with PyTorch's names, for projects written for PyTorch. Sets
# TORCH_LIBRARIES, TORCH_INCLUDE_DIRS, TORCH_INSTALL_PREFIX and TORCH_CXX_FLAGS; the targets are
# `torch` and, as other names of it, those that PyTorch's parts have.
include(CMakeFindDependencyMacro)
find_dependency(Lamella CONFIG PATHS "${CMAKE_CURRENT_LIST_DIR}/../Lamella" NO_DEFAULT_PATH)
get_filename_component(TORCH_INSTALL_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
# The headers are C++20 where the project says 17.
if(NOT CMAKE_CXX_STANDARD OR CMAKE_CXX_STANDARD LESS 20)
  set(CMAKE_CXX_STANDARD 20)
endif()
foreach(name torch torch_cpu torch_cpu_library torch_library torch_python c10)
  if(NOT TARGET ${name})
    add_library(${name} INTERFACE IMPORTED)
    set_target_properties(${name} PROPERTIES INTERFACE_LINK_LIBRARIES Lamella::compat)
  endif()
endforeach()
set(TORCH_LIBRARIES torch)
# Projects with sources of CUDA link the devices and the static runtime.
if(CMAKE_CUDA_COMPILER AND EXISTS "${TORCH_INSTALL_PREFIX}/lib/liblamella_cuda.so")
  find_dependency(CUDAToolkit)
  set(CMAKE_CUDA_STANDARD 20)
  foreach(name torch_cuda torch_cuda_library c10_cuda)
    if(NOT TARGET ${name})
      add_library(${name} INTERFACE IMPORTED)
      set_target_properties(
        ${name} PROPERTIES INTERFACE_LINK_LIBRARIES
                           "torch;${TORCH_INSTALL_PREFIX}/lib/liblamella_cuda.so;CUDA::cudart_static")
      target_compile_options(
        ${name} INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr --expt-extended-lambda
                          -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__>)
    endif()
  endforeach()
  list(APPEND TORCH_LIBRARIES torch_cuda)
endif()
set(TORCH_INCLUDE_DIRS "${TORCH_INSTALL_PREFIX}/include"
                       "${TORCH_INSTALL_PREFIX}/include/lamella_compat")
set(TORCH_CXX_FLAGS "")
set(TORCH_FOUND TRUE)
