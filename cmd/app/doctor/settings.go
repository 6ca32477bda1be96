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
	j.control("dev", c.Dev, "true", "demo accounts with known passwords and the development outbox are open",
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
	j.feature("http.public_url", guessed && !plain, "guessed from http.addr",
		"links of mails and the signatures of devices name an address that only this machine reaches",
		"set http.public_url to the https address that clients use")
	secure := parsed && u.Scheme == "https"
	broad := firstWide(h.TrustedProxies)
	j.control("http.trusted_proxies", secure && len(h.TrustedProxies) == 0, "empty behind the proxy that ends https",
		"every client has the address of the proxy: bounds and rules for one address hold for all clients together",
		"set http.trusted_proxies to the addresses of the proxies")
	j.control("http.trusted_proxies", broad != "", "holds "+broad,
		"clients of that network choose the address by which they are judged", "name the addresses of the proxies alone")
	j.feature("http.country_header", h.CountryHeader != "" && len(h.TrustedProxies) == 0, "without http.trusted_proxies",
		"the header is never believed", "set http.trusted_proxies")
	j.feature("http.cors_origins", len(h.CORSOrigins) == 0, "empty",
		"browser apps of other origins are refused, by the endpoints and by the socket",
		"set http.cors_origins to the origins of your web apps, such as https://app.example.com")
	j.control("http.max_connections_per_ip", h.MaxConnectionsPerIP == 0 && len(h.TrustedProxies) == 0, "0",
		"one address can take all connections", "set http.max_connections_per_ip to 256, or http.trusted_proxies")
	j.feature("http.max_connections_per_ip", h.MaxConnectionsPerIP > 0 && len(h.TrustedProxies) > 0, "set behind a proxy",
		"the bound of one address holds for all clients of the proxy together", "set http.max_connections_per_ip: 0")
}

func (j *judge) stores(c config.Config) {
	file, embedded := c.Database.SQLitePath()
	j.feature("database.url", embedded, "embedded SQLite", "the service runs as one process and cannot form a cluster",
		"set database.url to postgres://user:password@host:port/name for several nodes")
	for _, path := range exposed(c) {
		j.control("database.url", true, "open: "+path, "other users of this machine may read it",
			"take their rights away: chmod go-rwx")
	}
	beside := embedded && !c.Dev && filepath.Dir(filepath.Clean(file)) == filepath.Dir(filepath.Clean(c.Keys.MasterFile))
	j.control("keys.master_file", beside, "beside the database",
		"a copy of that folder holds the sealed values together with the key that opens them",
		"move the file to another folder and set keys.master_file")
	cluster := c.Cluster.GossipAddr != ""
	j.feature("files.s3_url", cluster && c.Files.S3URL == "", "empty in a cluster",
		"every node needs the same files.folder on a file system that all of them share",
		"set files.s3_url, or share the folder")
	j.feature("cluster.gossip_addr", !cluster, "empty", "this node is alone: no other node takes over when it stops",
		"set cluster.gossip_addr, cluster.actor_addr, cluster.join and cluster.tls_dir on PostgreSQL")
	j.feature("cluster.join", !cluster && len(c.Cluster.Join) > 0, "without cluster.gossip_addr",
		"no node is joined: this node is alone", "set cluster.gossip_addr")
	j.feature("cluster.join", cluster && len(c.Cluster.Join) == 0, "empty", "this node looks for no other node",
		"set cluster.join to the gossip addresses of other nodes")
	j.control("cluster.tls_dir", cluster && c.Cluster.TLSDir == "", "empty",
		"any process that reaches the ports becomes a member", "run castellan cluster init and set cluster.tls_dir")
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
		"a stolen session adds a withdrawal address without a second factor", mend)
	j.control("mfa.guarded", adds && !changes, "lacks "+changeAddress,
		"a stolen session puts its own address in the place of a known one without a second factor", mend)
	j.control("mfa.guard_administration", !c.MFA.GuardAdministration, "false",
		"changes of roles, grants, MFA, firewall rules and parameters need no second factor",
		"set mfa.guard_administration: true")
	j.control("mfa.four_eyes", len(c.MFA.FourEyes) == 0, "empty",
		"one administrator alone adjusts balances and decides on money",
		"set mfa.four_eyes, for instance to [POST /admin/transaction/adjust-balance]")
	j.control("addressbook.waiting_time", c.AddressBook.WaitingTime == 0, "0s",
		"money can leave to an address in the moment in which it was entered", "set addressbook.waiting_time: 24h")
	j.control("kyc.identity_url", c.KYC.IdentityURL == "", "empty", "identity numbers are checked by their check digits "+
		"alone; a request with useTCKNService is answered 503 outside development mode",
		"set kyc.identity_url to the service of the register")
}

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
	j.control("limits.enabled", !l.Enabled, "false", "starts of challenges and messages are not bounded",
		"set limits.enabled: true")
	broad := firstWide(l.ExemptCIDRs)
	j.control("limits.exempt_cidrs", broad != "", "holds "+broad,
		"the bound on wrong passwords of an address does not hold there", "name the networks of your offices alone")
	j.control("limits.country_per_day", len(l.CountryPerDay) == 0, "empty",
		"no country has a budget for SMS: fraud with premium numbers costs without bound",
		"set limits.country_per_day, such as 90=5000")
}

func (j *judge) channels(c config.Config) {
	j.feature("mail.host", !c.Mail.Configured(), "empty",
		"no mail is sent: the method MAIL is not offered, the password reset needs it, and owners get no notices",
		"set mail.host, mail.from, and where needed mail.username and mail.password")
	j.feature("sms.url", !c.SMS.Configured(), "empty",
		"no SMS is sent: the method SMS is not offered, and the password reset needs it",
		"set sms.url with sms.params or sms.body, or sms.preset")
	j.feature("push.enabled", !c.Push.Enabled, "false", "devices are not woken when a challenge waits",
		"set push.enabled: true")
	j.feature("push.contact", c.Push.Enabled && c.Push.Contact == "", "empty",
		"some push services refuse senders without a contact", "set push.contact to mailto:ADDRESS")
	j.feature("push.webhook_secret", c.Push.Enabled && c.Push.WebhookSecret == "", "empty",
		"no webhook wakes a device", "set push.webhook_secret to whsec_ and base64 of 32 random bytes")
	j.control("push.allow_private", c.Push.Enabled && c.Push.AllowPrivate && len(c.Push.Hosts) == 0,
		"true without push.hosts", "a user who enrols a device can have any address of this network called",
		"set push.hosts, or push.allow_private: false")
	j.control("notices.off", len(c.Notices.Off) > 0, strings.Join(c.Notices.Off, " "),
		"owners of accounts are not told of these events", "remove the kinds from notices.off")
}

func (j *judge) watching(c config.Config) {
	unseen := c.Log.Level == "warn" || c.Log.Level == "error"
	j.control("audit.anchor_url", c.Audit.AnchorURL == "", "empty",
		"a person who can write to the database can shorten the audit trail unseen, unless the log is kept elsewhere",
		"set audit.anchor_url and audit.anchor_secret")
	j.control("log.level", unseen && c.Audit.AnchorURL == "", c.Log.Level+" without audit.anchor_url",
		"checkpoints of the audit trail leave the database nowhere", "set log.level: info, or audit.anchor_url")
	j.feature("metrics.addr", c.Metrics.Addr == "", "empty", "there are no metrics, and so no alerts",
		"set metrics.addr, such as 127.0.0.1:9090")
	j.feature("tracing.endpoint", c.Tracing.Endpoint == "", "empty", "requests are not traced",
		"set tracing.endpoint to the address of a collector")
	j.feature("tracing.sample_ratio", c.Tracing.Endpoint != "" && c.Tracing.SampleRatio == 0, "0",
		"only requests are traced that a trusted proxy chose", "set tracing.sample_ratio above 0")
}

func (j *judge) networks(c config.Config) {
	bypass := slices.ContainsFunc(c.Firewall.BypassCIDRs, func(p netip.Prefix) bool { return p.Bits() == 0 })
	broad := firstWide(c.Firewall.BypassCIDRs)
	j.control("firewall.bypass_cidrs", bypass, "holds a network of all addresses", "no request rule applies to anyone",
		"name the addresses of operators alone")
	j.control("firewall.bypass_cidrs", !bypass && broad != "", "holds "+broad, "no request rule applies to that network",
		"name the addresses of operators alone")
	j.control("firewall.keys_per_rule", c.Firewall.KeysPerRule == 0, "0",
		"the counters of a rate limit have no bound: many addresses fill the memory", "set firewall.keys_per_rule: 200000")
	j.feature("geo.mmdb_file", c.Geo.MMDBFile == "", "empty",
		"countries come from the table in the program, which is as old as this version",
		"set geo.mmdb_file to a file in MaxMind's format that is kept up to date")
	j.control("geo.allow_unknown", c.Geo.AllowUnknown, "true",
		"an address whose country is not known passes every country filter", "set geo.allow_unknown: false")
	j.control("geo.allow_private", c.Geo.AllowPrivate, "true", "private addresses pass every country filter",
		"set geo.allow_private: false")
}

func (j *judge) business(c config.Config) {
	j.feature("registration.enabled", !c.Registration.Enabled, "false",
		"users cannot sign up: POST /auth/register answers 404", "set registration.enabled: true, or add accounts by "+
			"POST /integration/users")
	j.feature("rates.url", c.Rates.URL == "", "empty", "exchange rates are not fetched: limits and balances count with "+
		"imported rates alone", "set rates.url, or run castellan rates import regularly")
	p := c.Providers
	j.feature("providers.accounts", len(p.Accounts)+len(p.Files) == 0, "empty",
		"balances at other platforms are not read", "set providers.exchanges and providers.accounts, or providers.files")
	j.feature("accounting.url", c.Accounting.URL == "", "empty", "journals are kept and posted nowhere",
		"set accounting.url and accounting.secret, or read them by GET /integration/accounting/{job}")
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
