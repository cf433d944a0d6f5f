#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# cross.sh FOLDER: puts the libraries that fdr needs, as Debian builds them for aarch64, into FOLDER. It needs no root
# rights and changes nothing elsewhere: apt works on lists of its own in FOLDER.
set -euo pipefail
folder=${1:?usage: cross.sh FOLDER}
packages=(liburcu8 liburcu-dev libnuma1 libnuma-dev libcmocka0 libcmocka-dev libjansson4 libjansson-dev libzstd1 libzstd-dev
    libdw1 libdw-dev libelf1 libelf-dev zlib1g zlib1g-dev liblzma5 liblzma-dev libbz2-1.0 libiberty-dev)
mark=$folder/.complete
if [ "$(cat "$mark" 2>/dev/null)" = "${packages[*]}" ]; then exit 0; fi

rm -rf "$folder"
mkdir -p "$folder/.apt/lists/partial" "$folder/.apt/archives/partial"
folder=$(cd "$folder" && pwd)
: >"$folder/.apt/status"
apt=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Acquire::Languages=none -o APT::Sandbox::User=
    -o Dir::State="$folder/.apt" -o Dir::State::Lists="$folder/.apt/lists" -o Dir::State::status="$folder/.apt/status"
    -o Dir::Cache="$folder/.apt" -o APT::Update::Post-Invoke::= -o DPkg::Post-Invoke::=)
apt-get "${apt[@]}" update
cd "$folder/.apt"
apt-get "${apt[@]}" download "${packages[@]}"
for file in *.deb; do dpkg-deb -x "$file" "$folder"; done
rm -rf "$folder/.apt"
echo "${packages[*]}" >"$folder/.complete"
du -sh "$folder"
