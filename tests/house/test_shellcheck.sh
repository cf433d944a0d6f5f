#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house
# The linter shellcheck finds nothing in any shell script, and ./dev and .ci/run have their executable bit.
set -euo pipefail
cd "${FDR_SOURCE:?}"
if ! command -v shellcheck >/dev/null; then echo "no shellcheck here"; exit 77; fi
mapfile -t scripts < <(find . -name '*.sh' -not -path './build*' -not -path './.git/*' | sort)
shellcheck dev .ci/run "${scripts[@]}"
[ -x dev ] && [ -x .ci/run ]
echo "$((${#scripts[@]} + 2)) scripts"
