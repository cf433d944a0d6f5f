# SPDX-License-Identifier: MIT
# Folders become object libraries, object libraries become libfdr and libfdr-reader.

# Has the compiler hooks at the first instruction of a function? Files X_x86_64.c are for these.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(FDR_ENTRY_HOOKS ON)
else()
    set(FDR_ENTRY_HOOKS OFF)
endif()

# fdr_sources(<out> <pattern>...): the files, with exactly one of X_none.c and X_<dependency>.c for every X that has
# an X_none.c: the first dependency of FDR_OPTIONAL that was found, or none. Further files X_<dependency>.c are there
# with that dependency only.
function(fdr_sources out)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${ARGN})
    foreach(none IN LISTS files)
        if(NOT none MATCHES "^(.*)_none\\.c$")
            continue()
        endif()
        set(stem "${CMAKE_MATCH_1}")
        set(chosen "")
        foreach(name IN LISTS FDR_OPTIONAL)
            set(file "${stem}_${name}.c")
            if(NOT file IN_LIST files)
                continue()
            endif()
            if(name IN_LIST FDR_FEATURES AND NOT chosen)
                set(chosen "${file}")
            else()
                list(REMOVE_ITEM files "${file}")
            endif()
        endforeach()
        if(chosen)
            list(REMOVE_ITEM files "${none}")
        endif()
    endforeach()
    foreach(name IN LISTS FDR_OPTIONAL)
        if(NOT name IN_LIST FDR_FEATURES)
            list(FILTER files EXCLUDE REGEX "_${name}\\.c$")
        endif()
    endforeach()
    set(${out} "${files}" PARENT_SCOPE)
endfunction()

# fdr_folder(<folder> [TLS] [WITHOUT <prefix>]): object library fdr_obj_<folder>. TLS: initial-exec thread-local storage,
# one load on the record path. WITHOUT: files <prefix>*.c belong to a component. A folder without sources is no target.
function(fdr_folder folder)
    cmake_parse_arguments(PARSE_ARGV 1 arg "TLS" "WITHOUT" "")
    fdr_sources(files "${PROJECT_SOURCE_DIR}/${folder}/*.c")
    if(arg_WITHOUT)
        list(FILTER files EXCLUDE REGEX "/${arg_WITHOUT}[^/]*$")
    endif()
    if(NOT files)
        return()
    endif()
    add_library(fdr_obj_${folder} OBJECT ${files})
    set_target_properties(fdr_obj_${folder} PROPERTIES
        C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(fdr_obj_${folder} PRIVATE fdr_flags)
    # Messages name files as the repository does.
    target_compile_options(fdr_obj_${folder} PRIVATE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
    if(arg_TLS)
        target_compile_options(fdr_obj_${folder} PRIVATE -ftls-model=initial-exec)
    endif()
endfunction()

# fdr_objects(<out> <folder>...): the object files of the folders that have any.
function(fdr_objects out)
    set(objects "")
    foreach(folder IN LISTS ARGN)
        if(TARGET fdr_obj_${folder})
            list(APPEND objects $<TARGET_OBJECTS:fdr_obj_${folder}>)
        endif()
    endforeach()
    set(${out} "${objects}" PARENT_SCOPE)
endfunction()

# Properties every shared library of ours has.
function(fdr_shared target output export map)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${output} EXPORT_NAME ${export}
        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib"
        LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/${map}"
        INSTALL_RPATH "$ORIGIN")
    target_link_options(${target} PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/${map}" -Wl,--as-needed)
    if(NOT FDR_SANITIZE AND NOT FDR_FUZZ)
        target_link_options(${target} PRIVATE -Wl,--no-undefined)
    endif()
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    add_library(fdr::${export} ALIAS ${target})
endfunction()

function(fdr_static target output export)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${output} EXPORT_NAME ${export} ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    add_library(fdr::${export} ALIAS ${target})
endfunction()

# fdr_library(<name> FOLDERS ... [SUPPORT ...] LINK ... [LINK_OPTIONS ...]): lib<name>.so and lib<name>.a, exported as
# fdr::<name> and fdr::<name>_static without a leading "fdr-". Of the SUPPORT folders the shared library takes only
# the objects it refers to, so that it does not depend on what the others need.
function(fdr_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;SUPPORT;LINK;LINK_OPTIONS")
    fdr_objects(objects ${arg_FOLDERS})
    fdr_objects(support ${arg_SUPPORT})
    if(NOT objects)
        message(STATUS "fdr: lib${name} has no sources yet")
        return()
    endif()
    string(REGEX REPLACE "^fdr-" "" export "${name}")
    add_library(fdr_${export}_shared SHARED ${objects})
    fdr_shared(fdr_${export}_shared ${name} ${export} lib${name}.map)
    target_link_options(fdr_${export}_shared PRIVATE ${arg_LINK_OPTIONS})
    if(support)
        add_library(fdr_${export}_support STATIC ${support})
        set_target_properties(fdr_${export}_support PROPERTIES LINKER_LANGUAGE C)
        target_link_libraries(fdr_${export}_shared PRIVATE $<BUILD_INTERFACE:fdr_${export}_support>)
    endif()
    target_link_libraries(fdr_${export}_shared PRIVATE $<BUILD_INTERFACE:fdr_flags> ${arg_LINK})

    add_library(fdr_${export}_archive STATIC ${objects} ${support})
    fdr_static(fdr_${export}_archive ${name} ${export}_static)
    target_link_libraries(fdr_${export}_archive PRIVATE $<BUILD_INTERFACE:fdr_flags> ${arg_LINK})
    foreach(target fdr_${export}_shared fdr_${export}_archive)
        set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
    endforeach()
endfunction()

# What fdr::instrument and the pkg-config modules compile a consumer's sources with. In C++ the functions of the standard
# library are so many and so small that their hooks cost more than all others; FDR_INSTRUMENT_ALL hooks them as well.
# gcc leaves out functions whose file has one of these texts in its path: headers of the system, of libstdc++ in any
# prefix, and of gcc itself. clang 14 has no such list, but can place the hooks after it has inlined small functions.
include(fdr-properties)
set(FDR_HOOKS -finstrument-functions)
set(FDR_HOOKS_EXCEPT_SYSTEM -finstrument-functions-exclude-file-list=/usr/include/,/include/c++/,/lib/gcc/)
set(FDR_HOOKS_AFTER_INLINING -finstrument-functions-after-inlining)
# On x86-64 g++ can do that, too, with other options. They depend on those of the consumer, so g++ reads them from a file.
set(FDR_HOOKS_SPECS_FOLDER "${CMAKE_INSTALL_LIBDIR}/fdr")

# fdr_hooks(<target>): linking <target> turns on the compiler's hooks for the consumer's own sources.
function(fdr_hooks target)
    set(all "$<BOOL:$<TARGET_PROPERTY:FDR_INSTRUMENT_ALL>>")
    set(except_system "$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<NOT:${all}>>")
    set(after_inlining "$<AND:$<COMPILE_LANG_AND_ID:CXX,Clang>,$<NOT:${all}>>")
    set(gxx "${FDR_HOOKS_EXCEPT_SYSTEM}")
    if(FDR_ENTRY_HOOKS)
        set(gxx "-specs=$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/cmake>$<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${FDR_HOOKS_SPECS_FOLDER}>/instrument.specs")
    endif()
    target_compile_options(${target} INTERFACE
        "$<$<AND:$<COMPILE_LANGUAGE:C,CXX,Fortran>,$<NOT:${after_inlining}>>:${FDR_HOOKS}>"
        "$<${except_system}:${gxx}>" "$<${after_inlining}:${FDR_HOOKS_AFTER_INLINING}>")
endfunction()

# fdr_adapter(<name> [file]...): libfdr-<name> from adapters/<name>*.c, adapters/<name>/ and generated files.
function(fdr_adapter name)
    fdr_sources(files "${PROJECT_SOURCE_DIR}/adapters/${name}*.c" "${PROJECT_SOURCE_DIR}/adapters/${name}/*.c")
    if(NOT FDR_ENTRY_HOOKS)
        list(FILTER files EXCLUDE REGEX "_x86_64\\.c$")
    endif()
    if(NOT files OR NOT TARGET fdr_fdr_shared)
        return()
    endif()
    add_library(fdr_obj_adapter_${name} OBJECT ${files} ${ARGN})
    set_target_properties(fdr_obj_adapter_${name} PROPERTIES
        C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(fdr_obj_adapter_${name} PRIVATE fdr_flags)
    target_compile_options(fdr_obj_adapter_${name} PRIVATE -ftls-model=initial-exec)

    add_library(fdr_${name}_shared SHARED $<TARGET_OBJECTS:fdr_obj_adapter_${name}>)
    fdr_shared(fdr_${name}_shared fdr-${name} ${name} libfdr-${name}.map)
    # An auxiliary library comes right before this one in the order of look-ups, also when this one is preloaded. As a mere
    # dependency libfdr would come behind the C library, and the functions that it puts in front would never be called.
    target_link_options(fdr_${name}_shared PRIVATE -Wl,-z,now -Wl,-z,nodelete
        "LINKER:--auxiliary,$<TARGET_SONAME_FILE_NAME:fdr_fdr_shared>")
    target_link_libraries(fdr_${name}_shared PRIVATE $<BUILD_INTERFACE:fdr_flags> PUBLIC fdr_fdr_shared)

    add_library(fdr_${name}_archive STATIC $<TARGET_OBJECTS:fdr_obj_adapter_${name}>)
    fdr_static(fdr_${name}_archive fdr-${name} ${name}_static)
    target_link_libraries(fdr_${name}_archive PRIVATE $<BUILD_INTERFACE:fdr_flags> PUBLIC fdr_fdr_archive)
    foreach(target fdr_${name}_shared fdr_${name}_archive)
        set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
        if(name STREQUAL "instrument")
            fdr_hooks(${target})
        endif()
    endforeach()
endfunction()

# fdr_io_adapter(): libfdr-io. Cancellation unwinds its functions. No archive: where the C library is linked statically
# its functions cannot be found behind ours.
function(fdr_io_adapter)
    fdr_adapter(io)
    if(TARGET fdr_io_shared)
        target_compile_options(fdr_obj_adapter_io PRIVATE -fexceptions -U_FORTIFY_SOURCE -fno-builtin)
        set_target_properties(fdr_io_archive PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
endfunction()

# fdr_otf2_adapter(): libfdr-otf2, in a build with OTF2. It writes archives with OTF2's library, from a recording that
# libfdr-reader reads. No archive: where OTF2 is linked statically its functions cannot be found behind ours.
function(fdr_otf2_adapter)
    if(NOT "otf2" IN_LIST FDR_FEATURES OR NOT TARGET fdr_reader_shared)
        return()
    endif()
    fdr_adapter(otf2)
    if(TARGET fdr_otf2_shared)
        # The functions that it stands before are visible; the version script hides its own.
        set_target_properties(fdr_obj_adapter_otf2 PROPERTIES C_VISIBILITY_PRESET default)
        target_compile_options(fdr_obj_adapter_otf2 PRIVATE -Wno-deprecated-declarations)
        target_link_libraries(fdr_otf2_shared PRIVATE fdr_reader_shared ${FDR_LIBS_otf2} pthread dl)
        set_target_properties(fdr_otf2_archive PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
endfunction()

# fdr_component(<name>): libfdr-<name> from sampler/<name>*.c in any room, what libfdr loads when it is asked for. It refers to
# nothing of libfdr, so that it serves programs with either kind of it.
function(fdr_component name)
    fdr_sources(files "${PROJECT_SOURCE_DIR}/sampler/${name}*.c")
    if(NOT files OR NOT TARGET fdr_fdr_shared)
        return()
    endif()
    set(libraries "")
    if(name IN_LIST FDR_FEATURES)
        set(libraries ${FDR_LIBS_${name}})
    endif()
    add_library(fdr_obj_component_${name} OBJECT ${files})
    set_target_properties(fdr_obj_component_${name} PROPERTIES
        C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(fdr_obj_component_${name} PRIVATE fdr_flags)

    add_library(fdr_${name}_shared SHARED $<TARGET_OBJECTS:fdr_obj_component_${name}>)
    fdr_shared(fdr_${name}_shared fdr-${name} ${name} libfdr.map)
    add_library(fdr_${name}_archive STATIC $<TARGET_OBJECTS:fdr_obj_component_${name}>)
    fdr_static(fdr_${name}_archive fdr-${name} ${name}_static)
    # Nothing refers to it but libfdr, and that weakly.
    target_link_options(fdr_${name}_shared INTERFACE "LINKER:-u,fdr_${name}_provider")
    target_link_options(fdr_${name}_archive INTERFACE "LINKER:-u,fdr_${name}_provider")
    foreach(target fdr_${name}_shared fdr_${name}_archive)
        target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:fdr_flags> ${libraries} pthread)
        set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
    endforeach()
endfunction()

# fdr_bundle(<out>): a C file with the page's scripts, styles and reader (web/bundle/) as bytes.
function(fdr_bundle out)
    set(text "/* Generated from web/bundle/. */\n#include \"tools/html/bundle.h\"\n")
    foreach(name page.js page.css worker.js reader.wasm hashes licences.txt)
        set(file "${PROJECT_SOURCE_DIR}/web/bundle/${name}")
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
        string(MAKE_C_IDENTIFIER "${name}" variable)
        file(READ "${file}" hex HEX)
        string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
        string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
        string(APPEND text "static const unsigned char ${variable}[] = {\n${bytes}0};\n"
            "const struct bundle bundle_${variable} = {${variable}, sizeof ${variable} - 1};\n")
    endforeach()
    set(source "${PROJECT_BINARY_DIR}/generated/bundle.c")
    file(CONFIGURE OUTPUT "${source}" CONTENT "${text}" @ONLY)
    set(${out} "${source}" PARENT_SCOPE)
endfunction()

# The fdr command, on the two shared libraries as any other program would be.
function(fdr_command)
    fdr_sources(files "${PROJECT_SOURCE_DIR}/tools/*.c")
    list(FILTER files EXCLUDE REGEX "/extension_sqlite\\.c$")
    if(NOT files OR FDR_FUZZ)
        return()
    endif()
    foreach(need JANSSON ZSTD ZLIB)
        if(NOT FDR_${need}_FOUND)
            message(WARNING "fdr: the command is not built, it needs jansson, libzstd and zlib")
            return()
        endif()
    endforeach()
    fdr_bundle(bundle)
    add_executable(fdr_command ${files} ${bundle})
    set_target_properties(fdr_command PROPERTIES
        OUTPUT_NAME fdr C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
    file(RELATIVE_PATH up "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
    set_target_properties(fdr_command PROPERTIES INSTALL_RPATH "$ORIGIN/${up}")
    target_link_libraries(fdr_command PRIVATE fdr_flags PkgConfig::FDR_JANSSON PkgConfig::FDR_ZSTD PkgConfig::FDR_ZLIB
        Threads::Threads m)
    if("sqlite" IN_LIST FDR_FEATURES)
        target_link_libraries(fdr_command PRIVATE ${FDR_LIBS_sqlite})
        # The tables call SQLite by its table of functions only where they are an extension.
        target_compile_definitions(fdr_command PRIVATE SQLITE_CORE)
    endif()
    foreach(library fdr_fdr_shared fdr_reader_shared)
        if(TARGET ${library})
            target_link_libraries(fdr_command PRIVATE ${library})
        endif()
    endforeach()
endfunction()

# fdr_sqlite_extension(): libfdr-sqlite, the tables of `fdr sql` for programs that load extensions of SQLite.
function(fdr_sqlite_extension)
    fdr_sources(files "${PROJECT_SOURCE_DIR}/tools/sql/*.c" "${PROJECT_SOURCE_DIR}/tools/common/file_rank.c"
        "${PROJECT_SOURCE_DIR}/tools/common/utf8.c")
    if(NOT "sqlite" IN_LIST FDR_FEATURES OR NOT TARGET fdr_reader_shared OR FDR_FUZZ)
        return()
    endif()
    add_library(fdr_sqlite_shared MODULE ${files})
    set_target_properties(fdr_sqlite_shared PROPERTIES
        OUTPUT_NAME fdr-sqlite C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib" INSTALL_RPATH "$ORIGIN"
        LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/libfdr-sqlite.map")
    target_link_options(fdr_sqlite_shared PRIVATE
        "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/libfdr-sqlite.map" -Wl,--as-needed)
    target_link_libraries(fdr_sqlite_shared PRIVATE fdr_flags fdr_reader_shared)
endfunction()
