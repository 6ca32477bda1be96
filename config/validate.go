package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// faults returns all faults of a resolved configuration. It opens nothing: missing files and hosts are detected later.
// It skips the rules about broken keys, so that one unreadable value does not cause several faults.
func (c Config) faults(broken map[string]bool) Faults {
	k := &checker{c: c, broken: broken}
	k.bounds()
	k.listeners()
	k.http()
	k.stores()
	k.checkTimeOrder()
	k.mfa()
	k.addressBook()
	k.tags()
	k.mail()
	k.sms()
	k.push()
	k.tracing()
	k.cluster()
	k.files()
	k.refuse(!headerPattern.MatchString(c.Rates.KeyHeader), "rates.key_header", "is not the name of a header")
	k.accounting()
	k.providers()
	k.kyc()
	k.transactions()
	k.guard()
	return k.faults
}

type checker struct {
	c      Config
	broken map[string]bool
	faults Faults
}

// refuse adds a fault of the key if bad holds; others are further keys of the rule.
func (k *checker) refuse(bad bool, key, problem string, others ...string) {
	if !bad || k.broken[key] || slices.ContainsFunc(others, func(o string) bool { return k.broken[o] }) {
		return
	}
	k.faults = append(k.faults, Fault{Key: key, Where: k.c.origins[key].where, Problem: problem})
}

// named writes another key of a rule, with its source if it was set.
func (k *checker) named(key string) string {
	if o, ok := k.c.origins[key]; ok {
		return key + " (" + o.where + ")"
	}
	return key
}

// bounds checks the bounds in the tags.
func (k *checker) bounds() {
	for _, e := range table {
		switch p := e.field(&k.c).(type) {
		case *int:
			k.number(e, int64(*p))
		case *time.Duration:
			k.number(e, int64(*p))
		case *string:
			if e.oneof != nil && !slices.Contains(e.oneof, *p) {
				words := slices.DeleteFunc(slices.Clone(e.oneof), func(w string) bool { return w == "" })
				k.refuse(true, e.key, fmt.Sprintf("%s is not one of %s", quote(*p), strings.Join(words, ", ")))
			}
		}
	}
}

func (k *checker) number(e entry, n int64) {
	if !e.bounded {
		return
	}
	if n < e.min || n > e.max {
		k.refuse(true, e.key, fmt.Sprintf("%s is outside %s to %s", e.show(n), e.show(e.min), e.show(e.max)))
		return
	}
	if !k.c.Dev && n < e.floor {
		k.refuse(true, e.key, fmt.Sprintf("%s is below %s, the minimum outside development mode", e.show(n), e.show(e.floor)),
			"dev")
	}
}

// listeners checks the listening addresses. Development mode publishes logins and codes, so other machines must not
// reach it. In a container the listener has to be open; there http/edge refuses requests to other names than loopback.
func (k *checker) listeners() {
	c := k.c
	for _, l := range []struct{ key, addr string }{{"http.addr", c.HTTP.Addr}, {"metrics.addr", c.Metrics.Addr},
		{"limits.rls_addr", c.Limits.RLSAddr}} {
		if l.key != "http.addr" && l.addr == "" {
			continue
		}
		host, err := splitAddr(l.addr, true)
		if err != nil {
			k.refuse(true, l.key, fmt.Sprintf("%s %v", quote(l.addr), err))
			continue
		}
		published := c.DevContainer && l.key == "http.addr"
		k.refuse(c.Dev && !Loopback(host) && !published, l.key,
			fmt.Sprintf("%s is not a loopback address, and %s allows nothing else", quote(l.addr), k.named("dev")), "dev")
	}
	host, _ := splitAddr(c.Limits.RLSAddr, true)
	k.refuse(c.Limits.RLSAddr != "" && c.Limits.RLSCertFile == "" && !Loopback(host), "limits.rls_addr",
		"outside loopback, service keys require TLS: set limits.rls_cert_file")
	k.refuse((c.Limits.RLSCertFile == "") != (c.Limits.RLSKeyFile == ""), "limits.rls_cert_file",
		"must be set with "+k.named("limits.rls_key_file"))
	same := c.Metrics.Addr != "" && c.Metrics.Addr == c.HTTP.Addr && !strings.HasSuffix(c.HTTP.Addr, ":0")
	k.refuse(same, "metrics.addr", "must differ from "+k.named("http.addr"), "http.addr")
	k.refuse(c.DevContainer && !c.Dev, "dev_container", "true is accepted only with dev: true", "dev")
	k.refuse(c.DevContainer && c.Source("http.public_url") != FromDefault, "http.public_url",
		"must not be set with "+k.named("dev_container")+": development mode is for this machine only", "dev_container")
	k.refuse(!c.Limits.Enabled && !c.Dev, "limits.enabled", "false is accepted only with dev: true", "dev")
	k.refuse(c.Geo.AllowPrivate && !c.Dev, "geo.allow_private", "true is accepted only with dev: true", "dev")
	k.refuse(c.Geo.CDNURL != "" && !plainURL(c.Geo.CDNURL), "geo.cdn_url", wantPlainURL)
}

var (
	pathPattern   = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$`)
	headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	schemePattern = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)
)

func (k *checker) http() {
	h := k.c.HTTP
	u, err := url.Parse(h.PublicURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || !validHost(u.Hostname()):
		// A default made from a faulty address is the address's fault.
		k.refuse(k.c.Source("http.public_url") != FromDefault, "http.public_url",
			"must be http://host or https://host, with port and path where needed", "http.addr")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		k.refuse(true, "http.public_url", "must not hold a user, a query or a fragment")
	}
	k.refuse(h.BasePath != "" && !pathPattern.MatchString(h.BasePath), "http.base_path",
		"must look like /name or /name/name")
	k.refuse(h.CountryHeader != "" && !headerPattern.MatchString(h.CountryHeader), "http.country_header",
		"is not the name of a header")
	for _, p := range h.TrustedProxies {
		k.refuse(p.Bits() == 0, "http.trusted_proxies", p.String()+" would let every client choose its own address")
	}
	k.origins("http.cors_origins", h.CORSOrigins)
	k.origins("webauthn.origins", k.c.WebAuthn.Origins)
}

func originProblem(o string) string {
	if o == "*" || o == "null" {
		return "would let any page act for a user: list the origins"
	}
	u, err := url.Parse(o)
	if err != nil || !schemePattern.MatchString(u.Scheme) || !validHost(u.Hostname()) || u.Scheme+"://"+u.Host != o {
		return "is not an origin: want scheme://host or scheme://host:port, without a path"
	}
	return ""
}

var (
	tenantPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	issuerPattern = regexp.MustCompile(`^[!-~]{1,128}$`)
	// A colon parts issuer and account in the URL that an app reads.
	// The length is counted apart: as a pattern, 64 of such a class take megabytes.
	totpIssuerPattern = regexp.MustCompile(`^[\pL\pN][^:\pC]*$`)
	prefixPattern     = regexp.MustCompile(`^[1-9][0-9]{0,6}$`)
)

func (k *checker) stores() {
	c := k.c
	k.refuse(strings.TrimSpace(c.DataDir) == "", "data_dir", "must name a folder")
	if p := databaseProblem(c.Database.URL.Reveal()); p != "" {
		k.refuse(true, "database.url", p)
	}
	k.refuse(!tenantPattern.MatchString(c.Tenant.ID), "tenant.id",
		"must be 1 to 64 letters, digits, dots, dashes or underscores, starting with a letter or digit")
	k.refuse(!issuerPattern.MatchString(c.Tokens.Issuer), "tokens.issuer",
		"must be 1 to 128 visible ASCII characters without spaces")
	k.refuse(c.Firewall.AppID == "" || len(c.Firewall.AppID) > 64, "firewall.app_id", "must be 1 to 64 bytes long")
	// RFC 9106: a hash needs 8 blocks of 1 KiB for each lane.
	p := c.Password
	k.refuse(p.Argon2MemoryKiB < 8*p.Argon2Parallelism, "password.argon2_memory_kib",
		fmt.Sprintf("%d is below 8 for each of %s: at least %d", p.Argon2MemoryKiB, k.named("password.argon2_parallelism"),
			8*p.Argon2Parallelism), "password.argon2_parallelism")
}

// checkTimeOrder checks keys whose order matters.
func (k *checker) checkTimeOrder() {
	c := k.c
	k.refuse(c.Tokens.SessionTTL < c.Tokens.XAuthTTL, "tokens.session_ttl",
		"must not be shorter than "+k.named("tokens.x_auth_ttl"), "tokens.x_auth_ttl")
	k.refuse(c.Sessions.TTL < c.Tokens.XAuthTTL && c.Sessions.TTL != c.Tokens.SessionTTL, "sessions.ttl",
		"must not be shorter than "+k.named("tokens.x_auth_ttl"), "tokens.x_auth_ttl", "tokens.session_ttl")
	k.refuse(c.Limits.WrongPasswordsDay < c.Limits.WrongPasswords, "limits.wrong_passwords_day",
		"must not be below "+k.named("limits.wrong_passwords"), "limits.wrong_passwords")
	for _, p := range c.Limits.ExemptCIDRs {
		k.refuse(p.Bits() == 0, "limits.exempt_cidrs", p.String()+" would permit unlimited password attempts")
	}
	k.refuse(c.Limits.DestinationPerDay < c.Limits.DestinationPerHour, "limits.destination_per_day",
		"must not be below "+k.named("limits.destination_per_hour"), "limits.destination_per_hour")
	k.refuse(c.Outbox.RetryMax < c.Outbox.RetryMin, "outbox.retry_max",
		"must not be shorter than "+k.named("outbox.retry_min"), "outbox.retry_min")
	_, err := time.LoadLocation(c.Language.TimeZone)
	k.refuse(err != nil || c.Language.TimeZone == "" || c.Language.TimeZone == "Local", "language.time_zone",
		quote(c.Language.TimeZone)+" is not a time zone such as Europe/Istanbul")
	// A lease that ends during a send lets another node send the same message.
	k.refuse(c.Outbox.Lease <= c.Mail.Timeout, "outbox.lease", "must be longer than "+k.named("mail.timeout"),
		"mail.timeout")
	k.refuse(c.Outbox.Lease <= c.SMS.Timeout, "outbox.lease", "must be longer than "+k.named("sms.timeout"), "sms.timeout")
	k.refuse(c.Outbox.Lease <= c.Push.Timeout, "outbox.lease", "must be longer than "+k.named("push.timeout"),
		"push.timeout")
	for _, prefix := range slices.Sorted(maps.Keys(c.Limits.CountryPerDay)) {
		k.refuse(!prefixPattern.MatchString(prefix), "limits.country_per_day",
			quote(prefix)+" is not a dialling prefix: 1 to 7 digits without + or 00")
		n := c.Limits.CountryPerDay[prefix]
		k.refuse(n < 0 || n > 100_000_000, "limits.country_per_day", fmt.Sprintf("%d for %s is outside 0 to 100000000", n,
			prefix))
	}
}

var (
	guardedPattern = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) /[^\s?#]*$`)
	actionPattern  = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,63}$`) // D-MFA-05
)

// mfa checks the form of mfa.guarded and mfa.four_eyes; whether the endpoints exist and
// may be named there is for the table of endpoints to say (D-2FA-28, D-EXT-08).
func (k *checker) mfa() {
	k.refuse(!totpIssuerPattern.MatchString(k.c.MFA.TOTPIssuer) || utf8.RuneCountInString(k.c.MFA.TOTPIssuer) > 64,
		"mfa.totp_issuer", "must be 1 to 64 characters, starting with a letter or digit, without a colon")
	for _, endpoint := range slices.Sorted(maps.Keys(k.c.MFA.Guarded)) {
		action := k.c.MFA.Guarded[endpoint]
		k.refuse(!guardedPattern.MatchString(endpoint), "mfa.guarded",
			quote(endpoint)+" is not an endpoint such as POST /auth/password")
		k.refuse(!actionPattern.MatchString(action), "mfa.guarded",
			quote(action)+" is not an action code: 2 to 64 capital letters, digits and underscores")
	}
	for _, endpoint := range k.c.MFA.FourEyes {
		k.refuse(!guardedPattern.MatchString(endpoint), "mfa.four_eyes",
			quote(endpoint)+" is not an endpoint such as POST /auth/password")
	}
}

func (k *checker) mail() {
	m := k.c.Mail
	k.refuse((m.Username == "") != (m.Password == ""), "mail.password",
		"must be set if and only if "+k.named("mail.username")+" is", "mail.username")
	if m.From != "" {
		a, err := mail.ParseAddress(m.From)
		k.refuse(err != nil || a.Address != m.From, "mail.from",
			quote(m.From)+" is not a bare mail address (the name goes into mail.from_name)")
	}
	if !m.Configured() {
		return
	}
	k.refuse(!validHost(m.Host), "mail.host", quote(m.Host)+" is not a host name or IP address (the port goes into "+
		"mail.port)")
	k.refuse(m.TLS == "none" && !Loopback(m.Host), "mail.tls",
		"none is accepted only for a loopback host: codes and the password would cross the network in the clear", "mail.host")
	k.refuse(m.TLS == "none" && m.Username != "", "mail.tls",
		"with none, no password is sent: leave "+k.named("mail.username")+" empty", "mail.username")
	k.refuse(m.From == "", "mail.from", "must be set with "+k.named("mail.host"), "mail.host")
}

func (k *checker) sms() {
	s := k.c.SMS
	k.refuse((s.Username == "") != (s.Password == ""), "sms.password",
		"must be set if and only if "+k.named("sms.username")+" is", "sms.username")
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		k.refuse(!headerPattern.MatchString(name), "sms.headers", quote(name)+" is not the name of a header")
	}
	for _, code := range s.SuccessCodes {
		k.refuse(code < 200 || code > 399, "sms.success_codes", fmt.Sprintf("%d is outside 200 to 399", code))
	}
	_, err := regexp.Compile(s.SuccessPattern)
	k.refuse(err != nil, "sms.success_pattern", "is not a regular expression")
	k.refuse(s.SuccessPattern != "" && s.SuccessField != "", "sms.success_pattern",
		"only one of sms.success_pattern and sms.success_field may be set", "sms.success_field")
	k.refuse((s.SuccessField == "") != (len(s.SuccessValues) == 0), "sms.success_values",
		"must be set if and only if "+k.named("sms.success_field")+" is", "sms.success_field")
	if s.URL != "" {
		u, err := url.Parse(s.URL.Reveal())
		switch {
		case err != nil || u.Scheme != "http" && u.Scheme != "https" || !validHost(u.Hostname()):
			k.refuse(true, "sms.url", "is not a valid https URL")
		case u.User != nil:
			k.refuse(true, "sms.url", "must not hold a user: use sms.username and sms.password")
		case u.Scheme == "http" && !Loopback(u.Hostname()):
			k.refuse(true, "sms.url", "must be https unless its host is loopback: codes would cross the network in the clear")
		}
	}
	switch {
	case s.Preset == "twilio":
		k.refuse(s.Username == "" || s.Sender == "", "sms.preset",
			"twilio needs sms.username (account SID), sms.password (auth token) and sms.sender", "sms.username", "sms.sender")
		k.refuse(s.Method != "POST", "sms.method", "must be POST for the preset twilio", "sms.preset")
		k.refuse(s.Format != "form" || len(s.Params) > 0 || s.Body != "", "sms.preset",
			"twilio defines its own form: do not set sms.format, sms.params and sms.body", "sms.format", "sms.params",
			"sms.body")
	case s.URL != "":
		k.refuse(len(s.Params) == 0 && s.Body == "", "sms.params", "sms.params or sms.body must say what to send", "sms.body")
		k.refuse(len(s.Params) > 0 && s.Body != "", "sms.body", "only one of sms.params and sms.body may be set",
			"sms.params")
		k.refuse(s.Method == "GET" && (s.Format == "json" || s.Body != ""), "sms.method",
			"GET carries sms.params in the form encoding only", "sms.format", "sms.body")
		k.refuse(s.Body != "" && s.Format == "json" && !json.Valid([]byte(s.Body.Reveal())), "sms.body",
			"is not JSON: placeholders stand inside quoted strings", "sms.format")
	}
}

func (k *checker) push() {
	p := k.c.Push
	if p.Contact != "" && p.Contact != k.c.HTTP.PublicURL {
		to, isMail := strings.CutPrefix(p.Contact, "mailto:")
		a, err := mail.ParseAddress(to)
		u, errURL := url.Parse(p.Contact)
		isURL := errURL == nil && u.Scheme == "https" && validHost(u.Hostname()) && u.User == nil
		k.refuse(!isURL && !(isMail && err == nil && a.Address == to), "push.contact",
			quote(p.Contact)+" is neither mailto: with a mail address nor an https URL")
	}
	k.webhookSecrets("push.webhook_secret", p.WebhookSecret)
	for _, h := range p.Hosts {
		k.refuse(!validHost(strings.TrimPrefix(h, "*.")), "push.hosts",
			quote(h)+" is not a host name, nor *. and a host name")
	}
}

func (k *checker) tracing() {
	t := k.c.Tracing
	k.refuse(t.SampleRatio < 0 || t.SampleRatio > 1, "tracing.sample_ratio", fmt.Sprintf("%g is outside 0 to 1",
		t.SampleRatio))
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		k.refuse(!headerPattern.MatchString(name), "tracing.headers", quote(name)+" is not the name of a header")
	}
	if t.Endpoint == "" {
		return
	}
	u, err := url.Parse(t.Endpoint)
	k.refuse(!plainURL(t.Endpoint), "tracing.endpoint", wantPlainURL)
	k.refuse(err == nil && u.Scheme == "http" && len(t.Headers) > 0 && !Loopback(u.Hostname()), "tracing.headers",
		"must not cross the network in the clear: "+k.named("tracing.endpoint")+" is not https", "tracing.endpoint")
}

func (k *checker) cluster() {
	l := k.c.Cluster
	address := func(key, addr string) {
		host, err := splitAddr(addr, false)
		if err != nil {
			k.refuse(true, key, fmt.Sprintf("%s %v", quote(addr), err))
			return
		}
		if key == "cluster.join" {
			return
		}
		ip, isIP := parseIP(host)
		k.refuse(host == "" || isIP && ip.IsUnspecified(), key,
			quote(addr)+" must be an address at which other nodes reach this one")
		k.refuse(l.TLSDir == "" && k.c.Dev && !Loopback(host), key, "outside loopback, a cluster requires cluster.tls_dir",
			"cluster.tls_dir")
	}
	if l.GossipAddr == "" {
		return
	}
	_, sqlite := k.c.Database.SQLitePath()
	// Every process of the machine reaches loopback, and a member is believed.
	k.refuse(l.TLSDir == "" && !k.c.Dev, "cluster.tls_dir", "must be set with "+k.named("cluster.gossip_addr")+
		": a cluster without keys requires dev: true on loopback", "dev")
	k.refuse(sqlite, "cluster.gossip_addr", "a cluster requires PostgreSQL, and "+k.named("database.url")+" is SQLite",
		"database.url")
	address("cluster.gossip_addr", l.GossipAddr)
	if l.ActorAddr == "" {
		k.refuse(true, "cluster.actor_addr", "must be set with "+k.named("cluster.gossip_addr"))
	} else {
		address("cluster.actor_addr", l.ActorAddr)
		k.refuse(l.ActorAddr == l.GossipAddr, "cluster.actor_addr", "must differ from "+k.named("cluster.gossip_addr"),
			"cluster.gossip_addr")
	}
	for _, a := range l.Join {
		address("cluster.join", a)
	}
}
