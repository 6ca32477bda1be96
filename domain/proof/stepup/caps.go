package stepup

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
)

// Effects of caps on a message (D-EXT-05). A starter without a proof sees no effect: the message is created as
// discarded, and no value is right. A starter with a session or the right password gets an error, and no challenge
// starts that would wait for a code that is never sent.

// afford checks the caps that do not belong to one user. The cap of the network counts and holds back only messages
// caused without a proof, so one user's logins do not silence a neighbour. Half of a country's budget is reserved for
// starters with a proof. ahead counts the messages of the same start before this one.
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

// dial returns the longest dialling prefix of a phone that has a budget; "" for none.
func (s *Messenger) dial(to string) (dial string) {
	for p := range s.Config.DialDay {
		if len(p) > len(dial) && strings.HasPrefix(to, "+"+p) {
			dial = p
		}
	}
	return dial
}

// reserve requests permission for a start from the user's owner, and checks the other caps for its messages. For a
// start with a proof those caps were checked before.
func (s *Starter) reserve(ctx context.Context, now time.Time, c challenge.Challenge, letters []letter,
	keys keys) (Grant, error) {
	if c.State != challenge.Pending { // completed by its start: it is never open, and sends nothing
		return Grant{}, nil
	}
	res := Reservation{ChallengeID: c.ID, Action: c.Action, ExpiresAt: c.ExpiresAt, MaxOpen: s.Config.MaxOpen,
		Caps: s.Config.Caps}
	if slices.ContainsFunc(c.Methods, isPush) && keys.wake(c) {
		res.Push = &s.Config.Push
	}
	for _, l := range letters {
		res.Sendings = append(res.Sendings, s.sendingOf(l))
	}
	grant, err := s.userGate(c.Kind).Reserve(ctx, c.Owner(), res)
	s.overtakers.note(now, c.ID, grant.Supersede)
	if err != nil || c.Proven {
		return grant, err
	}
	for i := range letters { // check each one, so that the response time reveals nothing
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

// withinBudget checks the budgets of countries for a start with a proof, before any of its messages counts.
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
		return nil, s.capped(time.Minute, countryCap)
	}
	return s.without(c, letters, send), nil
}

// withinCaps applies the owner's grant to the messages of a start with a proof. The owner allows all of them or
// counts none. So when the challenge continues without some messages, each of the others is requested again.
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

// carried reports whether a challenge can be completed without a sent code.
func carried(c challenge.Challenge) bool {
	n := 0
	for _, m := range c.Methods {
		switch {
		case !m.Name.Sent(), m.Order > 0:
			n++
		case m.Mandatory:
			return false
		}
	}
	return n >= c.Required
}

// without removes the methods from a challenge whose messages may not be sent.
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

// countryCap is the setting of the only cap that afford applies to a start with a proof.
const countryCap = "limits.country_per_day"

// capped returns the error for a starter with a proof when a message must not be sent; limit is the setting of the cap.
func (s *Messenger) capped(wait time.Duration, limit string) error {
	s.Capped.Add(1)
	return fault.New(fault.RateLimited, "too many messages were sent; try later").After(wait).By(limit)
}

const day = 24 * time.Hour

// allow returns which sendings of a start without a proof the caps allow: such starts have half of each cap. sent holds
// the messages of the last day. Destinations count separately. Otherwise the codes for one destination would end
// later when those for another are withheld, and show that it has an account.
func (c Caps) allow(now time.Time, sent []outbox.Sending, sendings []Sending) []bool {
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

// anyCap names the caps of one user. The owner's count is newer than the rows, which can show no full cap.
const anyCap = "limits.destination_per_hour, limits.destination_per_day or limits.user_per_day"

// wait returns how long it takes until the caps allow all letters of a start with a proof, and the setting of the cap
// that takes so long. sent holds the messages of the last day, oldest first.
func (c Caps) wait(now time.Time, sent []outbox.Sending, letters []letter,
	hashes func(to string) []byte) (wait time.Duration, limit string) {
	// places returns how long it takes until n more fit under a limit of a window.
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
	longest := func(left time.Duration, setting string) {
		if left > wait {
			wait, limit = left, setting
		}
	}
	longest(places(len(letters), c.UserDay, day, func(outbox.Sending) bool { return true }), "limits.user_per_day")
	for _, l := range letters {
		there := func(o outbox.Sending) bool { return o.To(hashes(l.to)) }
		longest(places(1, c.DestinationHour, time.Hour, there), "limits.destination_per_hour")
		longest(places(1, c.DestinationDay, day, there), "limits.destination_per_day")
	}
	return max(wait, time.Second), cmp.Or(limit, anyCap)
}
