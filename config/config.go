// Package config owns the configuration of the service: the keys, their defaults, and the combinations that are
// refused.
//
// The one idea is a single struct whose tags are the table. A field's key gives its place in the YAML file and its
// environment variable, default its value, and range its bounds; settings.tsv explains each key. Defaults, file,
// environment, bounds and the printed configuration all use that table, so none of them can miss a key. Layers apply in
// this order: Default, the YAML file, the environment (decision D-EXT-01). Load reports all faults together, before
// anything is opened.
//
// Start reading at Config, then Load in load.go and faults in validate.go.
package config

import (
	"log/slog"
	"net/netip"
	"time"
	_ "time/tzdata" // machines without time zones need them
)

// Config is the whole configuration. A Config from Load is resolved and valid. One created from Default needs Resolved
// before use, because some keys take their default from others.
//
// Tags: key is the name in the file; default is the value of an absent key; range holds the inclusive bounds; floor is
// a higher lower bound outside development mode; oneof lists the permitted words; lines permits text of several lines.
type Config struct {
	Dev          bool   `key:"dev"`
	DevContainer bool   `key:"dev_container"`
	DataDir      string `key:"data_dir" default:"./data"`

	HTTP     HTTP     `key:"http"`
	Database Database `key:"database"`
	Keys     Keys     `key:"keys"`
	Tenant   Tenant   `key:"tenant"`
	Tokens   Tokens   `key:"tokens"`
	Sessions Sessions `key:"sessions"`
	MFA      MFA      `key:"mfa"`
	WebAuthn WebAuthn `key:"webauthn"`
	Limits   Limits   `key:"limits"`
	Password Password `key:"password"`
	Mail     Mail     `key:"mail"`
	SMS      SMS      `key:"sms"`
	Push     Push     `key:"push"`
	Outbox   Outbox   `key:"outbox"`
	Notices  Notices  `key:"notices"`
	Metrics  Metrics  `key:"metrics"`
	Tracing  Tracing  `key:"tracing"`
	Log      Log      `key:"log"`
	Language Language `key:"language"`
	Firewall Firewall `key:"firewall"`
	Geo      Geo      `key:"geo"`
	Cluster  Cluster  `key:"cluster"`
	Files    Files    `key:"files"`
	// Accounting is the delivery of journals.
	Accounting Accounting `key:"accounting"`
	Audit      Audit      `key:"audit"`

	Corporate    Corporate    `key:"corporate"`
	Transactions Transactions `key:"transactions"`

	AddressBook AddressBook `key:"addressbook"`
	Blockage    Blockage    `key:"blockage"`
	Rates       Rates       `key:"rates"`
	Providers   Providers   `key:"providers"`
	KYC         KYC         `key:"kyc"`

	Registration Registration `key:"registration"`
	Guard        Guard        `key:"guard"`
	Doctor       Doctor       `key:"doctor"`

	origins map[string]origin // by dotted key; an absent key has its default
}

// Doctor configures the findings of an installation (D-INT-09). Accepted has the reason for each accepted key.
type Doctor struct {
	Accepted map[string]string `key:"accepted"`
}

// HTTP configures the public listener (D-GEN-15, D-GEN-20, D-WAF-11).
type HTTP struct {
	Addr           string         `key:"addr" default:"127.0.0.1:8080"`
	PublicURL      string         `key:"public_url"`
	BasePath       string         `key:"base_path"`
	TrustedProxies []netip.Prefix `key:"trusted_proxies"`
	CountryHeader  string         `key:"country_header"`
	CORSOrigins    []string       `key:"cors_origins"`
	ReadTimeout    time.Duration  `key:"read_timeout" range:"100ms..5m" default:"5s"`
	IdleTimeout    time.Duration  `key:"idle_timeout" range:"1s..1h" default:"1m"`
	WriteTimeout   time.Duration  `key:"write_timeout" range:"100ms..5m" default:"15s"`
	ShutdownGrace  time.Duration  `key:"shutdown_grace" range:"0s..10m" default:"20s"`
	MaxConnections int            `key:"max_connections" range:"16..1000000" default:"16384"`
	// MaxConnectionsPerIP counts socket peers: the client behind a proxy is unknown until a request was read.
	MaxConnectionsPerIP int `key:"max_connections_per_ip" range:"0..1000000" default:"256"`
	BodyBudget          int `key:"body_budget" range:"1..65536" default:"64"`
}

// Database names the database and bounds its connections.
type Database struct {
	// URL is a Secret because it may contain a password; Redacted shows the rest.
	URL            Secret `key:"url"`
	MaxConnections int    `key:"max_connections" range:"2..1000" default:"16"`
}

// Keys names the file of the master key (D-EXT-04).
type Keys struct {
	MasterFile string `key:"master_file"`
}

// Tenant names the tenant (D-AUTH-02).
type Tenant struct {
	ID string `key:"id" default:"default"`
}

// Tokens configures the tokens issued after a challenge (D-AUTH-01, D-AUTH-10).
type Tokens struct {
	Issuer     string        `key:"issuer" default:"castellan"`
	XAuthTTL   time.Duration `key:"x_auth_ttl" range:"5s..24h" default:"30m"`
	OTAuthTTL  time.Duration `key:"ot_auth_ttl" range:"5s..1h" default:"10m"`
	SessionTTL time.Duration `key:"session_ttl" range:"1m..720h" default:"12h"`
}

// Sessions configures sessions that are bound to a key (D-AUTH-16).
type Sessions struct {
	TTL  time.Duration `key:"ttl" range:"0s..720h"`
	Idle time.Duration `key:"idle" range:"1m..720h" default:"1h"`
	Bind string        `key:"bind" oneof:"renewal|requests" default:"renewal"`
}

// Requests reports whether every request of a bound session needs a proof.
func (s Sessions) Requests() bool { return s.Bind == "requests" }

// MFA configures challenges (D-2FA-04, 13, 16, 20, 28, 32 and D-AUTH-05), and the calls that need the approval of a
// second person (D-EXT-08).
type MFA struct {
	ChallengeTTL        time.Duration     `key:"challenge_ttl" range:"1s..1h" default:"10m"`
	PAuthGrace          time.Duration     `key:"p_auth_grace" range:"0s..1h" default:"2m"`
	ExecWait            time.Duration     `key:"exec_wait" range:"0s..1m" default:"10s"`
	MaxOpen             int               `key:"max_open" range:"1..100" default:"5"`
	MaxRenewals         int               `key:"max_renewals" range:"0..100" default:"5"`
	MethodAttempts      int               `key:"method_attempts" range:"1..10" default:"5"`
	ChallengeAttempts   int               `key:"challenge_attempts" range:"1..30" default:"10"`
	OTPBudget           int               `key:"otp_budget" range:"1..100" default:"20"`
	OTPBudgetWindow     time.Duration     `key:"otp_budget_window" range:"1s..24h" floor:"5m" default:"1h"`
	TOTPBudget          int               `key:"totp_budget" range:"1..100" default:"10"`
	TOTPBudgetWindow    time.Duration     `key:"totp_budget_window" range:"1s..24h" floor:"5m" default:"15m"`
	FactorAttempts      int               `key:"factor_attempts" range:"20..100" default:"100"`
	TOTPIssuer          string            `key:"totp_issuer" default:"Castellan"`
	Guarded             map[string]string `key:"guarded"`
	GuardAdministration bool              `key:"guard_administration"`
	FourEyes            []string          `key:"four_eyes"`
	FourEyesTTL         time.Duration     `key:"four_eyes_ttl" range:"1s..24h" floor:"1m" default:"15m"`
}

// WebAuthn configures passkeys (D-AUTH-18). Their domain is that of HTTP.PublicURL.
type WebAuthn struct {
	Origins []string `key:"origins"`
	Counter string   `key:"counter" oneof:"refuse|report" default:"refuse"`
	Backup  string   `key:"backup" oneof:"allow|report|refuse" default:"report"`
	// Settle is how long a new passkey does not count for phishingResistant.
	Settle time.Duration `key:"settle" range:"0s..720h" default:"24h"`
}

// Limits configures the start guards and the caps on messages and pushes (D-GEN-14, D-EXT-05, SEC-16). Enabled switches
// both off, but never the counts of wrong passwords and recovery codes.
type Limits struct {
	Enabled             bool           `key:"enabled" default:"true"`
	WrongPasswords      int            `key:"wrong_passwords" range:"1..100" default:"10"`
	WrongPasswordWindow time.Duration  `key:"wrong_password_window" range:"1s..24h" floor:"1m" default:"15m"`
	WrongPasswordsDay   int            `key:"wrong_passwords_day" range:"1..10000" default:"100"`
	WrongPerPrefix      int            `key:"wrong_passwords_per_prefix" range:"1..100000" default:"120"`
	ExemptCIDRs         []netip.Prefix `key:"exempt_cidrs"`
	RecoveryCodes       int            `key:"recovery_codes" range:"1..100" default:"5"`
	RecoveryCodeWindow  time.Duration  `key:"recovery_code_window" range:"1s..24h" floor:"5m" default:"15m"`
	ResetPerPhone       int            `key:"reset_per_phone" range:"1..1000" default:"5"`
	ResetPhoneWindow    time.Duration  `key:"reset_phone_window" range:"1s..24h" default:"10m"`
	ResetPerIP          int            `key:"reset_per_ip" range:"1..100000" default:"30"`
	ResetIPWindow       time.Duration  `key:"reset_ip_window" range:"1s..24h" default:"10m"`
	DestinationPerHour  int            `key:"destination_per_hour" range:"2..100000" default:"20"`
	DestinationPerDay   int            `key:"destination_per_day" range:"2..100000" default:"50"`
	UserPerDay          int            `key:"user_per_day" range:"1..100000" default:"60"`
	IPPerHour           int            `key:"ip_per_hour" range:"1..1000000" default:"200"`
	PushPending         int            `key:"push_pending" range:"1..100" default:"3"`
	PushWindow          time.Duration  `key:"push_window" range:"1s..24h" default:"10m"`
	PushPerDay          int            `key:"push_per_day" range:"1..1000" default:"20"`
	PushDenials         int            `key:"push_denials" range:"1..100" default:"3"`
	PushDenialWindow    time.Duration  `key:"push_denial_window" range:"1s..1h" default:"10m"`
	PushPause           time.Duration  `key:"push_pause" range:"1s..1h" default:"1h"`
	CountryPerDay       map[string]int `key:"country_per_day"`
	// Envoy's rate limit service (D-WAF-22) is off without an address.
	RLSAddr     string `key:"rls_addr"`
	RLSCertFile string `key:"rls_cert_file"`
	RLSKeyFile  string `key:"rls_key_file"`
}

// Notices configures the mails to owners of accounts (D-EXT-07).
type Notices struct {
	Off []string `key:"off"`
}

// Password configures strength and hashing (D-PWD-05).
type Password struct {
	MinLength         int           `key:"min_length" range:"8..64" default:"8"`
	MaxLength         int           `key:"max_length" range:"64..1024" default:"128"`
	Argon2MemoryKiB   int           `key:"argon2_memory_kib" range:"8..4194304" default:"19456"`
	Argon2Time        int           `key:"argon2_time" range:"1..100" default:"2"`
	Argon2Parallelism int           `key:"argon2_parallelism" range:"1..64" default:"1"`
	HashSlots         int           `key:"hash_slots" range:"0..256"`
	Queue             int           `key:"queue" range:"0..100000" default:"128"`
	QueueWait         time.Duration `key:"queue_wait" range:"10ms..1m" default:"10s"`
	ImportMaxCost     int           `key:"import_max_cost" range:"1000..10000000" default:"300000"`
	ImportKeep        time.Duration `key:"import_keep" range:"24h..87600h" default:"4320h"`
}

// Registration configures whether users may sign up (D-INT-07). It is on by default in development mode.
type Registration struct {
	Enabled bool `key:"enabled"`
}

// Corporate configures the accounts created for users of companies (D-COR-03).
type Corporate struct {
	DefaultPassword Secret `key:"default_password"`
}

// AddressBook configures the withdrawal address books (D-WAD-05).
type AddressBook struct {
	WaitingTime  time.Duration     `key:"waiting_time" range:"0s..720h"`
	AddressRules map[string]string `key:"address_rules"`
	TagRules     map[string]string `key:"tag_rules"`
}

// Rates names the provider of exchange rates (D-CUR-07). The URL is a secret because some providers require their key
// in it.
type Rates struct {
	URL        Secret        `key:"url"`
	KeyHeader  string        `key:"key_header" default:"Authorization"`
	Key        Secret        `key:"key"`
	Currencies []string      `key:"currencies"`
	Every      time.Duration `key:"every" range:"1m..24h" default:"5m"`
	Timeout    time.Duration `key:"timeout" range:"1s..1m" default:"10s"`
	CAFile     string        `key:"ca_file"`
}

// Mail configures the SMTP sender.
type Mail struct {
	Host     string        `key:"host"`
	Port     int           `key:"port" range:"0..65535"`
	TLS      string        `key:"tls" oneof:"starttls|tls|none" default:"starttls"`
	Username string        `key:"username"`
	Password Secret        `key:"password"`
	From     string        `key:"from"`
	FromName string        `key:"from_name" default:"Castellan"`
	Timeout  time.Duration `key:"timeout" range:"1s..2m" default:"10s"`
	CAFile   string        `key:"ca_file"`
}

// Configured reports whether mail can be sent; if not, the channel does not exist outside development mode (D-2FA-29).
func (m Mail) Configured() bool { return m.Host != "" }

// SMS configures the HTTP gateway. Params, headers and body are secrets as a whole because they contain the gateway's
// keys.
type SMS struct {
	URL          Secret        `key:"url"`
	Preset       string        `key:"preset" oneof:"|twilio"`
	Method       string        `key:"method" oneof:"GET|POST|PUT" default:"POST"`
	Format       string        `key:"format" oneof:"form|json" default:"form"`
	Params       Secrets       `key:"params"`
	Body         Secret        `key:"body" lines:"true"`
	Headers      Secrets       `key:"headers"`
	Username     string        `key:"username"`
	Password     Secret        `key:"password"`
	Sender       string        `key:"sender"`
	Timeout      time.Duration `key:"timeout" range:"1s..2m" default:"10s"`
	SuccessCodes []int         `key:"success_codes"`
	// A body means success by a pattern, or by a JSON field with one of the values; by neither, if both are empty.
	SuccessPattern string   `key:"success_pattern"`
	SuccessField   string   `key:"success_field"`
	SuccessValues  []string `key:"success_values"`
}

// Configured reports whether SMS can be sent; if not, the channel does not
// exist outside development mode (D-2FA-29).
func (s SMS) Configured() bool { return s.URL != "" || s.Preset != "" }

// Push configures the wake-up of devices. Targets come from users, so the permitted hosts are narrow by default.
type Push struct {
	Enabled       bool          `key:"enabled" default:"true"`
	Contact       string        `key:"contact"`
	WebhookSecret Secret        `key:"webhook_secret"`
	Hosts         []string      `key:"hosts"`
	AllowPrivate  bool          `key:"allow_private"`
	Timeout       time.Duration `key:"timeout" range:"1s..2m" default:"3s"`
	CAFile        string        `key:"ca_file"`
}

// Outbox configures delivery (D-EXT-05).
type Outbox struct {
	Lease       time.Duration `key:"lease" range:"2s..10m" default:"30s"`
	RetryMin    time.Duration `key:"retry_min" range:"100ms..10m" default:"1s"`
	RetryMax    time.Duration `key:"retry_max" range:"100ms..1h" default:"1m"`
	MaxAttempts int           `key:"max_attempts" range:"1..100" default:"8"`
	Workers     int           `key:"workers" range:"1..256" default:"4"`
}

// Metrics configures the metrics listener.
type Metrics struct {
	Addr string `key:"addr"`
}

// Blockage configures the blocks of a closed account (D-KYC-04).
type Blockage struct {
	ClosureType int `key:"closure_type" range:"1..1000000" default:"1"`
}

// Tracing names the collector of traces.
type Tracing struct {
	Endpoint    string  `key:"endpoint"`
	SampleRatio float64 `key:"sample_ratio" default:"1"`
	Headers     Secrets `key:"headers"`
}

type Log struct {
	Level  string `key:"level" oneof:"debug|info|warn|error" default:"info"`
	Format string `key:"format" oneof:"text|json" default:"text"`
}

func (l Log) SlogLevel() slog.Level {
	var level slog.Level
	if level.UnmarshalText([]byte(l.Level)) != nil {
		return slog.LevelInfo
	}
	return level
}

// Language configures the language and time zone of messages (D-GEN-16, D-2FA-25).
type Language struct {
	Default  string `key:"default" oneof:"en|tr|ar" default:"en"`
	TimeZone string `key:"time_zone" default:"UTC"`
}

// Zone returns the time zone; UTC for one that Load refuses.
func (l Language) Zone() *time.Location {
	z, err := time.LoadLocation(l.TimeZone)
	if err != nil {
		return time.UTC
	}
	return z
}

// Firewall configures the request rules (D-WAF-01, D-WAF-12).
type Firewall struct {
	AppID       string         `key:"app_id" default:"API"`
	KeysPerRule int            `key:"keys_per_rule" range:"0..100000000" default:"200000"`
	BypassCIDRs []netip.Prefix `key:"bypass_cidrs"`
}

// Geo configures country filters (D-GEO-01, D-GEO-03).
type Geo struct {
	MMDBFile     string `key:"mmdb_file"`
	CDNURL       string `key:"cdn_url"`
	AllowUnknown bool   `key:"allow_unknown"`
	AllowPrivate bool   `key:"allow_private"`
}

// Cluster configures membership and the links between nodes.
type Cluster struct {
	GossipAddr string   `key:"gossip_addr"`
	ActorAddr  string   `key:"actor_addr"`
	Join       []string `key:"join"`
	TLSDir     string   `key:"tls_dir"`
}
