package config

import (
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Default returns the configuration of an empty file and an empty environment. Keys that take their value from others
// are still empty: see Resolved.
func Default() Config {
	return Config{
		DataDir: "./data",
		HTTP: HTTP{
			Addr:           "127.0.0.1:8080",
			ReadTimeout:    5 * time.Second,
			IdleTimeout:    60 * time.Second,
			WriteTimeout:   15 * time.Second,
			ShutdownGrace:  20 * time.Second,
			MaxConnections: 16384,
			BodyBudget:     64,

			MaxConnectionsPerIP: 256,
		},
		Database: Database{MaxConnections: 16},
		Tenant:   Tenant{ID: "default"},
		Tokens: Tokens{
			Issuer:     "castellan",
			XAuthTTL:   30 * time.Minute,
			OTAuthTTL:  10 * time.Minute,
			SessionTTL: 12 * time.Hour,
		},
		Sessions: Sessions{Idle: time.Hour, Bind: "renewal"},
		Guard:    Guard{UnknownHost: "allow", Timeout: 3 * time.Second},
		WebAuthn: WebAuthn{Counter: "refuse", Backup: "report", Settle: 24 * time.Hour},
		MFA: MFA{
			ChallengeTTL:      600 * time.Second,
			PAuthGrace:        120 * time.Second,
			ExecWait:          10 * time.Second,
			MaxOpen:           5,
			MaxRenewals:       5,
			MethodAttempts:    5,
			ChallengeAttempts: 10,
			OTPBudget:         20,
			OTPBudgetWindow:   60 * time.Minute,
			TOTPBudget:        10,
			TOTPBudgetWindow:  15 * time.Minute,
			FactorAttempts:    100,
			TOTPIssuer:        "Castellan",
			FourEyesTTL:       15 * time.Minute,
		},
		Limits: Limits{
			Enabled:             true,
			WrongPasswords:      10,
			WrongPasswordWindow: 15 * time.Minute,
			WrongPasswordsDay:   100,
			WrongPerPrefix:      120,
			RecoveryCodes:       5,
			RecoveryCodeWindow:  15 * time.Minute,
			ResetPerPhone:       5,
			ResetPhoneWindow:    10 * time.Minute,
			ResetPerIP:          30,
			ResetIPWindow:       10 * time.Minute,
			DestinationPerHour:  20,
			DestinationPerDay:   50,
			UserPerDay:          60,
			IPPerHour:           200,
			PushPending:         3,
			PushWindow:          10 * time.Minute,
			PushPerDay:          20,
			PushDenials:         3,
			PushDenialWindow:    10 * time.Minute,
			PushPause:           time.Hour,
		},
		Password: Password{
			MinLength:         8,
			MaxLength:         128,
			Argon2MemoryKiB:   19456,
			Argon2Time:        2,
			Argon2Parallelism: 1,
			Queue:             128,
			QueueWait:         10 * time.Second,
			ImportMaxCost:     300_000,
			ImportKeep:        180 * 24 * time.Hour,
		},
		Mail: Mail{TLS: "starttls", FromName: "Castellan", Timeout: 10 * time.Second},
		SMS:  SMS{Method: "POST", Format: "form", Timeout: 10 * time.Second},
		Push: Push{Enabled: true, Timeout: 3 * time.Second},
		Outbox: Outbox{
			Lease:       30 * time.Second,
			RetryMin:    time.Second,
			RetryMax:    time.Minute,
			MaxAttempts: 8,
			Workers:     4,
		},
		Tracing:   Tracing{SampleRatio: 1},
		Log:       Log{Level: "info", Format: "text"},
		Language:  Language{Default: "en", TimeZone: "UTC"},
		Firewall:  Firewall{AppID: "API", KeysPerRule: 200_000},
		Files:     Files{S3Region: "us-east-1", UserQuota: 100},
		Blockage:  Blockage{ClosureType: 1},
		Providers: Providers{KeyHeader: "X-MBX-APIKEY", Timeout: 10 * time.Second, Keep: 90 * 24 * time.Hour},
		Rates:     Rates{KeyHeader: "Authorization", Every: 5 * time.Minute, Timeout: 10 * time.Second},
		KYC: KYC{FrontType: 1, BackType: 2, SelfieType: 3, AddressType: 4, AccountsPerIdentity: 1,
			IdentityTimeout: 5 * time.Second},

		Transactions: Transactions{FinalizedDeposit: 2, HotWallet: 6, TimeOut: 7},
	}
}

// Resolved returns the configuration with the defaults that depend on other keys or on the machine, and with URLs and
// origins in a normal form. Resolved values do not change.
func (c Config) Resolved() Config {
	h := &c.HTTP
	h.BasePath = strings.TrimRight(h.BasePath, "/")
	h.PublicURL = strings.TrimRight(h.PublicURL, "/")
	if h.PublicURL == "" {
		h.PublicURL = "http://" + reachable(h.Addr) + h.BasePath
	}
	h.CORSOrigins, c.WebAuthn.Origins = normalOrigins(h.CORSOrigins), normalOrigins(c.WebAuthn.Origins)
	if c.Database.URL == "" {
		c.Database.URL = Secret("sqlite:" + filepath.Join(c.DataDir, "castellan.db"))
	}
	if c.Keys.MasterFile == "" {
		c.Keys.MasterFile = filepath.Join(c.DataDir, "master.key")
	}
	if c.Sessions.TTL == 0 {
		c.Sessions.TTL = c.Tokens.SessionTTL
	}
	if c.Password.HashSlots == 0 {
		// GOMAXPROCS, not NumCPU: it respects the quota of a container.
		c.Password.HashSlots = max(1, runtime.GOMAXPROCS(0)-1)
	}
	if c.Mail.Port == 0 {
		c.Mail.Port = map[string]int{"starttls": 587, "tls": 465, "none": 25}[c.Mail.TLS]
	}
	c.Geo.CDNURL = strings.TrimRight(c.Geo.CDNURL, "/")
	c.Files.CDNURL = strings.TrimRight(c.Files.CDNURL, "/")
	if c.Files.Folder == "" {
		c.Files.Folder = filepath.Join(c.DataDir, "files")
	}
	if c.Push.Contact == "" && strings.HasPrefix(h.PublicURL, "https://") {
		c.Push.Contact = h.PublicURL
	}
	// A lease that was chosen before this key existed stays sufficient.
	if c.Source("push.timeout") == FromDefault && c.Push.Timeout >= c.Outbox.Lease {
		c.Push.Timeout = max(time.Second, c.Outbox.Lease/2)
	}
	if c.Source("http.max_connections_per_ip") == FromDefault && len(h.TrustedProxies) > 0 {
		h.MaxConnectionsPerIP = 0 // all connections come from a proxy's address
	}
	if c.Source("geo.allow_private") == FromDefault && c.Dev {
		c.Geo.AllowPrivate = true
	}
	if c.Source("registration.enabled") == FromDefault && c.Dev {
		c.Registration.Enabled = true
	}
	if c.Dev {
		c.raiseCaps()
	}
	return c
}

// raiseCaps makes the defaults of the caps of starts and messages a hundred times higher: a developer logs in more
// often than a user. Bounds on wrong values and on pushes stay as they are.
func (c *Config) raiseCaps() {
	l, def := &c.Limits, Default().Limits
	for _, it := range []struct {
		key   string
		cap   *int
		usual int
	}{
		{"limits.reset_per_phone", &l.ResetPerPhone, def.ResetPerPhone},
		{"limits.reset_per_ip", &l.ResetPerIP, def.ResetPerIP},
		{"limits.destination_per_day", &l.DestinationPerDay, def.DestinationPerDay},
		{"limits.user_per_day", &l.UserPerDay, def.UserPerDay},
		{"limits.ip_per_hour", &l.IPPerHour, def.IPPerHour},
		{"limits.destination_per_hour", &l.DestinationPerHour, def.DestinationPerHour},
	} {
		if c.Source(it.key) == FromDefault && *it.cap == it.usual {
			*it.cap *= 100
		}
	}
	if c.Source("limits.destination_per_hour") == FromDefault { // a configured cap of the day stays sufficient
		l.DestinationPerHour = min(l.DestinationPerHour, max(def.DestinationPerHour, l.DestinationPerDay))
	}
}

// reachable converts a listening address into one that a client on this machine can call: an address of all interfaces
// is no host name.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, ok := parseIP(host); host == "" || ok && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// normalOrigins writes origins as browsers do: lower case, without the default port. Validate reports invalid ones.
func normalOrigins(all []string) (normal []string) {
	for _, o := range all {
		o = strings.ToLower(o)
		switch {
		case strings.HasPrefix(o, "https://"):
			o = strings.TrimSuffix(o, ":443")
		case strings.HasPrefix(o, "http://"):
			o = strings.TrimSuffix(o, ":80")
		}
		normal = append(normal, o)
	}
	return normal
}
