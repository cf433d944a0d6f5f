# SPDX-License-Identifier: MIT
# Toolchain file: Debian's cross compiler for aarch64, the libraries of FDR_SYSROOT (made by scripts/cross.sh), and
# qemu-user to run what was built.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

if(NOT FDR_SYSROOT)
    set(FDR_SYSROOT "$ENV{FDR_SYSROOT}")
endif()
if(NOT FDR_SYSROOT)
    set(FDR_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-sysroot")
endif()
get_filename_component(FDR_SYSROOT "${FDR_SYSROOT}" ABSOLUTE)
set(FDR_SYSROOT "${FDR_SYSROOT}" CACHE PATH "Libraries of aarch64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FDR_SYSROOT)
set(libraries "${FDR_SYSROOT}/usr/lib/aarch64-linux-gnu")

set(ENV{PKG_CONFIG_LIBDIR} "${libraries}/pkgconfig:${FDR_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${FDR_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH "${FDR_SYSROOT}")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
foreach(what LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${what} ONLY)
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_C_FLAGS_INIT "-isystem ${FDR_SYSROOT}/usr/include -isystem ${FDR_SYSROOT}/usr/include/aarch64-linux-gnu")
foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-L${libraries} -Wl,-rpath-link,${libraries}:${FDR_SYSROOT}/lib/aarch64-linux-gnu")
endforeach()
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=${libraries}:${FDR_SYSROOT}/lib/aarch64-linux-gnu:/usr/aarch64-linux-gnu/lib")
