#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# build.sh OUT.wasm: the reader as WebAssembly, with clang-14, lld-14, wasi-libc and libclang-rt-14-dev-wasm32.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# What needs another process, a directory or elfutils stays out; memory is mapped by the C library's emulation.
mapfile -t sources < <(find reader/{file,job,account,events,symbol,bundle} format base/text base/elf/shown_name.c policies tools/html/view web/wasm \
    -name '*.c' | grep -vE '_(dw|iberty)\.c$|/(whole_file|live_stacks|message)\.c$' | LC_ALL=C sort)
flags=(--target=wasm32-wasi -nostdlibinc -isystem web/wasm/include -isystem /usr/include/wasm32-wasi -I . -I include
    -std=gnu11 -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_SIGNAL -DNDEBUG -O2 -flto
    -ffunction-sections -fdata-sections "-ffile-prefix-map=$PWD/=")
objects=()
for source in "${sources[@]}"; do
    object=$work/${source//\//_}.o
    clang-14 "${flags[@]}" -c "$source" -o "$object"
    objects+=("$object")
done
libraries=/usr/lib/wasm32-wasi
builtins=$(clang-14 --target=wasm32-wasi -print-resource-dir)/lib/wasi/libclang_rt.builtins-wasm32.a
wasm-ld-14 --no-entry --gc-sections --strip-all --lto-O2 -z stack-size=262144 --max-memory=4294967296 \
    "$libraries/crt1-reactor.o" "${objects[@]}" -L "$libraries" \
    -lwasi-emulated-mman -lwasi-emulated-signal -lc "$builtins" --export=_initialize -o "$out"
