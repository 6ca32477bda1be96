package sms

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"castellan/domain/delivery/message/placeholder"
	"castellan/outbound/fetch"
)

// The encodings of a body.
const (
	formFormat = "form" // application/x-www-form-urlencoded
	jsonFormat = "json"
)

// twilio is the preset of Twilio's message resource: the form fields To, From and Body, authenticated by account and
// token. The operator sets the URL.
const twilio = "twilio"

// Config describes the gateway. Templates may contain {{to}} (+905…), {{digits}} (the same without the plus), {{text}},
// {{from}} and {{key}}; headers may contain all of them but {{text}}.
type Config struct {
	URL string // https, or http to a loopback address
	// Method is POST, PUT or GET. GET moves the form into the query, where the gateway's own logs may keep the text:
	// avoid it.
	Method string
	Format string // form or json
	Preset string // "" or twilio; it replaces Format, Fields and Body

	// Fields is the form, or a flat JSON object of strings: name to template.
	Fields map[string]string
	// Body is a complete JSON document instead; each string in it is a template.
	Body string

	Headers            map[string]string // name to template
	Username, Password string            // basic authentication
	From               string            // the sender's number or name

	SuccessCodes []int // empty: every 2xx
	// Success is what a body must hold besides, for gateways that refuse with a status of success.
	Success Success
	// CAFile holds the only trusted certificates (PEM) for the gateway; "" trusts those of the system.
	CAFile  string
	Timeout time.Duration    // of one Send
	Now     func() time.Time // for a Retry-After that is a date
}

const idempotencyHeader = "Idempotency-Key"

// The placeholders of bodies. Headers accept all but text, which may have more than one line.
var (
	bodyNames   = []string{"to", "digits", "text", "from", "key"}
	headerNames = []string{"to", "digits", "from", "key"}
)

type headerTemplate struct {
	name  string
	value []placeholder.Segment
}

// ownHeaders are set by this package or by the protocol.
var ownHeaders = []string{"Host", "Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Te",
	"Upgrade"}

// prepare checks cfg and compiles its templates.
func prepare(cfg Config) (*Sender, *x509.CertPool, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if cfg.Preset == twilio {
		if cfg.Fields != nil || cfg.Body != "" || cfg.Format != formFormat || cfg.Method != http.MethodPost {
			fault("preset %s defines its own method, format and fields", twilio)
		}
		if cfg.Username == "" || cfg.From == "" {
			fault("preset %s needs username, password and from", twilio)
		}
		cfg.Fields = map[string]string{"To": "{{to}}", "From": "{{from}}", "Body": "{{text}}"}
	}
	if cfg.Method == http.MethodGet && cfg.Format != formFormat {
		fault("method GET goes with format %s", formFormat)
	}
	s := &Sender{cfg: cfg}
	var err error
	if s.target, err = parseTarget(cfg.URL); err != nil {
		fault("url: %w", err)
	}
	if s.body, err = compileBody(cfg); err != nil {
		faults = append(faults, err)
	}
	if strings.ContainsFunc(cfg.From, unicode.IsControl) {
		fault("from must not hold control characters")
	}
	if (cfg.Username == "") != (cfg.Password == "") || strings.Contains(cfg.Username, ":") {
		fault("username and password must be set together, and a username has no colon")
	}
	if s.header, err = s.compileHeaders(); err != nil {
		faults = append(faults, err)
	}
	for _, code := range cfg.SuccessCodes {
		if code < 200 || code > 299 {
			fault("success_codes: %d is not between 200 and 299", code)
		}
	}
	if s.sign, err = cfg.Success.compile(); err != nil {
		faults = append(faults, err)
	}
	roots, err := fetch.Roots(cfg.CAFile, false)
	if err != nil {
		fault("ca_file: %w", err)
	}
	return s, roots, errors.Join(faults...)
}

// parseTarget never quotes the address: its query may contain a secret.
func parseTarget(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, errors.New("not an absolute address")
	case u.User != nil:
		return nil, errors.New("use username and password for credentials")
	case strings.Contains(raw, "#"):
		return nil, errors.New("a fragment is never sent")
	case u.Scheme == "https", u.Scheme == "http" && fetch.Loopback(u.Hostname()):
		return u, nil
	}
	return nil, errors.New("must be https, or http to a loopback address")
}

func (s *Sender) compileHeaders() ([]headerTemplate, error) {
	var out []headerTemplate
	var faults []error
	seen := map[string]bool{}
	add := func(name, template string) {
		canonical := http.CanonicalHeaderKey(name)
		value, err := placeholder.Parse(template, headerNames...)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("headers %.40q: %w", name, err))
		case !isToken(name) || slices.Contains(ownHeaders, canonical):
			faults = append(faults, fmt.Errorf("headers %.40q cannot be set", name))
		case strings.ContainsFunc(template, unicode.IsControl):
			faults = append(faults, fmt.Errorf("headers %.40q contains control characters", name))
		case seen[canonical]:
			faults = append(faults, fmt.Errorf("headers %.40q is set twice", name))
		case canonical == "Authorization" && s.cfg.Username != "":
			faults = append(faults, fmt.Errorf("headers %.40q and username exclude each other", name))
		}
		seen[canonical] = true
		out = append(out, headerTemplate{canonical, value})
	}
	add(idempotencyHeader, "{{key}}")
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Headers)) {
		add(name, s.cfg.Headers[name])
	}
	return out, errors.Join(faults...)
}

// isToken reports whether s is a field name of RFC 9110 (section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}
