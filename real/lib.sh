# Shared by the scripts here: where the cache is, what is pinned, how to fail.
# shellcheck shell=bash

export LC_ALL=C
real_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${LOCKGATE_REAL_CACHE:-${HOME:?HOME is not set; set LOCKGATE_REAL_CACHE}/.cache/lockgate/real}

# The suite that carries an etcd and a kubectl recent enough for the pinned server.
debian_suite=trixie
kubectl_min_minor=32

# Exit codes: 1 broken, 2 wrong use, 77 cannot be obtained here (callers may skip, but must say so).
exit_usage=2
exit_unavailable=77

say() { printf 'real: %s\n' "$*" >&2; }
die() {
    say "error: $*"
    exit 1
}
unavailable() {
    say "UNAVAILABLE: $*"
    say "UNAVAILABLE: the real kube-apiserver cannot be run here; whatever compares with it was NOT checked"
    exit "$exit_unavailable"
}

# The version the module pins is the only place that names it.
apiserver_version() {
    local version
    version=$(sed -n 's|^[[:space:]]*k8s.io/kubernetes \(v[0-9.]*\).*|\1|p' "$real_dir/apiserver/go.mod" | head -n 1)
    [[ $version =~ ^v1\.[0-9]+\.[0-9]+$ ]] || die "apiserver/go.mod pins no release of k8s.io/kubernetes"
    printf '%s\n' "$version"
}

# Where the built server lives: keyed by version, module files and platform, so that a changed pin never meets an old binary.
apiserver_path() {
    local key
    key=$(cat "$real_dir/apiserver/go.mod" "$real_dir/apiserver/go.sum" | sha256sum | cut -c1-12)
    printf '%s/kube-apiserver-%s-%s-%s/kube-apiserver\n' "$cache" "$(apiserver_version)" "$(uname -m)" "$key"
}

# The newest cached unpacking of a Debian package's program, or nothing.
cached_program() {
    local found
    found=$(find "$cache" -mindepth 2 -maxdepth 2 -path "$cache/$1-*" -name "$1" -perm -u+x 2>/dev/null | sort -V | tail -n 1)
    [[ -n $found ]] && printf '%s\n' "$found"
}

# A kubectl on PATH is used when it is new enough; else the cached one.
kubectl_path() {
    local minor
    if command -v kubectl >/dev/null 2>&1; then
        minor=$(kubectl version --client -o json 2>/dev/null | sed -n 's/.*"minor": *"\([0-9]*\).*/\1/p' | head -n 1)
        if [[ -n $minor && $minor -ge $kubectl_min_minor ]]; then
            command -v kubectl
            return
        fi
    fi
    cached_program kubectl
}
