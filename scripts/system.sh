#!/bin/sh
# Install the Debian packages named as arguments, where that is possible; else say what is missing.
# A package counts as there when the thing it brings answers, wherever it came from.
there() {
  case "$1" in
    make) command -v make ;;
    python3) command -v python3 ;;
    python3-venv) python3 -c 'import ensurepip, venv' ;;
    redis-server) command -v redis-server ;;
    nodejs) command -v node ;;
    npm) command -v npm ;;
    *) false ;;
  esac >/dev/null 2>&1
}

missing=
for package in "$@"; do
  there "$package" || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  # Runlevel 1: a package that brings a service must not start it.
  export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
  # shellcheck disable=SC2086  # one word per package
  { apt-get update -q && apt-get install -yq --no-install-recommends $missing; } >&2 && exit 0
fi
echo "Missing on this machine:$missing (what needs it is skipped here and fails in CI)" >&2
