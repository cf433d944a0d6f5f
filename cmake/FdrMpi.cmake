# SPDX-License-Identifier: MIT
# The entry points of libfdr-mpi, made from adapters/mpi/functions.txt; the head of that file says what a line means.

# fdr_mpi_words(<out> <count> <prefix>): "<prefix>a, <prefix>b, ..."
function(fdr_mpi_words out count prefix)
    set(names a b c d e f g h i j k l m n o p)
    list(SUBLIST names 0 ${count} names)
    list(TRANSFORM names PREPEND "${prefix}")
    list(JOIN names ", " text)
    set(${out} "${text}" PARENT_SCOPE)
endfunction()

# Linkers leave out a library that nothing is taken from. So in the shared library these three have a version that
# linkers pass over: programs are linked with the MPI library's. The loader takes fdr's, as that comes first.
set(FDR_MPI_PASSED_OVER Comm_rank Comm_size Finalize)

# fdr_mpi_entry(<out> <entry point> <function> <way> <words>): one C function. Without words it takes none.
function(fdr_mpi_entry out entry name way words)
    fdr_mpi_words(parameters ${words} "word ")
    fdr_mpi_words(values ${words} "")
    if(words EQUAL 0)
        set(parameters "void")
        set(values "0")
    endif()
    set(before "")
    if(name IN_LIST FDR_MPI_PASSED_OVER)
        set(before "PASSED_OVER(${entry})\n")
        set(entry "NAME(${entry})")
    endif()
    set(${out} "${before}FDR_API word ${entry}(${parameters});
word ${entry}(${parameters})
{
    word arguments[FDRI_MPI_WORDS] = {${values}};
    return fdri_mpi_call(&of_${name}, ${way}, arguments);
}
" PARENT_SCOPE)
endfunction()

# fdr_mpi_function(<out> <name> <large> <group> <kind> <argument>...): the description of a function, its entry points.
function(fdr_mpi_function out name large group kind)
    set(words 0)
    set(fortran 0)
    set(texts 0)
    set(places "")
    foreach(argument IN LISTS ARGN)
        math(EXPR words "${words} + 1")
        if(NOT argument MATCHES "/c$")
            math(EXPR fortran "${fortran} + 1")
        endif()
        if(argument MATCHES "\\$$")
            math(EXPR texts "${texts} + 1")
        endif()
        string(REGEX REPLACE "\\$$" "" role "${argument}")
        if(role IN_LIST FDR_MPI_ROLES)
            string(APPEND places "[FDRI_MPI_${role}] = ${words}, ")
        endif()
    endforeach()
    set(operation 0)
    if(kind MATCHES "^(i?coll|coll_init|i?file|file_begin|file_end|rma|rma_sync|rma_lock):(.*)$")
        set(kind "${CMAKE_MATCH_1}")
        set(operation "FDRI_MPI_OP_${CMAKE_MATCH_2}")
    endif()
    math(EXPR fortran_words "${fortran} + 1 + ${texts}")
    string(TOLOWER "mpi_${name}" lower)
    fdr_mpi_entry(c MPI_${name} ${name} FDRI_MPI_C ${words})
    set(near "PMPI_${name}")
    set(text "")
    if(NOT large) # Fortran has no names of its own for large counts, or the library's call C
        fdr_mpi_entry(f ${lower}_ ${name} FDRI_MPI_FORTRAN ${fortran_words})
        fdr_mpi_entry(f08 ${lower}_f08_ ${name} FDRI_MPI_F08 ${fortran_words})
        set(near "PMPI_${name}, p${lower}_, p${lower}_f08_")
        set(text "extern void p${lower}_(void) WEAK, p${lower}_f08_(void) WEAK;\n")
    endif()
    set(${out} "extern void PMPI_${name}(void) WEAK;
${text}static struct fdri_mpi_function of_${name} = {.name = \"MPI_${name}\", .group = \"mpi:${group}\", .kind = FDRI_MPI_${kind},
    .operation = ${operation}, .large = ${large}, .words = ${words}, .fortran_words = ${fortran},
    .at = {${places}}, .near = {${near}}};
${c}${f}${f08}" PARENT_SCOPE)
endfunction()

# fdr_mpi_entry_points(<file> <passed over>): writes two C files, the second with the functions that linkers pass over.
# The arguments that the adapter reads are those of its enumeration.
function(fdr_mpi_entry_points file file_passed_over)
    set(folder "${PROJECT_SOURCE_DIR}/adapters/mpi")
    set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
        "${folder}/functions.txt" "${folder}/mpi_function.h")
    file(READ "${folder}/mpi_function.h" header)
    string(REGEX MATCH "enum fdri_mpi_role {([^}]*)}" header "${header}")
    string(REGEX MATCHALL "FDRI_MPI_[a-z_]+" FDR_MPI_ROLES "${CMAKE_MATCH_1}")
    list(TRANSFORM FDR_MPI_ROLES REPLACE "^FDRI_MPI_" "")
    set(text "/* Made by cmake/FdrMpi.cmake from adapters/mpi/functions.txt. */
#include \"adapters/mpi/adapter.h\"
#define WEAK __attribute__((weak))
#ifdef FDRI_MPI_SHARED
#define PASSED_OVER(name) __asm__(\".symver fdri_\" #name \", \" #name \"@FDR_MPI\");
#define NAME(name)        fdri_##name
#else
#define PASSED_OVER(name)
#define NAME(name) name
#endif
")
    set(text_passed_over "${text}")
    file(STRINGS "${folder}/functions.txt" lines REGEX "^[A-Z]")
    foreach(line IN LISTS lines)
        string(REPLACE " " ";" words "${line}")
        list(GET words 1 group)
        if(group STREQUAL "-")
            continue()
        endif()
        list(POP_FRONT words name)
        string(REGEX REPLACE "\\+$" "" plain "${name}")
        set(large 0)
        if(plain MATCHES "_c$")
            set(large 1)
        endif()
        fdr_mpi_function(one ${plain} ${large} ${words})
        if(plain IN_LIST FDR_MPI_PASSED_OVER)
            string(APPEND text_passed_over "${one}")
        else()
            string(APPEND text "${one}")
        endif()
        if(name MATCHES "\\+$")
            fdr_mpi_function(one ${plain}_c 1 ${words})
            string(APPEND text "${one}")
        endif()
    endforeach()
    file(CONFIGURE OUTPUT "${file}" CONTENT "${text}" @ONLY)
    file(CONFIGURE OUTPUT "${file_passed_over}" CONTENT "${text_passed_over}" @ONLY)
endfunction()

# fdr_mpi_adapter(): libfdr-mpi.
function(fdr_mpi_adapter)
    set(files "${PROJECT_BINARY_DIR}/mpi_entry_points.c" "${PROJECT_BINARY_DIR}/mpi_entry_points_passed_over.c")
    fdr_mpi_entry_points(${files})
    list(POP_BACK files passed_over)
    fdr_adapter(mpi ${files})
    if(TARGET fdr_mpi_shared)
        foreach(target fdr_mpi_shared fdr_mpi_archive)
            target_sources(${target} PRIVATE "${passed_over}")
            set_target_properties(${target} PROPERTIES
                C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
        endforeach()
        target_compile_definitions(fdr_mpi_shared PRIVATE FDRI_MPI_SHARED)
    endif()
endfunction()
