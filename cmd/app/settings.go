package app

import (
	"fmt"
	"maps"
	"time"

	"castellan/config"
	"castellan/domain/challenge"
	"castellan/domain/message"
	"castellan/domain/mfa"
	"castellan/domain/password"
	"castellan/domain/stepup"
	"castellan/outbound/dispatch"
	"castellan/outbound/mail"
	"castellan/outbound/sms"
)

// senders are the channels that exist: those given, those an operator
// configured, and in development mode the others by the development outbox
// (D-2FA-29).
func senders(c config.Config, given map[message.Channel]message.Sender) (map[message.Channel]message.Sender, error) {
	out := map[message.Channel]message.Sender{}
	if c.Mail.Configured() {
		m, err := mail.New(mail.Config{Host: c.Mail.Host, Port: c.Mail.Port, TLS: c.Mail.TLS, Username: c.Mail.Username, Password: c.Mail.Password.Reveal(),
			From: c.Mail.From, FromName: c.Mail.FromName, CAFile: c.Mail.CAFile, Timeout: c.Mail.Timeout, Connections: c.Outbox.Workers})
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

// NewHasher returns the hasher of the configured work and bounds.
func NewHasher(c config.Config) (*password.Hasher, error) {
	return password.NewHasher(password.HasherOptions{
		Params: password.Params{MemoryKiB: uint32(c.Password.Argon2MemoryKiB), Passes: uint32(c.Password.Argon2Time), Lanes: uint8(c.Password.Argon2Parallelism)},
		Slots:  c.Password.HashSlots, Queue: c.Password.Queue, Wait: c.Password.QueueWait,
	})
}

func smsConfig(c config.SMS) sms.Config {
	return sms.Config{URL: c.URL.Reveal(), Method: c.Method, Format: c.Format, Preset: c.Preset, Fields: c.Params.Reveal(), Body: c.Body.Reveal(),
		Headers: c.Headers.Reveal(), Username: c.Username, Password: c.Password.Reveal(), From: c.Sender, SuccessCodes: c.SuccessCodes, Timeout: c.Timeout}
}
