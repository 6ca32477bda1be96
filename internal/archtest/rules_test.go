package archtest

import "testing"

func TestRules(t *testing.T) {
	for _, c := range []struct {
		dir, imp string
		allowed  bool
	}{
		{"domain/factor/challenge", "time", true},
		{"domain/factor/challenge", "crypto/ed25519", true},
		{"domain/factor/challenge", "castellan/domain/kit/fault", true},
		{"domain/factor/challenge", "castellan/persistence", false},
		{"domain/factor/challenge", "castellan/internal/pgtest", false},
		{"domain/factor/challenge", "github.com/golang-jwt/jwt/v5", false},
		{"domain/kit/token", "github.com/golang-jwt/jwt/v5", false},
		{"domain/kit/jose", "github.com/golang-jwt/jwt/v5", true},
		{"domain/kit/token", "golang.org/x/crypto/argon2", false},
		{"domain/account/password/argon2id", "golang.org/x/crypto/blake2b", true},
		{"domain/account/password", "golang.org/x/text/unicode/norm", true},
		{"domain/account/password", "golang.org/x/textual", false},
		{"domain/money/addressbook", "golang.org/x/text/unicode/norm", true},
		{"domain/money/addressbook", "github.com/mr-tron/base58", false},
		{"domain/money/addressbook/address", "github.com/mr-tron/base58", true},
		{"domain/money/addressbook/address", "github.com/btcsuite/btcd/btcutil", false},
		{"domain/proof/totp", "github.com/pquerna/otp/totp", true},
		{"domain/kit/picture", "golang.org/x/image/webp", true},
		{"domain/kit/picture", "golang.org/x/image/tiff", false},
		{"domain/money/rate", "github.com/shopspring/decimal", true},
		{"domain/kit/amount", "github.com/shopspring/decimal", false},

		{"config", "github.com/knadh/koanf/v2", true},
		{"config", "castellan/domain/kit/fault", false},
		{"persistence", "castellan/domain/factor/challenge", true},
		{"persistence", "castellan/actors", false},
		{"persistence", "github.com/uptrace/bun/dialect/pgdialect", true},
		{"persistence", "github.com/gofiber/fiber/v2", false},
		{"persistence", "castellan/persistence/engine", true},
		{"persistence/engine", "castellan/domain/kit/commit", true},
		{"persistence/engine", "castellan/domain/factor/challenge", false},
		{"persistence/engine", "castellan/persistence", false},
		{"actors", "github.com/asynkron/protoactor-go/actor", true},
		{"actors", "github.com/asynkron/protoactor-go/remote", false},
		{"actors", "github.com/asynkron/protoactor-go/cluster", true},
		{"actors", "google.golang.org/protobuf/proto", true},
		{"actors", "castellan/actors/message", true},
		{"actors", "castellan/cluster", true},
		{"actors", "castellan/persistence", false},
		{"cluster", "github.com/hashicorp/memberlist", true},
		{"cluster", "castellan/actors", false},
		{"outbound/mail", "github.com/wneessen/go-mail", true},
		{"outbound/mail", "castellan/domain/delivery/outbox", true},
		{"outbound/mail", "castellan/config", false},

		{"client", "castellan/client/internal/fault", true},
		{"client", "castellan/domain/kit/fault", false},
		{"client", "castellan/domain/session/session", false},
		{"client", "castellan/http/wire", false},
		{"examples/wallet", clientModule, true},
		{"examples/wallet", "castellan/domain/kit/fault", false},
		{"examples/wallet", "castellan/domain/money/ledger", false},
		{"examples/wallet", "github.com/gobwas/ws", false},

		{"http", "castellan/http/login", true},
		{"http/login", "castellan/http/rest", true},
		{"http/login", "castellan/http/factor/mfa", false},
		{"http/login", "castellan/http", false},
		{"http/login", "castellan/http/login/page", true},
		{"http/rest", "castellan/http/auth", false},
		{"http/auth", "castellan/http/wire", true},
		{"http/wire", "castellan/http/rest", true},
		{"http/login", "castellan/http/wire", true},
		{"http/system", "castellan/web", true},
		{"http/rest", "castellan/http/login", false},
		{"http/login", "castellan/domain/factor/challenge", true},
		{"http/login", "castellan/persistence", false},
		{"http/login", "castellan/actors", false},
		{"http/edge", "github.com/gofiber/fiber/v2", true},
		{"http/edge", "github.com/gofiber/fiberish", false},
		{"http/rest", "github.com/gofiber/fiber/v2", false},
		{"http/rest", "github.com/valyala/fasthttp", false},
		{"http/rest", "github.com/danielgtaylor/huma/v2", true},
		{"http/rest", "castellan/http/edge", false},
		{"http/edge", "castellan/http/rest", true},
		{"http/edge", "castellan/http/auth", false},
		{"http/auth", "castellan/http/edge", true},
		{"http/edge", "github.com/prometheus/client_golang/prometheus", false},
		{"web", "castellan/domain/kit/fault", false},
		{"web", "embed", true},

		{"web/webtest", "github.com/chromedp/chromedp", true},
		{"web", "castellan/web/webtest", false},
		{"cmd/castellan", "castellan/internal/pgtest", false},
		{"internal/bench", "castellan/internal/pgtest", true},
		{"domain/proof/device/devicetest", "castellan/domain/proof/device", true},
		{"domain/proof/device/devicetest", "castellan/internal/pgtest", true},
		{"domain/proof/device", "castellan/domain/proof/device/devicetest", false},

		{"cmd/castellan", "castellan/persistence", true},
		{"cmd/castellan", "github.com/spf13/cobra", true},
		{"internal/bench", "castellan/cmd/castellan", true},
		{"domain/money/ledger", "castellan/domain/account/user", true},
		{"domain/account/user", "castellan/domain/money/ledger", false},
		{"domain/account/user", "castellan/domain/session/session", false},
		{"domain/session/session", "castellan/domain/account/user", true},
		{"http/account/user", "castellan/domain/session/session", true},
		{"http/account/user", "castellan/domain/money/level", false},
		{"http/guard/firewall", "castellan/domain/people/kyc", false},
		{"http/people/kyc", "castellan/domain/guard/firewall", true},
		{"persistence/money", "castellan/persistence/people", false},
		{"persistence/money", "castellan/persistence/record", true},
		{"newfolder", "fmt", false},
		{"cmd/castellan", "castellan", false},
		{"cmd/castellan", "castellan/test/access", false},
		{"http/session/session", "castellan/test/access", false},
		{"internal/bench", "castellan/test/access", false},
		{"test/access", "castellan/internal/blackbox", true},
		{"test/office", "castellan/cmd/app", true},
	} {
		why := mayImport(c.dir, c.imp)
		if (why == "") != c.allowed {
			t.Errorf("%s importing %s: got %q, want allowed %v", c.dir, c.imp, why, c.allowed)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		dir, name string
		fine      bool
	}{
		{"domain/factor/challenge", "challenge", true},
		{"domain/factor/challenge", "challenge_test", true},
		{"domain/factor/challenge", "machine", false},
		{"http", "httpapi", true},
		{"http", "http", false},
		{"cmd/castellan", "main", true},
		{"domain/utils", "utils", false},
		{"internal/log", "log", false},
		{"domain", "domain", false},
	} {
		if why := badName(c.dir, c.name); (why == "") != c.fine {
			t.Errorf("%s in %s: got %q, want fine %v", c.name, c.dir, why, c.fine)
		}
	}
}

func TestAreas(t *testing.T) {
	for dir, fine := range map[string]bool{
		"domain/money/ledger": true, "domain/ledger": false, "http/rest": true, "http/login": false, "http": true,
		"persistence": true, "persistence/record": true, "persistence/user": false, "cmd/app": true,
	} {
		if why := misplaced(dir); (why == "") != fine {
			t.Errorf("%s: got %q, want fine %v", dir, why, fine)
		}
	}
}

func TestMachinePath(t *testing.T) {
	const home = "/ro" + "ot/.config"
	for text, found := range map[string]bool{
		`"` + home + `"`:       true,
		"dir = " + home:        true,
		"see /wo" + "rk/x.md":  true,
		"net/work/x":           false,
		"a framework/x":        false,
		"https://a.b/work/x":   false,
		"/workers/ and /roots": false,
	} {
		if machinePath.MatchString(text) != found {
			t.Errorf("%q: want found %v", text, found)
		}
	}
}
