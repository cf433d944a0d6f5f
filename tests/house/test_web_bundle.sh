#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house excuse=node,esbuild
# The scripts and styles of the committed bundle are those that web/src/ gives. (The reader in it is compared by what it
# decodes: test_html_reader.)
set -euo pipefail
cd "${FDR_SOURCE:?}"
command -v node >/dev/null || { echo "skipped: no node"; exit 77; }
[ -d web/node_modules/esbuild ] || { echo "skipped: no esbuild; run npm ci in web/"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
node web/build.mjs "$work"
bad=0
for file in page.js page.css worker.js hashes licences.txt; do
    cmp "$work/$file" "web/bundle/$file" || bad=1
done
if grep -qE '"resolved"' web/package-lock.json; then
    echo "web/package-lock.json names addresses of a registry"
    bad=1
fi
[ "$bad" = 0 ] || { echo "run ./dev web and commit web/bundle/"; exit 1; }
echo "the bundle is up to date"
