package challenge_test

import (
	"slices"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
)

var pushRules = challenge.PushRules{Sent: 3, Window: 10 * time.Minute, SentDay: 20, Denials: 3,
	DenialWindow: 10 * time.Minute, Pause: time.Hour}

const minute = time.Minute

func ago(state challenge.PushState, before ...time.Duration) (all []challenge.Push) {
	now := time.UnixMilli(1_700_000_000_000)
	for i, a := range before {
		at := now.Add(-a).UnixMilli()
		all = append(all, challenge.Push{Number: int64(i + 1), SentAt: at, State: state, SettledAt: at})
	}
	return all
}

func every(n int, apart, last time.Duration) (all []time.Duration) {
	for i := range n {
		all = append(all, last+time.Duration(i)*apart)
	}
	return all
}

// A missing number counts while its row may still arrive: below a push of the last seconds and above all older ones.
// Numbers of purged pushes do not count.
func TestMissingPushes(t *testing.T) {
	const since = 1000
	push := func(n, at int64) challenge.Push { return challenge.Push{Number: n, SentAt: at} }
	for _, c := range []struct {
		name   string
		pushes []challenge.Push
		want   []int64
	}{
		{"none", nil, nil},
		{"all are there", []challenge.Push{push(2, since), push(1, since)}, nil},
		{"the first", []challenge.Push{push(2, since)}, []int64{1}},
		{"some", []challenge.Push{push(5, since+5), push(3, since+9), push(2, since-1)}, []int64{4}},
		{"below an old one", []challenge.Push{push(5, since-1), push(2, since)}, nil},
		{"below an old one, and above it", []challenge.Push{push(9, since), push(7, since-1), push(5, since)}, []int64{8}},
		{"an old one at the end", []challenge.Push{push(5, since-1), push(3, since-1)}, nil},
		{"purged", []challenge.Push{push(59, since), push(57, since)}, []int64{58}},
		{"the highest of the first", []challenge.Push{push(3, since)}, []int64{1, 2}},
	} {
		var got []int64
		for _, p := range challenge.Missing(c.pushes, time.UnixMilli(since), 3) {
			if got = append(got, p.Number); p.SentAt < since {
				t.Errorf("%s: sent at %d", c.name, p.SentAt)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
}

// At most three pushes in ten minutes and twenty in a day go unapproved.
func TestPushesSent(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	const day, ms = 24 * time.Hour, time.Millisecond
	for _, c := range []struct {
		name string
		sent []challenge.Push
		want time.Duration
	}{
		{"none", nil, 0},
		{"two", ago(challenge.PushSent, 0, 0), 0},
		{"three at once", ago(challenge.PushSent, 0, 0, 0), 10 * minute},
		{"the oldest leaves in 1 ms", ago(challenge.PushSent, 10*minute-ms, 5, 0), ms},
		{"the oldest has left", ago(challenge.PushSent, 10*minute, 5, 0), 0},
		{"the oldest comes last", ago(challenge.PushSent, 0, 5, 10*minute-ms), ms},
		{"a fourth does not stretch it", ago(challenge.PushSent, 9*minute, 8*minute, 7*minute, 6*minute), 2 * minute},
		{"denied ones count", append(ago(challenge.PushDenied, minute, 0), ago(challenge.PushSent, 0)...), 9 * minute},
		{"approved ones do not", append(ago(challenge.PushApproved, every(30, time.Second, 0)...),
			ago(challenge.PushSent, 0, 0)...), 0},
		{"nineteen in a day", ago(challenge.PushSent, every(19, 30*minute, 10*minute)...), 0},
		{"twenty in a day", ago(challenge.PushSent, every(20, 30*minute, 10*minute)...), day - 10*minute - 19*30*minute},
		{"the first of twenty leaves in 1 ms", ago(challenge.PushSent, append(every(19, minute*30, 10*minute), day-ms)...),
			ms},
		{"the first of twenty has left", ago(challenge.PushSent, append(every(19, minute*30, 10*minute), day)...), 0},
	} {
		storetest.Equal(t, pushRules.Wait(now, c.sent), c.want, c.name, "wait")
		storetest.Equal(t, (challenge.PushRules{}).Wait(now, c.sent), 0, c.name, "without bounds: wait")
	}
}

// Three denials in less than ten minutes stop pushes for an hour after the third.
func TestPushesDenied(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	const ms = time.Millisecond
	rules := challenge.PushRules{Denials: 3, DenialWindow: 10 * time.Minute, Pause: time.Hour}
	for _, c := range []struct {
		name   string
		before []time.Duration // newest first
		want   time.Duration
	}{
		{"none", nil, 0},
		{"two", []time.Duration{0, minute}, 0},
		{"three at once", []time.Duration{5 * ms, 5 * ms, 5 * ms}, time.Hour - 5*ms},
		{"in just less than the window", []time.Duration{0, 5 * ms, 10*minute - ms}, time.Hour},
		{"in just the window", []time.Duration{0, 5 * ms, 10 * minute}, 0},
		{"the pause ends in 1 ms", []time.Duration{time.Hour - ms, time.Hour, time.Hour}, ms},
		{"the pause is over", []time.Duration{time.Hour, time.Hour, time.Hour}, 0},
		{"one more later does not count", []time.Duration{5 * ms, 61 * minute, 61 * minute, 61 * minute}, 0},
		{"four", []time.Duration{7 * minute, 8 * minute, 9 * minute, 30 * minute}, 53 * minute},
		{"spread", []time.Duration{0, 12 * minute, 25 * minute, 40 * minute}, 0},
	} {
		storetest.Equal(t, rules.Wait(now, ago(challenge.PushDenied, c.before...)), c.want, c.name, "wait")
		storetest.Equal(t, rules.Wait(now, ago(challenge.PushSent, c.before...)), 0, c.name, "not denied: wait")
	}
}

// The step that decides a push settles it, once.
func TestSettlesPush(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	with := func(state challenge.State, last string, ms ...challenge.Method) challenge.Challenge {
		return challenge.Challenge{ID: "c", State: state, Body: challenge.Body{Last: last, Methods: ms}}
	}
	sent := challenge.SendPush{Push: challenge.Push{UserID: "u1", Number: 1234}}
	if key, version := sent.Fence(); key != "u1/1234" || version != 0 {
		t.Errorf("fenced by %s, %d", key, version)
	}
	push, sms := challenge.Method{ID: "p", Name: challenge.PUSH}, challenge.Method{ID: "s", Name: challenge.SMS}
	approved, given := push, sms
	approved.Order, given.Order = 1, 1
	for _, c := range []struct {
		name         string
		before, next challenge.Challenge
		want         challenge.PushState // PushSent: undecided
	}{
		{"a wrong code", with(0, "", push, sms), with(0, "", push, sms), challenge.PushSent},
		{"one of two methods", with(0, "", push, sms), with(0, "", push, given), challenge.PushSent},
		{"the push of two", with(0, "", push, sms), with(0, "", approved, sms), challenge.PushApproved},
		{"the rest after it", with(0, "", approved, sms), with(challenge.Done, "s", approved, given), challenge.PushSent},
		{"the push alone", with(0, "", push), with(challenge.Executing, "p", approved), challenge.PushApproved},
		{"another method alone", with(0, "", push, sms), with(challenge.Done, "s", push, given), challenge.PushApproved},
		{"denied", with(0, "", push), with(challenge.Denied, "p", push), challenge.PushDenied},
		{"too many wrong", with(0, "", push, sms), with(challenge.Closed, "", push, sms), challenge.PushSent},
		{"no push", with(0, "", sms), with(challenge.Done, "s", given), challenge.PushSent},
	} {
		got, decided := c.before.SettlesPush(now, c.next)
		if decided != (c.want != challenge.PushSent) || decided && got != (challenge.SettlePush{ChallengeID: "c",
			State: c.want, At: now.UnixMilli()}) {
			t.Errorf("%s: %+v, %t", c.name, got, decided)
		}
	}
}
