#!/usr/bin/env bash
# Brings up an embedded Kubernetes, installs configstamp in it as in production,
# and plays the demonstration. KEEP=1 leaves the cluster up. INSTALL says which
# of the manifests in deploy is installed: install (the default) or install-self-managed.
set -euo pipefail
cd "$(dirname "$0")/../.."
name=${CLUSTER:-demo}
install=${INSTALL:-install}
work=$(mktemp -d)
started=$SECONDS

if [ "$(id -u)" != 0 ]; then
	echo "make demo runs real containers, and needs root for it: sudo -E make demo" >&2
	echo "Without root there is 'make cluster-up' (a real control plane with nodes that only pretend), and make test." >&2
	exit 1
fi

step() { printf '%4ds  %s\n' $((SECONDS - started)) "$*"; }

step "Building the cluster's command (once, about half a minute)"
(cd e2e/cluster && go build -o "$work/cluster" ./cmd/cluster)
cluster() { "$work/cluster" --name "$name" "$@"; }

finish() {
	code=$?
	trap - EXIT INT TERM
	if [ "${KEEP:-}" = 1 ] && [ -n "${up:-}" ]; then
		cp "$work/cluster" "$(dirname "$(cluster kubeconfig)")/cluster"
		printf '\nThe cluster is left up. To use it:\n\n'
		cluster env | grep -E 'KUBECONFIG|PATH' | sed 's/^/  /'
		printf '\nTo take it down: make cluster-down CLUSTER=%s\n' "$name"
	elif [ -n "${up:-}" ]; then
		cluster down || code=1
	fi
	rm -rf "$work"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM

step "Kubernetes and cert-manager, from their own sources (once, about ten minutes; kept between runs)"
cluster build kubernetes cert-manager pause >/dev/null
step "Starting a cluster"
up=1
cluster up --node kubelet
eval "$(cluster env)"

step "Building configstamp's image, its kubectl plugin, and the demonstration's app"
make --no-print-directory build >/dev/null
PATH=$PWD/bin:$PATH # kubectl finds the plugin there
CGO_ENABLED=0 go build -trimpath -o "$work/app" ./e2e/demo/app
cluster image --binary bin/configstamp --image configstamp:dev --load >/dev/null
cluster image --binary "$work/app" --image demo-app:1.0 --load >/dev/null

step "Installing configstamp: kubectl apply -f deploy/$install.yaml"
if [ "$install" = install ]; then
	cluster cert-manager
fi
kubectl apply -f "deploy/$install.yaml"
if [ "$install" = install ]; then
	kubectl --namespace configstamp wait certificate/configstamp --for=condition=Ready --timeout=60s
fi
kubectl --namespace configstamp rollout status deployment/configstamp --timeout=120s
# The usual patience, 10 s and 30 s, would make the demonstration long.
echo "These values are not the defaults: so that you need not wait, soak=3s, firstSoak=0s and crashDeadline=8s; so that content can come back, pins.enabled"
"$(make --no-print-directory helm)" template configstamp deploy/chart --namespace configstamp --skip-tests \
	--set namespace.create=true --set settings.dialects=true $([ "$install" = install ] || echo --set certificates.mode=self-managed) \
	--set rollouts.soak=3s --set rollouts.firstSoak=0s --set rollouts.crashDeadline=8s --set pins.enabled=true |
	kubectl apply -f - | grep deployment
kubectl --namespace configstamp rollout status deployment/configstamp --timeout=120s
# A Service's address can refuse for a moment after its pods became ready: the
# webhook is there when a dry run comes back stamped.
kubectl create namespace probe >/dev/null
kubectl label namespace probe configstamp.dev/inject=enabled >/dev/null
kubectl --namespace probe create configmap probe --from-literal=a=b >/dev/null
for _ in $(seq 60); do
	kubectl --namespace probe run probe --image=none --dry-run=server -o yaml \
		--overrides='{"spec":{"containers":[{"name":"probe","image":"none","envFrom":[{"configMapRef":{"name":"probe"}}]}]}}' 2>/dev/null |
		grep -q 'configmap.configstamp.dev/probe' && break
	sleep 0.5
done
# So do the controllers, and an edit whose warning is late goes on without it.
kubectl --namespace probe create deployment probe --image=none --replicas=0 >/dev/null
kubectl --namespace probe set env deployment/probe --from=configmap/probe >/dev/null
for _ in $(seq 60); do
	kubectl --namespace probe patch configmap probe --patch '{"data":{"a":"c"}}' --dry-run=server 2>&1 |
		grep -q '^Warning: configstamp: ' && break
	sleep 0.5
done
kubectl delete namespace probe --wait=false >/dev/null
kubectl --namespace configstamp get pods
step "Installed"

go run ./e2e/demo
