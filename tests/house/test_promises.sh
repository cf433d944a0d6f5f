#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house
# tests/README.md must be up to date: scripts/promises.py generates it from the first lines of all tests.
set -euo pipefail
python3 "${FDR_SOURCE:?}/scripts/promises.py" --check
