#!/bin/sh
# Print the Chromium that the browser tests start, or nothing for the one Playwright downloaded.
# Looks for one that really starts (Ubuntu's chromium-browser is often a stub), then asks
# Playwright, then Debian. Fails with a sentence when all of that gave nothing.
starts() {
  [ -n "$1" ] && "$1" --version >/dev/null 2>&1
}

use_installed() {
  for candidate in "${BACKSCROLL_CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if starts "$candidate"; then
      command -v "$candidate"
      exit 0
    fi
  done
}

use_installed

with_deps=
[ "$(id -u)" = 0 ] && with_deps=--with-deps
# shellcheck disable=SC2086  # empty or one word
.venv/bin/playwright install $with_deps chromium >&2 && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  # The fonts are for people who look at the screenshots.
  { apt-get update -q && apt-get install -yq chromium fonts-dejavu fonts-noto-cjk; } >&2
  use_installed
fi

echo "No Chromium to be had here: install one, or set BACKSCROLL_CHROMIUM to its path." >&2
exit 1
