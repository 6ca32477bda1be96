package doctor

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"castellan/config"
	"castellan/domain/kit/setup"
)

// judge collects the findings of settings and parameters. It remembers every checked key, so that a test can compare
// them with all keys.
type judge struct {
	found  []setup.Finding
	judged map[string]bool
}

// control adds a finding when a protection is off.
func (j *judge) control(key string, off bool, state, effect, mend string) {
	j.add(off, setup.Finding{Key: key, Severity: setup.Control, State: state, Effect: effect, Mend: mend})
}

// feature adds a finding when a feature is off.
func (j *judge) feature(key string, off bool, state, effect, mend string) {
	j.add(off, setup.Finding{Key: key, Severity: setup.Feature, State: state, Effect: effect, Mend: mend})
}

func (j *judge) add(holds bool, f setup.Finding) {
	j.judged[f.Key] = true
	if holds {
		j.found = append(j.found, f)
	}
}

// judgeSettings judges the configuration alone; it opens nothing.
func judgeSettings(c config.Config) *judge {
	j := &judge{judged: map[string]bool{}}
	j.control("dev", c.Dev, "true", "demo accounts have known passwords, and the development outbox is public",
		"set dev: false for a platform with real accounts")
	j.listener(c)
	j.stores(c)
	j.secondFactor(c)
	j.limits(c)
	j.channels(c)
	j.watching(c)
	j.networks(c)
	j.business(c)
	return j
}

// wide reports whether a network is larger than an operator's proxies or offices need.
func wide(p netip.Prefix) bool {
	if p.Addr().IsPrivate() || p.Addr().IsLoopback() {
		return p.Bits() == 0
	}
	return p.Addr().Is4() && p.Bits() < 16 || p.Addr().Is6() && p.Bits() < 32
}

// firstWide returns the first wide network, as text.
func firstWide(all []netip.Prefix) string {
	if i := slices.IndexFunc(all, wide); i >= 0 {
		return all[i].String()
	}
	return ""
}

func (j *judge) listener(c config.Config) {
	h := c.HTTP
	u, err := url.Parse(h.PublicURL)
	parsed := err == nil
	plain := parsed && u.Scheme == "http" && !config.Loopback(u.Hostname())
	guessed := c.Source("http.public_url") == config.FromDefault
	j.control("http.public_url", plain, "not https", "tokens and codes cross the network in the clear",
		"set http.public_url to the https address that clients use")
	j.feature("http.public_url", guessed && !plain, "derived from http.addr",
		"links in mails and device signatures contain an address that only this machine can reach",
		"set http.public_url to the https address that clients use")
	secure := parsed && u.Scheme == "https"
	broad := firstWide(h.TrustedProxies)
	j.control("http.trusted_proxies", secure && len(h.TrustedProxies) == 0, "empty behind the proxy that ends https",
		"every client has the address of the proxy: limits and rules for one address apply to all clients together",
		"set http.trusted_proxies to the addresses of the proxies")
	j.control("http.trusted_proxies", broad != "", "contains "+broad,
		"clients in that network can forge their address", "list only the addresses of the proxies")
	j.feature("http.country_header", h.CountryHeader != "" && len(h.TrustedProxies) == 0, "without http.trusted_proxies",
		"the header is ignored", "set http.trusted_proxies")
	j.feature("http.cors_origins", len(h.CORSOrigins) == 0, "empty",
		"the endpoints and the socket refuse browser apps of other origins",
		"set http.cors_origins to the origins of your web apps, such as https://app.example.com")
	j.control("http.max_connections_per_ip", h.MaxConnectionsPerIP == 0 && len(h.TrustedProxies) == 0, "0",
		"one address can use all connections", "set http.max_connections_per_ip to 256, or http.trusted_proxies")
	j.feature("http.max_connections_per_ip", h.MaxConnectionsPerIP > 0 && len(h.TrustedProxies) > 0, "set behind a proxy",
		"the limit for one address applies to all clients of the proxy together", "set http.max_connections_per_ip: 0")
}

func (j *judge) stores(c config.Config) {
	file, embedded := c.Database.SQLitePath()
	j.feature("database.url", embedded, "embedded SQLite", "the service runs as one process and cannot form a cluster",
		"set database.url to postgres://user:password@host:port/name for several nodes")
	for _, path := range exposed(c) {
		j.control("database.url", true, "open: "+path, "other users of this machine can read it",
			"remove their permissions: chmod go-rwx")
	}
	beside := embedded && !c.Dev && filepath.Dir(filepath.Clean(file)) == filepath.Dir(filepath.Clean(c.Keys.MasterFile))
	j.control("keys.master_file", beside, "in the folder of the database",
		"a copy of that folder contains the sealed values and the key that decrypts them",
		"move the file to another folder and set keys.master_file")
	cluster := c.Cluster.GossipAddr != ""
	j.feature("files.s3_url", cluster && c.Files.S3URL == "", "empty in a cluster",
		"files.folder must be on a file system that all nodes share",
		"set files.s3_url, or share the folder")
	j.feature("cluster.gossip_addr", !cluster, "empty", "this is a single node: no other node takes over when it stops",
		"set cluster.gossip_addr, cluster.actor_addr, cluster.join and cluster.tls_dir on PostgreSQL")
	j.feature("cluster.join", !cluster && len(c.Cluster.Join) > 0, "without cluster.gossip_addr",
		"this node joins no cluster", "set cluster.gossip_addr")
	j.feature("cluster.join", cluster && len(c.Cluster.Join) == 0, "empty", "this node does not look for other nodes",
		"set cluster.join to the gossip addresses of other nodes")
	j.control("cluster.tls_dir", cluster && c.Cluster.TLSDir == "", "empty",
		"any process that can reach the ports can become a member", "run castellan cluster init and set cluster.tls_dir")
}

// The endpoints that add an address to a book.
const (
	addAddress    = "POST /asset/withdrawal-addresses"
	changeAddress = "PATCH /asset/withdrawal-addresses"
)

func (j *judge) secondFactor(c config.Config) {
	adds, changes := c.MFA.Guarded[addAddress] != "", c.MFA.Guarded[changeAddress] != ""
	const mend = "set mfa.guarded: {" + addAddress + ": ADD_ADDRESS, " + changeAddress + ": CHANGE_ADDRESS}"
	j.control("mfa.guarded", !adds, "lacks "+addAddress,
		"a stolen session can add a withdrawal address without a second factor", mend)
	j.control("mfa.guarded", adds && !changes, "lacks "+changeAddress,
		"a stolen session can replace a known withdrawal address without a second factor", mend)
	j.control("mfa.guard_administration", !c.MFA.GuardAdministration, "false",
		"changes of roles, grants, MFA, firewall rules and parameters need no second factor",
		"set mfa.guard_administration: true")
	j.control("mfa.four_eyes", len(c.MFA.FourEyes) == 0, "empty",
		"a single administrator can adjust balances and decide on transactions",
		"set mfa.four_eyes, for instance to [POST /admin/transaction/adjust-balance]")
	j.control("webauthn.settle", c.WebAuthn.Settle == 0, "0s",
		"a passkey that one code has registered counts as phishing-resistant at once", "set webauthn.settle: 24h")
	j.control("addressbook.waiting_time", c.AddressBook.WaitingTime == 0, "0s",
		"withdrawals to a new address are possible at once", "set addressbook.waiting_time: 24h")
	j.feature(identityURL, c.KYC.IdentityURL == "", "empty",
		"Turkish identity numbers are not verified: a request with useTCKNService gets 503 outside development mode",
		registerMend)
}

// The national register of Turkey. It is a control only where accounts have Turkish identity numbers (judgeIdentities).
const (
	identityURL  = "kyc.identity_url"
	registerMend = "set kyc.identity_url to the URL of the national register"
)

// owaspArgon2 lists the least memory in KiB for a number of passes (OWASP Password Storage Cheat Sheet, argon2id).
var owaspArgon2 = []struct{ time, memoryKiB int }{{1, 47104}, {2, 19456}, {3, 12288}, {4, 9216}, {5, 7168}}

func (j *judge) limits(c config.Config) {
	l, p := c.Limits, c.Password
	strong := slices.ContainsFunc(owaspArgon2, func(o struct{ time, memoryKiB int }) bool {
		return p.Argon2Time >= o.time && p.Argon2MemoryKiB >= o.memoryKiB
	})
	for _, key := range []string{"password.argon2_memory_kib", "password.argon2_time"} {
		// Both keys are judged together and reported once.
		j.control(key, !strong && key == "password.argon2_memory_kib",
			fmt.Sprintf("%d KiB, passes: %d, below the OWASP minimum", p.Argon2MemoryKiB, p.Argon2Time),
			"stolen password hashes are cheap to guess",
			"set password.argon2_memory_kib: 19456 with password.argon2_time: 2, or an equal pair")
	}
	j.control("limits.enabled", !l.Enabled, "false", "the number of started challenges and of messages is not limited",
		"set limits.enabled: true")
	broad := firstWide(l.ExemptCIDRs)
	j.control("limits.exempt_cidrs", broad != "", "contains "+broad,
		"wrong passwords per address are not limited in that network", "list only the networks of your offices")
	j.control("limits.country_per_day", len(l.CountryPerDay) == 0, "empty",
		"no country has an SMS budget: the cost of fraud with premium numbers is not limited",
		"set limits.country_per_day, such as 90=5000")
}

func (j *judge) channels(c config.Config) {
	j.feature("mail.host", !c.Mail.Configured(), "empty",
		"no mail is sent: the method MAIL and the password reset do not work, and owners get no notices",
		"set mail.host, mail.from, and where needed mail.username and mail.password")
	j.feature("sms.url", !c.SMS.Configured(), "empty",
		"no SMS is sent: the method SMS and the password reset do not work",
		"set sms.url with sms.params or sms.body, or sms.preset")
	j.feature("push.enabled", !c.Push.Enabled, "false", "devices are not notified of pending challenges",
		"set push.enabled: true")
	j.feature("push.contact", c.Push.Enabled && c.Push.Contact == "", "empty",
		"some push services refuse senders without a contact", "set push.contact to mailto:ADDRESS")
	j.feature("push.webhook_secret", c.Push.Enabled && c.Push.WebhookSecret == "", "empty",
		"devices are not notified by webhook", "set push.webhook_secret to whsec_ and base64 of 32 random bytes")
	j.control("push.allow_private", c.Push.Enabled && c.Push.AllowPrivate && len(c.Push.Hosts) == 0,
		"true without push.hosts", "a user who enrols a device can make this node call any address of its network",
		"set push.hosts, or push.allow_private: false")
	j.control("notices.off", len(c.Notices.Off) > 0, strings.Join(c.Notices.Off, " "),
		"account owners are not notified of these events", "remove the kinds from notices.off")
}

func (j *judge) watching(c config.Config) {
	unseen := c.Log.Level == "warn" || c.Log.Level == "error"
	j.control("audit.anchor_url", c.Audit.AnchorURL == "", "empty",
		"a person who can write to the database can truncate the audit trail undetected, unless the log is kept elsewhere",
		"set audit.anchor_url and audit.anchor_secret")
	j.control("log.level", unseen && c.Audit.AnchorURL == "", c.Log.Level+" without audit.anchor_url",
		"audit checkpoints are stored only in the database", "set log.level: info, or audit.anchor_url")
	j.feature("metrics.addr", c.Metrics.Addr == "", "empty", "there are no metrics and therefore no alerts",
		"set metrics.addr, such as 127.0.0.1:9090")
	j.feature("tracing.endpoint", c.Tracing.Endpoint == "", "empty", "requests are not traced",
		"set tracing.endpoint to the address of a collector")
	j.feature("tracing.sample_ratio", c.Tracing.Endpoint != "" && c.Tracing.SampleRatio == 0, "0",
		"only requests that a trusted proxy selects are traced", "set tracing.sample_ratio above 0")
}

func (j *judge) networks(c config.Config) {
	bypass := slices.ContainsFunc(c.Firewall.BypassCIDRs, func(p netip.Prefix) bool { return p.Bits() == 0 })
	broad := firstWide(c.Firewall.BypassCIDRs)
	j.control("firewall.bypass_cidrs", bypass, "contains a network of all addresses",
		"no firewall rule applies to any request", "list only the addresses of operators")
	j.control("firewall.bypass_cidrs", !bypass && broad != "", "contains "+broad,
		"no firewall rule applies to that network", "list only the addresses of operators")
	j.control("firewall.keys_per_rule", c.Firewall.KeysPerRule == 0, "0",
		"the number of counters of a rate limit is not limited: many addresses can fill the memory",
		"set firewall.keys_per_rule: 200000")
	j.feature("geo.mmdb_file", c.Geo.MMDBFile == "", "empty",
		"countries come from the built-in table, which is as old as this version",
		"set geo.mmdb_file to a file in MaxMind's format that is kept up to date")
	j.control("geo.allow_unknown", c.Geo.AllowUnknown, "true",
		"an address of an unknown country passes every country filter", "set geo.allow_unknown: false")
	j.control("geo.allow_private", c.Geo.AllowPrivate, "true", "private addresses pass every country filter",
		"set geo.allow_private: false")
}

func (j *judge) business(c config.Config) {
	j.feature("registration.enabled", !c.Registration.Enabled, "false",
		"users cannot sign up: POST /auth/register answers 404", "set registration.enabled: true, or add accounts with "+
			"POST /integration/users")
	j.feature("rates.url", c.Rates.URL == "", "empty", "exchange rates are not fetched: limits and balances use "+
		"only imported rates", "set rates.url, or run castellan rates import regularly")
	p := c.Providers
	j.feature("providers.accounts", len(p.Accounts)+len(p.Files) == 0, "empty",
		"balances at other platforms are not read", "set providers.exchanges and providers.accounts, or providers.files")
	j.feature("accounting.url", c.Accounting.URL == "", "empty", "journals are stored but not posted",
		"set accounting.url and accounting.secret, or read them with GET /integration/accounting/{job}")
}

// exposed returns the folder and the files of an embedded database that other users than their owner may open; none in
// development mode.
func exposed(cfg config.Config) (paths []string) {
	file, embedded := cfg.Database.SQLitePath()
	if !embedded || cfg.Dev {
		return nil
	}
	for _, path := range []string{filepath.Dir(file), file, file + "-wal", file + "-shm"} {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			paths = append(paths, path)
		}
	}
	return paths
}
