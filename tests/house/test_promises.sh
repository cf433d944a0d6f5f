#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest: label=house
# scripts/promises.py makes of them.
set -euo pipefail
python3 "${FDR_SOURCE:?}/scripts/promises.py" --check
