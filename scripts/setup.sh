#!/bin/sh
# Makes .venv with the locked packages and this one; does nothing when it is already up to date.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf 'setup: %s\n' "$1" >&2
    exit 1
}

python=${PYTHON:-python3}
command -v "$python" >/dev/null 2>&1 || fail "no $python: install Python 3.11 or newer, or run make PYTHON=/path/to/python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is older than 3.11: run make PYTHON=/path/to/a/newer/python"
command -v git >/dev/null 2>&1 || fail "no git: install it (on Debian: apt install git)"

wanted=$(cat requirements.lock pyproject.toml | sha256sum | cut -d' ' -f1)
marker=.venv/.installed
if [ -x .venv/bin/python ] && [ "$(cat "$marker" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

if [ ! -x .venv/bin/python ]; then
    printf 'setup: making .venv with %s\n' "$("$python" --version)"
    rm -rf .venv
    if ! "$python" -c 'import ensurepip' 2>/dev/null; then
        "$python" -m pip --version >/dev/null 2>&1 ||
            fail "this Python has neither venv nor pip: install them (on Debian: apt install python3-venv)"
        "$python" -m venv --without-pip .venv
    else
        "$python" -m venv .venv
    fi
fi
if .venv/bin/python -m pip --version >/dev/null 2>&1; then
    pip() { .venv/bin/python -m pip "$@"; }
else
    pip() { "$python" -m pip --python .venv/bin/python "$@"; }
fi

count=$(grep -c '^[a-zA-Z0-9]' requirements.lock)
printf 'setup: installing %s locked packages, which takes about a minute\n' "$count"
log=.venv/install.log
mkfifo .venv/progress 2>/dev/null || true
awk '/^Collecting/ { n++; if (n % 10 == 0) { printf "setup: %d packages so far\n", n; fflush() } }' <.venv/progress &
if ! pip install --disable-pip-version-check --no-input --progress-bar off \
    --require-hashes -r requirements.lock 2>&1 | tee "$log" >.venv/progress ||
    ! grep -q '^Successfully installed\|^Requirement already satisfied' "$log"; then
    tail -n 20 "$log" >&2
    fail "the packages could not be installed; the reason stands above, the whole log in $log"
fi
wait
rm -f .venv/progress
pip install --disable-pip-version-check --no-input --quiet --no-deps --no-build-isolation -e . ||
    fail "pytest-wfbench itself could not be installed; the reason stands above"
printf '%s\n' "$wanted" >"$marker"
printf 'setup: done\n'
