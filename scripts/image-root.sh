#!/bin/sh
# Builds docker/Dockerfile where no container engine runs, and starts the image's commands: that shows that the image
# builds and that it works as its numeric user on a root file system that can't be written to.
#
#   scripts/image-root.sh [FOLDER]        default: $GUARDRAIL_IMAGE_ROOT, or ~/.cache/guardrail/image-root
#
# Needs root, debootstrap and buildah (Debian: apt-get install debootstrap buildah), and takes some minutes.
#
# buildah runs the Dockerfile itself, each step in a chroot. Only the base is another one: registries of images are out
# of reach where this is needed, so the Python of the same Debian stands in for it. The sizes that it prints are therefore
# those of our layers alone.
set -eu

# shellcheck disable=SC2016 # what is in single quotes below is for other shells
folder="${1:-${GUARDRAIL_IMAGE_ROOT:-$HOME/.cache/guardrail/image-root}}"
root="$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)"
# Of python:VERSION-slim-SUITE.
wanted="$(sed -n 's/^ARG PYTHON_IMAGE=python:\([0-9.]*\)-slim-.*/\1/p' "$root/docker/Dockerfile")"
suite="$(sed -n 's/^ARG PYTHON_IMAGE=python:[0-9.]*-slim-\([a-z]*\)$/\1/p' "$root/docker/Dockerfile")"
base="localhost/python-stand-in:$suite"
image="localhost/streaming-guardrail:image-root"

for tool in debootstrap buildah unshare; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "image-root: no $tool was found; install it (Debian: apt-get install debootstrap buildah)" >&2
        exit 1
    fi
done
[ "$(id -u)" = 0 ] || { echo "image-root: chroots need root; run it as root" >&2; exit 1; }
mkdir -p "$folder"
folder="$(CDPATH='' cd -- "$folder" && pwd)"
# Storage of its own: nothing of it is in the way of other images, and removing the folder removes all.
export BUILDAH_ISOLATION=chroot BUILDAH_LAYERS=true
store() {
    command="$1"
    shift
    buildah --root "$folder/storage" --runroot "$folder/run" "$command" "$@"
}

if ! store inspect --type image "$base" >/dev/null 2>&1; then
    echo "image-root: making the base, Debian $suite with its own Python" >&2
    rm -rf "$folder/base"
    debootstrap --variant=minbase --include=python3,python3-pip,ca-certificates "$suite" "$folder/base" \
        "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$folder/debootstrap.log"
    if [ ! -x "$folder/base/usr/bin/python$wanted" ]; then
        echo "image-root: Debian $suite has another Python than the $wanted that docker/Dockerfile asks for" >&2
        exit 1
    fi
    # As in the image that it stands for: the interpreter in /usr/local, and a pip that installs where it is told.
    ln -sf /usr/bin/python3 "$folder/base/usr/local/bin/python3"
    ln -sf /usr/bin/python3 "$folder/base/usr/local/bin/python"
    rm -f "$folder"/base/usr/lib/python3*/EXTERNALLY-MANAGED
    rm -rf "$folder"/base/var/cache/apt/archives/*.deb "$folder"/base/var/lib/apt/lists/*
    # Where this machine trusts an authority of its own, so does the build.
    if [ -r "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" ]; then
        cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$folder/base/etc/ssl/certs/ca-certificates.crt"
    fi
    container="$(store from scratch)"
    store copy --quiet "$container" "$folder/base" / >/dev/null
    store config --env SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
        --env PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
        --env PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
    store commit --quiet --rm "$container" "$base" >/dev/null
    rm -rf "$folder/base"
fi

echo "image-root: building $root/docker/Dockerfile" >&2
store build --format docker --build-arg "PYTHON_IMAGE=$base" \
    --build-arg "REVISION=$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)" \
    --build-arg "CREATED=$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
    --file "$root/docker/Dockerfile" --ignorefile "$root/.dockerignore" --tag "$image" "$root"

container="$(store from --pull-never "$image")"
trap 'store rm "$container" >/dev/null' EXIT
top="$(store mount "$container")"
user="$(store inspect --type image --format '{{.Docker.Config.User}}' "$image")"
echo "image-root: user $user, entry point $(store inspect --type image --format '{{.Docker.Config.Entrypoint}}' "$image")" >&2

# A mount namespace of its own: a read-only root, an empty /tmp, /proc, the devices every program expects, no network.
inside() {
    IMAGE_ROOT="$top" IMAGE_USER="$user" unshare --mount --pid --net --fork sh -euc '
        mount --bind "$IMAGE_ROOT" "$IMAGE_ROOT"
        mount -t proc proc "$IMAGE_ROOT/proc"
        mount -t tmpfs -o size=64m,mode=1777 tmpfs "$IMAGE_ROOT/tmp"
        mount -t tmpfs -o size=1m tmpfs "$IMAGE_ROOT/dev"
        for device in null zero random urandom; do
            touch "$IMAGE_ROOT/dev/$device"
            mount --bind "/dev/$device" "$IMAGE_ROOT/dev/$device"
        done
        mkdir -p "$IMAGE_ROOT/dev/shm"
        mount -o remount,bind,ro "$IMAGE_ROOT"
        exec chroot --userspec="$IMAGE_USER" "$IMAGE_ROOT" /usr/bin/env -i \
            PATH=/opt/guardrail/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp PYTHONDONTWRITEBYTECODE=1 \
            GUARDRAIL_OPS__HOST=0.0.0.0 GUARDRAIL_OPS__PORT=8080 COLUMNS=100 "$@"
    ' inside "$@"
}

inside python -c 'import os, sys
assert os.getuid() == 10001 and os.getgid() == 10001, (os.getuid(), os.getgid())
for folder in ("/", "/opt/guardrail", "/etc"):
    try:
        open(os.path.join(folder, "written"), "w")
    except OSError:
        continue
    sys.exit(f"{folder} can be written to")
open("/tmp/written", "w").close()'
inside tini -- guardrail --version
inside tini -- guardrail demo --speed 50 >"$folder/demo.txt"
tail -n 4 "$folder/demo.txt"
inside tini -- guardrail config show >"$folder/settings.yaml"
# All of the guard loads, and then there is no Kafka.
inside tini -s -- guardrail run --bootstrap-servers 127.0.0.1:9 >"$folder/run.txt" 2>&1 && exit 1
grep "Kafka can't be reached" "$folder/run.txt" || { cat "$folder/run.txt" >&2; exit 1; }
# No guard runs here: the health check has to say so, and with nothing but what the image holds.
check="$(sed -n 's/^ *CMD \["python", "-c", "\(.*\)"\]$/\1/p' "$root/docker/Dockerfile")"
if [ -z "$check" ] || inside python -c "$check" 2>"$folder/health.txt"; then
    echo "image-root: the health check is not found, or finds a guard where none runs" >&2
    exit 1
fi
grep -qE "OSError|ConnectionRefusedError" "$folder/health.txt" || { cat "$folder/health.txt" >&2; exit 1; }
inside python -c 'import json
parts = json.load(open("/opt/guardrail/share/sbom/python.cdx.json"))["components"]
print(f"SBOM: {len(parts)} Python packages")'
echo "image-root: started as $user on a read-only root without a network" >&2
du -s --block-size=1000000 "$top/opt/guardrail" | awk '{ print "image-root: our layers: " $1 " MB" }' >&2
tar -C "$top" -cf - opt usr/local/bin/tini | gzip -6 | wc -c |
    awk '{ printf "image-root: our layers compressed: %.0f MB\n", $1 / 1e6 }' >&2
