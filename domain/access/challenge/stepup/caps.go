package stepup

import (
	"context"
	"slices"
	"strings"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/fault"
)

// What caps do to a message (D-EXT-05). Whoever proved nothing is told nothing: the
// message is born discarded, and no value is right. A starter with a session or the
// right password is told, and nothing is started that would wait for a code which
// nobody sends.

// afford judges the caps that are not one user's. Of the network that causes a
// message they count what was caused without a proof, and hold back nothing else, so
// that nobody's logins silence a neighbour. Of the budget of a country the half is
// kept for who proved something. ahead counts the messages of the same start before
// this one.
func (s *Messenger) afford(ctx context.Context, now time.Time, m *outbox.Message, ahead int) (bool, error) {
	if s.Config.PrefixHour > 0 && !m.Proven {
		used, err := s.Outbox.Usage(ctx, now, m.Prefix)
		if err != nil || used+ahead >= s.Config.PrefixHour {
			return false, err
		}
	}
	if budget := s.Config.DialDay[m.Dial]; m.Dial != "" && budget > 0 {
		all, unproven, err := s.Outbox.Spent(ctx, now, m.Dial)
		if err != nil || all >= budget || !m.Proven && unproven >= budget/2 {
			return false, err
		}
	}
	return true, nil
}

// dial is the longest dialling prefix of a phone that has a budget; "" for
// none.
func (s *Messenger) dial(to string) (dial string) {
	for p := range s.Config.DialDay {
		if len(p) > len(dial) && strings.HasPrefix(to, "+"+p) {
			dial = p
		}
	}
	return dial
}

// reserve asks the user's owner for leave to start, and the other caps for its
// messages. Of a challenge that was started with a proof they are judged before.
func (s *Starter) reserve(ctx context.Context, now time.Time, c challenge.Challenge, letters []letter) (Grant, error) {
	res := Reservation{ChallengeID: c.ID, Action: c.Action, ExpiresAt: c.ExpiresAt, MaxOpen: s.Config.MaxOpen,
		Caps: s.Config.Caps}
	if slices.ContainsFunc(c.Methods, isPush) {
		res.Push = &s.Config.Push
	}
	for _, l := range letters {
		res.Sendings = append(res.Sendings, s.sendingOf(l))
	}
	grant, err := s.userGate(c.Kind).Reserve(ctx, c.Owner(), res)
	if err != nil || c.Proven {
		return grant, err
	}
	for i := range letters { // each is judged, so that the time of an answer says nothing
		may, err := s.afford(ctx, now, &letters[i].row, i)
		if err != nil {
			return grant, err
		}
		grant.Send[i] = grant.Send[i] && may
	}
	return grant, nil
}

func (s *Messenger) sendingOf(l letter) Sending {
	return Sending{Channel: l.row.Channel, Destination: s.destinations(l.to), Proven: l.row.Proven}
}

// withinBudget judges the budgets of countries for a start with a proof, before
// anything of it is counted.
func (s *Starter) withinBudget(ctx context.Context, now time.Time, c *challenge.Challenge,
	letters []letter) ([]letter, error) {
	send := make([]bool, len(letters))
	for i := range letters {
		var err error
		if send[i], err = s.afford(ctx, now, &letters[i].row, i); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(send, false) {
		return letters, nil
	}
	if !carried(*c) {
		return nil, s.capped(time.Minute)
	}
	return s.without(c, letters, send), nil
}

// withinCaps judges what a user's owner said of the messages of a start with a proof.
// The owner, who lets out all of them or counts none, is asked again for each where
// the challenge goes on without the others.
func (s *Starter) withinCaps(ctx context.Context, now time.Time, c *challenge.Challenge, letters []letter,
	grant Grant) ([]letter, error) {
	if !slices.Contains(grant.Send, false) {
		return letters, nil
	}
	if !carried(*c) {
		sent, err := s.Outbox.Sendings(ctx, c.UserID, now.Add(-day))
		if err != nil {
			return nil, err
		}
		return nil, s.capped(s.Config.Caps.wait(now, sent, letters, s.destinations))
	}
	for i, out := range grant.Send {
		if !out {
			continue
		}
		var err error
		if grant.Send[i], err = s.UserGate.Send(ctx, c.UserID, s.sendingOf(letters[i]), s.Config.Caps); err != nil {
			return nil, err
		}
	}
	return s.without(c, letters, grant.Send), nil
}

// carried reports whether a challenge can be completed without any code that is sent.
func carried(c challenge.Challenge) bool {
	n := 0
	for _, m := range c.Methods {
		switch {
		case !m.Name.Sent():
			n++
		case m.Mandatory:
			return false
		}
	}
	return n >= c.Required
}

// without takes the methods out of a challenge whose messages may not go out.
func (s *Starter) without(c *challenge.Challenge, letters []letter, send []bool) []letter {
	kept := letters[:0]
	dropped := 0
	for i, l := range letters {
		l.method -= dropped
		if send[i] {
			kept = append(kept, l)
			continue
		}
		s.Capped.Add(1)
		c.Methods = slices.Delete(c.Methods, l.method, l.method+1)
		dropped++
	}
	return kept
}

// capped is what a starter with a proof is told when a message must not go out.
func (s *Messenger) capped(wait time.Duration) error {
	s.Capped.Add(1)
	return fault.New(fault.RateLimited, "too many messages were sent; try later").After(wait)
}

const day = 24 * time.Hour

// let returns which of the sendings of a start without a proof the caps let out: such starts
// have half of each cap. sent is what went out in the day before. Destinations are counted
// apart: otherwise the codes of one would end later where those of another are withheld, and
// show that it has an account.
func (c Caps) let(now time.Time, sent []outbox.Sending, sendings []Sending) []bool {
	out, hour := make([]bool, len(sendings)), now.Add(-time.Hour).UnixMilli()
	below := func(n, limit int) bool { return limit <= 0 || n < (limit+1)/2 }
	for i, s := range sendings {
		var inDay, inHour int
		for _, o := range sent {
			if o.To(s.Destination) {
				inDay++
				if o.At > hour {
					inHour++
				}
			}
		}
		out[i] = below(inDay, c.UserDay) && below(inDay, c.DestinationDay) && below(inHour, c.DestinationHour)
		if out[i] {
			sent = append(sent, outbox.Sending{Destination: outbox.First(s.Destination), At: now.UnixMilli()})
		}
	}
	return out
}

// wait is how long it takes until the caps let out all letters of a start with a
// proof. sent is what went out in the day before, oldest first.
func (c Caps) wait(now time.Time, sent []outbox.Sending, letters []letter,
	hashes func(to string) []byte) time.Duration {
	// places is how long it takes until n more fit under a limit of a window.
	places := func(n, limit int, window time.Duration, counts func(outbox.Sending) bool) time.Duration {
		var at []int64
		for _, o := range sent {
			if counts(o) && o.At > now.Add(-window).UnixMilli() {
				at = append(at, o.At)
			}
		}
		tooMany := min(len(at)+n-limit, len(at))
		if limit <= 0 || tooMany <= 0 {
			return 0
		}
		return time.UnixMilli(at[tooMany-1]).Add(window).Sub(now)
	}
	wait := max(time.Second, places(len(letters), c.UserDay, day, func(outbox.Sending) bool { return true }))
	for _, l := range letters {
		there := func(o outbox.Sending) bool { return o.To(hashes(l.to)) }
		wait = max(wait, places(1, c.DestinationHour, time.Hour, there), places(1, c.DestinationDay, day, there))
	}
	return wait
}
