package stepup

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/mfa"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/client"
	"castellan/domain/kit/keyring"
)

// Messenger creates codes and the messages that carry them, and decides by the caps which may be sent (caps.go).
// Starts, renewals and notices share one.
type Messenger struct {
	Config   Config
	Catalog  func() *mfa.Catalog
	Book     *message.Book
	Ring     *keyring.Ring
	UserGate UserGate
	// Store is required if decoys are started or pushes wait for an answer.
	Store    challenge.Store
	Outbox   outbox.Store
	Dispatch Dispatcher
	Now      func() time.Time
	// Capped counts how often a cap refused a start or a renewal with a proof, or removed a method from a challenge.
	Capped atomic.Int64

	strangers strangers
}

// letter is the message of one OTP on its way into the outbox.
type letter struct {
	method int
	to     string
	lang   string
	row    outbox.Message
	text   message.Rendered
}

// row returns the outbox row of a method's current OTP, without its payload. Its id is the key by which a provider
// recognises a repeat.
func (s *Messenger) row(c challenge.Challenge, m challenge.Method, userID, to, ip string) outbox.Message {
	made := time.UnixMilli(m.MadeAt)
	return outbox.Message{
		ID: fmt.Sprintf("%s.%s.%d", c.ID, m.ID, m.Generation), ChallengeID: c.ID, MethodID: m.ID, Generation: m.Generation,
		UserID:  userID,
		Channel: message.Channel(m.Name), Destination: s.destination(to), Prefix: prefix(ip), Dial: s.dial(to),
		Uncounted: s.Config.uncapped(), State: outbox.Queued,
		CreatedAt: made, ExpiresAt: time.UnixMilli(m.ExpiresAt), LeaseUntil: made.Add(s.Config.Lease),
	}
}

// reaches reports whether a method's message has a channel.
func (s *Messenger) reaches(n challenge.Name) bool {
	return !n.Sent() || s.Dispatch.Offers(message.Channel(n))
}

// seal creates the code of a letter that may be sent: its digest into the method, its message into the row. If the
// letter is held back, every value for the method is wrong, and the row looks like any other. It costs the same work
// and the same bytes, because its starter proved nothing: an unused code is sealed, and no value has the digest.
func (s *Messenger) seal(l *letter, m *challenge.Method, c challenge.Challenge, out bool) {
	if !out {
		l.row.State = outbox.Discarded
	}
	code := newCode()
	sum := s.Ring.Hash("otp", c.ID, m.ID, code)
	m.Digest = challenge.Digest{Key: sum.Key, Sum: sum.Sum}
	title := strings.TrimSpace(s.Catalog().ActionTitle(c.Action, l.lang) + " " + c.Brief)
	l.text = s.Book.Render(l.row.Channel, m.Template, l.lang, l.to, message.Values{
		"otp": code, "action": title, "expire": seconds(m.LifetimeMs), "ip": c.Starter.IP,
	})
	plain, _ := l.text.AppendBinary(nil) // never fails
	l.row.Payload = s.Ring.Seal(plain, challenge.PayloadData(c.ID, m.ID, m.Generation))
	if !out {
		rand.Read(m.Digest.Sum)
		l.text = message.Rendered{}
	}
}

// deliver passes a committed letter to the dispatcher, which sends it. A letter discarded with a payload is settled
// like a sent one.
func (s *Messenger) deliver(l letter) {
	if l.row.Payload != nil {
		s.Dispatch.Deliver(l.row, l.text)
	}
}

// Destination returns the keyed hash that counts messages to one destination. It uses the steady key, so counts
// survive a rotation.
func Destination(ring *keyring.Ring, to string) []byte {
	return ring.StableHashes("destination", to)[0]
}

// destinations returns the concatenated hashes that may have counted messages to one destination in the past day.
// Destination is the first. It is the only one unless a key was replaced.
func (s *Messenger) destinations(to string) []byte {
	return slices.Concat(s.Ring.StableHashes("destination", to)...)
}

func (s *Messenger) destination(to string) []byte { return Destination(s.Ring, to) }

func destination(a challenge.Account, n challenge.Name) string {
	if n == challenge.SMS {
		return a.Phone
	}
	return a.Mail
}

// language returns the starter's language, else the user's stored one, else the default of the installation
// (D-GEN-16).
func (s *Messenger) language(asked, stored string) string {
	return cmp.Or(asked, stored, s.Config.Language)
}

// seconds rounds up: a text never gives a code 0 seconds (D-MFA-13).
func seconds(ms int64) string { return fmt.Sprint((ms + 999) / 1000) }

// newCode draws six digits, all values equally likely.
func newCode() string {
	const n = 1_000_000
	for {
		var b [4]byte
		rand.Read(b[:])
		if v := binary.BigEndian.Uint32(b[:]); v < (1<<32-1)/n*n {
			return fmt.Sprintf("%06d", v%n)
		}
	}
}

// Hint masks a destination. A phone keeps the country code and the last two digits, an address the first letter and
// the domain (D-2FA-26).
func Hint(n challenge.Name, to, dial string) string {
	if n == challenge.MAIL {
		name, domain, ok := strings.Cut(to, "@")
		if !ok || name == "" {
			return "***"
		}
		first := []rune(name)[0]
		return string(first) + "***@" + domain
	}
	keep := 1 // the plus
	if strings.HasPrefix(to[min(1, len(to)):], dial) {
		keep += len(dial)
	}
	if len(to) < keep+4 {
		return "***"
	}
	return to[:keep] + strings.Repeat("*", len(to)-keep-2) + to[len(to)-2:]
}

func prefix(ip string) string {
	a, _ := netip.ParseAddr(ip) // an invalid address has the prefix ""
	return client.Prefix(a)
}
