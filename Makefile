# configstamp. The two commands of a newcomer are "make demo" and "make test".

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
CLUSTER ?= demo
CACHE   := $(or $(CONFIGSTAMP_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/configstamp)

GOLANGCI         := v2.15.0
GOLANGCI_LINT    := $(CACHE)/bin/golangci-lint-$(GOLANGCI)
HELM_VERSION     := v4.3.1
HELM             := $(CACHE)/bin/helm-$(HELM_VERSION)
GOTESTSUM_VERSION := v1.13.0
GOTESTSUM        := $(CACHE)/bin/gotestsum-$(GOTESTSUM_VERSION)
HELM_DOCS_VERSION := v1.14.2
HELM_DOCS        := $(CACHE)/bin/helm-docs-$(HELM_DOCS_VERSION)
HUGO_VERSION     := v0.164.0
HUGO             := $(CACHE)/bin/hugo-$(HUGO_VERSION)
GORELEASER_VERSION := v2.16.0
GORELEASER       := $(CACHE)/bin/goreleaser-$(GORELEASER_VERSION)
GO_BUILD         := go build -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)'
# One way to compile for all that needs no race detector, so that the modules and a
# clone elsewhere share what is compiled.
export CGO_ENABLED := 0
export GOFLAGS     := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)
# What a failure is told by, with its file and line, at the end.
SUMMED           := $(GOTESTSUM) --no-color --format pkgname-and-test-fails --hide-summary skipped --
RACED            := CGO_ENABLED=1 $(SUMMED) -race
TESTS            := GOTESTSUM=$(GOTESTSUM) CONFIGSTAMP_E2E=1 $(CURDIR)/.ci/tests
NESTED           := e2e/bench e2e/cluster e2e/certmanager e2e/oracle e2e/gitops e2e/observability
PROMTOOL_VERSION := $(shell sed -n 's|.*github.com/prometheus/prometheus v|v|p' e2e/observability/go.mod)
PROMTOOL         := $(CACHE)/bin/promtool-$(PROMTOOL_VERSION)
FUZZ_SECONDS     ?= 30

PLATFORM         ?= linux/$(shell go env GOARCH)
IMAGE_TARBALL    := dist/configstamp-$(notdir $(PLATFORM)).tar

.PHONY: help build demo docs test long unit unit-race unit-plain unit-cluster lint format tidy golangci vet-cluster vet-nested chart e2e-short e2e-long gitops bad-edit rollouts pins faults hostile soak install oracle observability snippets simulation oldest fuzz bench microbench helm generate goldens transcripts rendered chart-lint chart-tests chart-arguments stale cluster-up cluster-images cluster-env cluster-down image release release-check release-install

help: ## Say what there is
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

build: ## Build bin/configstamp, and the kubectl plugin
	$(GO_BUILD) -o bin/configstamp ./cmd/configstamp
	$(GO_BUILD) -o bin/kubectl-configstamp ./cmd/kubectl-configstamp
	ln -sf kubectl-configstamp bin/kubectl_complete-configstamp

# What runs containers needs root.
ROOT := $(filter 0,$(shell id -u))
demo: ## Play the main job on an embedded, real Kubernetes (KEEP=1 leaves it up)
	@$(if $(ROOT)$(if $(CI),,person),CLUSTER=$(CLUSTER) e2e/demo/run.sh,echo "SKIPPED (1 check): the demonstration on real containers: it needs root")

docs: $(HUGO) ## Make the documentation's site, dist/site, and look for links that lead nowhere
	$(HUGO) --source . --config site/hugo.yaml --destination dist/site --cleanDestinationDir --noBuildLock --panicOnWarning --quiet
	go test -count=1 ./site ./docs

test: ## What has to pass before anything lands, in minutes: lint, unit tests, chart, the promises on the real API server, a bad edit on real containers
	@.ci/parts "make test" lint unit chart e2e-short bad-edit

PARTS ?= e2e-long gitops rollouts pins faults hostile install soak oracle observability snippets docs demo simulation oldest
long: ## What takes an hour: before a release and each night; PARTS="rollouts pins" makes some
	@.ci/parts "make long" $(PARTS)

# What is long and in one goroutine, such as the rules of rollouts and the controller at a
# simulated time, runs without the race detector, which -short spares. Debugging information
# is left out, and so is the second in which the race detector waits at the end of each package.
UNITS = $(shell go list ./checksum/... ./internal/... ./webhook/... ./controller/... ./certs/... ./cmd/... ./docs ./e2e/proxy ./e2e/cost ./e2e/faults/judge ./e2e/rights ./e2e/rollouts/timeline | grep -v '/internal/rollout$$')
unit: unit-race unit-plain unit-cluster ## Unit tests with the race detector, and the seeds of the fuzz targets
unit-race: export GORACE := atexit_sleep_ms=50
unit-race: $(GOTESTSUM)
	$(RACED) -short -ldflags=-w -parallel 8 $(UNITS)
unit-plain: $(GOTESTSUM)
	$(SUMMED) -ldflags=-w ./checksum ./controller ./internal/eventqueue ./internal/rollout ./webhook
unit-cluster: $(GOTESTSUM)
	cd e2e/cluster && $(SUMMED) ./...

oracle: $(GOTESTSUM) ## What checksum finds, against what Kubernetes itself finds
	@cd e2e/oracle && RERUNS=0 $(TESTS) oracle 1 ./...

observability: $(PROMTOOL) $(GOTESTSUM) ## Alerts, dashboard, runbooks and metrics fit together: promtool's checks and tests, and our own
	$(PROMTOOL) check rules deploy/chart/files/alerts.yaml
	$(PROMTOOL) test rules deploy/chart/tests/alerts_test.yaml
	@cd e2e/observability && RERUNS=0 $(TESTS) observability 1 ./...

e2e-short: $(GOTESTSUM) ## The promises, on the real API server with the real controllers
	@$(TESTS) e2e-short 90 ./e2e -short -timeout 20m

e2e-long: $(GOTESTSUM) ## All scenarios on the real API server: also those that stop the product, namespaces that are given, pins
	@$(TESTS) e2e-long 120 './e2e ./e2e/namespaced ./e2e/pins/records' -p 1 -timeout 40m $(E2E_ARGS)

gitops: $(GOTESTSUM) ## What Argo CD, Flux and Helm see, with their own libraries
	@cd e2e/gitops && $(TESTS) gitops 1 .

bad-edit: $(GOTESTSUM) ## A bad edit stops at the first workload, on real containers (needs root)
	@$(if $(ROOT),$(TESTS) bad-edit 1 ./e2e/rollouts -run '^TestGate' -timeout 10m,echo "SKIPPED (1 tests): a bad edit on real containers: it needs root")

snippets: $(GOTESTSUM) ## Type once what README, quick start and examples have people type, on a real cluster (needs root)
	@RERUNS=0 $(TESTS) snippets $(if $(ROOT),1,0) ./e2e/snippets/... -timeout 60m

rollouts: $(GOTESTSUM) ## One bad edit never takes a fleet down, on real containers; gates hold (needs root; ROLLOUTS_ARGS="-run LateCrash")
	@$(TESTS) rollouts $(if $(ROOT),1,0) './e2e/rollouts ./e2e/rollouts/gates' -p 2 -timeout 30m $(ROLLOUTS_ARGS)

pins: $(GOTESTSUM) ## Held and undone pods keep their content, on real containers, six times for each thing that befalls them (needs root; PINS_ARGS="-args -times=100")
	@$(TESTS) pins $(if $(ROOT),1,0) ./e2e/pins -timeout 30m $(PINS_ARGS)

SEEDS ?= 2000
simulation: $(GOTESTSUM) ## Many seeds of what may happen to the rules of rollouts (SEEDS=10000)
	@RERUNS=0 $(TESTS) simulation 1 ./internal/rollout -timeout 2h -run '^TestSimulation' -args -seeds=$(SEEDS)

# What it takes to build the Dockerfile's image without a Docker engine.
IMAGE_TOOLS := $(and $(filter 0,$(shell id -u)),$(shell command -v buildah),$(shell command -v busybox))
install: $(GOTESTSUM) $(if $(IMAGE_TOOLS),image) ## Every way to install and uninstall it, and that nothing restarts by it, from the image of the Dockerfile (needs root)
	@$(if $(IMAGE_TOOLS),,echo "SKIPPED (1 check): the image of the Dockerfile: it needs root, and Debian's buildah and busybox-static; what follows runs the same binary without it")
	@$(if $(IMAGE_TOOLS),CONFIGSTAMP_E2E_IMAGE=$(CURDIR)/$(IMAGE_TARBALL)) $(TESTS) install $(if $(ROOT),1,0) './e2e/install ./e2e/pods' -timeout 30m -p 2

# What the API server has no part in, and who alone writes policy, is the same everywhere.
SAME_EVERYWHERE := Plugin|Dialects|Migration|Examples|Policy_Unreadable|Events_|Settings
oldest: $(GOTESTSUM) ## The oldest Kubernetes that is supported, 1.30, built once: end to end
	@CONFIGSTAMP_KUBERNETES=v1.30 $(TESTS) oldest 80 './e2e ./e2e/pins/records' -p 1 -timeout 40m -skip '$(SAME_EVERYWHERE)'

# A flag of a test's own comes after -args.
FAULTS_ARGS ?= -short -run 'Random|Killed(Before|Around)|EveryResponse|ALeaderThatIsBehind' -args -runs=40
faults: $(GOTESTSUM) ## Forty perturbed runs and some faults, judged; FAULTS_ARGS="-args -runs=2000" has all of them: half an hour
	@$(TESTS) faults 1 ./e2e/faults -timeout 90m $(FAULTS_ARGS)

hostile: $(GOTESTSUM) ## A tenant fuzzes its namespace for five minutes, beside another's edits; HOSTILE_ARGS="-args -seed=2 -phase=1h"
	@RERUNS=0 FORMAT=standard-verbose $(TESTS) hostile 1 ./e2e/hostile -timeout 90m $(HOSTILE_ARGS)

SOAK_ARGS ?= -short
soak: $(GOTESTSUM) ## Never in the way: admissions with failurePolicy: Fail while configstamp is rolled out and killed (needs root); SOAK_ARGS= has 50,000 of them: 20 minutes
	@$(TESTS) soak $(if $(ROOT),1,0) ./e2e/soak -timeout 70m $(SOAK_ARGS)

lint: format tidy golangci vet-cluster stale ## gofmt, golangci-lint, go mod tidy, and that what is generated is as its source
format:
	@files=$$(git ls-files '*.go') && [ -n "$$files" ] && unformatted=$$(gofmt -l $$files) && \
		{ [ -z "$$unformatted" ] || { printf '%s: not formatted: gofmt -w\n' $$unformatted; exit 1; }; }
tidy:
	go mod tidy -diff
golangci: $(GOLANGCI_LINT)
	$(GOLANGCI_LINT) run --allow-parallel-runners ./...
vet-cluster:
	cd e2e/cluster && go vet ./...

vet-nested: ## go vet in every module that is not the product's
	@failed=; for module in $(NESTED); do echo "go vet in $$module"; (cd $$module && go vet ./...) || failed=yes; done; [ -z "$$failed" ]

# A program of a Go module, built once and kept: its file, its name, package@version.
define program
$(1):
	@echo "Building $(2), once" >&2
	@mkdir -p $$(@D)/build
	GOBIN=$$(@D)/build go install $(3) >&2
	@mv $$(@D)/build/$(2) $$@
endef
$(eval $(call program,$(GOLANGCI_LINT),golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)))
$(eval $(call program,$(GOTESTSUM),gotestsum,gotest.tools/gotestsum@$(GOTESTSUM_VERSION)))
$(eval $(call program,$(HELM),helm,helm.sh/helm/v4/cmd/helm@$(HELM_VERSION)))
$(eval $(call program,$(HELM_DOCS),helm-docs,github.com/norwoodj/helm-docs/cmd/helm-docs@$(HELM_DOCS_VERSION)))

$(eval $(call program,$(HUGO),hugo,github.com/gohugoio/hugo@$(HUGO_VERSION)))
$(eval $(call program,$(GORELEASER),goreleaser,github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)))

$(PROMTOOL):
	@echo "Building promtool $(PROMTOOL_VERSION), once: about two minutes"
	@mkdir -p $(@D)/build
	cd e2e/observability && go build -tags remove_all_sd -o $(@D)/build/promtool github.com/prometheus/prometheus/cmd/promtool
	@mv $(@D)/build/promtool $@

helm: $(HELM) ## Build the helm that tests use, and print where it is
	@echo $(HELM)

generate: goldens transcripts rendered ## Write all that is generated: tables of pages, goldens, manifests, the chart's table of values
goldens:
	go test -count=1 ./cmd/configstamp ./internal/impact ./internal/rollout ./webhook \
		-run '^Test(Reference|Forecast|Story|Cases$$)' -update
transcripts:
	go test -count=1 ./cmd/kubectl-configstamp -update
# The chart holds a file that goldens writes.
rendered: $(HELM) $(HELM_DOCS)
	deploy/render.sh $(HELM) $(HELM_DOCS) .

stale: $(HELM) $(HELM_DOCS) ## Check that "make generate" was run
	.ci/stale

chart: chart-lint chart-tests chart-arguments ## The chart: lint, tests of what it renders
chart-lint: $(HELM)
	$(HELM) lint --strict deploy/chart
chart-tests: $(HELM) $(GOTESTSUM)
	HELM=$(HELM) $(SUMMED) -count=1 -parallel 4 ./deploy/...
chart-arguments: $(HELM) $(GOTESTSUM)
	@HELM=$(HELM) RERUNS=0 $(TESTS) chart-arguments 1 ./cmd/configstamp -run '^TestPublished'

fuzz: ## Fuzz every target for FUZZ_SECONDS
	@for package in $$(go list ./checksum/... ./internal/... ./webhook/... ./controller/... ./certs/... ./cmd/... ./e2e/cost); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ_SECONDS)s $$package || exit 1; \
		done; \
	done

bench: ## Measure memory, CPU and time on an embedded Kubernetes, as e2e/bench/README.md says (BENCH_ARGS for more)
	cd e2e/bench && go run . --out ../../dist/bench $(BENCH_ARGS)

microbench: ## Benchmarks of the planner alone
	go test -run '^$$' -bench . -benchmem ./internal/rollout

IN_CLUSTER = cd e2e/cluster && go run ./cmd/cluster --name $(CLUSTER)
cluster-up: ## An embedded Kubernetes to play with: real containers as root, else nodes that only pretend
	@$(IN_CLUSTER) up

BUSYBOX ?= $(shell command -v busybox)
cluster-images: build ## Load the images of the quick start into it: configstamp:dev, and busybox:1.37 made of a static busybox
	@$(if $(BUSYBOX),,echo "busybox is not installed: apt-get install busybox-static" >&2; exit 1)
	@$(IN_CLUSTER) image --load --image configstamp:dev --binary ../../bin/configstamp
	@$(IN_CLUSTER) image --load --image busybox:1.37 --user 0 --binary $(BUSYBOX) $(foreach applet,sh cat env httpd ls ps sleep tee wget,--file $(BUSYBOX):/bin/$(applet))

cluster-env: ## Print what a shell needs to use it: eval "$$(make --silent cluster-env)"
	@$(IN_CLUSTER) env

cluster-down: ## Take it down
	@$(IN_CLUSTER) down

image: ## Build the container image into dist/ (a Docker engine, or buildah as root and no registry); PLATFORM=linux/arm64
	@if docker info >/dev/null 2>&1; then \
		docker build --platform $(PLATFORM) --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) -t configstamp:dev . && \
		mkdir -p dist && docker save -o $(IMAGE_TARBALL) configstamp:dev; \
	else e2e/image.sh $(VERSION) $(COMMIT) $(PLATFORM) $(IMAGE_TARBALL); fi
	@ls -l $(IMAGE_TARBALL)

release: $(GORELEASER) ## Publish the draft of a release of the tag that is checked out, as .goreleaser.yaml says: release.yaml does it (needs syft, cosign, GITHUB_TOKEN)
	$(GORELEASER) release --clean

# cosign publishes each signature, so it is not called.
release-check: export IMAGE := check/configstamp
release-check: export DIGEST := sha256:$(shell printf %064d 0)
release-check: $(GORELEASER) ## Check .goreleaser.yaml, and make what it releases of what is here into dist/release; nothing is published
	$(GORELEASER) check
	$(GORELEASER) release --snapshot --clean --skip=publish,sign$(if $(shell command -v syft),,,sbom)

# What goreleaser calls, for the chart and the manifests. IMAGE is as nodes pull it, without a tag; DIGEST may be empty.
IMAGE  ?= configstamp
DIGEST ?=
PACKED := dist/install
RENDER  = $(HELM) template configstamp $(PACKED)/configstamp-*.tgz --namespace configstamp --skip-tests --set namespace.create=true --set settings.dialects=true
release-install: $(HELM)
	rm -rf $(PACKED)
	mkdir -p $(PACKED)
	cp -r deploy/chart $(PACKED)/chart
	sed -i -e 's|^  repository: configstamp$$|  repository: $(IMAGE)|' -e 's|^  digest: ""$$|  digest: "$(DIGEST)"|' $(PACKED)/chart/values.yaml
	$(HELM) package $(PACKED)/chart --version $(VERSION:v%=%) --app-version $(VERSION) --destination $(PACKED)
	rm -r $(PACKED)/chart
	$(RENDER) >$(PACKED)/install.yaml
	$(RENDER) --set certificates.mode=self-managed >$(PACKED)/install-self-managed.yaml
	$(RENDER) --set keepStamps=on --show-only templates/keepstamps.yaml >$(PACKED)/keep-stamps.yaml
	grep -q 'image: $(IMAGE)$(if $(DIGEST),@$(DIGEST),:$(VERSION))$$' $(PACKED)/install.yaml
