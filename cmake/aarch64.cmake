# Toolchain of the aarch64 preset: Debian's cross compiler, its arm64 libraries, and programs run by QEMU.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
# Debian's oneDNN headers for two architectures cannot be installed side by side, and say the same; so
# the library is named by its file. OpenBLAS keeps its headers in a folder of the architecture.
set(LAMELLA_DNNL /usr/lib/aarch64-linux-gnu/libdnnl.so.2 CACHE FILEPATH "")
