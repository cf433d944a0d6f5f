#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# screenshots.sh: the pictures of README.md anew, from the page that ./dev demo wrote. Needs Chromium, node, and `npm ci` in
# web/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
page=${1:-$PWD/build/demo/out/page.html}
[ -e "$page" ] || { echo "screenshots: no $page; run ./dev demo" >&2; exit 1; }
node web/screenshots.mjs "$(command -v chromium)" "$page" docs/page-first.png docs/page-timeline.png
