# SPDX-License-Identifier: MIT
# What the libraries stand on. A found optional dependency is a name in FDR_FEATURES; with it the file X_<name>.c
# is compiled, without it X_none.c (see fdr_folder). FDR_WITHOUT leaves one out although it is there.

find_package(PkgConfig REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG OFF)
find_package(Threads REQUIRED)

set(FDR_OPTIONAL urcu numa dw iberty papi otf2 sqlite)
set(FDR_FEATURES "")

# fdr_find(<name> <pkg-config module>...): adds an interface library fdr_dep_<name> with plain -l names, so that
# what an installed static library asks for does not name a path of the machine it was built on.
function(fdr_find name)
    if(name IN_LIST FDR_WITHOUT)
        return()
    endif()
    pkg_check_modules(FDR_${name} QUIET ${ARGN})
    if(NOT FDR_${name}_FOUND)
        return()
    endif()
    fdr_dependency(${name} "${FDR_${name}_LIBRARIES}" "${FDR_${name}_INCLUDE_DIRS}" "${FDR_${name}_LIBRARY_DIRS}")
    set(FDR_FEATURES ${FDR_FEATURES} PARENT_SCOPE)
endfunction()

function(fdr_dependency name libraries includes directories)
    set(FDR_LIBS_${name} "${libraries}" CACHE INTERNAL "")
    target_include_directories(fdr_flags SYSTEM INTERFACE ${includes})
    target_link_directories(fdr_flags INTERFACE ${directories})
    list(APPEND FDR_FEATURES ${name})
    set(FDR_FEATURES ${FDR_FEATURES} PARENT_SCOPE)
endfunction()

fdr_find(urcu liburcu-bp)
if(NOT "urcu" IN_LIST FDR_FEATURES)
    message(FATAL_ERROR "fdr: liburcu is needed (Debian: liburcu-dev)")
endif()
fdr_find(numa numa)
fdr_find(dw libdw libelf)
fdr_find(papi papi)
fdr_find(otf2 otf2)
fdr_find(sqlite sqlite3)

# libiberty has no pkg-config file. It is a static library of position independent code on Debian.
if(NOT "iberty" IN_LIST FDR_WITHOUT)
    find_path(FDR_IBERTY_INCLUDE libiberty/demangle.h)
    find_library(FDR_IBERTY_LIBRARY iberty)
    mark_as_advanced(FDR_IBERTY_INCLUDE FDR_IBERTY_LIBRARY)
    if(FDR_IBERTY_INCLUDE AND FDR_IBERTY_LIBRARY)
        fdr_dependency(iberty iberty "" "")
    endif()
endif()

set(FDR_RECORDER_LIBRARIES "")
foreach(name urcu numa)
    if(name IN_LIST FDR_FEATURES)
        list(APPEND FDR_RECORDER_LIBRARIES ${FDR_LIBS_${name}})
    endif()
endforeach()
list(APPEND FDR_RECORDER_LIBRARIES pthread rt dl)
set(FDR_READER_LIBRARIES "")
foreach(name dw iberty otf2)
    if(name IN_LIST FDR_FEATURES)
        list(APPEND FDR_READER_LIBRARIES ${FDR_LIBS_${name}})
    endif()
endforeach()
list(APPEND FDR_READER_LIBRARIES pthread m)

# Only the command and the tests need these.
pkg_check_modules(FDR_JANSSON QUIET IMPORTED_TARGET jansson)
pkg_check_modules(FDR_ZSTD QUIET IMPORTED_TARGET libzstd)
pkg_check_modules(FDR_ZLIB QUIET IMPORTED_TARGET zlib)
pkg_check_modules(FDR_CMOCKA QUIET IMPORTED_TARGET cmocka)

fdr_build_header()
message(STATUS "fdr ${PROJECT_VERSION} with: ${FDR_FEATURES}")
