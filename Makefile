# `make` alone lists the targets. The two to know: `make run` and `make test`.

# The tag of a release names its version; any other build is named by its commit too.
RELEASE := $(shell cat VERSION)
VERSION ?= $(shell git describe --tags --exact-match --dirty --match 'v$(RELEASE)' 2>/dev/null | sed 's/^v//' | grep . || \
	echo "$(RELEASE)-$$(git describe --always --dirty --exclude '*' 2>/dev/null || echo dev)")
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
IMAGE   ?= castellan:$(VERSION)

# What test and race look at; narrow it while working: make test PKG=./domain/...
# The packages with the most work come first: one that ran alone at the end would leave processors idle.
PKG          ?= ./test/console ./http ./test/office ./test/access ./test/faults ./http/money ./http/people ./web ./actors/ratelimit ./...
# Passed on to internal/testrun: -again runs failed tests once more, alone.
TESTRUN      ?=
# Tests of nodes, networks and databases that fail.
FAULTS       = ^Test(Cluster|Faults|Database)
# Money, files and messages while the processes are killed, up to 100 times.
KILLS        = ^TestFaults(Promotions|Money|Adjust|Uploads|Journal|Broadcast|Hostile|Wallet)
ROUNDS      ?= 10
# How long make fuzz works on each target, and how many requests make fuzz-long sends.
FUZZTIME    ?= 10s
HOSTILE     ?= 10000000
# Passed on to castellan demo.
DEMO         ?=
# The address of the demo shop; make run accepts its page and its gateway.
SHOP         ?= 127.0.0.1:8085
# Passed on to the benches: make bench BENCH="-rounds 3"
BENCH        ?=

# One form of build for vet, tests, linters and the program: what one of them compiled, the others read from the cache,
# also in another checkout. grpcnotrace: gRPC's traces bring html/template, which keeps the linker from leaving out
# methods. nopgxregisterdefaulttypes: persistence/engine names the types that are used.
export GOFLAGS     := $(strip $(GOFLAGS) -trimpath -tags=grpcnotrace,nopgxregisterdefaulttypes)
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
# What it is built and checked from.
CONSOLE_FILES = ^(console|web/console|tools/console)/|^docs/openapi\.json$$
# The types of the interface, for the console's sources; they are not committed.
CONSOLE_TYPES = tools/openapi/node_modules/.bin/openapi-typescript docs/openapi.json -o console/src/api.d.ts >/dev/null
API_LINT  = cd tools/openapi && \
	REDOCLY_TELEMETRY=off npx --no redocly lint --max-problems 50 ../../docs/openapi.json && \
	npx --no spectral lint --ruleset spectral.yaml --fail-severity warn ../../docs/openapi.json ../../docs/asyncapi.json

# The packages whose tests own golden files: those that define the flag -update.
GOLDEN = $(shell grep -rlE --include='*_test.go' 'flag\.Bool(Var)?\([^)]*"update"' . | xargs -r -n 1 dirname | sort -u)

.DEFAULT_GOAL := help
.PHONY: help run demo shop cluster build sbom image release clean quick test test-all test-browser race test-starved test-deps
.PHONY: sim fuzz fuzz-long faults faults-cluster faults-times faults-kills faults-restores faults-models verify lint
.PHONY: lint-console lint-api lint-tools lint-deploy deploy-run security tidy size unchanged generate golden console
.PHONY: js console-dev tour bench

help: ## list the targets
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Start

run: build ## build and start it here in development mode, http://localhost:8080 (two minutes the first time, then 3 s)
	@CASTELLAN_DEV="$${CASTELLAN_DEV-true}" \
	CASTELLAN_METRICS_ADDR="$${CASTELLAN_METRICS_ADDR-127.0.0.1:8081}" \
	CASTELLAN_HTTP_TRUSTED_PROXIES="$${CASTELLAN_HTTP_TRUSTED_PROXIES-127.0.0.1}" \
	CASTELLAN_HTTP_CORS_ORIGINS="$${CASTELLAN_HTTP_CORS_ORIGINS-http://$(SHOP)}" \
	exec ./bin/castellan serve

demo: build ## fill the database of make run, while it does not run (20 s; DEMO="--users 5000")
	@CASTELLAN_DEV="$${CASTELLAN_DEV-true}" ./bin/castellan demo $(DEMO)

shop: ## open the demo shop beside make run, after make demo: a page and its upstream behind the guard (examples/shop)
	go run ./examples/shop -listen $(SHOP)

cluster: build ## run three nodes on a throw-away PostgreSQL behind one address
	@scripts/ensure-test-deps.sh postgresql
	go run ./internal/localcluster ./bin/castellan

# VCS stamping is ours (LDFLAGS): Go's own fails in a checkout of another user.
build: ## build ./bin/castellan, one static binary
	@scripts/build.sh -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/castellan ./cmd/castellan

sbom: build ## write the bill of materials of ./bin/castellan beside it (CycloneDX; two minutes the first time)
	go -C tools run ./sbom ../bin/castellan '$(VERSION)' ../cmd/castellan/THIRD_PARTY_NOTICES ../bin/castellan.cdx.json

image: sbom ## build the container image; its bill of materials is bin/castellan.cdx.json
	docker build --build-arg VERSION='$(VERSION)' --build-arg COMMIT='$(COMMIT)' --build-arg DATE='$(DATE)' -t '$(IMAGE)' .

release: $(API_TOOLS) ## make the files of a release of the committed tree in bin/release (ten minutes; needs Node)
	@scripts/release.sh

clean: ## remove what building made (never ./data)
	rm -rf bin

##@ Test

quick: ## build, vet and test on SQLite, without PostgreSQL, Chromium and Node (one minute if little changed)
	@scripts/quick.sh

test: ## test every package on SQLite and PostgreSQL (8 minutes, 11 the first time); PKG=./test/access is a part
	@scripts/temp-in-memory.sh go run ./internal/testrun $(TESTRUN) $(PKG)

test-all: $(API_TOOLS) ## what make test leaves out, before a release (hours, in parts; PART="browser kills" is some)
	@scripts/test-all.sh $(PART)

test-browser: ## the part of test-all in a browser: every screen, size, look and language (ten minutes)
	@scripts/temp-in-memory.sh go run ./internal/testrun $(TESTRUN) -part browser ./test/console ./web

race: ## the tests of make test under the race detector (an hour; needs a C compiler)
	@CGO_ENABLED=1 scripts/temp-in-memory.sh go run ./internal/testrun -race $(PKG)

# sim stops at the first seed that goes wrong, and prints the last events of a key. It prints a line every 100 seeds. A
# seed takes 0.1 s of CPU and has about 19,000 requests. SEED=n SEEDS=1 repeats one. Further settings are flags of
# internal/ratesim/sim_test.go: SIM="-crowd" (short stalls besides), SIM="-off 2" (without a part; constants of type
# Part), SIM="-faults 20 -limit 1000".
sim: ## simulate the limiter of a cluster: SEED=1 SEEDS=1000 NODES=3 KEYS=60 SIM="-crowd" (a second for each seed)
	go test -count=1 -timeout 0 -run InSimulation -v ./internal/ratesim -seed $(or $(SEED),1) -seeds $(or $(SEEDS),1000) \
		-nodes $(or $(NODES),3) -keys $(or $(KEYS),60) $(SIM)

# faults-cluster needs root, because a partition is made of network namespaces. faults-times holds every other scenario
# to the times that the service promises. The others are of the back office: kills while money moves, files come and
# messages go out, 50 restores of each kind, 10⁶ movements beside an oracle, 10⁵ orders of withdrawals, 10⁷ sums, 10⁶
# sets of rules, 10⁵ steps of sums of the money policy and 1,000 rounds of 64 claims beside a block.
faults: $(addprefix faults-,cluster times kills restores models) ## nodes, networks and databases that fail (hours; as root)

faults-cluster:
	@scripts/ensure-test-deps.sh postgresql iproute2
	$(WITH_POSTGRES) go test -tags faults -count=1 -timeout 60m -run '$(FAULTS)' -skip '$(KILLS)' -p 1 -v ./test/...

faults-times:
	$(WITH_POSTGRES) go test -tags faults -count=1 -timeout 60m -skip '$(FAULTS)' -p 1 ./cmd/castellan ./test/...

faults-kills:
	$(WITH_POSTGRES) go test -tags faults -count=1 -timeout 40m -run '$(KILLS)' -p 1 -v ./test/office ./test/faults
	$(WITH_POSTGRES) go test -count=1 -timeout 20m -run AcceptsAProofOnce -v ./test/faults -stolen 100000

faults-restores:
	$(WITH_POSTGRES) go test -count=1 -timeout 120m -run Restored -v ./test/office -restores 50

faults-models:
	go test -count=1 -timeout 20m -run LedgerAgainstItsModel/decisions -v ./persistence/money -ledger.steps 10000
	$(WITH_POSTGRES) go test -count=1 -timeout 120m -run WithdrawalModel -v ./domain/money/transaction -orders 100000
	go test -count=1 -timeout 60m -run JudgeIsTheJoin -v ./domain/money/policy -policies 1000000
	$(WITH_POSTGRES) go test -count=1 -timeout 240m -run 'WideSumsInRandom|ClaimsBeside|ScriptedAttacks|HotGate|Bulk' -v \
		./domain/money/transaction -sums.steps 100000 -claims.rounds 1000 -attacks 10000 -gate.requests 6400 -bulk 1000
	go test -count=1 -run XXX -fuzz FuzzTag -fuzztime 100000x ./domain/money/addressbook/address
	go test -count=1 -run XXX -fuzz FuzzCanonical -fuzztime 100000x ./domain/money/addressbook/address
	go test -count=1 -timeout 20m -run InAnyOrder -v ./actors/ratelimit -orders 200
	go test -tags faults -count=1 -timeout 40m -run Planted -v ./internal/ratesim
	go test -count=1 -timeout 20m -run AgainstDecimal -v ./domain/kit/amount -rapid.checks 10000000

test-starved: test-deps ## the tests on a machine that is short of processors (ten rounds of half an hour; ROUNDS=10)
	@scripts/test-starved.sh $(ROUNDS) '$(PKG)'

test-deps: $(API_TOOLS) ## install what the tests need: PostgreSQL, PgBouncer, Chromium, Node and gateways from Debian, npm packages
	@scripts/ensure-test-deps.sh postgresql pgbouncer chromium nginx haproxy caddy

fuzz: ## look for inputs that break a parser, FUZZTIME for each (FUZZTIME=10s)
	@scripts/fuzz.sh $(FUZZTIME)

fuzz-long: ## spoilt requests to the whole program, ten million (hours; HOSTILE=10000000)
	go test -count=1 -timeout 24h -run '^TestHostileRequests$$' -v ./http -hostile.requests $(HOSTILE)

##@ Check

verify: ## everything that needs no running (four minutes); CHECK_ALL=1 leaves nothing out
	@$(MAKE) --no-print-directory -j2 -Oline lint security
	@$(MAKE) --no-print-directory tidy unchanged size

# What depends on few files and costs minutes runs if one of them changed (scripts/changed.sh).
lint: ## vet, formats, staticcheck, the English of texts; what else changed: console, API documents, deploy/, tools/
	go vet ./... castellan/client/...
	go vet -tags faults ./test/...
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (gofmt -w):"; echo "$$files"; exit 1; fi
	go tool -modfile=tools/go.mod staticcheck ./... castellan/client/...
	go -C tools run ./prose ..
	@! scripts/changed.sh "ESLint and Prettier" '$(CONSOLE_FILES)' || $(MAKE) --no-print-directory lint-console
	@! scripts/changed.sh "redocly and spectral" '^docs/(openapi|asyncapi)\.json$$|^tools/openapi/' || $(MAKE) --no-print-directory lint-api
	@! scripts/changed.sh "the tests of tools/" '^tools/' || $(MAKE) --no-print-directory lint-tools
	@! scripts/changed.sh "deploylint and kube-score" '^(deploy|tools)/' || $(MAKE) --no-print-directory lint-deploy
	@! scripts/changed.sh deployrun '^(deploy|tools/deployrun)/|^Dockerfile$$' || $(MAKE) --no-print-directory deploy-run

lint-console: $(CONSOLE)
	console/node_modules/.bin/prettier --log-level warn --check console/src console/eslint.config.js
	$(CONSOLE_TYPES)
	cd console && node_modules/.bin/eslint --max-warnings 0 --cache --cache-strategy content --cache-location node_modules/.cache/eslint/ src
	go -C tools test ./console/...

lint-api: $(API_TOOLS)
	@out=$$({ $(API_LINT); } 2>&1) || { echo "$$out"; exit 1; }

lint-tools: $(CONSOLE)
	$(CONSOLE_TYPES)
	go -C tools test ./...

lint-deploy:
	go -C tools run ./deploylint ../deploy
	@for overlay in postgresql sqlite; do \
		out=$$(go -C tools run ./deploylint -build ../deploy kustomize/$$overlay | \
			go tool -modfile=tools/go.mod kube-score score $(KUBE_SCORE) -) || { echo "$$out"; exit 1; }; \
	done
	@out=$$(go tool -modfile=tools/go.mod kube-score score $(KUBE_SCORE) deploy/kubernetes/castellan.yaml) || { echo "$$out"; exit 1; }
	@scripts/ensure-test-deps.sh systemd
	@out=$$(systemd-analyze security --offline=true --threshold=15 deploy/systemd/*.service) || { echo "$$out"; exit 1; }

# It makes namespaces, so it needs root.
deploy-run:
	@scripts/ensure-test-deps.sh postgresql nginx iproute2
	@go -C tools build -o ../bin/deployrun ./deployrun
	@if [ "$$(id -u)" -eq 0 ]; then bin/deployrun .; else sudo -n env PATH="$$PATH" GOFLAGS="$$GOFLAGS" bin/deployrun .; fi

security: ## known vulnerabilities of what is linked (govulncheck), and patterns that are often one (gosec)
	@! scripts/changed.sh govulncheck '^(go\.(mod|sum)|tools/)' || \
		scripts/vulnerabilities.sh go tool -modfile=tools/go.mod govulncheck ./...
	@scripts/gosec.sh

tidy:
	go mod tidy -diff
	go -C client mod tidy -diff
	go -C tools mod tidy -diff

size: build
	@scripts/size.sh bin/castellan

# A test without Node compares the console with its sources (web/console); building it again is slower.
unchanged:
	@scripts/unchanged.sh $(MAKE) --no-print-directory generate golden
	@! scripts/changed.sh "building the console" '$(CONSOLE_FILES)' || \
		scripts/unchanged.sh $(MAKE) --no-print-directory console

# Generated protobuf code is committed; generating it is the only step that needs protoc.
generate: ## run the generators (protobuf apart)
	go -C tools run ./subset ..
	go generate -skip protoc ./...

golden: ## write the golden files
	$(if $(GOLDEN),go test -vet=off -count=1 -run Golden $(GOLDEN) -update)

# What checks the published documents and makes the TypeScript client, as the lock file pins it.
$(API_TOOLS): tools/openapi/package-lock.json
	@scripts/ensure-test-deps.sh nodejs npm
	npm --prefix tools/openapi ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

##@ Console and browsers (need Node)

console: $(CONSOLE) ## build the operators' console from console/ into web/console
	$(CONSOLE_TYPES)
	console/node_modules/.bin/tsc --noEmit -p console
	go -C tools run ./console ../console ../web/console

js: $(API_TOOLS) ## make the package of the client modules, bin/js and bin/castellan-client-*.tgz
	node client/js/pack.mjs bin/js
	npm pack --loglevel=error --pack-destination bin ./bin/js

CONSOLE_SERVICE ?= http://127.0.0.1:8080

console-dev: $(CONSOLE) ## serve the console from its sources, with reload, beside a running service
	go -C tools run ./console dev ../console $(CONSOLE_SERVICE)

tour: ## make the pictures of docs/console-tour.md from the browser tests
	$(WITH_POSTGRES) scripts/tour.sh

# What the console is made with, as its lock file pins it.
$(CONSOLE): console/package-lock.json $(API_TOOLS)
	npm --prefix console ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

##@ Measure

bench: ## measure on both databases with full durability, medians of several rounds (BENCH="-rounds 3")
	@scripts/ensure-test-deps.sh postgresql
	go run ./internal/bench $(BENCH)
	go test -run '^$$' -bench 'Permission|Endpoint|Verify|Sign|Derive|Decide' -benchmem ./http/auth ./http/edge ./domain/kit/token ./domain/account/password
	go test -run '^$$' -bench . -benchmem ./domain/guard/firewall ./actors/ratelimit
