// Package system serves the endpoints about the service itself, for operators, integrators and
// machines: health, public keys and documents. Development mode adds the demo page and the
// outbox (decision D-EXT-01, extensions).
package system

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/web"
)

// Keys serves the public keys: those that sign tokens (RFC 7517), and the one
// with which a device subscribes at its push service.
type Keys struct {
	JWKS  func() []byte
	VAPID func() (string, error) // an uncompressed point of P-256 in base64url
}

func (k Keys) Endpoints() []rest.Endpoint {
	return rest.Section("Extensions",
		rest.Get("/.well-known/jwks.json", "Get the public keys that verify tokens", rest.NoAuth, k.jwks).
			Binary("application/jwk-set+json").Shaped("JwkSet").
			Doc("getTokenKeys",
				"A JSON Web Key Set (RFC 7517). A new key is published before it signs tokens, so the response can be cached "+
					"as Cache-Control allows."),
		rest.Get("/.well-known/vapid.json", "Get the public key for push subscriptions",
			rest.NoAuth, k.vapid).
			Doc("getPushKey",
				"The applicationServerKey for PushManager.subscribe in a browser (RFC 8292)."),
	).Extended()
}

// jwks may be cached no longer than the time between the publication of a key and its first signature.
func (k Keys) jwks(context.Context, rest.Caller, rest.None) (rest.Reply[rest.None], error) {
	age := strconv.Itoa(int(keyring.Notice.Seconds()))
	return rest.Reply[rest.None]{Raw: k.JWKS(), ContentType: "application/jwk-set+json",
		Headers: []rest.Header{{Name: "Cache-Control", Value: "public, max-age=" + age}}}, nil
}

type pushKey struct {
	PublicKey string `json:"publicKey" doc:"the applicationServerKey of a push subscription (RFC 8292), in base64url"`
}

func (k Keys) vapid(context.Context, rest.Caller, rest.None) (rest.Reply[pushKey], error) {
	key, err := k.VAPID()
	if err != nil {
		return rest.Reply[pushKey]{}, err
	}
	return rest.Reply[pushKey]{Body: pushKey{key},
		Headers: []rest.Header{{Name: "Cache-Control", Value: "public, max-age=300"}}}, nil
}

// Options of the routes that are not endpoints of the interface.
type Options struct {
	// Ready makes a real round trip; nil means that requests can be served.
	Ready    func(ctx context.Context) error
	Draining func() bool
	// The documents; each is made at its first request. With one of the Tags, OpenAPI returns only the part of the tag.
	OpenAPI  func(tag string) []byte
	AsyncAPI func() []byte
	Tags     []string
	// Dev adds the demo page and the outbox.
	Dev *Dev
	// RelatedOrigins are the origins whose pages may use the passkeys of this service; empty: only its own.
	RelatedOrigins []string
	// BasePath is the prefix of every path; Version is the version of the program; PublicURL is the URL that the
	// signatures of devices name.
	BasePath, Version, PublicURL string
}

// Mount adds the routes to a server.
func Mount(s *edge.Server, o Options) {
	mountHealth(s, o)
	mountConsole(s, o)
	mountAuthenticator(s, o)
	document := func(path string, body func() []byte) {
		made := once(body)
		s.Raw(fiber.MethodGet, path, func(c *fiber.Ctx) error { return made().send(c, revalidate) })
	}
	mountOpenAPI(s, o)
	document("/asyncapi.json", o.AsyncAPI)
	if len(o.RelatedOrigins) > 0 { // WebAuthn Level 3, section 5.11
		document("/.well-known/webauthn", func() []byte {
			b, _ := json.Marshal(map[string][]string{"origins": o.RelatedOrigins}) // strings never fail
			return b
		})
	}
	csp := policy
	if o.Dev != nil {
		csp = devPolicy
	}
	page(s, csp, "/docs", "docs.html")
	page(s, policy, "/setup", "setup.html") // of the link of castellan setup-link
	s.Raw(fiber.MethodGet, "/flags/:file", flag)
	s.Raw(fiber.MethodGet, "/static/:file", func(c *fiber.Ctx) error {
		name := c.Params("file")
		if strings.HasSuffix(name, ".html") { // pages have their own addresses, and their own checks
			return fault.New(fault.NotFound, "no such file")
		}
		if name == workerFile {
			c.Set("Service-Worker-Allowed", o.BasePath+authenticatorPath)
		}
		return serve(c, csp, name)
	})
	s.Raw(fiber.MethodGet, "/static/"+web.Version+"/:file", module(o.Version))
	if o.Dev != nil {
		o.Dev.mount(s)
	}
}

// once makes a document at its first use.
func once(body func() []byte) func() *file {
	return sync.OnceValue(func() *file { return newFile(body(), fiber.MIMEApplicationJSON) })
}

// mountOpenAPI serves the document, and with ?tag=NAME the part of one tag.
func mountOpenAPI(s *edge.Server, o Options) {
	whole := once(func() []byte { return o.OpenAPI("") })
	parts := map[string]func() *file{}
	for _, tag := range o.Tags {
		parts[tag] = once(func() []byte { return o.OpenAPI(tag) })
	}
	s.Raw(fiber.MethodGet, "/openapi.json", func(c *fiber.Ctx) error {
		made := whole
		if c.Context().QueryArgs().Has("tag") {
			if made = parts[c.Query("tag")]; made == nil {
				return fault.Invalid("tag", "must be one of %s", strings.Join(o.Tags, ", "))
			}
		}
		return made().send(c, revalidate)
	})
}

// Cache-Control of files: the time for which clients may cache a flag; other files are revalidated each time.
const (
	flagAge    = "public, max-age=2592000"
	revalidate = "no-cache"
)

// embedded are the pages, their parts and the flags.
var embedded files

// flag serves the flag of a country as <code>.svg, <code>.png or, the same
// picture, <code>.ios.png (D-GEO-03). The code is in either case.
func flag(c *fiber.Ctx) error {
	code, kind, _ := strings.Cut(c.Params("file"), ".")
	if kind == "ios.png" {
		kind = "png"
	}
	code, kind = strings.ToUpper(code), "."+kind
	f := embedded.get("flags/"+code+kind, func() ([]byte, string, bool) { return web.Flag(code, kind) })
	if f == nil {
		return fault.New(fault.NotFound, "no such flag")
	}
	c.Set(fiber.HeaderContentSecurityPolicy, policy)
	return f.send(c, flagAge)
}

// policy of pages: everything from this server, nothing inline. In development mode
// the sockets are named for browsers in which 'self' is HTTP alone; a source cannot
// name an IPv6 address.
const (
	policy    = policyTo + policyEnd
	devPolicy = policyTo + devSockets + policyEnd

	devSockets = " ws://localhost:* ws://127.0.0.1:*"

	policyTo = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"

	policyEnd = "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

func page(s *edge.Server, policy, path, name string, checks ...func(c *fiber.Ctx) error) {
	s.Raw(fiber.MethodGet, path, func(c *fiber.Ctx) error {
		for _, check := range checks {
			if err := check(c); err != nil {
				return err
			}
		}
		return serve(c, policy, name)
	})
}

// module serves the client modules at the address of their version. In a release their contents never change.
func module(version string) fiber.Handler {
	age := revalidate
	if version == web.Version {
		age = "public, max-age=31536000, immutable"
	}
	return func(c *fiber.Ctx) error {
		name := c.Params("file")
		if !strings.HasPrefix(name, "castellan-") {
			return fault.New(fault.NotFound, "no such module")
		}
		f := embedded.get(name, func() ([]byte, string, bool) { return web.Page(name) })
		if f == nil {
			return fault.New(fault.NotFound, "no such module")
		}
		return f.send(c, age)
	}
}

func serve(c *fiber.Ctx, policy, name string) error {
	f := embedded.get(name, func() ([]byte, string, bool) { return web.Page(name) })
	if f == nil {
		return fault.New(fault.NotFound, "no such page")
	}
	c.Set(fiber.HeaderContentSecurityPolicy, policy)
	return f.send(c, revalidate)
}
