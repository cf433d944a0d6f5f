#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house promise=P7,P10
# P7, P10: the fatal path calls nothing that allocates, takes locks or formats. The test checks the undefined symbols of
# its object files against a list of allowed names.
set -euo pipefail
build=${FDR_BUILD:?}
if [ -n "${FDR_SANITIZE:-}" ] || [ "${FDR_COVERAGE:-OFF}" != OFF ]; then echo "instrumented code calls its runtime"; exit 77; fi
# fdr's own functions, each async-signal-safe; of the C library: system calls, memory functions, the jump out of a
# fault.
allowed='fdr_switch_|fdri_.*|fdri_clock_read'
allowed+='|syscall|sigaction|clock_gettime|__errno_location|__sigsetjmp|siglongjmp|__longjmp_chk'
allowed+='|memcpy|memcmp|memset|memmove|memchr|strlen|strnlen|strncpy|__memcpy_chk|__memset_chk|__strncpy_chk|__stack_chk_fail'
allowed+='|__libc_current_sigrtmin|__libc_current_sigrtmax|_GLOBAL_OFFSET_TABLE_'
# Functions of the healthy process are forbidden even if the pattern above allows their names.
bad=0
for file in crash_handler program_handlers program_actions crash_threads crash_section crash_epochs bundle_file stack_words fingerprint; do
    object=$build/CMakeFiles/fdr_obj_export.dir/export/crash/$file.c.o
    [ -e "$object" ] || { echo "$object is not there"; exit 1; }
    while IFS= read -r name; do
        [[ $name =~ ^($allowed)$ ]] || { echo "$file.c refers to $name"; bad=1; }
        case $name in
            fdri_text_message | fdri_text_once | fdri_snapshot_file_* | fdri_crash_bundle_open | fdri_crash_room_* | fdri_retention_* | fdri_crash_context | \
                fdri_snapshot_copy_arena | fdri_trigger_* | fdri_snapshot_final | fdri_snapshot_abandon | fdri_snapshot_is_here)
                echo "$file.c refers to $name, which is for a healthy process"; bad=1 ;;
        esac
    done < <(nm -u "$object" | awk '{ print $2 }')
done
[ "$bad" = 0 ] && echo "the fatal path keeps to its list"
