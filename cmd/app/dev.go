package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"castellan/config"
	"castellan/domain/account/user"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/proof/stepup"
	"castellan/domain/session/session"
	"castellan/http/system"
	"castellan/outbound/dispatch"
	"castellan/persistence/delivery"
	"castellan/web/console"
)

// login is an account that development mode seeded.
type login struct {
	role, countryCode, phone, mail, password string
}

// loginsFile holds the seeded logins of development mode.
func loginsFile(dataDir string) string { return filepath.Join(dataDir, "dev-login.txt") }

func DemoLoginsFile(dataDir string) string { return filepath.Join(dataDir, "demo-logins.txt") }

// seedLogins creates an administrator and a demo user on the very first start, with random passwords. The file with the
// logins is written before the commit, so there is never an account without a known login.
func (v *Deployment) seedLogins(ctx context.Context, cfg config.Config) error {
	hasher, err := NewHasher(cfg)
	if err != nil {
		return err
	}
	defer hasher.Trim() // it serves no request
	logins := []login{
		{role: user.RoleAdmin, countryCode: "90", phone: "5320000001", mail: "admin@demo.castellan.test",
			password: RandomPassword()},
		{role: user.RoleUser, countryCode: "90", phone: "5320000002", mail: "demo@demo.castellan.test",
			password: RandomPassword()},
	}
	ran, err := v.DB.Once(ctx, seedOfLogins, func(ctx context.Context) error {
		for i, l := range logins {
			phone, err := user.Canonical(l.countryCode, l.phone)
			if err != nil {
				return err
			}
			hash, err := hasher.Hash(ctx, l.password)
			if err != nil {
				return err
			}
			at := time.Now().Add(time.Duration(i) * time.Millisecond) // so that ids have the order of the logins
			u := user.New(id.New(at), at)
			u.CountryCode, u.Phone, u.Email, u.EmailVerified, u.Demo = l.countryCode, phone, l.mail, true, true
			u.Name, u.Surname = "Demo", strings.ToUpper(l.role[:1])+l.role[1:]
			if l.role == user.RoleAdmin {
				u.Roles = []string{user.RoleAdmin}
			}
			if err := v.DB.Commit(ctx, user.Add{User: u, PasswordHash: hash}); err != nil {
				return err
			}
		}
		return writeLogins(loginsFile(cfg.DataDir), logins)
	})
	if err != nil {
		return fmt.Errorf("seed development logins: %w", err)
	}
	if ran {
		v.logins = logins
	}
	return nil
}

const seedOfLogins = "dev-logins"

// endDemo ends the sessions and challenges of the accounts of development mode: in production they can neither log in
// nor continue.
func (s *service) endDemo(ctx context.Context) error {
	if seeded, err := s.DB.Seeded(ctx, seedOfLogins); err != nil || !seeded {
		return err
	}
	demo, err := s.users.Demo(ctx)
	for _, u := range demo {
		if err == nil {
			_, err = s.logins.EndAll(ctx, session.Caller{By: audit.By{UserID: u.ID}})
		}
	}
	return err
}

func writeLogins(file string, logins []login) error {
	var b strings.Builder
	b.WriteString("Logins of development mode. They work only if dev is true.\n")
	for _, l := range logins {
		fmt.Fprintf(&b, "\n%s\n  countryCode  %s\n  phoneNumber  %s\n  email        %s\n  password     %s\n", l.role,
			l.countryCode, l.phone, l.mail, l.password)
	}
	return KeepLogins(file, b.String())
}

// KeepLogins writes logins to a file that only the owner can read. It returns when they are on the disk.
func KeepLogins(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// RandomPassword returns a password of 80 bits, in groups that a person can type.
func RandomPassword() string {
	t := strings.ToLower(rand.Text())
	return t[:4] + "-" + t[4:8] + "-" + t[8:12] + "-" + t[12:16]
}

// browsable returns a listening address as a person opens it on this machine. Browsers offer passkeys at localhost, and
// not at an IP address.
func browsable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && (ip.IsLoopback() || ip.IsUnspecified()) {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// banner prints once the URL and the logins.
func banner(w io.Writer, v *Deployment, version, dataDir, url, metrics string) {
	fmt.Fprintf(w, "\n  Castellan %s, development mode\n\n", version)
	fmt.Fprintf(w, "    Demo page    %s/   (login, challenge, device)\n", url)
	fmt.Fprintf(w, "    Device       %s/authenticator   (makes this browser a device that approves)\n", url)
	fmt.Fprintf(w, "    Sent codes   %s/dev/outbox/page   (JSON: %s/dev/outbox?to=…)\n", url, url)
	fmt.Fprintf(w, "    Interface    %s/docs\n", url)
	if _, ok := console.Built(); ok {
		fmt.Fprintf(w, "    Console      %s/console   (as user: the own account; as admin: everything)\n", url)
	}
	if metrics != "" {
		fmt.Fprintf(w, "    Metrics      http://%s/metrics\n", metrics)
	}
	for _, l := range v.logins {
		fmt.Fprintf(w, "    Log in as    %-5s  +%s %s  password %s  or by mail %s\n", l.role, l.countryCode, l.phone,
			l.password, l.mail)
	}
	fmt.Fprintf(w, "    Logins are kept in %s\n", loginsFile(dataDir))
	if _, err := os.Stat(DemoLoginsFile(dataDir)); err == nil {
		fmt.Fprintf(w, "    Demo data    the logins are in %s\n\n", DemoLoginsFile(dataDir))
	} else {
		fmt.Fprintf(w, "    Demo data    make demo, while this does not run (docs/demo.md)\n\n")
	}
}

// dev returns the additional information of development mode; nil in production.
func (s *service) dev() *system.Dev {
	if !s.cfg.Dev {
		return nil
	}
	return &system.Dev{Letters: letters(delivery.NewOutbox(s.DB), s.Ring), PublicURL: s.publicURL}
}

// letters lists the development outbox.
func letters(store outbox.Store, ring *keyring.Ring) func(ctx context.Context, to string, limit int) ([]system.Letter,
	error) {
	return func(ctx context.Context, to string, limit int) ([]system.Letter, error) {
		var destination []byte
		if to = CanonicalDestination(to); to != "" {
			destination = stepup.Destination(ring, to)
		}
		messages, err := store.Recent(ctx, destination, limit)
		if err != nil {
			return nil, err
		}
		out := []system.Letter{}
		for _, m := range messages {
			r, err := dispatch.Unseal(ring.Open, m)
			if err != nil {
				continue // sealed under deleted keys
			}
			out = append(out, system.Letter{Channel: string(r.Channel), To: r.To, Subject: r.Subject, Body: r.Text,
				Code: r.Code, ChallengeID: m.ChallengeID, At: m.CreatedAt})
		}
		return out, nil
	}
}

// CanonicalDestination parses a phone number in any spelling with its country, or an address. A + that a query turned
// into a space counts as +.
func CanonicalDestination(to string) string {
	to = strings.TrimSpace(to)
	if to == "" {
		return ""
	}
	if strings.Contains(to, "@") {
		if m, err := user.CanonicalMail(to); err == nil {
			return m
		}
		return to
	}
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, to)
	return "+" + strings.TrimPrefix(digits, "00")
}
