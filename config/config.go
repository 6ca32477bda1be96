// Package config owns the configuration of the service: what may be set, what
// it is when nobody sets it, and which combinations are refused.
//
// The one idea is a single struct whose tags are the table: a field's key
// gives its place in the YAML file and its environment variable, doc its
// explanation, range its bounds. Reading the file, reading the environment,
// checking bounds and printing the effective configuration all walk that
// table, so none of them can forget a key. Layers apply in this order:
// Default, the YAML file, the environment (decision D-EXT-01). Load reports
// every fault at once, before anything is opened.
//
// Start reading at Config, then Load in load.go and Validate in validate.go.
package config

import (
	"log/slog"
	"net/netip"
	"time"
	_ "time/tzdata" // zones must be there on machines without them
)

// Config is the whole configuration. A Config from Load is resolved and valid;
// one made by hand from Default needs Resolved before use, because some keys
// take their default from others.
//
// Tags: key is the name in the file; doc explains in one line; range holds the
// inclusive bounds; floor is a higher lower bound outside development mode;
// oneof lists the accepted words; lines allows text of several lines.
type Config struct {
	Dev     bool   `key:"dev" doc:"Development mode: demo accounts, development outbox and pages; listens on loopback only."`
	DataDir string `key:"data_dir" doc:"Folder of the embedded database, the master key and the development logins."`

	HTTP     HTTP     `key:"http" doc:"The public listener."`
	Database Database `key:"database" doc:"Where state lives."`
	Keys     Keys     `key:"keys" doc:"The key that wraps all other keys."`
	Tenant   Tenant   `key:"tenant" doc:"The tenant this deployment serves."`
	Tokens   Tokens   `key:"tokens" doc:"Lifetimes of tokens and sessions."`
	MFA      MFA      `key:"mfa" doc:"Second-factor challenges."`
	Limits   Limits   `key:"limits" doc:"Guards where abuse costs money or guesses secrets. Prefix means an IPv4 address or an IPv6 /64."`
	Password Password `key:"password" doc:"Password rules and the work of hashing."`
	Mail     Mail     `key:"mail" doc:"Outgoing mail by SMTP. Without a host there is no MAIL method outside development mode."`
	SMS      SMS      `key:"sms" doc:"Outgoing SMS by an HTTP gateway. Without a gateway there is no SMS method outside development mode."`
	Push     Push     `key:"push" doc:"Wake-ups of devices by Web Push and by signed webhooks. Approvals never depend on them."`
	Outbox   Outbox   `key:"outbox" doc:"Delivery of stored messages."`
	Metrics  Metrics  `key:"metrics" doc:"Prometheus metrics, on a listener of their own."`
	Tracing  Tracing  `key:"tracing" doc:"OpenTelemetry traces of requests, sent to a collector."`
	Log      Log      `key:"log" doc:"The log, written to standard error."`
	Language Language `key:"language" doc:"Language of texts."`
	Firewall Firewall `key:"firewall" doc:"Request rules."`
	Geo      Geo      `key:"geo" doc:"Country filters of users."`
	Cluster  Cluster  `key:"cluster" doc:"Several nodes on one PostgreSQL database. Without a gossip address the node is alone."`

	AddressBook AddressBook `key:"addressbook" doc:"Withdrawal address books."`

	origins map[string]origin // by dotted key; a key that is absent has its default
}

// HTTP configures the public listener (D-GEN-15, D-GEN-20, D-WAF-11).
type HTTP struct {
	Addr           string         `key:"addr" doc:"Address to listen on, host:port; port 0 takes a free one."`
	PublicURL      string         `key:"public_url" doc:"Base URL under which clients reach the service, path included; device signatures name it. Empty: http://<addr><base_path>."`
	BasePath       string         `key:"base_path" doc:"Path in front of every route, such as /auth-service; empty: routes at the root."`
	TrustedProxies []netip.Prefix `key:"trusted_proxies" doc:"Networks of proxies whose X-Forwarded-For and country header are believed; a bare address is that address only."`
	CountryHeader  string         `key:"country_header" doc:"Header in which a trusted proxy names the client's country, such as cf-ipcountry; empty: none."`
	CORSOrigins    []string       `key:"cors_origins" doc:"Origins of browser clients, such as https://app.example.com; also the Origins the socket accepts."`
	ReadTimeout    time.Duration  `key:"read_timeout" range:"100ms..5m" doc:"Longest time to read one request."`
	IdleTimeout    time.Duration  `key:"idle_timeout" range:"1s..1h" doc:"How long a connection may wait for its next request."`
	WriteTimeout   time.Duration  `key:"write_timeout" range:"100ms..5m" doc:"Longest time to write one answer."`
	ShutdownGrace  time.Duration  `key:"shutdown_grace" range:"0s..10m" doc:"How long a stopping node waits for requests in flight."`
	MaxConnections int            `key:"max_connections" range:"16..1000000" doc:"Connections served at once, sockets included; at most what the limit of open files leaves. When all are taken the one that waits longest for a request is closed for a new one."`
	// MaxConnectionsPerIP counts socket peers: whom a proxy speaks for is known
	// only once a request was read.
	MaxConnectionsPerIP int `key:"max_connections_per_ip" range:"0..1000000" doc:"Of these, those of one IPv4 address or IPv6 /64; 0: no bound. Default: 256, and 0 with http.trusted_proxies, where all connections come from a proxy's address."`
	BodyBudget          int `key:"body_budget" range:"1..65536" doc:"MiB of memory for the bodies of all requests under way."`
}

// Database names the database and bounds its connections.
type Database struct {
	// URL is a Secret because it may carry a password; Redacted shows the rest.
	URL            Secret `key:"url" doc:"sqlite:PATH, or postgres://user:password@host:port/name. Empty: sqlite:<data_dir>/castellan.db."`
	MaxConnections int    `key:"max_connections" range:"2..1000" doc:"Connections this node may open."`
}

// Keys names the file of the master key (D-EXT-04).
type Keys struct {
	MasterFile string `key:"master_file" doc:"File of the master key; every node needs the same one. Empty: <data_dir>/master.key."`
}

// Tenant names the tenant (D-AUTH-02).
type Tenant struct {
	ID string `key:"id" doc:"Claim tid of every token; a token of another tenant is refused."`
}

// Tokens configures what is issued after a challenge (D-AUTH-01, D-AUTH-10).
type Tokens struct {
	Issuer     string        `key:"issuer" doc:"Claim iss of every token."`
	XAuthTTL   time.Duration `key:"x_auth_ttl" range:"5s..24h" doc:"Lifetime of an x-auth token."`
	OTAuthTTL  time.Duration `key:"ot_auth_ttl" range:"5s..1h" doc:"Lifetime of a one-time ot-auth token."`
	SessionTTL time.Duration `key:"session_ttl" range:"1m..720h" doc:"How long after the login a session may still be given new tokens; then a new login is needed."`
}

// MFA configures challenges (D-2FA-04, 13, 16, 20, 28, 32 and D-AUTH-05).
type MFA struct {
	ChallengeTTL      time.Duration     `key:"challenge_ttl" range:"1s..1h" doc:"Lifetime of a challenge; a method that lives longer stretches it."`
	PAuthGrace        time.Duration     `key:"p_auth_grace" range:"0s..1h" doc:"How long p-auth outlives its challenge, to read the result."`
	ExecWait          time.Duration     `key:"exec_wait" range:"0s..1m" doc:"How long the last completion waits for the action."`
	MaxOpen           int               `key:"max_open" range:"1..100" doc:"Open challenges per user and action; the oldest is closed."`
	MaxRenewals       int               `key:"max_renewals" range:"0..100" doc:"Renewals per method of one challenge."`
	MethodAttempts    int               `key:"method_attempts" range:"1..10" doc:"Wrong values before a method is locked."`
	ChallengeAttempts int               `key:"challenge_attempts" range:"1..30" doc:"Wrong values before a challenge is closed."`
	OTPBudget         int               `key:"otp_budget" range:"1..100" doc:"Wrong SMS and MAIL codes per user and flow in otp_budget_window."`
	OTPBudgetWindow   time.Duration     `key:"otp_budget_window" range:"1s..24h" floor:"5m" doc:"Window of otp_budget."`
	TOTPBudget        int               `key:"totp_budget" range:"1..100" doc:"Wrong TOTP codes per user and flow in totp_budget_window."`
	TOTPBudgetWindow  time.Duration     `key:"totp_budget_window" range:"1s..24h" floor:"5m" doc:"Window of totp_budget."`
	TOTPIssuer        string            `key:"totp_issuer" doc:"What authenticator apps show beside the account."`
	Guarded           map[string]string `key:"guarded" doc:"Endpoints put behind a challenge: METHOD /path to action code, as in POST /a=ACTION,PUT /b=ACTION."`
}

// Limits configures the start guards and the caps on messages and pushes
// (D-GEN-14, D-EXT-05, SEC-16). Enabled switches off both, never the counts of wrong passwords
// and recovery codes.
type Limits struct {
	Enabled             bool           `key:"enabled" doc:"Start guards and message caps; false is accepted in development mode only and never lifts an attempt limit."`
	WrongPasswords      int            `key:"wrong_passwords" range:"1..100" doc:"Wrong passwords per account and prefix in wrong_password_window."`
	WrongPasswordWindow time.Duration  `key:"wrong_password_window" range:"1s..24h" floor:"1m" doc:"Window of wrong_passwords."`
	WrongPasswordsDay   int            `key:"wrong_passwords_day" range:"1..10000" doc:"Wrong passwords per account in 24 hours from anywhere; then only known prefixes may try."`
	RecoveryCodes       int            `key:"recovery_codes" range:"1..100" doc:"Wrong recovery codes per user in recovery_code_window."`
	RecoveryCodeWindow  time.Duration  `key:"recovery_code_window" range:"1s..24h" floor:"5m" doc:"Window of recovery_codes."`
	ResetPerPhone       int            `key:"reset_per_phone" range:"1..1000" doc:"Starts of the password reset per phone in reset_phone_window."`
	ResetPhoneWindow    time.Duration  `key:"reset_phone_window" range:"1s..24h" doc:"Window of reset_per_phone."`
	ResetPerIP          int            `key:"reset_per_ip" range:"1..100000" doc:"Starts of the password reset per prefix in reset_ip_window."`
	ResetIPWindow       time.Duration  `key:"reset_ip_window" range:"1s..24h" doc:"Window of reset_per_ip."`
	DestinationPerHour  int            `key:"destination_per_hour" range:"2..100000" doc:"Messages an hour per phone number or mail address; starts without a proven password or session get half."`
	DestinationPerDay   int            `key:"destination_per_day" range:"2..100000" doc:"Messages a day per phone number or mail address; starts without a proven password or session get half."`
	UserPerDay          int            `key:"user_per_day" range:"1..100000" doc:"Messages a day per user."`
	IPPerHour           int            `key:"ip_per_hour" range:"1..1000000" doc:"Messages an hour caused by one prefix."`
	PushPending         int            `key:"push_pending" range:"1..100" doc:"Pushes that may wait for an answer per user; further challenges offer none."`
	PushDenials         int            `key:"push_denials" range:"1..100" doc:"Denied pushes per user in push_denial_window after which none is offered for push_pause."`
	PushDenialWindow    time.Duration  `key:"push_denial_window" range:"1s..1h" doc:"Window of push_denials."`
	PushPause           time.Duration  `key:"push_pause" range:"1s..1h" doc:"How long no push is offered after push_denials."`
	CountryPerDay       map[string]int `key:"country_per_day" doc:"Spend budget: SMS a day per dialling prefix, as in 90=5000,1=200; a prefix that is not listed has none."`
}

// Password configures strength and hashing (D-PWD-05).
type Password struct {
	MinLength         int           `key:"min_length" range:"8..64" doc:"Fewest characters."`
	MaxLength         int           `key:"max_length" range:"64..1024" doc:"Most characters."`
	Argon2MemoryKiB   int           `key:"argon2_memory_kib" range:"8..4194304" doc:"Memory of one argon2id hash in KiB."`
	Argon2Time        int           `key:"argon2_time" range:"1..100" doc:"Passes of one argon2id hash."`
	Argon2Parallelism int           `key:"argon2_parallelism" range:"1..64" doc:"Lanes of one argon2id hash."`
	HashSlots         int           `key:"hash_slots" range:"0..256" doc:"Hashes computed at once. 0: one less than the processors, at least 1."`
	Queue             int           `key:"queue" range:"0..100000" doc:"Logins that may wait for a slot; the next one gets 503 OVERLOADED."`
	QueueWait         time.Duration `key:"queue_wait" range:"10ms..1m" doc:"How long a login waits for a slot before it gets 503 OVERLOADED."`
}

// AddressBook configures the withdrawal address books (D-WAD-05).
type AddressBook struct {
	WaitingTime  time.Duration     `key:"waiting_time" range:"0s..720h" doc:"How long an address waits after it was entered before it may be withdrawn to; records then show usableFrom. 0s: not at all."`
	AddressRules map[string]string `key:"address_rules" doc:"Network code to the rule of its addresses: bitcoin, evm, solana, tron, xrp, or a regular expression between ^ and $. Built in for the usual networks; one without a rule takes every well-formed address."`
}

// Mail configures the SMTP sender.
type Mail struct {
	Host     string        `key:"host" doc:"SMTP server; empty: no mail is sent."`
	Port     int           `key:"port" range:"0..65535" doc:"Its port. 0: 587 for starttls, 465 for tls, 25 for none."`
	TLS      string        `key:"tls" oneof:"starttls|tls|none" doc:"Encryption, always demanded; none only to a loopback host."`
	Username string        `key:"username" doc:"Login at the server; empty: none."`
	Password Secret        `key:"password" doc:"Password at the server."`
	From     string        `key:"from" doc:"Sender address."`
	FromName string        `key:"from_name" doc:"Sender name."`
	Timeout  time.Duration `key:"timeout" range:"1s..2m" doc:"Longest time to deliver one message."`
	CAFile   string        `key:"ca_file" doc:"PEM file of certificate authorities to trust instead of the system's."`
}

// Configured reports whether mail can be sent; if not, the channel does not
// exist outside development mode (D-2FA-29).
func (m Mail) Configured() bool { return m.Host != "" }

// SMS configures the HTTP gateway. Params, headers and body are secrets as a
// whole because gateways put their keys there.
type SMS struct {
	URL          Secret        `key:"url" doc:"Address of the gateway, https unless it is on loopback; empty without a preset: no SMS is sent."`
	Preset       string        `key:"preset" oneof:"|twilio" doc:"Fills in a known gateway: twilio needs username (account SID), password (auth token) and sender."`
	Method       string        `key:"method" oneof:"GET|POST|PUT" doc:"Request method."`
	Format       string        `key:"format" oneof:"form|json" doc:"Encoding of params or body; form with GET is the query string."`
	Params       Secrets       `key:"params" doc:"Fields to send, name to template. Templates hold {{to}} (+905...), {{digits}} (the same without the plus), {{text}}, {{from}} (sms.sender) and {{key}} (names the message, also in a repeat)."`
	Body         Secret        `key:"body" lines:"true" doc:"Template of the whole JSON body, instead of params; each string in it may hold what params may."`
	Headers      Secrets       `key:"headers" doc:"Headers to send, name to template; all but {{text}}."`
	Username     string        `key:"username" doc:"Login at the gateway (basic authentication); empty: none."`
	Password     Secret        `key:"password" doc:"Password at the gateway."`
	Sender       string        `key:"sender" doc:"Sender name or number."`
	Timeout      time.Duration `key:"timeout" range:"1s..2m" doc:"Longest time to deliver one message."`
	SuccessCodes []int         `key:"success_codes" doc:"Statuses that mean accepted; empty: 200 to 299."`
}

// Configured reports whether SMS can be sent; if not, the channel does not
// exist outside development mode (D-2FA-29).
func (s SMS) Configured() bool { return s.URL != "" || s.Preset != "" }

// Push configures how devices are woken. Targets come from users, which is why
// where they may lie is narrow by default.
type Push struct {
	Enabled       bool          `key:"enabled" doc:"Wake devices; false: a device reads what is pending when it is opened."`
	Contact       string        `key:"contact" doc:"mailto: or https: address that push services may turn to; some refuse senders without one. Empty: http.public_url where it is https."`
	WebhookSecret Secret        `key:"webhook_secret" doc:"Signs webhooks: whsec_ and base64 of 24 to 64 bytes; two separated by a space both sign, while receivers change over. Empty: no webhook is called."`
	Hosts         []string      `key:"hosts" doc:"The only hosts that may be called: a name, or *.name for every one below it. Empty: every public one."`
	AllowPrivate  bool          `key:"allow_private" doc:"Loopback and private addresses and ports other than 443 may be called; development mode always allows them, and http to loopback besides. Link-local ones never are."`
	Timeout       time.Duration `key:"timeout" range:"1s..2m" doc:"Longest time to wake one device. Default: 10s, or half of outbox.lease where that is no longer."`
	CAFile        string        `key:"ca_file" doc:"PEM file of certificate authorities to trust besides the system's."`
}

// Outbox configures delivery (D-EXT-05).
type Outbox struct {
	Lease       time.Duration `key:"lease" range:"2s..10m" doc:"How long a node keeps a message to itself while sending; longer than the timeouts of mail, sms and push."`
	RetryMin    time.Duration `key:"retry_min" range:"100ms..10m" doc:"Wait before the first retry; doubles with each."`
	RetryMax    time.Duration `key:"retry_max" range:"100ms..1h" doc:"Longest wait between retries."`
	MaxAttempts int           `key:"max_attempts" range:"1..100" doc:"Attempts before a message is given up."`
	Workers     int           `key:"workers" range:"1..256" doc:"Messages sent at once per channel."`
}

// Metrics configures the metrics listener.
type Metrics struct {
	Addr string `key:"addr" doc:"Address to listen on, host:port; empty: off."`
}

// Tracing names the collector of traces.
type Tracing struct {
	Endpoint    string  `key:"endpoint" doc:"OTLP/HTTP address of the collector, such as http://127.0.0.1:4318/v1/traces; without a path, /v1/traces. Empty: off."`
	SampleRatio float64 `key:"sample_ratio" doc:"Part of the requests that is followed, 0 to 1; a trusted proxy's traceparent decides for itself."`
	Headers     Secrets `key:"headers" doc:"Headers that the collector asks for, such as authorization."`
}

// Log configures the log.
type Log struct {
	Level  string `key:"level" oneof:"debug|info|warn|error" doc:"Least level that is written."`
	Format string `key:"format" oneof:"text|json" doc:"One line of text or JSON per record."`
}

// SlogLevel returns the level for log/slog.
func (l Log) SlogLevel() slog.Level {
	var level slog.Level
	if level.UnmarshalText([]byte(l.Level)) != nil {
		return slog.LevelInfo
	}
	return level
}

// Language configures how people are addressed (D-GEN-16, D-2FA-25).
type Language struct {
	Default  string `key:"default" oneof:"en|tr|ar" doc:"Language when neither the request nor the user names one."`
	TimeZone string `key:"time_zone" doc:"Zone of the times that are written out for people, such as Europe/Istanbul."`
}

// Zone is the time zone; UTC for one that Validate refuses.
func (l Language) Zone() *time.Location {
	z, err := time.LoadLocation(l.TimeZone)
	if err != nil {
		return time.UTC
	}
	return z
}

// Firewall configures the request rules (D-WAF-01, D-WAF-12).
type Firewall struct {
	AppID       string         `key:"app_id" doc:"Rules of this appId are evaluated here; others are stored for other applications."`
	BypassCIDRs []netip.Prefix `key:"bypass_cidrs" doc:"Networks that no rule applies to: the way back after locking oneself out."`
}

// Geo configures country filters (D-GEO-01, D-GEO-03).
type Geo struct {
	MMDBFile     string `key:"mmdb_file" doc:"File in MaxMind's format that tells the country of an address, read again when it changes. Empty: the table in the program (IP2Location LITE)."`
	CDNURL       string `key:"cdn_url" doc:"Address in front of /flags/<code>.svg, .png and .ios.png. Empty: http.public_url; the program serves them."`
	AllowUnknown bool   `key:"allow_unknown" doc:"Public addresses whose country is not known pass a country filter."`
	AllowPrivate bool   `key:"allow_private" doc:"Loopback and private addresses pass a country filter; accepted in development mode only, where it is the default."`
}

// Cluster configures membership and the links between nodes.
type Cluster struct {
	GossipAddr string   `key:"gossip_addr" doc:"Address of the membership protocol, host:port; empty: this node is alone."`
	ActorAddr  string   `key:"actor_addr" doc:"Address at which other nodes reach the actors of this one, host:port."`
	Join       []string `key:"join" doc:"Gossip addresses of nodes to join."`
	TLSDir     string   `key:"tls_dir" doc:"Folder with the cluster's authority, the node's certificate and the gossip key; needed beyond loopback."`
}
