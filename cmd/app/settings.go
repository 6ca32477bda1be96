package app

import (
	"crypto/ecdsa"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"castellan/config"
	"castellan/domain/challenge"
	"castellan/domain/challenge/stepup"
	"castellan/domain/geo"
	"castellan/domain/message"
	"castellan/domain/mfa"
	"castellan/domain/password"
	"castellan/domain/user"
	"castellan/outbound/dispatch"
	"castellan/outbound/geoip"
	"castellan/outbound/mail"
	"castellan/outbound/push"
	"castellan/outbound/sms"
)

// senders are the channels that exist: those given, those an operator
// configured, and in development mode the others by the development outbox
// (D-2FA-29). Wake-ups need nobody's account and are on until they are switched
// off.
func senders(c config.Config, given map[message.Channel]message.Sender, vapid *ecdsa.PrivateKey) (map[message.Channel]message.Sender, error) {
	out := map[message.Channel]message.Sender{}
	if c.Mail.Configured() {
		m, err := mail.New(mailConfig(c))
		if err != nil {
			return nil, fmt.Errorf("mail: %w", err)
		}
		out[message.MAIL] = m
	}
	if c.SMS.Configured() {
		g, err := sms.New(smsConfig(c.SMS))
		if err != nil {
			return nil, fmt.Errorf("sms: %w", err)
		}
		out[message.SMS] = g
	}
	if p := c.Push; p.Enabled {
		d, err := push.New(push.Config{VAPID: vapid, Contact: p.Contact, WebhookSecret: p.WebhookSecret.Reveal(), Hosts: p.Hosts,
			AllowPrivate: p.AllowPrivate || c.Dev, AllowPlain: c.Dev, CAFile: p.CAFile, Timeout: p.Timeout})
		if err != nil {
			return nil, err
		}
		out[message.Push] = d
	}
	maps.Copy(out, given)
	if c.Dev {
		for _, ch := range []message.Channel{message.MAIL, message.SMS, message.Push} {
			if out[ch] == nil {
				out[ch] = dispatch.Local{}
			}
		}
	}
	return out, nil
}

// revocationLife is how long anything that a revocation must stop can live.
func revocationLife(c config.Config) time.Duration {
	return max(c.Tokens.XAuthTTL, mfa.MaxMethodMs*time.Millisecond+c.MFA.PAuthGrace)
}

func rules(c config.Config) challenge.Rules {
	r := challenge.DefaultRules()
	r.MaxRenewals, r.MethodAttempts, r.ChallengeAttempts = c.MFA.MaxRenewals, c.MFA.MethodAttempts, c.MFA.ChallengeAttempts
	r.OTPBudget, r.OTPBudgetWindowMs = c.MFA.OTPBudget, c.MFA.OTPBudgetWindow.Milliseconds()
	r.TOTPBudget, r.TOTPBudgetWindowMs = c.MFA.TOTPBudget, c.MFA.TOTPBudgetWindow.Milliseconds()
	return r
}

func guardRules(c config.Config) password.GuardRules {
	r := password.DefaultGuardRules()
	r.PerPrefix, r.Window, r.Total = c.Limits.WrongPasswords, c.Limits.WrongPasswordWindow, c.Limits.WrongPasswordsDay
	return r
}

func stepupConfig(c config.Config) stepup.Config {
	s := stepup.Config{TTL: c.MFA.ChallengeTTL, Grace: c.MFA.PAuthGrace, ExecWait: c.MFA.ExecWait, MaxOpen: c.MFA.MaxOpen, Lease: c.Outbox.Lease,
		MaxCodeAge: time.Duration(challenge.DefaultRules().CodeMaxAgeMs) * time.Millisecond, Language: c.Language.Default}
	if c.Limits.Enabled {
		s.Caps = stepup.Caps{DestinationHour: c.Limits.DestinationPerHour, DestinationDay: c.Limits.DestinationPerDay, UserDay: c.Limits.UserPerDay}
		s.Push = stepup.PushCaps{Pending: c.Limits.PushPending, Denials: c.Limits.PushDenials, Window: c.Limits.PushDenialWindow, Pause: c.Limits.PushPause}
		s.PrefixHour, s.DialDay = c.Limits.IPPerHour, c.Limits.CountryPerDay
	}
	return s
}

// Locator tells countries by the operator's file, else by the program's table.
func Locator(c config.Config) (geo.Locator, error) {
	if c.Geo.MMDBFile == "" {
		return geoip.Embedded{}, nil
	}
	f, err := geoip.Open(c.Geo.MMDBFile)
	if err != nil {
		return nil, fmt.Errorf("geo.mmdb_file: %w", err)
	}
	return f, nil
}

func geoPolicy(c config.Config) geo.Policy {
	return geo.Policy{AllowPrivate: c.Geo.AllowPrivate, AllowUnknown: c.Geo.AllowUnknown}
}

// admits judges whoever has no token yet by the filter in the account's row
// (D-GEO-02).
func admits(c config.Config) func(user.User, challenge.Starter) bool {
	policy := geoPolicy(c)
	return func(u user.User, from challenge.Starter) bool {
		if u.Countries == "" {
			return true
		}
		ip, _ := netip.ParseAddr(from.IP) // what is no address is nowhere
		return policy.Admits(u.Countries, from.Country, ip)
	}
}

// NewHasher returns the hasher of the configured work and bounds.
func NewHasher(c config.Config) (*password.Hasher, error) {
	return password.NewHasher(password.HasherOptions{
		Params: password.Params{MemoryKiB: uint32(c.Password.Argon2MemoryKiB), Passes: uint32(c.Password.Argon2Time), Lanes: uint8(c.Password.Argon2Parallelism)},
		Slots:  c.Password.HashSlots, Queue: c.Password.Queue, Wait: c.Password.QueueWait,
	})
}

func mailConfig(c config.Config) mail.Config {
	m := c.Mail
	return mail.Config{Host: m.Host, Port: m.Port, TLS: m.TLS, Username: m.Username, Password: m.Password.Reveal(),
		From: m.From, FromName: m.FromName, CAFile: m.CAFile, Timeout: m.Timeout, Connections: c.Outbox.Workers}
}

func smsConfig(c config.SMS) sms.Config {
	return sms.Config{URL: c.URL.Reveal(), Method: c.Method, Format: c.Format, Preset: c.Preset, Fields: c.Params.Reveal(), Body: c.Body.Reveal(),
		Headers: c.Headers.Reveal(), Username: c.Username, Password: c.Password.Reveal(), From: c.Sender, SuccessCodes: c.SuccessCodes, Timeout: c.Timeout}
}
