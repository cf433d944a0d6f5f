# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Builds the Lua interpreter of the Debian source package lua5.4. Source this file.
#
#   lua_objects SOURCE OUT FLAG...   compiles SOURCE (the unpacked package) into OUT/*.o
#   lua_link OUT PROGRAM FLAG...     links them

lua_objects()
{
    local source=$1 out=$2
    shift 2
    mkdir -p "$out/include"
    # the package's debian/rules writes this header
    echo "#define DEB_HOST_MULTIARCH \"$(cc -print-multiarch)\"" >"$out/include/lua5.4-deb-multiarch.h"
    # compile in the source's own folder, so that file names are short
    # shellcheck disable=SC2016
    (cd "$source/src" && find . -name '*.c' ! -name luac.c -printf '%f\n' |
        OUT=$out xargs -P "$(nproc)" -I{} sh -c \
            'file=$1; shift; exec cc "$@" -DLUA_USE_LINUX -I "$OUT/include" -c "$file" -o "$OUT/${file%.c}.o"' \
            sh {} "$@")
}

lua_link()
{
    local out=$1 program=$2
    shift 2
    cc -o "$program" "$out"/*.o "$@" -lm -ldl
}
