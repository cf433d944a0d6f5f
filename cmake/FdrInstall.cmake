# SPDX-License-Identifier: MIT
# What `cmake --install` gives: headers, libraries, the command, the CMake package, pkg-config files, man pages.

include(CMakePackageConfigHelpers)

set(fdr_installed "")
foreach(target fdr_fdr fdr_reader fdr_instrument fdr_mpi fdr_io fdr_otf2 fdr_papi)
    foreach(kind shared archive)
        if(TARGET ${target}_${kind} AND NOT "${target}_${kind}" MATCHES "^fdr_(io|otf2)_archive$")
            list(APPEND fdr_installed ${target}_${kind})
        endif()
    endforeach()
endforeach()

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/fdr" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    COMPONENT Development FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.f90")

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/fdr")
if(fdr_installed)
    install(TARGETS ${fdr_installed} EXPORT fdr-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT Runtime NAMELINK_COMPONENT Development
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT Development)
    install(EXPORT fdr-targets NAMESPACE fdr:: DESTINATION "${package_dir}" COMPONENT Development)
    configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/fdr-config.cmake.in"
        "${PROJECT_BINARY_DIR}/generated/fdr-config.cmake" INSTALL_DESTINATION "${package_dir}")
    write_basic_package_version_file("${PROJECT_BINARY_DIR}/generated/fdr-config-version.cmake"
        COMPATIBILITY SameMajorVersion)
    install(FILES "${PROJECT_BINARY_DIR}/generated/fdr-config.cmake"
        "${PROJECT_BINARY_DIR}/generated/fdr-config-version.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/fdr-properties.cmake"
        DESTINATION "${package_dir}" COMPONENT Development)
endif()
if(TARGET fdr_command)
    install(TARGETS fdr_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT Runtime)
endif()
if(TARGET fdr_sqlite_shared)
    install(TARGETS fdr_sqlite_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT Runtime)
endif()

# The Python package, where Debian's Python looks below /usr/local.
find_program(FDR_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(FDR_PYTHON python3)
mark_as_advanced(FDR_PYTHON)
if(FDR_PYTHON AND TARGET fdr_reader_shared)
    execute_process(COMMAND "${FDR_PYTHON}" -c "import sys; print('%d.%d' % sys.version_info[:2])"
        OUTPUT_VARIABLE python_version OUTPUT_STRIP_TRAILING_WHITESPACE)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/fdr" DESTINATION "lib/python${python_version}/dist-packages"
        COMPONENT Runtime FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
endif()

# fdr_pkgconfig(<name> <library> <description> <cflags> <requires> <private libraries>...): relocatable, the prefix
# follows from where the file lies.
function(fdr_pkgconfig name library description cflags requires)
    file(RELATIVE_PATH up "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
    file(RELATIVE_PATH includedir "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
    file(RELATIVE_PATH libdir "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
    string(REGEX REPLACE "/$" "" up "${up}")
    list(TRANSFORM ARGN PREPEND "-l" OUTPUT_VARIABLE private)
    list(JOIN private " " private)
    set(link "-l${library}")
    # The C library has empty hooks, and the functions that libfdr-io stands before. Where this one stands before the
    # objects (LDFLAGS of many a Makefile) and only what is needed by then is linked, those would be taken without a word.
    if(library MATCHES "^fdr-(instrument|io|otf2)$")
        set(link "-Wl,--push-state,--no-as-needed -l${library} -Wl,--pop-state")
    endif()
    configure_file("${PROJECT_SOURCE_DIR}/cmake/fdr.pc.in" "${PROJECT_BINARY_DIR}/generated/${name}.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/generated/${name}.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT Development)
endfunction()

if(TARGET fdr_fdr_shared)
    fdr_pkgconfig(fdr fdr "flight data recorder, in-process recorder" "" "" ${FDR_RECORDER_LIBRARIES})
endif()
if(TARGET fdr_reader_shared)
    fdr_pkgconfig(fdr-reader fdr-reader "flight data recorder, reader of recordings" "" "" ${FDR_READER_LIBRARIES})
endif()
if(TARGET fdr_instrument_shared)
    # pkg-config knows neither the compiler nor the language. Each compiler refuses the other's option.
    set(gcc_hooks "${FDR_HOOKS} ${FDR_HOOKS_EXCEPT_SYSTEM}")
    if(FDR_ENTRY_HOOKS)
        set(gcc_hooks "${FDR_HOOKS} -specs=\${libdir}/fdr/instrument.specs")
        install(FILES "${PROJECT_SOURCE_DIR}/cmake/instrument.specs" DESTINATION "${FDR_HOOKS_SPECS_FOLDER}"
            COMPONENT Development)
    endif()
    fdr_pkgconfig(fdr-instrument fdr-instrument "flight data recorder, function hooks for gcc, g++ and gfortran"
        " ${gcc_hooks}" fdr)
    fdr_pkgconfig(fdr-instrument-clang fdr-instrument "flight data recorder, function hooks for clang++"
        " ${FDR_HOOKS_AFTER_INLINING}" fdr)
    fdr_pkgconfig(fdr-instrument-all fdr-instrument "flight data recorder, hooks of all functions, for any compiler"
        " ${FDR_HOOKS}" fdr)
endif()
if(TARGET fdr_mpi_shared)
    fdr_pkgconfig(fdr-mpi fdr-mpi "flight data recorder, MPI calls, messages and collectives" "" fdr)
endif()
if(TARGET fdr_io_shared)
    fdr_pkgconfig(fdr-io fdr-io "flight data recorder, input and output through the C library" "" fdr)
endif()
if(TARGET fdr_otf2_shared)
    fdr_pkgconfig(fdr-otf2 fdr-otf2 "flight data recorder, in place of OTF2's event writer" "" fdr)
endif()

# ---- man pages -----------------------------------------------------------------------------------------------

find_program(FDR_SCDOC scdoc)
mark_as_advanced(FDR_SCDOC)
file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/man/*.scd")
if(FDR_SCDOC AND pages)
    set(made "")
    foreach(page IN LISTS pages)
        get_filename_component(name "${page}" NAME_WLE)
        string(REGEX REPLACE "^.*\\." "" section "${name}")
        set(out "${PROJECT_BINARY_DIR}/man/${name}")
        # No date of the day: equal sources give equal pages.
        add_custom_command(OUTPUT "${out}"
            COMMAND ${CMAKE_COMMAND} -E make_directory "${PROJECT_BINARY_DIR}/man"
            COMMAND ${CMAKE_COMMAND} -E env SOURCE_DATE_EPOCH=1735689600
                sh -c "\"$1\" < \"$2\" > \"$3.new\" && mv \"$3.new\" \"$3\"" sh "${FDR_SCDOC}" "${page}" "${out}"
            DEPENDS "${page}" VERBATIM COMMENT "man page ${name}")
        list(APPEND made "${out}")
        install(FILES "${out}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}" COMPONENT Runtime)
    endforeach()
    add_custom_target(fdr_man ALL DEPENDS ${made})
endif()

# ---- completion for shells: the command writes it, so a build for another processor has none --------------------

if(TARGET fdr_command AND NOT CMAKE_CROSSCOMPILING)
    set(made "")
    foreach(shell IN ITEMS bash zsh)
        set(out "${PROJECT_BINARY_DIR}/generated/completion.${shell}")
        add_custom_command(OUTPUT "${out}"
            COMMAND sh -c "\"$1\" completion \"$2\" > \"$3.new\" && mv \"$3.new\" \"$3\"" sh "$<TARGET_FILE:fdr_command>" ${shell} "${out}"
            DEPENDS fdr_command VERBATIM COMMENT "completion for ${shell}")
        list(APPEND made "${out}")
    endforeach()
    add_custom_target(fdr_completion ALL DEPENDS ${made})
    install(FILES "${PROJECT_BINARY_DIR}/generated/completion.bash" RENAME fdr
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" COMPONENT Runtime)
    install(FILES "${PROJECT_BINARY_DIR}/generated/completion.zsh" RENAME _fdr
        DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT Runtime)
endif()

# ---- what all that needs, without the tests -------------------------------------------------------------------

add_custom_target(fdr_products)
foreach(target ${fdr_installed} fdr_command fdr_sqlite_shared fdr_man fdr_completion)
    if(TARGET ${target})
        add_dependencies(fdr_products ${target})
    endif()
endforeach()
