# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Source packages of this machine's Debian, by an apt configuration of our own. The machine's configuration and package
# lists are read and never changed. Source this file.
#
#   source_package NAME DIR    unpacks the source of package NAME into DIR/NAME, and downloads it once. On failure it
#                              prints one line on standard error and returns status 1.

# apt_own DIR ARGUMENT...: apt-get with lists, cache and source entries in DIR.
apt_own()
{
    local dir=$1
    shift
    local options=(-o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$dir/sources"
        -o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o "Acquire::Retries=2"
        -o "Acquire::http::Timeout=30" -o "Acquire::https::Timeout=30" -o "Acquire::Languages=none")
    # Otherwise apt would switch to an unprivileged user, which may not write below DIR.
    if [ "$(id -u)" = 0 ]; then options+=(-o "APT::Sandbox::User=root"); fi
    apt-get "${options[@]}" "$@"
}

# Turns every deb entry of the machine into the deb-src entry beside it.
apt_source_entries()
{
    local dir=$1 etc file eval_dirs
    eval_dirs=$(apt-config shell etc Dir::Etc/d list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d) || return 1
    local list='' parts=''
    eval "$eval_dirs"
    rm -rf "$dir/sources"
    mkdir -p "$dir/sources" "$dir/lists/partial" "$dir/cache/archives/partial"
    for file in "$list" "$parts"/*.list; do
        if [ -f "$file" ]; then sed -nE 's/^[[:space:]]*deb([[:space:]])/deb-src\1/p' "$file"; fi
    done >"$dir/sources/machine.list"
    for file in "$parts"/*.sources; do
        if [ -f "$file" ]; then sed -E '/^#/d; s/^[Tt]ypes:.*/Types: deb-src/' "$file"; echo; fi
    done >"$dir/sources/machine.sources"
    : "${etc:-}"
}

source_package()
{
    local name=$1 dir=$2 apt=$2/apt tool
    if [ -e "$dir/$name/.complete" ]; then return 0; fi
    for tool in apt-get apt-config dpkg-source; do
        command -v "$tool" >/dev/null ||
            { echo "no $tool here: the source of $name comes from a Debian source package (apt, dpkg-dev)" >&2; return 1; }
    done
    mkdir -p "$apt/download/$name"
    if ! compgen -G "$apt/download/$name/*.dsc" >/dev/null; then
        apt_source_entries "$apt" || { echo "the configuration of apt is not readable" >&2; return 1; }
        # An entry without sources fails here; only a missing package matters. Messages of apt name hosts, so they stay
        # in the log.
        if ! compgen -G "$apt/lists/*Sources*" >/dev/null; then apt_own "$apt" -qq update >"$apt/log" 2>&1 || true; fi
        (cd "$apt/download/$name" && apt_own "$apt" -qq source --download-only "$name") >>"$apt/log" 2>&1 || {
            # last month's lists may name files that do not exist any more
            apt_own "$apt" -qq update >>"$apt/log" 2>&1 || true
            (cd "$apt/download/$name" && apt_own "$apt" -qq source --download-only "$name") >>"$apt/log" 2>&1
        } || {
            rm -rf "$apt/download/$name"
            echo "cannot get the source package $name: no network, or no Debian mirror with sources (log: $apt/log)" >&2
            return 1
        }
    fi
    rm -rf "${dir:?}/$name"
    # apt has verified the files against the signed lists.
    if ! dpkg-source --no-check -x "$apt/download/$name"/*.dsc "$dir/$name" >>"$apt/log" 2>&1; then
        rm -rf "$apt/download/$name" "${dir:?}/$name"
        echo "the source package $name does not unpack (log: $apt/log)" >&2
        return 1
    fi
    touch "$dir/$name/.complete"
}
