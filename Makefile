# `make` alone lists the targets. The two to know: `make run` and `make test`.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
IMAGE   ?= castellan:$(VERSION)

# What test and race look at; narrow it while working: make test PKG=./domain/...
# The packages with the most work come first: one that ran alone at the end would leave processors idle.
PKG          ?= ./test/console ./web ./internal/bench ./test/kit ./test/faults ./test/access ./http ./...
TEST_TIMEOUT ?= 30m
# How many packages are tested at a time: one more than processors, because tests of processes mostly wait.
TEST_PACKAGES ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# Tests of nodes, networks and databases that fail.
FAULTS       = ^Test(Cluster|Faults|Database)
# Money, files and messages while the processes are killed, up to 100 times.
KILLS        = ^TestFaults(Money|Adjust|Uploads|Journal|Broadcast|Hostile|Wallet)
ROUNDS      ?= 10
# How long make fuzz works on each target, and how many requests make fuzz-long sends.
FUZZTIME    ?= 10s
HOSTILE     ?= 10000000
# What make quick leaves out: browsers, measurements, and tests that wait for what happens after failures.
NOT_QUICK    = /web|/internal/(bench|budget|sockload|localcluster|pgtest)|/test/(cluster|console|faults|replay)
# Tests that make quick leaves out of the other packages: each takes over ten seconds or needs Node.
SLOW_KIT     = GeneratedClients|DemoContinuesAfterKill|DemoFillsEveryList
SLOW_ACCESS  = EveryEndpointAcceptsOnlyItsTokenClass|GuardedOperationIsNotApproved
SLOW         = ^Test($(SLOW_KIT)|$(SLOW_ACCESS)|FaultsWalletAndLedgerAgreeAfterKills)$$
# Passed on to castellan demo.
DEMO         ?=
# The address of the demo shop; make run accepts its page and its gateway.
SHOP         ?= 127.0.0.1:8085
# Passed on to the benches: make bench BENCH="-rounds 3"
BENCH        ?=

# One form of build for vet, tests, linters and the program: what one of them compiled, the others read from the cache,
# also in another checkout.
export GOFLAGS     := $(strip $(GOFLAGS) -trimpath)
export CGO_ENABLED := 0

LDFLAGS = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)

# Runs a command with a throw-away PostgreSQL beside it, one for the whole run.
WITH_POSTGRES = go run ./internal/pgtest/cmd/pgserve

# A node has no limit of processors: deploy/kubernetes says why.
KUBE_SCORE = --ignore-container-cpu-limit --enable-optional-test container-seccomp-profile --enable-optional-test container-ports-check

# The linters of the documents; their rules are in tools/openapi.
API_TOOLS = tools/openapi/node_modules/.package-lock.json
# Node's half of the operators' console.
CONSOLE   = console/node_modules/.package-lock.json
# The types of the interface, for the console's sources; they are not committed.
CONSOLE_TYPES = tools/openapi/node_modules/.bin/openapi-typescript docs/openapi.json -o console/src/api.d.ts >/dev/null
API_LINT  = cd tools/openapi && \
	REDOCLY_TELEMETRY=off npx --no redocly lint --max-problems 50 ../../docs/openapi.json && \
	npx --no spectral lint --ruleset spectral.yaml --fail-severity warn ../../docs/openapi.json ../../docs/asyncapi.json

# The packages whose tests own golden files: those that define the flag -update.
GOLDEN = $(shell grep -rlE --include='*_test.go' 'flag\.Bool(Var)?\([^)]*"update"' . | xargs -r -n 1 dirname | sort -u)

.DEFAULT_GOAL := help
.PHONY: help run demo shop cluster build image clean bench
.PHONY: console console-dev tour test quick test-starved faults test-deps race fuzz fuzz-long verify lint security tidy size unchanged generate golden

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build and start it here, in development mode, on http://127.0.0.1:8080
	@CASTELLAN_DEV="$${CASTELLAN_DEV-true}" \
	CASTELLAN_METRICS_ADDR="$${CASTELLAN_METRICS_ADDR-127.0.0.1:9090}" \
	CASTELLAN_HTTP_TRUSTED_PROXIES="$${CASTELLAN_HTTP_TRUSTED_PROXIES-127.0.0.1}" \
	CASTELLAN_HTTP_CORS_ORIGINS="$${CASTELLAN_HTTP_CORS_ORIGINS-http://$(SHOP)}" \
	exec ./bin/castellan serve

demo: build ## fill the database of make run with a platform to look at, while it does not run (DEMO="--users 5000")
	@CASTELLAN_DEV="$${CASTELLAN_DEV-true}" ./bin/castellan demo $(DEMO)

shop: ## open the demo shop beside make run, after make demo: a page and its upstream behind the guard (examples/shop)
	go run ./examples/shop -listen $(SHOP)

cluster: build ## run three nodes on a throw-away PostgreSQL behind one address
	@scripts/ensure-test-deps.sh postgresql
	go run ./internal/localcluster ./bin/castellan

# VCS stamping is ours (LDFLAGS): Go's own fails in a checkout of another user.
# grpcnotrace: gRPC's traces bring html/template, which keeps the linker from leaving out methods.
build: ## build ./bin/castellan, one static binary, and its bill of materials beside it
	go build -tags grpcnotrace -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/castellan ./cmd/castellan
	go -C tools run ./sbom ../bin/castellan '$(VERSION)' ../cmd/castellan/THIRD_PARTY_NOTICES ../bin/castellan.cdx.json

image: ## build the container image
	docker build --build-arg VERSION='$(VERSION)' --build-arg COMMIT='$(COMMIT)' --build-arg DATE='$(DATE)' -t '$(IMAGE)' .

clean: ## remove what building made (never ./data)
	rm -rf bin

# -count=1: the test cache does not see the databases, the browser or the
# environment, and would repeat an answer that is no longer true.
# -vet=off: lint and quick vet every package, with more checks than go test has.
test: test-deps ## run every test, on SQLite and on PostgreSQL
	scripts/temp-in-memory.sh $(WITH_POSTGRES) go test -vet=off -count=1 -p $(TEST_PACKAGES) -timeout $(TEST_TIMEOUT) $(PKG)

# Packages of one process come from the test cache if nothing changed. Those of test/ start the program, which the
# cache does not see. Go does not link programs again that it finds in bin/quick unchanged.
quick: ## build, vet and test what needs neither PostgreSQL nor Chromium nor Node (on SQLite alone)
	go build -o bin/quick/ ./...
	go vet ./...
	CASTELLAN_TEST_DATABASES=sqlite go test -vet=off $$(go list ./... | grep -vE '$(NOT_QUICK)|/test/')
	CASTELLAN_TEST_DATABASES=sqlite go test -vet=off -count=1 -p $(TEST_PACKAGES) -skip '$(SLOW)' $$(go list ./test/kit ./test/... | grep -vE '$(NOT_QUICK)')

race: test-deps ## the same tests under the race detector, all packages (needs a C compiler)
	CGO_ENABLED=1 scripts/temp-in-memory.sh $(WITH_POSTGRES) go test -race -count=1 -timeout $(TEST_TIMEOUT) $(PKG)

# The first run is of faults in a cluster, as root, for a partition is made of network
# namespaces. The second one holds every other scenario to the times that the service
# promises. The others are of the back office: kills while money moves, files come and
# messages go out, 10⁶ movements beside an oracle, 10⁵ orders of withdrawals, 10⁷ sums.
faults: ## nodes, networks and databases fail under load, in every way the tests know (as root)
	@scripts/ensure-test-deps.sh postgresql iproute2
	$(WITH_POSTGRES) go test -tags faults -count=1 -timeout 590s -run '$(FAULTS)' -skip '$(KILLS)' -p 1 -v ./test/...
	$(WITH_POSTGRES) go test -tags faults -count=1 -timeout 590s -skip '$(FAULTS)' -p 1 ./cmd/castellan ./test/...
	$(WITH_POSTGRES) go test -tags faults -count=1 -timeout 40m -run '$(KILLS)' -p 1 -v ./test/money ./test/faults
	$(WITH_POSTGRES) go test -count=1 -timeout 20m -run AcceptsAProofOnce -v ./test/cluster -stolen 100000
	go test -count=1 -timeout 20m -run 'LedgerAgainstItsModel/memory' -v ./persistence -ledger.steps 10000
	$(WITH_POSTGRES) go test -count=1 -timeout 120m -run WithdrawalModel -v ./domain/money/transaction -orders 100000
	go test -count=1 -timeout 20m -run AgainstDecimal -v ./domain/kit/amount -rapid.checks 10000000

test-starved: test-deps ## ten rounds of the tests on a machine that is short of processors (ROUNDS=10)
	@scripts/test-starved.sh $(ROUNDS) '$(PKG)'

test-deps: $(API_TOOLS) ## install what the tests need: PostgreSQL, Chromium, Node and gateways from Debian, npm packages
	@scripts/ensure-test-deps.sh postgresql chromium nginx haproxy caddy

# What checks the published documents and makes the TypeScript client, as the lock file pins it.
$(API_TOOLS): tools/openapi/package-lock.json
	@scripts/ensure-test-deps.sh nodejs npm
	npm --prefix tools/openapi ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

bench: ## measure, on both databases with full durability
	@scripts/ensure-test-deps.sh postgresql
	go run ./internal/bench $(BENCH)
	go test -run '^$$' -bench . -benchtime 1x -timeout 20m ./internal/sockload
	go test -run '^$$' -bench 'Permission|Endpoint|Fiber|Verify|Sign|Derive|Decide' -benchmem ./http/auth ./http/rest ./domain/kit/token ./domain/access/password
	go test -run '^$$' -bench . -benchmem ./domain/guard/firewall ./actors/ratelimit

console: $(CONSOLE) ## build the operators' console from console/ into web/console (needs Node)
	$(CONSOLE_TYPES)
	console/node_modules/.bin/tsc --noEmit -p console
	go -C tools run ./console ../console ../web/console

CONSOLE_SERVICE ?= http://127.0.0.1:8080

console-dev: $(CONSOLE) ## serve the console from its sources, with reload, beside a running service
	go -C tools run ./console dev ../console $(CONSOLE_SERVICE)

tour: ## make the pictures of docs/console-tour.md from the browser tests
	$(WITH_POSTGRES) scripts/tour.sh

# What the console is made with, as its lock file pins it.
$(CONSOLE): console/package-lock.json $(API_TOOLS)
	npm --prefix console ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

fuzz: ## look for inputs that break a parser, FUZZTIME for each (FUZZTIME=10s)
	@scripts/fuzz.sh $(FUZZTIME)

fuzz-long: ## spoilt requests to the whole program, ten million (HOSTILE=10000000)
	go test -count=1 -timeout 24h -run '^TestHostileRequests$$' -v ./http -hostile.requests $(HOSTILE)

verify: lint security tidy unchanged size ## everything that needs no running: lint, security, tidy modules, generated and golden files, size

lint: $(API_TOOLS) $(CONSOLE) ## vet, gofmt, staticcheck, prettier, ESLint; the English of texts; the files in deploy/; the documents of the interface
	go vet ./...
	go vet -tags faults ./test/...
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; fi
	go tool -modfile=tools/go.mod staticcheck ./...
	console/node_modules/.bin/prettier --log-level warn --check console/src console/eslint.config.js
	$(CONSOLE_TYPES)
	cd console && node_modules/.bin/eslint --max-warnings 0 --cache --cache-strategy content --cache-location node_modules/.cache/eslint/ src
	go -C tools test ./...
	go -C tools run ./deploylint ../deploy
	go -C tools run ./prose ..
	@out=$$({ $(API_LINT); } 2>&1) || { echo "$$out"; exit 1; }
	@out=$$(go tool -modfile=tools/go.mod kube-score score $(KUBE_SCORE) deploy/kubernetes/*.yaml) || { echo "$$out"; exit 1; }

security: ## known vulnerabilities of what is linked (govulncheck), and patterns that are often one (gosec)
	@scripts/vulnerabilities.sh go tool -modfile=tools/go.mod govulncheck ./...
	scripts/gosec.sh

tidy:
	go mod tidy -diff
	go -C tools mod tidy -diff

size: build
	@scripts/size.sh bin/castellan

unchanged:
	@scripts/unchanged.sh $(MAKE) --no-print-directory generate golden console

# Generated protobuf code is committed; generating it is the only step that needs protoc.
generate: ## run the generators (protobuf apart)
	go generate -skip protoc ./...

golden: ## write the golden files
	$(if $(GOLDEN),go test -vet=off -count=1 -run Golden $(GOLDEN) -update)
