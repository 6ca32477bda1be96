package challenge_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
)

// A script drives the machine and the model side by side. Its first byte is 't' for tight rules. Then every three
// bytes are a move: a method by its letter, an action on it, and a step of the clock before. Any other byte maps to
// one of these, so that every text is a script.
//
//   - right  - wrong  < stale OTP  ~ renew  x deny  ? no such method
//     ! the name of another method  . close  ; abort  f finish
//     n the next challenge: shape by the first byte, required and times by the last
//
//     0 stays  1 by 1 ms  2 by 1 s  3 by 20 s  4 by a minute  5 to just before
//     the next boundary  6 onto it  7 to just after it  8 by ten minutes
const (
	verbs  = "+-<~x?!.;fn"
	clocks = "012345678"
)

func among(b byte, letters string) byte {
	if strings.IndexByte(letters, b) >= 0 {
		return b
	}
	return letters[int(b)%len(letters)]
}

var shapes = [][]string{
	{"sms"}, {"sms", "mail"}, {"totp", "push", "sms", "mail"}, {"sms!", "mail!"}, {"push", "totp", "mail!", "sms!"},
	{"sms", "sms2", "mail", "mail2", "totp"}, {"push", "totp"},
}

func tightRules() challenge.Rules {
	return challenge.Rules{
		RenewCutoffMs: 200_000, CodeMaxAgeMs: 400_000, MaxRenewals: 2, MethodAttempts: 3, ChallengeAttempts: 4,
		OTPBudget: 7, OTPBudgetWindowMs: 700_000, TOTPBudget: 3, TOTPBudgetWindowMs: 400_000,
	}
}

// walk is a game with its model and the data of its invariants.
type walk struct {
	*game
	m        *model
	now      int64            // ms since t0
	accepted challenge.Answer // the last one
	rights   map[string]bool  // methods answered right
	wrongs   map[string]int   // evaluated wrong values of each OTP
	seen     map[string]int   // answers, without their numbers
	steps    int
}

func newWalk(t testing.TB) *walk {
	w := &walk{game: newGame(t, challenge.Challenge{}), seen: map[string]int{}}
	w.m = &model{r: w.r, spent: map[bool][]int64{}}
	return w
}

func (w *walk) script(s string) {
	if strings.HasPrefix(s, "t") {
		w.r = tightRules()
		w.m.r = w.r
	}
	w.next('c', '1')
	for i := 1; i+2 < len(s) && !w.t.Failed(); i += 3 {
		if w.step(s[i], among(s[i+1], verbs), s[i+2]); w.t.Failed() {
			w.t.Logf("at move %d of %q", i/3+1, s[:i+3])
		}
	}
}

// next starts another challenge of the same user.
func (w *walk) next(x, y byte) {
	shape, times := shapes[int(x-'a')%len(shapes)], int(y-'0')/8%3
	c := start(1+int(y-'0')%8%len(shape), shape...)
	c.CreatedAt += w.now
	c.ExpiresAt += w.now + []int64{0, 900_000, 100_000}[times]
	for i := range c.Methods {
		m := &c.Methods[i]
		switch {
		case times == 1 && m.Name.Sent(): // long enough to meet the ten minutes
			m.LifetimeMs, m.RenewMs = 300_000, 30_000
			if m.Name == challenge.MAIL {
				m.LifetimeMs = 400_000
			}
		case times == 2:
			m.LifetimeMs = []int64{20_000, 350_000}[i%2]
			m.RenewMs = map[string]int64{"sms": 100_000, "mail": 0, "sms2": 590_000, "mail2": 1}[m.ID]
		}
		m.ExpiresAt = c.CreatedAt + m.LifetimeMs
		if m.Name.Sent() {
			m.MadeAt = c.CreatedAt
		}
	}
	w.c, w.accepted, w.rights, w.wrongs = c, challenge.Answer{}, map[string]bool{}, map[string]int{}
	w.m = &model{r: w.r, start: c.CreatedAt, end: c.ExpiresAt, required: c.Required, factors: deep(c).Methods,
		spent: w.m.spent}
}

func (w *walk) clock(b byte) {
	next := int64(1<<62 - 1) // the next boundary
	for _, x := range w.boundaries() {
		if x -= t0; x > w.now && x < next {
			next = x
		}
	}
	switch b {
	case '1', '2', '3', '4', '8':
		w.now += map[byte]int64{'1': 1, '2': 1_000, '3': 20_000, '4': 60_000, '8': 600_000}[b]
	case '5', '6', '7':
		if next < 1<<61 {
			w.now = max(w.now, next+int64(b)-'6')
		}
	}
}

// boundaries returns the instants at which an answer may change.
func (w *walk) boundaries() []int64 {
	out := []int64{w.m.end, w.m.end - w.r.RenewCutoffMs}
	for f, x := range w.m.factors {
		ends, _ := w.m.until(f)
		out = append(out, ends, w.m.start+x.RenewMs)
	}
	for _, x := range w.m.spent[false] {
		out = append(out, x+w.r.OTPBudgetWindowMs)
	}
	for _, x := range w.m.spent[true] {
		out = append(out, x+w.r.TOTPBudgetWindowMs)
	}
	return out
}

func (w *walk) step(letter, verb, clock byte) {
	w.steps++
	if verb == 'n' {
		w.next(letter, clock)
		return
	}
	w.clock(among(clock, clocks))
	f := int(letter-'a') % len(w.c.Methods)
	before, m := w.c, w.c.Methods[f]
	got, want := w.both(f, m, verb, t0+w.now)
	if got != want {
		w.t.Errorf("%c of %s at %d ms: the machine says %s, the model %s", verb, m.ID, w.now, got, want)
	}
	code, _, _ := strings.Cut(got, " ")
	w.seen[code]++
	if code == "OTP_INVALID" {
		w.wrongs[m.ID+"#"+strconv.Itoa(m.Generation)]++
	}
	w.compare()
	w.invariants(before)
	w.c.Version++ // saved
}

// both makes one move on machine and model and returns their answers.
func (w *walk) both(f int, m challenge.Method, verb byte, at int64) (machine, model string) {
	switch verb {
	case '+', '-', '<', 'x':
		kind := map[byte]string{'+': "right", '-': "wrong", '<': "stale", 'x': "deny"}[verb]
		if ends, _ := w.m.until(f); verb == 'x' && (m.Name != challenge.PUSH || at >= ends) {
			return "", "" // only a live push is refused
		}
		a := answer(m, kind)
		machine = w.complete(w.now, a)
		if kind == "stale" {
			kind = "wrong"
		}
		rights := len(w.rights)
		if model = w.m.complete(at, f, kind); model == "pending" || model == "executing" {
			w.rights[m.ID] = true
		}
		if len(w.rights) > rights || model == "denied" {
			w.accepted = a
		}
	case '~':
		machine = w.renew(w.now, m, stored(code(m.ID, m.Generation+1)))
		model = w.m.renew(at, f)
	case '?':
		m.ID, model = "none", "METHOD_NOT_FOUND"
		if machine = w.complete(w.now, answer(m, "right")); machine == model {
			machine = w.renew(w.now, m, challenge.Digest{})
		}
	case '!':
		m.Name, model = challenge.Name("NO_"+m.Name), "INVALID_FIELD"
		if machine = w.complete(w.now, answer(m, "right")); machine == model {
			machine = w.renew(w.now, m, challenge.Digest{})
		}
	default: // the three without an answer; Abort is for pending ones here
		kind := map[byte]string{'.': "close", ';': "abort", 'f': "finish"}[verb]
		state := w.m.state(at)
		if kind == "abort" && state != "pending" {
			return "", ""
		}
		if state == map[string]string{"close": "pending", "abort": "pending", "finish": "executing"}[kind] {
			w.m.add(kind, 0, at)
		}
		machine, model = w.do(w.now, kind), w.m.state(at)
		if model == "expired" {
			model = "pending"
		}
	}
	return machine, model
}

// compare checks the whole state of the machine against the model.
func (w *walk) compare() {
	now := t0 + w.now
	state := stateNames[w.c.State]
	if w.c.Expired(time.UnixMilli(now)) {
		state = "expired"
	}
	if want := w.m.state(now); state != want {
		w.t.Errorf("state %s, want %s", state, want)
	}
	for f, m := range w.c.Methods {
		ends, made := w.m.until(f)
		_, wrong := w.m.countEvents("wrong", f)
		renewals, _ := w.m.countEvents("renew", f)
		if m.ExpiresAt != ends || m.MadeAt != made || m.Wrong != wrong || m.Generation != renewals ||
			(m.Order > 0) != w.m.done(f) {
			w.t.Errorf("%s: %+v; want expiry %d, made %d, %d wrong, %d renewals, completed %t", m.ID, m, ends, made, wrong,
				renewals, w.m.done(f))
		}
	}
	var order []string
	for _, e := range w.m.log {
		if e.kind == "right" {
			order = append(order, w.c.Methods[e.f].ID)
		}
	}
	if done := w.c.CompletedMethods(); !slices.EqualFunc(done, order,
		func(m challenge.Method, id string) bool { return m.ID == id }) {
		w.t.Errorf("completed %v, want %v", done, order)
	}
}

// invariants hold independently of the model.
func (w *walk) invariants(before challenge.Challenge) {
	c, wrong := w.c, 0
	if c.Completed() && len(w.rights) < c.Required {
		w.t.Errorf("completed by %d right answers of %d", len(w.rights), c.Required)
	}
	if before.Completed() && !c.Completed() {
		w.t.Error("the wire status went back")
	}
	for otp, n := range w.wrongs {
		if wrong += n; n > w.r.MethodAttempts {
			w.t.Errorf("%d wrong values of %s were evaluated", n, otp)
		}
	}
	if wrong > w.r.ChallengeAttempts || wrong != c.Wrong {
		w.t.Errorf("%d wrong values were evaluated, %d counted", wrong, c.Wrong)
	}
	for i, m := range c.Methods {
		switch {
		case m.ID != before.Methods[i].ID || len(c.Methods) != len(before.Methods):
			w.t.Errorf("the methods changed: %+v", c.Methods)
		case m.ExpiresAt > c.ExpiresAt || m.Name.Sent() && m.ExpiresAt > m.MadeAt+w.r.CodeMaxAgeMs:
			w.t.Errorf("%s lives too long: %+v", m.ID, m)
		case m.Mandatory && m.Order == 0 && c.Completed():
			w.t.Errorf("completed without %s", m.ID)
		case m.Generation > w.r.MaxRenewals:
			w.t.Errorf("%d renewals", m.Generation)
		}
	}
	ended := c.State == challenge.Executing || c.State == challenge.Done || c.State == challenge.Denied
	if got := c.Repeat(w.accepted); got != ended {
		w.t.Errorf("the last answer is a repeat: %t, in state %s", got, stateNames[c.State])
	}
	other := w.accepted
	other.Digests = []challenge.Digest{stored("no such value")}
	if c.Repeat(other) {
		w.t.Error("another value is a repeat")
	}
}

func TestRandomWalks(t *testing.T) {
	// Mostly wrong values: otherwise few walks would come near a limit.
	const likely = "++++------------------------<<~~~~~~~~x?!.;ffnnnnn"
	const clocking = "000000000000000000001122334455667778"
	const scripts, moves = 1_000, 250
	seen, steps := map[string]int{}, 0
	for seed := range uint64(scripts) {
		r := rand.New(rand.NewPCG(seed, 20_260_101))
		s := []byte{"dt"[r.IntN(2)]}
		for range moves {
			s = append(s, 'a'+byte(r.IntN(35)), likely[r.IntN(len(likely))], clocking[r.IntN(len(clocking))])
			if s[len(s)-2] == 'n' {
				s[len(s)-1] = '0' + byte(r.IntN(24))
			}
		}
		w := newWalk(t)
		if w.script(string(s)); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		steps += w.steps
		for code, n := range w.seen {
			seen[code] += n
		}
	}
	t.Logf("%d moves: %v", steps, seen)
	if steps < 200_000 {
		t.Errorf("only %d moves", steps)
	}
	for _, code := range []string{
		"pending", "executing", "done", "denied", "closed", "OTP_INVALID", "DEVICE_SIGNATURE_INVALID", "METHOD_LOCKED",
		"METHOD_EXPIRED",
		"METHOD_ALREADY_COMPLETED", "METHOD_NOT_FOUND", "INVALID_FIELD", "CHALLENGE_CLOSED", "CHALLENGE_EXPIRED",
		"RATE_LIMITED",
		"RENEW_NOT_SUPPORTED", "RENEW_CLOSED", "RENEW_TOO_EARLY",
	} {
		if seen[code] < 100 {
			t.Errorf("only %d times %s: the walks say little about it", seen[code], code)
		}
	}
}

// Machine and model agree on every script. The seeds are the cases of the tables beside this file.
func FuzzScript(f *testing.F) {
	for _, s := range []string{
		// lock, renew, done
		"d" + "an0" + "a-0" + "a-0" + "a-0" + "a-0" + "a-0" + "a+0" + "a~4" + "a+0" + "af0" + "a+0",
		"d" + "cn1" + "a-0" + "a-0" + "a-0" + "a-0" + "a-0" + "c-0" + "d-0" + "c-0" + "d-0" + "c-0" + "d+0", // ten wrong
		// gate, stale OTP
		"d" + "bn1" + "a+0" + "a+0" + "b~5" + "b~6" + "a~7" + "b<0" + "b+5" + "b~6",
		// ten minutes, cut-off
		"d" + "bn8" + "a~4" + "b~8" + "a~5" + "b~6" + "a~7" + "b+6" + "a~6" + "b~7",
		"d" + "gn0" + "a-0" + "ax1" + "ax0" + "b+0" + "gn0" + "a-6" + "a+0",                 // denial, expiry
		"d" + "en2" + "b+0" + "a+0" + "c+1" + "d?0" + "d!0" + "d+0" + "af0" + "a;0" + "a.0", // mandatory ones
		// no renewal; superseded
		"d" + "fn@" + "b~4" + "c~0" + "d~0" + "a~4" + "b-0" + "a.0" + "c+0" + "b~0",
		// budget, and its end
		"t" + "gn0" + "b-0" + "b-0" + "b-0" + "b+0" + "gn0" + "b+5" + "b+6" + "b+5" + "b+6",
		"t" + "fn4" + "a~4" + "a~0" + "a~0" + "a-0" + "b-0" + "c-0" + "d-0" + "e+0" + "an0" + "a;0" + "a+0", // tight rules
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		newWalk(t).script(s[:min(len(s), 1+3*300)])
	})
}
