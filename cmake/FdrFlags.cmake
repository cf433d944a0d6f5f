# SPDX-License-Identifier: MIT
# Flags. fdr_flags carries what our own sources are compiled with; none of it reaches a consumer.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

add_library(fdr_flags INTERFACE)
target_compile_features(fdr_flags INTERFACE c_std_11)
target_include_directories(fdr_flags INTERFACE
    "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/generated")
# The empty value makes a file's own "#define _GNU_SOURCE" the same definition.
target_compile_definitions(fdr_flags INTERFACE _GNU_SOURCE=)
# Two words next to each other by way of a vector register: more instructions than two stores.
target_compile_options(fdr_flags INTERFACE -Werror=implicit-function-declaration -fno-tree-slp-vectorize)

if(FDR_DEVELOPER)
    target_compile_options(fdr_flags INTERFACE
        -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla -Wformat=2)
endif()
if(FDR_WERROR)
    target_compile_options(fdr_flags INTERFACE -Werror)
endif()

# Sanitizers and coverage go to every target of this build, links included.
if(FDR_SANITIZE)
    set(FDR_SANITIZE_FLAGS -fsanitize=${FDR_SANITIZE} -fno-omit-frame-pointer)
    if(FDR_SANITIZE MATCHES "undefined")
        list(APPEND FDR_SANITIZE_FLAGS -fno-sanitize-recover=undefined)
    endif()
    target_compile_options(fdr_flags INTERFACE ${FDR_SANITIZE_FLAGS})
    target_link_options(fdr_flags INTERFACE ${FDR_SANITIZE_FLAGS})
    if(FDR_SANITIZE MATCHES "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        target_compile_options(fdr_flags INTERFACE -Wno-error=tsan)
    endif()
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        # Sanitizer instrumentation makes gcc see paths that do not exist.
        target_compile_options(fdr_flags INTERFACE -Wno-error=maybe-uninitialized)
    endif()
endif()
if(FDR_COVERAGE)
    target_compile_options(fdr_flags INTERFACE --coverage -fprofile-update=atomic)
    target_link_options(fdr_flags INTERFACE --coverage)
endif()
if(FDR_FUZZ)
    target_compile_options(fdr_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What `fdr version --build` tells; no date and no path, so that equal sources give equal files.
function(fdr_build_header)
    set(type "${CMAKE_BUILD_TYPE}")
    string(TOUPPER "${type}" upper)
    string(STRIP "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${upper}}" flags)
    string(REPLACE "\\" "\\\\" flags "${flags}")
    string(REPLACE "\"" "\\\"" flags "${flags}")
    set(FDR_BUILD_FLAGS "${flags}")
    list(JOIN FDR_FEATURES " " FDR_BUILD_FEATURES)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/fdr_build.h.in" "${PROJECT_BINARY_DIR}/generated/fdr_build.h" @ONLY)
endfunction()
