package session_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"castellan/domain/session/session"
)

// A month of ten thousand users in virtual time: renewals save at least four of five second factors, under the same
// policy at each login. Seven of ten users work with the service for a day, with pauses; the others look in at times.
func TestMonthOfSecondFactors(t *testing.T) {
	life := session.Lifetimes{Token: 30 * time.Minute, Session: 12 * time.Hour, Idle: time.Hour}
	const users, days = 10_000, 30
	r := rand.New(rand.NewPCG(27, 2026))
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) // a Monday
	with, without, renewals, longest := 0, 0, 0, time.Duration(0)
	for range users {
		worker := r.IntN(10) < 7
		plain, keyed := visitor{}, visitor{life: life}
		for day := range days {
			if worker && day%7 >= 5 {
				continue
			}
			for _, at := range visits(r, worker, start.AddDate(0, 0, day)) {
				plain.asks(at)
				keyed.asks(at)
				longest = max(longest, at.Sub(keyed.login))
			}
		}
		with, without, renewals = with+keyed.factors, without+plain.factors, renewals+keyed.renewals
	}
	saved := 1 - float64(with)/float64(without)
	t.Logf("%d second factors without a key, %d with one: %.1f %% fewer; %d renewals", without, with, saved*100, renewals)
	if saved < 0.8 || longest >= life.Session {
		t.Errorf("%.1f %% fewer second factors, a session of %v", saved*100, longest)
	}
}

// visits are the times of a user's requests on a day.
func visits(r *rand.Rand, worker bool, day time.Time) (all []time.Time) {
	stretch := func(from time.Time, span, gap time.Duration) time.Time {
		to := from.Add(span)
		for at := from; at.Before(to); at = at.Add(time.Duration(r.ExpFloat64() * float64(gap))) {
			all = append(all, at)
		}
		return to
	}
	minutes := func(least, most int) time.Duration { return time.Duration(least+r.IntN(most-least)) * time.Minute }
	if worker { // three stretches, with a pause at noon and another one
		at := stretch(day.Add(minutes(7*60, 10*60)), minutes(150, 240), 4*time.Minute)
		at = stretch(at.Add(minutes(30, 75)), minutes(90, 150), 4*time.Minute)
		stretch(at.Add(minutes(10, 30)), minutes(90, 150), 4*time.Minute)
		return all
	}
	for range r.IntN(3) { // evenings
		stretch(day.Add(minutes(18*60, 23*60)), minutes(3, 20), 2*time.Minute)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// visitor is a client that logs in when its token is over and cannot be renewed. The zero life renews nothing.
type visitor struct {
	life              session.Lifetimes
	login, used, end  time.Time
	factors, renewals int
}

func (v *visitor) asks(at time.Time) {
	switch {
	case v.factors > 0 && at.Before(v.end):
	case v.factors > 0 && v.life.Session > 0 && !v.life.Over(v.login, v.used, at):
		v.renewals++
		v.end, _ = v.life.Until(v.login, at)
	default:
		v.factors++
		v.login, v.end = at, at.Add(30*time.Minute)
	}
	v.used = at
}
