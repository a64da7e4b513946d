# configstamp. The two commands of a newcomer are "make demo" and "make test".

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
CLUSTER ?= demo
CACHE   := $(or $(CONFIGSTAMP_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/configstamp)

GOLANGCI         := v2.15.0
GOLANGCI_LINT    := $(CACHE)/bin/golangci-lint-$(GOLANGCI)
HELM_VERSION     := v4.3.1
HELM             := $(CACHE)/bin/helm-$(HELM_VERSION)
KUBECONFORM_VERSION := v0.8.0
KUBECONFORM      := $(CACHE)/bin/kubeconform-$(KUBECONFORM_VERSION)
HELM_DOCS_VERSION := v1.14.2
HELM_DOCS        := $(CACHE)/bin/helm-docs-$(HELM_DOCS_VERSION)
HUGO_VERSION     := v0.164.0
HUGO             := $(CACHE)/bin/hugo-$(HUGO_VERSION)
MERMAID_VERSION  := 12.3.0
MERMAID_SUM      := 336df803d87a38b70a01e736e666c8f7601d2ce42f5e47c8fafe5d721074b9a3
MERMAID          := $(CACHE)/bin/mermaid-$(MERMAID_VERSION).min.js
GO_BUILD         := go build -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)'
# One way to compile for all that needs no race detector, so that the modules and a
# clone elsewhere share what is compiled.
export CGO_ENABLED := 0
export GOFLAGS     := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)
RACE             := CGO_ENABLED=1 go test -race
NESTED           := e2e/cluster e2e/certmanager e2e/oracle e2e/gitops e2e/observability e2e/krew deploy/release
PROMTOOL_VERSION := $(shell sed -n 's|.*github.com/prometheus/prometheus v|v|p' e2e/observability/go.mod)
PROMTOOL         := $(CACHE)/bin/promtool-$(PROMTOOL_VERSION)
FUZZ_SECONDS     ?= 30

FAULTS_RUNS      ?= 2000

# All that a release depends on, but its version and its image.
RELEASE          = cd deploy/release && go run . -root $(CURDIR) -helm $(HELM) -commit "$$(git rev-parse HEAD)" -time "$$(git log -1 --format=%ct)"

PLATFORM         ?= linux/$(shell go env GOARCH)
IMAGE_TARBALL    := dist/configstamp-$(notdir $(PLATFORM)).tar

.PHONY: help build demo site recording local-request installed test long test-all unit lint oracle observability e2e snippets rollouts rollouts-short rollouts-long gates matrix matrix-upgrade matrix-install matrix-e2e neighbours servers mutants faults faults-short fuzz bench bench-steps microbench podtruth pins pins-short soak soak-short tools helm kubeconform manifests stale chart cluster-up cluster-down image install plugin-release release release-check

help: ## Say what there is
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

build: ## Build bin/configstamp, and the kubectl plugin
	$(GO_BUILD) -o bin/configstamp ./cmd/configstamp
	$(GO_BUILD) -o bin/kubectl-configstamp ./cmd/kubectl-configstamp
	ln -sf kubectl-configstamp bin/kubectl_complete-configstamp

demo: ## Play the main job on an embedded, real Kubernetes (KEEP=1 leaves it up)
	@CLUSTER=$(CLUSTER) e2e/demo/run.sh

# Diagrams are drawn in the browser, by what npm has of Mermaid: the site asks no other host for anything.
DIAGRAMS := $(if $(shell command -v npm),$(MERMAID))
site: $(HUGO) $(DIAGRAMS) ## Make the documentation's site, dist/site, and look for links that lead nowhere; the tests of what draws the recording and of what reads snippets
	$(HUGO) --source . --config site/hugo.yaml --destination dist/site --cleanDestinationDir --noBuildLock --panicOnWarning --quiet
	@$(if $(DIAGRAMS),cp $(MERMAID) dist/site/mermaid.min.js,echo "SKIPPED (1 check): diagrams stay text: without npm there is no Mermaid")
	go test -count=1 ./site ./e2e/demo/recording ./e2e/snippets/page

recording: ## Draw docs/bad-edit.svg from a new run: the demonstration's scene of the bad edit (needs root)
	@mkdir -p dist
	@CLUSTER=recording e2e/demo/run.sh -scene shop-settings -cast $(CURDIR)/dist/bad-edit.cast
	go run ./e2e/demo/recording dist/bad-edit.cast docs/bad-edit.svg

plugin-release: ## Build what is released of the kubectl plugin into dist/plugin: six platforms, krew's manifest; krew itself checks it (three minutes the first time)
	@go run ./deploy/krew -version $(VERSION) -commit $(COMMIT) -time $$(git log -1 --format=%ct) -out dist/plugin
	cd e2e/krew && go test -count=1 ./...

test: ## What has to pass before anything lands: lint, chart, unit tests with -race, the site, oracle, alerts, end to end, what the pages have people type, a bad edit and pins on real containers
	@.ci/parts "make test" lint chart unit site oracle observability e2e snippets rollouts-short pins-short

long: ## The long suites beside make test: the other rollouts, gates, faults, installations, availability, the other demonstration, the release
	@.ci/parts "make long" rollouts-long podtruth pins gates faults-short install soak-short installed release-check

test-all: ## make test and the long suites: what .ci/run does
	@.ci/parts "make test-all" test long

REVIEW  ?= e2e/localrequest/testdata/review.json
OBJECTS ?= e2e/localrequest/testdata/objects.yaml
local-request: ## Send one AdmissionReview through the real webhook server, without a cluster (REVIEW=review.json OBJECTS=objects.yaml)
	@go run ./e2e/localrequest $(REVIEW) $(OBJECTS)

installed: ## The demonstration where there is no cert-manager, installed self-managed (needs root); make demo is the other one
	@if [ "$$(id -u)" = 0 ]; then \
		CLUSTER=installed INSTALL=install-self-managed e2e/demo/run.sh; \
	else \
		echo "SKIPPED (1 check): the demonstration on real containers, installed self-managed: it needs root"; \
	fi

# What is long and in one goroutine, such as the rules of rollouts and the controller at a
# simulated time, runs without the race detector, which -short spares. Debugging information
# is left out, and so is the second in which the race detector waits at the end of each package.
unit: export GORACE := atexit_sleep_ms=50
unit: ## Unit tests with the race detector, and the seeds of the fuzz targets
	$(RACE) -short -ldflags=-w -parallel 8 $$(go list ./checksum/... ./internal/... ./webhook/... ./controller/... ./certs/... ./cmd/... ./docs ./e2e/proxy ./e2e/harness ./e2e/faults/judge ./e2e/rights ./e2e/localrequest ./e2e/rollouts/timeline ./e2e/servers/behind ./e2e/bench/... | grep -v '/internal/rollout$$')
	go test -ldflags=-w ./checksum ./controller ./internal/eventqueue ./internal/pods ./internal/rollout ./webhook
	cd e2e/cluster && go test ./...

oracle: ## What checksum finds, against what Kubernetes itself finds
	cd e2e/oracle && go test ./...

observability: $(PROMTOOL) ## Alerts, dashboard, runbooks and metrics fit together: promtool's checks and tests, and our own
	$(PROMTOOL) check rules deploy/chart/files/alerts.yaml
	$(PROMTOOL) test rules deploy/chart/tests/alerts_test.yaml
	go test -count=1 -run TestReferenceOfMetrics ./cmd/configstamp
	@# Not from go test's cache, which does not look at files outside of the module.
	cd e2e/observability && go test -count=1 ./...

e2e: ## Scenarios on the real API server, with the real controllers
	CONFIGSTAMP_E2E=1 go test -count=1 -p 1 -timeout 40m -v ./e2e ./e2e/namespaced ./e2e/pins/records
	cd e2e/gitops && CONFIGSTAMP_E2E=1 go test -count=1 -v .

snippets: ## Do what README, quick start and examples have people type, on a real cluster (needs root)
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 30m -v ./e2e/snippets

# What no simulation can show comes first: containers that crash, before they are
# ready and after.
rollouts: ## One bad edit never takes a fleet down, on real containers (needs root)
rollouts-short: ## Of these: a bad edit and a late crash, of every kind
rollouts-long: ## The others
rollouts-short: ROLLOUTS_ARGS := -run '^Test(ABadEdit|ALateCrash)StopsAtOne'
rollouts-long: ROLLOUTS_ARGS := -skip '^Test(ABadEdit|ALateCrash)StopsAtOne'
rollouts rollouts-short rollouts-long:
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 30m -v ./e2e/rollouts $(ROLLOUTS_ARGS)

podtruth: ## What is said of pods, against what their containers have really read (needs root; PODTRUTH_ARGS="-for=10m -rooms=10": 200 containers)
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 20m -v ./e2e/podtruth $(PODTRUTH_ARGS)

pins: ## Held and undone pods keep their content, on real containers, 100 times for each thing that befalls them (needs root)
pins-short: ## Of these: a dozen times, and containers that others inject
pins: PINS_ARGS := -times=100
pins-short: PINS_ARGS := -run '^Test(HeldPods|Injected)'
pins pins-short:
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 30m -v ./e2e/pins $(PINS_ARGS)

gates: ## Two hundred workloads with mixed gates, and several changes at once
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 15m -v ./e2e/rollouts/gates

# What it takes to build the Dockerfile's image without a Docker engine.
IMAGE_TOOLS := $(and $(filter 0,$(shell id -u)),$(shell command -v buildah),$(shell command -v busybox))
install: $(if $(IMAGE_TOOLS),image) ## Every way to install and uninstall it, and that nothing restarts by it, from the image of the Dockerfile (needs root)
	@$(if $(IMAGE_TOOLS),,echo "SKIPPED (1 check): the image of the Dockerfile: it needs root, and Debian's buildah and busybox-static; what follows runs the same binary without it")
	$(if $(IMAGE_TOOLS),CONFIGSTAMP_E2E_IMAGE=$(CURDIR)/$(IMAGE_TARBALL)) CONFIGSTAMP_E2E=1 go test -count=1 -timeout 30m -p 1 -v -skip '^TestRelease$$' ./e2e/install ./e2e/pods

# Another version of Kubernetes than the one that all other targets use, and the one after it.
KUBERNETES      ?= v1.36
KUBERNETES_NEXT ?= v1.$(shell expr $(KUBERNETES:v1.%=%) + 1)
# What the API server has no part in, and who alone writes policy, is the same everywhere.
SAME_EVERYWHERE := Plugin|Completion|Dialects|Migration|NearMiss|Examples|Impact_(TheWarning|SaysWhat)|Policy_(Unreadable|HoldsThat)|Events_|Settings
MATRIX := matrix-upgrade matrix-install matrix-e2e
matrix $(MATRIX): export CONFIGSTAMP_E2E := 1
matrix $(MATRIX): export CONFIGSTAMP_KUBERNETES := $(KUBERNETES)
matrix: ## Another version of Kubernetes (KUBERNETES=v1.31, built once): installation, end to end, faults, pins on real containers, and an upgrade to the next one
	@.ci/parts "make matrix KUBERNETES=$(KUBERNETES)" $(MATRIX) faults-short pins-short

matrix-upgrade:
	CONFIGSTAMP_KUBERNETES_NEXT=$(KUBERNETES_NEXT) go test -count=1 -timeout 10m -v ./e2e/matrix
matrix-install:
	go test -count=1 -timeout 15m -v -run '^TestHelm$$' ./e2e/install
matrix-e2e:
	go test -count=1 -p 1 -timeout 40m -v -skip '$(SAME_EVERYWHERE)' ./e2e ./e2e/pins/records

# Some want a newer Go than this module.
neighbours: export GOTOOLCHAIN := auto
neighbours: ## Beside the controllers that others publish, built from their modules, once: Argo CD, Flux, Argo Rollouts and more (needs root; NEIGHBOURS_ARGS="-run ArgoCD -for=10m")
	go -C e2e/neighbours/argocd test -count=1 ./...
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 90m -v ./e2e/neighbours $(NEIGHBOURS_ARGS)

servers: ## Three API servers behind balancers, of which one is behind, killed or frozen: stamps, leases, admissions (SERVERS_ARGS="-run Everything -for=10m"): ten minutes
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 60m -v ./e2e/servers $(SERVERS_ARGS)

mutants: ## Break the product in every way, and see the tests fail that are to catch it (MUTANTS_ARGS="--only no-key")
	go run ./e2e/mutants $(MUTANTS_ARGS)

faults-short: ## Some faults, in two minutes: what "make faults" does at length
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 10m -v ./e2e/faults -short -runs 40 -run 'Random|Killed(Before|Around)|EveryResponse|ALeaderThatIsBehind'

faults: ## Every fault scenario, and FAULTS_RUNS perturbed runs from a seed: half an hour
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 90m -v ./e2e/faults -runs $(FAULTS_RUNS) $(FAULTS_ARGS)

soak: ## Never in the way: 50,000 admissions with failurePolicy: Fail while configstamp is rolled out and killed (needs root): 20 minutes
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 70m -v ./e2e/soak $(SOAK_ARGS)

soak-short: ## The same in three minutes
	CONFIGSTAMP_E2E=1 go test -count=1 -timeout 15m -v ./e2e/soak -short

lint: $(GOLANGCI_LINT) ## gofmt, go vet, golangci-lint, go mod tidy
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); [ -z "$$unformatted" ] || { echo "not gofmt'd: $$unformatted"; exit 1; }
	go mod tidy -diff
	go vet ./...
	$(GOLANGCI_LINT) run ./...
	@for module in $(NESTED); do echo "go vet in $$module"; (cd $$module && go vet ./...) || exit 1; done

# A program of a Go module, built once and kept: its file, its name, package@version.
define program
$(1):
	@echo "Building $(2), once" >&2
	@mkdir -p $$(@D)/build
	GOBIN=$$(@D)/build go install $(3) >&2
	@mv $$(@D)/build/$(2) $$@
endef
$(eval $(call program,$(GOLANGCI_LINT),golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)))
$(eval $(call program,$(HELM),helm,helm.sh/helm/v4/cmd/helm@$(HELM_VERSION)))
$(eval $(call program,$(HELM_DOCS),helm-docs,github.com/norwoodj/helm-docs/cmd/helm-docs@$(HELM_DOCS_VERSION)))
$(eval $(call program,$(KUBECONFORM),kubeconform,github.com/yannh/kubeconform/cmd/kubeconform@$(KUBECONFORM_VERSION)))

$(eval $(call program,$(HUGO),hugo,github.com/gohugoio/hugo@$(HUGO_VERSION)))

$(MERMAID):
	@mkdir -p $(@D)
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && cd "$$work" && npm pack --silent mermaid@$(MERMAID_VERSION) >/dev/null && \
		tar -xzf mermaid-*.tgz package/dist/mermaid.min.js && echo "$(MERMAID_SUM)  package/dist/mermaid.min.js" | sha256sum --check --quiet && \
		mv package/dist/mermaid.min.js $@

$(PROMTOOL):
	@echo "Building promtool $(PROMTOOL_VERSION), once: about two minutes"
	@mkdir -p $(@D)/build
	cd e2e/observability && go build -tags remove_all_sd -o $(@D)/build/promtool github.com/prometheus/prometheus/cmd/promtool
	@mv $(@D)/build/promtool $@

tools: $(GOLANGCI_LINT) $(HELM) $(HELM_DOCS) $(KUBECONFORM) $(PROMTOOL) $(HUGO) $(DIAGRAMS) ## Build every program that tests use, once; they build what they miss, so this only says how long it takes
	cd e2e/cluster && go run ./cmd/cluster build >/dev/null

helm: $(HELM) ## Build the helm that tests use, and print where it is
	@echo $(HELM)

kubeconform: $(KUBECONFORM) ## Build the kubeconform that tests use, and print where it is
	@echo $(KUBECONFORM)

manifests: $(HELM) $(HELM_DOCS) ## Render deploy/install*.yaml and the chart's table of values
	@deploy/render.sh $(HELM) $(HELM_DOCS) .

stale: $(HELM) $(HELM_DOCS) ## Check that "make manifests" was run
	@work=$$(mktemp -d) && trap 'rm -rf "$$work"' EXIT && deploy/render.sh $(HELM) $(HELM_DOCS) "$$work" && \
		for file in $$(cd "$$work" && find . -type f); do diff -u "$$file" "$$work/$$file" || { echo "$$file is stale: make manifests" >&2; exit 1; }; done

chart: stale ## The chart: lint, tests of what it renders
	$(HELM) lint --strict deploy/chart
	HELM=$(HELM) go test -count=1 ./deploy/...
	HELM=$(HELM) go test -count=1 -run TestPublished ./cmd/configstamp

fuzz: ## Fuzz every target for FUZZ_SECONDS
	@for package in $$(go list ./checksum/... ./internal/... ./webhook/... ./controller/... ./certs/...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ_SECONDS)s $$package || exit 1; \
		done; \
	done

bench: ## Measure everything that docs/performance.md tells of, on an embedded Kubernetes: half an hour (BENCH_ARGS for more)
	go run ./e2e/bench --out dist/bench $(BENCH_ARGS)

bench-steps: ## Measure 10,000 workloads of one source that roll in steps, on kwok's nodes: half an hour in theory (BENCH_ARGS=--quick: 300, one minute)
	go run ./e2e/bench --out dist/bench-steps --scenario steps $(BENCH_ARGS)

microbench: ## Benchmarks of the handler and the rules alone
	go test -run '^$$' -bench . -benchmem ./checksum/... ./internal/... ./webhook/...

cluster-up: ## An embedded Kubernetes to play with
	@cd e2e/cluster && go run ./cmd/cluster up --name $(CLUSTER)

cluster-down: ## Take it down
	@cd e2e/cluster && go run ./cmd/cluster down --name $(CLUSTER)

image: ## Build the container image into dist/ (a Docker engine, or buildah as root and no registry); PLATFORM=linux/arm64
	@if docker info >/dev/null 2>&1; then \
		docker build --platform $(PLATFORM) --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) -t configstamp:dev . && \
		mkdir -p dist && docker save -o $(IMAGE_TARBALL) configstamp:dev; \
	else e2e/image.sh $(VERSION) $(COMMIT) $(PLATFORM) $(IMAGE_TARBALL); fi
	@ls -l $(IMAGE_TARBALL)

.PHONY: release release-check
# What nodes pull the released image from, without a tag: <registry>/configstamp.
release: IMAGE ?= configstamp
release: KEY ?=
release: $(HELM) ## Make all that is released of this commit into dist/release (VERSION=v1.2.3; IMAGE=<registry>/configstamp; KEY=file or env://NAME to sign)
	@[ -z "$$(git status --porcelain)" ] || { echo "make release: there are changes that are not committed; what is released is a commit" >&2; exit 1; }
	@$(RELEASE) -version '$(VERSION)' -image '$(IMAGE)' -key '$(KEY)' -out $(CURDIR)/dist/release

# The Dockerfile's image of the same version, to compare with.
CHECKED          := $(CURDIR)/dist/release-check
DOCKERFILE_IMAGE := $(CURDIR)/dist/release-check-dockerfile.tar
release-check: $(HELM) ## What make release makes, of what is here: looked into, signed, taken by krew, installed, upgraded to and back (needs root)
	@$(RELEASE) -version v0.0.0-check -out $(CHECKED)
	$(if $(IMAGE_TOOLS),e2e/image.sh v0.0.0-check "$$(git rev-parse HEAD | cut -c1-12)" linux/amd64 $(DOCKERFILE_IMAGE),@echo "SKIPPED (1 check): whether the released image is the Dockerfile's: it needs root, and Debian's buildah and busybox-static")
	cd deploy/release && CONFIGSTAMP_RELEASE=$(CHECKED) $(if $(IMAGE_TOOLS),CONFIGSTAMP_DOCKERFILE_IMAGE=$(DOCKERFILE_IMAGE)) HELM=$(HELM) go test -count=1 ./...
	cd e2e/krew && CONFIGSTAMP_RELEASE=$(CHECKED) go test -count=1 ./...
	CONFIGSTAMP_E2E_RELEASE=$(CHECKED) CONFIGSTAMP_E2E=1 go test -count=1 -timeout 10m -v -run '^TestRelease$$' ./e2e/install
