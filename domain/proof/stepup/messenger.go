package stepup

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/client"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/legible"
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

	strangers  strangers
	overtakers overtakers
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
		Channel: m.Name.Channel(), Destination: s.destination(to), Prefix: client.PrefixOf(ip), Dial: s.dial(to),
		Uncounted: s.Config.uncapped(), State: outbox.Queued,
		CreatedAt: made, ExpiresAt: time.UnixMilli(m.ExpiresAt), LeaseUntil: made.Add(s.Config.Lease),
	}
}

// reaches reports whether a method's message has a channel.
func (s *Messenger) reaches(n challenge.Name) bool {
	return !n.Sent() || s.Dispatch.Offers(n.Channel())
}

// seal creates the code of a letter that may be sent: its digest into the method, its message into the row. If the
// letter is held back, every value for the method is wrong, and the row looks like any other. It costs the same work
// and the same bytes, because its starter proved nothing: an unused code is sealed, and no value has the digest.
func (s *Messenger) seal(l *letter, m *challenge.Method, c challenge.Challenge, out bool) {
	if !out {
		l.row.State = outbox.Discarded
	}
	code := newCode()
	m.Digest = challenge.Digest(s.Ring.Hash("otp", c.ID, m.ID, code))
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

// maxBrief is the longest text of a service or a gateway, in bytes, that an SMS or a mail repeats. A longer one is left
// out, not cut.
const maxBrief = 80

// foreignBrief returns the words of a service or a gateway as the messages with codes repeat them, such as
// "(Order 7, Amount 5)". The words are not of this service, and the message is. So they are left out if they could be
// read as a host name or as a code, or have a character that could change the meaning of the message.
func foreignBrief(words string) string {
	words = strings.TrimSpace(words)
	if words == "" || len(words) > maxBrief || !legible.Valid(words) || strings.ContainsFunc(words, unfit) ||
		readsAsHost(words) || readsAsCode(words) {
		return ""
	}
	return "(" + words + ")"
}

func unfit(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Sc) && !strings.ContainsRune(" .,:+-—", r)
}

// dots are the characters that unfit admits and that are drawn like a dot: the Arabic zeros and a Lisu letter.
const dots = ".\u0660\u06f0\ua4f8"

// readsAsHost reports whether a text has a host name or an address. A telephone makes a link of it. Capitals and digits
// of a name do not matter; the dots of other scripts and widths are unfit.
func readsAsHost(text string) bool {
	runes := []rune(text)
	for i := 1; i+1 < len(runes); i++ {
		before, next := runes[i-1], runes[i+1]
		if strings.ContainsRune(dots, runes[i]) && !unicode.IsDigit(next) && inWord(next) &&
			(inWord(before) && (runes[i] == '.' || !unicode.IsDigit(before))) {
			return true
		}
	}
	numbers := strings.FieldsFunc(text, func(r rune) bool { return r != '.' && !unicode.IsDigit(r) })
	return strings.Contains(text, "::") ||
		slices.ContainsFunc(numbers, func(n string) bool { return strings.Count(n, ".") > 2 })
}

func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.Nd) }

// amount is an amount with separators of thousands that is followed by its currency, and has more digits than a code.
var amount = regexp.MustCompile(`(^|\pL[ :,]*)\d{1,3}(([.,]\d{3}){2,}([.,]\d\d)?|[.,]\d{3}[.,]\d\d) ?` +
	`(\p{Lu}{3}|\p{Sc})`)

// readsAsCode reports whether a text has as many digits as a code in a row. Only a letter that is drawn as one ends the
// row, because nothing else ends a code that is read. An amount with its currency is none.
func readsAsCode(text string) bool {
	n := 0
	for _, r := range amount.ReplaceAllString(text, "x") {
		switch {
		case unicode.IsDigit(r):
			n++
		case unicode.IsLetter(r) && !unicode.Is(unicode.Lm, r) && !strings.ContainsRune(dots, r):
			n = 0
		}
		if n == challenge.CodeDigits {
			return true
		}
	}
	return false
}
