#!/usr/bin/env bash
# Renders the chart into a folder that is laid out as this repository:
#   deploy/render.sh <helm> <helm-docs> <folder>
# What people apply without Helm, what e2e installs, and the table of values.
set -euo pipefail
cd "$(dirname "$0")/.."
helm=$1 helm_docs=$2 to=$(mkdir -p "$3" && cd "$3" && pwd)
mkdir -p "$to/deploy/chart" "$to/e2e/testdata"

render() {
	file=$1 says=$2
	shift 2
	{
		printf '# %s\n# Rendered from deploy/chart by "make generate"; edit that.\n' "$says"
		"$helm" template configstamp deploy/chart --namespace configstamp --skip-tests "$@"
	} >"$to/$file"
}

render deploy/install.yaml 'configstamp with a certificate of cert-manager: kubectl apply -f deploy/install.yaml' \
	--set namespace.create=true --set settings.dialects=true
render deploy/install-self-managed.yaml 'configstamp with a certificate that it signs itself: kubectl apply -f deploy/install-self-managed.yaml' \
	--set namespace.create=true --set settings.dialects=true --set certificates.mode=self-managed
render deploy/keep-stamps.yaml 'Beside one of these, from Kubernetes 1.36 on: kubectl apply -f deploy/keep-stamps.yaml' \
	--set keepStamps=on --set settings.dialects=true --show-only templates/keepstamps.yaml
render e2e/testdata/everything.yaml 'What package harness installs: all that can be served.' \
	--set namespace.create=true --set certificates.mode=self-managed --set 'dialects={reloader,wave}' --set secretProviderClasses=true \
	--set impact.secrets=true --set 'impact.serviceAccounts={ci/deployer,ci/other}'
render e2e/testdata/whole-cluster.yaml 'What a test of package e2e installs for a while: as everything.yaml, with the whole cluster opted in.' \
	--set namespace.create=true --set certificates.mode=self-managed --set 'dialects={reloader,wave}' --set secretProviderClasses=true \
	--set impact.secrets=true --set 'impact.serviceAccounts={ci/deployer,ci/other}' --set optIn=all
render e2e/testdata/namespaced.yaml 'What package e2e/namespaced installs.' \
	--set namespace.create=true --set certificates.mode=self-managed --set 'namespaces={team-a,team-b}' --set pins.enabled=true
render e2e/testdata/pins.yaml 'What package e2e/pins installs: as everything.yaml, with pins.' \
	--set namespace.create=true --set certificates.mode=self-managed --set impact.secrets=true --set pins.enabled=true

[ "$to" = "$PWD" ] || cp deploy/chart/{Chart.yaml,values.yaml,README.md.gotmpl} "$to/deploy/chart/"
"$helm_docs" --chart-search-root "$to/deploy/chart" --sort-values-order file --log-level warning
[ "$to" = "$PWD" ] || rm "$to"/deploy/chart/{Chart.yaml,values.yaml,README.md.gotmpl}
