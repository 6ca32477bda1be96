// Package archtest enforces the import rules of docs/architecture.md, section 3. Its test reads every Go file of the
// project and fails on the first import, package name or path that the plan does not permit.
//
// The one idea: the plan's table is data here. A wrong rule is changed here and in the plan in the same commit. Start
// reading at layers.
//
// Files are parsed, not compiled. So the rules also apply to files that a build tag excludes, and a package that does
// not compile cannot hide another.
package archtest

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

const module = "castellan"

// clientModule is the module in the folder client; scripts/client-path.sh renames it.
const clientModule = "castellan/client"

// layer defines what the packages of one top-level folder may import besides the standard library and their own folder.
// Test files have no limits, nor have packages made for tests, which no other package may import.
type layer struct {
	ours  []string // folders of this module
	their []string // modules of others, without a version; "*" is every one
}

var layers = map[string]layer{
	"domain": {},
	"config": {their: []string{"github.com/knadh/koanf", "go.yaml.in/yaml"}},
	"persistence": {
		ours:  []string{"domain"},
		their: []string{"github.com/uptrace/bun", "github.com/jackc/pgx", "modernc.org/sqlite"},
	},
	"actors": {
		ours: []string{"domain", "cluster"},
		their: []string{"google.golang.org/protobuf", "github.com/asynkron/protoactor-go/cluster",
			"github.com/asynkron/protoactor-go/actor"},
	},
	"cluster": {
		their: []string{"github.com/asynkron/protoactor-go", "google.golang.org/protobuf", "github.com/hashicorp/memberlist",
			"github.com/orcaman/concurrent-map"}, // of protoactor's registry, whose size is its variable
	},
	"outbound": {ours: []string{"domain"}, their: []string{"*"}},
	"http": {
		ours: []string{"domain", "web"},
		their: []string{"github.com/gofiber/fiber", "github.com/gofiber/contrib/websocket", "github.com/gobwas/ws",
			"github.com/valyala/fasthttp", "github.com/danielgtaylor/huma"},
	},
	"web": {},
	// A separate module. The errors and the signature of a device are generated into client/internal.
	"client": {their: []string{"github.com/gobwas/ws", "github.com/golang-jwt/jwt"}},
	// A neighbour has the packages of a client, and money in its wire format.
	"examples": {ours: []string{"client", "domain/kit/amount"}},
	"cmd":      {ours: []string{"*"}, their: []string{"*"}},
	"test":     {ours: []string{"*"}, their: []string{"*"}},
	"internal": {ours: []string{"*"}, their: []string{"*"}},
	"tools":    {their: []string{"*"}}, // a separate module
}

// fewerOurs names the packages that may import less of this module than their folder. The engine of persistence imports
// no slice.
var fewerOurs = map[string][]string{
	"persistence/engine": {"domain/kit/commit", "domain/kit/fault"},
}

// exceptions lets one package use a library that implements its rule: a password hash is argon2id over normalised text.
// No other package of its layer may, and the package hides these libraries.
var exceptions = map[string][]string{
	"domain/account/password":          {"golang.org/x/text"},
	"domain/account/password/argon2id": {"golang.org/x/crypto/blake2b", "golang.org/x/sys/cpu"},
	// The functions of other services.
	"domain/account/password/legacy": {"golang.org/x/crypto/blowfish", "golang.org/x/crypto/scrypt"},
	// The comparison form of names is based on NFC, and domains of mail addresses have A-labels.
	"domain/account/user": {"golang.org/x/text/unicode/norm", "golang.org/x/net/idna"},
	// File systems compare names in a normal form.
	"domain/gate/gateway": {"golang.org/x/text/unicode/norm"},
	// The name of an entry is counted in NFC; an address contains its checksum.
	"domain/money/addressbook": {"golang.org/x/text/unicode/norm"},
	"domain/money/addressbook/address": {
		"golang.org/x/crypto/sha3",
		"github.com/btcsuite/btcd/btcutil/bech32",
		"github.com/mr-tron/base58",
	},
	"domain/proof/totp": {"github.com/pquerna/otp"},
	// The contexts of joiners (RFC 5892, A.1 and A.2).
	"domain/kit/legible": {"golang.org/x/net/idna"},
	// A picture needs its decoder, and a limit on the use of the process.
	"domain/kit/picture": {"golang.org/x/image/webp", "golang.org/x/sync/semaphore"},
	// The permitted HTML.
	"domain/kit/richtext": {"github.com/microcosm-cc/bluemonday"},
	"domain/money/rate":   {"github.com/shopspring/decimal"},
	// The signatures of others, and whether a key is a valid point for a proof of possession.
	"domain/kit/jose": {"github.com/golang-jwt/jwt/v5", "filippo.io/edwards25519"},
	// An authenticator writes CBOR; a passkey is what it contains.
	"domain/factor/passkey": {"github.com/fxamacker/cbor"},
	// Envoy's rate limit service is gRPC.
	"http/guard/rls": {"google.golang.org/grpc", "google.golang.org/protobuf/encoding/protowire"},
}

// narrower names the packages that may use fewer libraries than their folder. The kit converts values to bytes and
// back; only the edge uses the web server.
var narrower = map[string][]string{
	"http/rest": {"github.com/danielgtaylor/huma", "github.com/go-json-experiment/json/jsontext"},
}

// httpShared are the packages below http that every section of the interface uses; each may import those before it. All
// others are sections, which never import each other; only the root, httpapi, imports them all.
var httpShared = []string{"http/rest", "http/wire", "http/edge", "http/auth", "http/socket"}

// badNames would hide a package of the standard library, or have no meaning.
var badNames = map[string]bool{
	"log": true, "errors": true, "context": true, "time": true, "utils": true, "util": true,
	"common": true, "helpers": true, "helper": true, "models": true, "types": true,
	"domain": true, // the rules are in its slices
}

// testSupport reports whether a package is written for tests: the suite of a contract, a browser driver, a test
// database. Its name decides, such as webtest.
func testSupport(dir string) bool { return strings.HasSuffix(dir, "test") }

// machinePath finds a path that exists on one machine only.
var machinePath = regexp.MustCompile(`(?:^|[\s"'` + "`" + `=:(,])/(?:work|root)/`)

// mayImport decides whether the package in folder dir of this module may import
// imp. It answers "" or the reason why not.
func mayImport(dir, imp string) string {
	top, _, _ := strings.Cut(dir, "/")
	rule, known := layers[top]
	if !known {
		return "the folder " + top + " has no rule: add it to the plan and to this test"
	}
	if imp == module {
		return "the root of the module holds no package"
	}
	if below, is := strings.CutPrefix(imp, clientModule); is && (below == "" || below[0] == '/') {
		imp = module + "/client" + below
	}
	local, ours := strings.CutPrefix(imp, module+"/")
	switch {
	case testSupport(dir):
		return "" // free, like a test file
	case ours && top != "test" && within(local, []string{"test"}):
		return "the tests from outside stay outside"
	case ours && testSupport(local) && top != "internal" && top != "test":
		return "the program must not import packages for tests"
	case ours:
		return mayImportOurs(dir, top, rule, local)
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	their := rule.their
	if n, ok := narrower[dir]; ok {
		their = n
	}
	if within(imp, their) || within(imp, exceptions[dir]) {
		return ""
	}
	return top + " does not use this library"
}

func mayImportOurs(dir, top string, rule layer, local string) string {
	to, _, _ := strings.Cut(local, "/")
	if only, is := fewerOurs[dir]; is && !within(local, only) {
		return dir + " does not know " + local
	}
	if why := againstOrder(dir, local); why != "" {
		return why
	}
	if to != top && !within(local, rule.ours) {
		return top + " does not know " + to
	}
	if top != "http" || to != "http" || dir == "http" {
		return ""
	}
	shared := slices.IndexFunc(httpShared, func(p string) bool { return within(dir, []string{p}) })
	switch {
	case within(local, []string{dir}),
		shared < 0 && within(local, httpShared),
		shared >= 0 && within(local, httpShared[:shared]):
		return ""
	case shared >= 0:
		return "a package that sections share imports only packages below it"
	default:
		return "a section of the interface never knows another"
	}
}

// within reports whether p is one of the roots, or below one.
func within(p string, roots []string) bool {
	for _, r := range roots {
		if r == "*" || p == r || strings.HasPrefix(p, r+"/") {
			return true
		}
	}
	return false
}

// badName answers "" or what is wrong with a package's name. The folder http
// holds package httpapi, so that net/http keeps its name.
func badName(dir, name string) string {
	name = strings.TrimSuffix(name, "_test")
	switch {
	case badNames[name]:
		return "the name hides a standard package, or says nothing"
	case dir == "http" && name != "httpapi":
		return "the folder http holds package httpapi"
	case dir != "http" && name != path.Base(dir) && name != "main":
		return "the package is not called like its folder"
	}
	return ""
}
