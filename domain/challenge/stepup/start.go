package stepup

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"castellan/domain/challenge"
	"castellan/domain/client"
	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/id"
	"castellan/domain/keyring"
	"castellan/domain/message"
	"castellan/domain/mfa"
	"castellan/domain/outbox"
)

// Start implements challenge.Starts. The challenge, the outbox rows of its
// codes, the challenges that make room for it and r.With commit together;
// commit.ErrFenced means that the account or a fence of r.With moved on while
// deciding: read again and start over.
func (s *Service) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	action, ok := s.Actions[r.Action]
	if !ok {
		return challenge.Started{}, fault.New(fault.InvalidState, "no action of this code is registered")
	}
	now := s.Now()
	if r.Decoy != "" {
		r.Account.Mail, r.Proven = s.mailOf(r.Decoy), false
	}
	plan, offer, err := s.offer(now, r)
	if err != nil {
		return challenge.Started{}, err
	}
	c := s.build(now, r, action.Flow, offer, plan)
	if action.KeepsFilter {
		c.Filter = r.Account.Countries
	}

	letters := s.letters(c, r)
	leave, err := s.reserve(ctx, now, c, r, letters)
	if err != nil {
		return challenge.Started{}, err
	}
	if leave.NoPush {
		if err := withoutPush(&c, letters); err != nil {
			return challenge.Started{}, err
		}
	}
	wakes, err := s.wakes(ctx, c)
	if err != nil {
		return challenge.Started{}, err
	}
	writes := make([]commit.Write, 0, 4+len(letters)+len(wakes)+len(leave.Supersede)+len(r.With))
	writes = append(writes, Credentials(c))
	for i := range letters {
		l := &letters[i]
		s.seal(l, &c.Methods[l.method], c, leave.Send[i])
		writes = append(writes, outbox.Add{Message: l.row})
	}
	for _, w := range wakes {
		writes = append(writes, outbox.Add{Message: w.row})
	}
	for _, old := range leave.Supersede {
		writes = append(writes, challenge.Supersede{ID: old})
	}
	insert := challenge.Insert{Challenge: c}
	if r.Command != nil {
		insert.Commanded = true
		insert.Command = s.Ring.Seal(r.Command, challenge.CommandData(c.ID))
	}
	writes = append(append(writes, insert), r.With...)
	c = insert.Challenge
	c.Version = 1
	s.Challenges.Prime(c, insert.Command)
	if err := s.Commit.Commit(ctx, writes...); err != nil {
		s.Challenges.Refresh(c.ID)
		return challenge.Started{}, err
	}
	for _, old := range leave.Supersede {
		s.Challenges.Refresh(old)
	}
	for _, l := range append(letters, wakes...) {
		s.deliver(l)
	}
	until := time.UnixMilli(c.ExpiresAt).Add(s.Config.Grace)
	token, err := s.Tokens.PAuth(c.ID, until)
	return challenge.Started{Challenge: c, PAuth: token, ExpiresAt: until}, err
}

// offer decides which methods the account is asked for.
func (s *Service) offer(now time.Time, r challenge.StartRequest) (mfa.Plan, []mfa.Planned, error) {
	plan := s.Catalog().Plan(now, r.Action, r.Account.UserID, r.Starter.IP)
	offer, err := plan.Offer(func(n challenge.Name) bool {
		owns := r.Account.Owns(n) || r.Decoy != "" // a decoy owns what is asked for
		return owns && s.reaches(n)
	})
	return plan, offer, err
}

func (s *Service) build(now time.Time, r challenge.StartRequest, flow challenge.Flow, offer []mfa.Planned, plan mfa.Plan) challenge.Challenge {
	ms, ttl := now.UnixMilli(), s.Config.TTL.Milliseconds()
	for _, p := range offer {
		ttl = max(ttl, p.LifetimeMs)
	}
	a := r.Account
	c := challenge.Challenge{
		ID: id.New(now), UserID: a.UserID, Action: r.Action, Flow: flow, CreatedAt: ms, ExpiresAt: ms + ttl,
		Body: challenge.Body{Subject: a.UserID, Required: plan.Required, CV: a.CV, SV: a.SV, Proven: r.Proven, Starter: r.Starter,
			Methods: make([]challenge.Method, len(offer))},
	}
	if r.Decoy != "" {
		c.UserID, c.Subject, c.Kind = "", r.Decoy, challenge.Decoy
	}
	for i, p := range offer {
		m := challenge.Method{ID: id.New(now), Name: p.Name, Template: p.Template, LifetimeMs: p.LifetimeMs, RenewMs: p.RenewMs, Mandatory: p.Mandatory}
		if m.LifetimeMs == 0 { // no limit of its own: it lives as long as the challenge (D-2FA-03)
			m.LifetimeMs = ttl
		}
		if p.Name.Sent() && s.Config.MaxCodeAge > 0 {
			m.LifetimeMs = min(m.LifetimeMs, s.Config.MaxCodeAge.Milliseconds())
		}
		if p.Code != string(p.Name) {
			m.Code = p.Code
		}
		m.ExpiresAt = ms + m.LifetimeMs
		if p.Name.Sent() {
			m.MadeAt, m.Hint = ms, Hint(p.Name, destination(a, p.Name), a.Dial)
		}
		if p.Name == challenge.PUSH && plan.NumberMatching {
			m.Number = newNumber()
			sum := s.Ring.Hash("otp", c.ID, m.ID, approved+":"+m.Number)
			m.Digest = challenge.Digest{Key: sum.Key, Sum: sum.Sum}
		}
		c.Methods[i] = m
	}
	return c
}

// letter is the message of one OTP on its way into the outbox.
type letter struct {
	method int
	to     string
	lang   string
	row    outbox.Message
	text   message.Rendered
}

func (s *Service) letters(c challenge.Challenge, r challenge.StartRequest) []letter {
	var ls []letter
	for i, m := range c.Methods {
		if !m.Name.Sent() {
			continue
		}
		to := destination(r.Account, m.Name)
		row := s.row(c, m, c.Owner(), to, r.Starter.IP)
		row.Proven = r.Proven
		ls = append(ls, letter{method: i, to: to, lang: s.language(r.Starter.Language, r.Account.Language), row: row})
	}
	return ls
}

// row is the outbox row of a method's present OTP, without its payload. Its id
// is the key by which a provider recognises a repeat.
func (s *Service) row(c challenge.Challenge, m challenge.Method, userID, to, ip string) outbox.Message {
	made := time.UnixMilli(m.MadeAt)
	return outbox.Message{
		ID: fmt.Sprintf("%s.%s.%d", c.ID, m.ID, m.Generation), ChallengeID: c.ID, MethodID: m.ID, Generation: m.Generation, UserID: userID,
		Channel: message.Channel(m.Name), Destination: s.destination(to), Prefix: prefix(ip), Dial: s.dial(to), Uncounted: s.Config.uncapped(), State: outbox.Queued,
		CreatedAt: made, ExpiresAt: time.UnixMilli(m.ExpiresAt), LeaseUntil: made.Add(s.Config.Lease),
	}
}

func (s *Service) reserve(ctx context.Context, now time.Time, c challenge.Challenge, r challenge.StartRequest, letters []letter) (Grant, error) {
	res := Reservation{ChallengeID: c.ID, Action: c.Action, ExpiresAt: c.ExpiresAt, MaxOpen: s.Config.MaxOpen, Caps: s.Config.Caps}
	if slices.ContainsFunc(c.Methods, isPush) {
		res.Push = &s.Config.Push
	}
	for _, l := range letters {
		res.Sendings = append(res.Sendings, Sending{Channel: l.row.Channel, Destination: l.row.Destination, Proven: l.row.Proven})
	}
	leave, err := s.userGate(r.Decoy != "").Reserve(ctx, c.Owner(), res)
	if err != nil || len(letters) == 0 {
		return leave, err
	}
	for i := range letters {
		if leave.Send[i], err = s.afford(ctx, now, &letters[i].row, i, leave.Send[i]); err != nil {
			return leave, err
		}
	}
	if r.Starter.SessionID != "" { // a caller who is logged in is told (D-EXT-05)
		for _, out := range leave.Send {
			if !out {
				return leave, fault.New(fault.RateLimited, "too many messages were sent; try later").After(time.Minute)
			}
		}
	}
	return leave, nil
}

// afford is affordable for a message that the user's caps let out or held back.
// Who proved nothing could tell by the time what was held back, so in his case
// the question is asked either way.
func (s *Service) afford(ctx context.Context, now time.Time, m *outbox.Message, ahead int, out bool) (bool, error) {
	if !out && m.Proven {
		return false, nil
	}
	may, err := s.affordable(ctx, now, m, ahead)
	return out && may, err
}

// affordable judges the caps that are not one user's: of the network that
// causes the message, and of the country it goes to (D-EXT-05). ahead counts
// the messages of the same start before it.
func (s *Service) affordable(ctx context.Context, now time.Time, m *outbox.Message, ahead int) (bool, error) {
	if s.Config.PrefixHour > 0 {
		used, err := s.Outbox.Usage(ctx, now, m.Prefix)
		if err != nil || used+ahead >= s.Config.PrefixHour {
			return false, err
		}
	}
	if budget := s.Config.DialDay[m.Dial]; m.Dial != "" && budget > 0 {
		used, err := s.Outbox.Spent(ctx, now, m.Dial)
		if err != nil || used >= budget {
			return false, err
		}
	}
	return true, nil
}

// dial is the longest dialling prefix of a phone that has a budget; "" for
// none.
func (s *Service) dial(to string) (dial string) {
	for p := range s.Config.DialDay {
		if len(p) > len(dial) && strings.HasPrefix(to, "+"+p) {
			dial = p
		}
	}
	return dial
}

// seal makes the OTP of a letter that may go out: its digest into the method,
// its message into the row. A letter held back leaves a method whose every
// value is wrong, and a row that looks like any other. Where whoever caused it
// proved nothing it costs the same work and the same bytes: an OTP that nobody
// will know is sealed, and its digest is of no value at all.
func (s *Service) seal(l *letter, m *challenge.Method, c challenge.Challenge, out bool) {
	if !out {
		l.row.State = outbox.Discarded
		if c.Proven {
			return
		}
	}
	code := newCode()
	sum := s.Ring.Hash("otp", c.ID, m.ID, code)
	m.Digest = challenge.Digest{Key: sum.Key, Sum: sum.Sum}
	l.text = s.Book.Render(l.row.Channel, m.Template, l.lang, l.to, message.Values{
		"otp": code, "action": s.Catalog().ActionTitle(c.Action, l.lang), "expire": seconds(m.LifetimeMs), "ip": c.Starter.IP,
	})
	plain, _ := l.text.AppendBinary(nil) // it has no error to give
	l.row.Payload = s.Ring.Seal(plain, challenge.PayloadData(c.ID, m.ID, m.Generation))
	if !out {
		rand.Read(m.Digest.Sum)
		l.text = message.Rendered{}
	}
}

// deliver hands a committed letter to the dispatcher: to be sent, or, where it
// was discarded with a payload, to be settled like a sent one.
func (s *Service) deliver(l letter) {
	if l.row.Payload != nil {
		s.Dispatch.Deliver(l.row, l.text)
	}
}

// Destination is the keyed hash by which messages to one place are counted.
// The oldest key makes it, so that counts survive a rotation.
func Destination(ring *keyring.Ring, to string) []byte {
	sums := ring.Hashes("destination", to)
	return sums[len(sums)-1].Sum
}

func (s *Service) destination(to string) []byte { return Destination(s.Ring, to) }

func destination(a challenge.Account, n challenge.Name) string {
	if n == challenge.SMS {
		return a.Phone
	}
	return a.Mail
}

// language is what the starter asked for, else what the user has stored, else
// the default of the installation (D-GEN-16).
func (s *Service) language(asked, stored string) string {
	return cmp.Or(asked, stored, s.Config.Language)
}

func seconds(ms int64) string { return fmt.Sprint(ms / 1000) }

// newCode draws six digits, each value as likely as any other.
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

// Hint masks a destination: of a phone the country code and the last two
// digits stay, of an address the first letter and the domain (D-2FA-26).
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
	a, _ := netip.ParseAddr(ip) // what is no address has the prefix ""
	return client.Prefix(a)
}
