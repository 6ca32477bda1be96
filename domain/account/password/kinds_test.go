package password

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/password/legacy"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

// A kind is read from its text alone, and a stored hash has the kind of its parameters.
func TestKinds(t *testing.T) {
	h := small(t, HasherOptions{})
	native := storetest.Value(h.Hash(t.Context(), typed))(t)
	weak := storetest.Value(h.Adopt(t.Context(), foreign(t, "{SSHA}3HYXY1RXiZmbOpJr8U2NBIVfc/hzYWx0")))(t)
	plain := storetest.Value(h.Adopt(t.Context(), strong(t, "scrypt$ln=14,r=8,p=1")))(t)
	for text, want := range map[string]string{native: "+m=64,t=1,p=1", plain: "scrypt$ln=14,r=8,p=1+",
		weak: "digest$h=sha1,o=ps+m=64,t=1,p=1"} {
		kind, err := KindOf(text)
		again, errParse := ParseKind(want)
		if err != nil || errParse != nil || kind.String() != want || again != kind {
			t.Errorf("%s: %v, %v; %v, %v", want, kind, err, again, errParse)
		}
		storetest.Equal(t, storetest.Value(KindOf(kind.decoy()))(t), kind, want)
	}
	for _, text := range []string{"", "+", "bcrypt$r=10", "bcrypt$r=99+", "x+", "+m=64,t=0,p=1", "+m=64,t=01,p=1",
		"+m=64,t=1,p=1+", "bcrypt$r=10+x"} {
		storetest.Fails(t, storetest.Err(ParseKind(text)), "", text)
	}
	for _, text := range []string{"", "x", "$imported$nonsense"} {
		storetest.Fails(t, storetest.Err(KindOf(text)), "", text)
	}
}

// Every recipe has a decoy, which is computed and matches no password.
func TestDecoys(t *testing.T) {
	h := small(t, HasherOptions{})
	for _, recipe := range []string{"bcrypt$r=4", "bcrypt$r=4,pre=sha256", "scrypt$ln=4,r=8,p=1", "fbscrypt$ln=4,r=8,p=1",
		"pbkdf2$h=sha1,i=1", "pbkdf2$h=sha512,i=1", "argon2id$m=64,t=1,p=1", "argon2i$m=64,t=1,p=1", "digest$h=md5,o=sp",
		"digest$h=sha512,o=ps", "phpass$c=7", "md5crypt$i=1000",
		"shacrypt$h=sha256,i=1000", "shacrypt$h=sha512,i=1000", "bcrypt$r=4,pre=wp", "pbkdf2$h=sha384,i=1"} {
		for _, outer := range []string{"", "m=64,t=1,p=1"} {
			kind := storetest.Value(ParseKind(recipe + "+" + outer))(t)
			before := h.Work()
			right, stale, err := h.Verify(t.Context(), typed, kind.decoy())
			if right || stale || err != nil || h.Work()-before != kind.Work() {
				t.Errorf("%v: right %v, stale %v, %v; %d units", kind, right, stale, err, h.Work()-before)
			}
		}
	}
}

// The wrapping of a stored hash that comes from a file has the bounds of any other hash of a file.
func TestWrappingIsBounded(t *testing.T) {
	const inner, salted = "$imported$digest$h=sha1,o=ps$c2FsdA$n=20", "$MDEyMzQ1Njc4OWFiY2RlZg$" +
		"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	for outer, want := range map[string]error{
		"":                                   nil,
		"$argon2id$v=19$m=64,t=1,p=1":        nil,
		"$argon2id$v=19$m=131072,t=8,p=16":   nil,
		"$argon2id$v=19$m=4194304,t=100,p=1": legacy.ErrCost,
		"$argon2id$v=19$m=262144,t=1,p=1":    legacy.ErrCost,
		"$argon2id$v=19$m=1024,t=100,p=1":    legacy.ErrCost,
		"$argon2id$v=19$m=131072,t=9,p=1":    legacy.ErrCost,
		"$argon2id$v=19$m=1024,t=1,p=17":     legacy.ErrCost,
	} {
		text := inner + outer + salted
		if outer == "" {
			text = "$imported$bcrypt$r=10$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY"
		}
		kind, err := KindOf(text)
		if err == nil {
			err = kind.Check()
		}
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", outer, err, want)
		}
	}
}

// A login takes the work of its own account's hash. Without an account, the works are those of the kinds in the
// proportions of the accounts, and an identifier always takes the same one. While accounts log in, an identifier leaves
// its kind only for that of the present parameters. So a time names a kind and never an account.
func TestWorkOfLogins(t *testing.T) {
	const logins = 10_000 // of each kind
	h := small(t, HasherOptions{})
	portions := []Portion{{Accounts: 500, Peak: 500}, {Accounts: 300, Peak: 300}, {Accounts: 150, Peak: 150},
		{Accounts: 49, Peak: 50}, {Accounts: 1, Peak: 1}}
	for i, text := range []string{"+m=64,t=1,p=1", "digest$h=sha1,o=ps+m=64,t=1,p=1", "phpass$c=7+m=64,t=1,p=1",
		"pbkdf2$h=sha256,i=300+m=64,t=1,p=1", "+m=128,t=1,p=1"} {
		var err error
		portions[i].Kind, err = ParseKind(text)
		storetest.Must(t, err)
	}
	seed := []byte("a seed of the installation")
	h.SetKinds(seed, portions)
	work := func(identifier, phc string) uint64 {
		t.Helper()
		before := h.Work()
		if right, _, err := ownPlace(h).VerifyLogin(t.Context(), identifier, typed, phc); right || err != nil {
			t.Fatalf("%s: right %v, %v", identifier, right, err)
		}
		return h.Work() - before
	}
	of, share := map[uint64]Kind{}, map[uint64]float64{}
	for _, p := range portions {
		of[p.Work()], share[p.Work()] = p.Kind, float64(p.Accounts)/1000
		stored := p.decoy() // as an account has it
		for i := range logins {
			storetest.Equal(t, work(fmt.Sprint("known", i), stored), p.Work(), p.Kind, "with an account")
		}
	}
	first, count := map[string]uint64{}, map[uint64]int{}
	for i := range logins {
		who := fmt.Sprint("stranger", i)
		first[who] = work(who, "")
		count[first[who]]++
	}
	for units, n := range count {
		want := share[units] * logins
		if off := math.Abs(float64(n) - want); of[units] == (Kind{}) || off > 5*math.Sqrt(want)+1 {
			t.Errorf("%d logins without an account take %d units, want %.0f", n, units, want)
		}
	}
	if len(count) < 4 {
		t.Errorf("works %v", count)
	}

	// Half of the accounts with PHPass log in, and no other account.
	portions[2].Accounts, portions[0].Accounts, portions[0].Peak = 75, 575, 575
	other := small(t, HasherOptions{})
	other.SetKinds(seed, portions)
	h, moved := other, 0
	for who, before := range first {
		after := work(who, "")
		if after != before {
			moved++
		}
		if after != before && (before != portions[2].Work() || after != portions[0].Work()) {
			t.Errorf("%s: %d units became %d", who, before, after)
		}
	}
	if want := logins * 75 / 1000; moved < want*8/10 || moved > want*12/10 {
		t.Errorf("%d identifiers changed their kind, want about %d", moved, want)
	}
}

// Without other kinds, an identifier without an account takes the work of the present parameters.
func TestWorkWithoutOtherKinds(t *testing.T) {
	h := small(t, HasherOptions{})
	own := Kind{Outer: cheap}
	for _, kinds := range [][]Portion{nil, {{Kind: own, Accounts: 5, Peak: 9}},
		{{Kind: own, Accounts: 5, Peak: 5}, {Kind: Kind{Inner: legacy.Recipe{Alg: legacy.PHPass, Cost: 7}}, Peak: 3}}} {
		h.SetKinds([]byte("seed"), kinds)
		for i := range 100 {
			before := h.Work()
			_, _, err := ownPlace(h).VerifyLogin(t.Context(), fmt.Sprint(i), typed, "")
			if got := h.Work() - before; got != own.Work() || err != nil {
				t.Fatalf("%v: %d units, %v", kinds, got, err)
			}
		}
	}
}

// tally is a store of kinds whose read of a name fails.
type tally struct {
	KindStore
	census Census
	kinds  map[string]int64
	due    []string // users whose hashes expire
	before time.Time
	fail   map[string]error
}

func (s *tally) Census(context.Context) (Census, error) { return s.census, s.fail["Census"] }

func (s *tally) Portions(context.Context, int) ([]Portion, error) { return nil, s.fail["Portions"] }

func (s *tally) Count(context.Context, int) (map[string]int64, error) {
	return maps.Clone(s.kinds), s.fail["Count"]
}

func (s *tally) ImportedUsers(_ context.Context, before time.Time, most int) (page []string, err error) {
	n := min(most, len(s.due))
	page, s.due, s.before = s.due[:n], s.due[n:], before
	return page, s.fail["Users"]
}

// A count expires old hashes in units of 500, and keeps the most frequent kinds. Nothing is counted before an hour has
// passed, or after a failure. A count that another node has saved is not repeated.
func TestCountOfKinds(t *testing.T) {
	const keep, due = 24 * time.Hour, time.Hour
	for name, c := range map[string]struct {
		since, young time.Duration // since the last count; until the first hash expires
		version      int64
		fail         string
		fails        []error
		want         error
		units        int // that expire hashes
		saved        bool
	}{
		"due": {due, 0, 3, "", nil, nil, 2, true}, "early": {due - 1, 0, 3, "", nil, nil, 0, false},
		"none expires yet": {due, 1, 3, "", nil, nil, 0, true}, "never loaded": {due, 0, 0, "", nil, nil, 0, false},
		"no census": {due, 0, 3, "Census", nil, errDown, 0, false}, "no users": {due, 0, 3, "Users", nil, errDown, 0, false},
		"no count":          {due, 0, 3, "Count", nil, errDown, 2, false},
		"no expiry":         {due, 0, 3, "", []error{errDown}, errDown, 0, false},
		"counted elsewhere": {due, 0, 3, "", []error{nil, nil, commit.ErrFenced}, nil, 2, false},
		"not saved":         {due, 0, 3, "", []error{nil, nil, errDown}, errDown, 2, false},
	} {
		s := &tally{census: Census{Version: c.version, Since: t0.Add(c.young - keep), Counted: t0.Add(-c.since)},
			kinds: map[string]int64{}, due: make([]string, 501), fail: map[string]error{c.fail: errDown}}
		for i := range int64(maxKinds + 1) {
			s.kinds[fmt.Sprint(i)] = i
		}
		units := &storetest.Units{Fails: c.fails}
		n := &Counter{Store: s, Commit: units, Hasher: small(t, HasherOptions{}), Keep: keep,
			Now: func() time.Time { return t0 }}
		if err := n.Run(t.Context()); !errors.Is(err, c.want) || c.units > 0 && !s.before.Equal(t0.Add(-keep)) {
			t.Errorf("%s: imported before %v, %v", name, s.before, err)
		}
		var want []commit.Write
		for _, users := range []int{500, 1}[:c.units] {
			want = append(want, audit.Record{At: t0, Action: ActionExpire, Target: "users", Outcome: audit.Success,
				Detail: fmt.Sprintf("%d imported passwords were not used for 24h0m0s and must be reset", users)})
			want = append(want, slices.Repeat([]commit.Write{ExpireImported{}}, users)...)
		}
		if delete(s.kinds, "0"); c.saved {
			s.census.Counted = t0
			want = append(want, SaveCensus{s.census}, SetKinds(s.kinds), change.Note{Topic: change.Hashes})
		}
		t.Run(name, func(t *testing.T) { storetest.Same(t, units.Writes, want) })
		for _, s.fail = range []map[string]error{{"Census": errDown}, {"Portions": errDown}} {
			if err := n.Load(t.Context()); !errors.Is(err, errDown) {
				t.Errorf("loaded without %v: %v", s.fail, err)
			}
		}
	}
}
