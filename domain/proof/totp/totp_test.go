package totp

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/png"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
)

// rfc is the secret of RFC 6238, appendix B.
var rfc = []byte("12345678901234567890")

// TestVectors compares the codes with RFC 6238, appendix B (SHA-1): the six digits are the last six of its eight.
func TestVectors(t *testing.T) {
	for _, c := range []struct {
		unix int64
		code string
	}{{59, "94287082"}, {1111111109, "07081804"}, {1111111111, "14050471"}, {1234567890, "89005924"},
		{2000000000, "69279037"}, {20000000000, "65353130"}} {
		now := time.Unix(c.unix, 0)
		storetest.Equal(t, CodeAt(rfc, StepAt(now)), c.code[2:], "at", c.unix)
		if step, ok := Match(rfc, now, c.code[2:]); !ok || step != c.unix/30 {
			t.Errorf("at %d: step %d, %v", c.unix, step, ok)
		}
	}
}

// The window is the step before, the current one and the one after, to the second.
func TestWindow(t *testing.T) {
	const s = 37037036 // a step whose neighbours have different codes
	for _, c := range []struct {
		unix int64
		ok   bool
	}{
		{(s-1)*30 - 1, false}, {(s - 1) * 30, true}, // its code runs ahead by one step …
		{s*30 - 1, true}, {s * 30, true}, {s*30 + 29, true},
		{(s+2)*30 - 1, true}, {(s + 2) * 30, false}, // … to behind by one
		{(s - 2) * 30, false}, {(s + 3) * 30, false}, {-1, false}, {0, false},
	} {
		step, ok := Match(rfc, time.Unix(c.unix, 0), CodeAt(rfc, s))
		if ok != c.ok || ok && step != s {
			t.Errorf("at %d (%d seconds into the step): step %d, %v", c.unix, c.unix-s*30, step, ok)
		}
	}
}

// At time zero no earlier steps exist.
func TestBeforeTheFirstSteps(t *testing.T) {
	for unix, want := range map[int64]int64{0: 0, 29: 0, 30: 1, 31: 1} {
		if step, ok := Match(rfc, time.Unix(unix, 0), CodeAt(rfc, want)); !ok || step != want {
			t.Errorf("at %d: %d, %v", unix, step, ok)
		}
	}
	for _, unix := range []int64{-1, -30, -31, -1 << 40} {
		for s := range int64(3) {
			if step, ok := Match(rfc, time.Unix(unix, 0), CodeAt(rfc, s)); ok {
				t.Errorf("at %d: step %d", unix, step)
			}
		}
	}
}

// SEC-06: only the six ASCII digits match.
func TestStrictCode(t *testing.T) {
	now := time.Unix(59, 0)
	for _, code := range []string{"", "28708", "2870820", "94287082", " 287082", "287082 ", "287082\n", "287082\x00",
		"２８７０８２", "٢٨٧٠٨٢", "+87082", "-87082",
		"2870.2", "0x2870", "28708a", "287 082", "1e5   ", strings.Repeat("2", 1<<16)} {
		if _, ok := Match(rfc, now, code); ok {
			t.Errorf("%.20q is taken", code)
		}
	}
}

// For every secret and time, an accepted code belongs to a step of the window, and all codes of the window are
// accepted. The returned step is the newest one of the code, so a code cannot be used twice.
func TestMatchProperty(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		secret := newSecret()
		now := time.Unix(r.Int64N(1<<35), r.Int64N(1e9))
		at := StepAt(now)
		offset := r.Int64N(9) - 4
		if at+offset < 0 {
			continue
		}
		code := CodeAt(secret, at+offset)
		step, ok := Match(secret, now, code)
		within := offset >= -1 && offset <= 1
		if within && !ok {
			t.Fatalf("the code of step %+d is not taken", offset)
		}
		if ok && (step < at-1 || step > at+1 || CodeAt(secret, step) != code) {
			t.Fatalf("offset %+d: reported step %+d", offset, step-at)
		}
		for s := step + 1; ok && s <= at+1; s++ {
			if CodeAt(secret, s) == code {
				t.Fatal("a newer step has the same code")
			}
		}
	}
}

// For a code of two steps, the newer step is returned.
func TestTwinCodes(t *testing.T) {
	const s = 910737 // found by search: one step in a million has the same code as its successor
	code := CodeAt(rfc, s)
	if code != CodeAt(rfc, s+1) {
		t.Fatal("no twins")
	}
	for _, at := range []int64{s, s + 1} {
		if step, ok := Match(rfc, time.Unix(at*30, 0), code); !ok || step != s+1 {
			t.Errorf("at step %d: step %d instead of %d, %v", at, step, s+1, ok)
		}
	}
}

func TestSecrets(t *testing.T) {
	a, b := newSecret(), newSecret()
	if len(a) != 20 || bytes.Equal(a, b) {
		t.Errorf("%x %x", a, b)
	}
}

func TestRecoveryCodes(t *testing.T) {
	form := regexp.MustCompile(`^[a-z2-7]{5}-[a-z2-7]{5}$`)
	seen := map[string]bool{}
	letters := map[rune]int{}
	for range 3200 {
		c := newRecoveryCode()
		if !form.MatchString(c) || seen[c] || !wellFormed(canonical(c)) {
			t.Fatalf("code %q", c)
		}
		seen[c] = true
		for _, r := range canonical(c) {
			letters[r]++
		}
	}
	storetest.Equal(t, len(letters), 32, "letters are used")
	for r, n := range letters { // 1000 expected, standard deviation 31
		if n < 800 || n > 1200 {
			t.Errorf("%c comes %d times", r, n)
		}
	}
}

// D-TOTP-02: only case, spaces and dashes are ignored.
func TestCanonicalRecoveryCode(t *testing.T) {
	const code = "abcdefgh27"
	for _, in := range []string{"abcde-fgh27", "ABCDE-FGH27", " abcde-fgh27\n", "abcdefgh27", "abc def gh2 7",
		"a-b-c-d-e-f-g-h-2-7", "abcde–fgh27", "abcde—fgh27",
		"abcde−fgh27", "abcde\u00a0fgh27", "\u200eabcde-fgh27\u200f", "Abcde\tFgh27"} {
		if got := canonical(in); got != code || !wellFormed(got) {
			t.Errorf("%q: %q", in, got)
		}
	}
	for _, in := range []string{"", "abcde-fgh2", "abcde-fgh277", "abcde-fgh21", "abcde_fgh27", "abcde.fgh27",
		"ａbcde-fgh27", "abcde-fgh2\x00", "K" + "bcde-fgh2İ",
		strings.Repeat("a", 1<<16)} {
		if got := canonical(in); wellFormed(got) {
			t.Errorf("%.20q: %.20q", in, got)
		}
	}
}

func FuzzCanonicalRecoveryCode(f *testing.F) {
	f.Add("abcde-fgh27")
	f.Fuzz(func(t *testing.T, in string) {
		c := canonical(in)
		if canonical(c) != c || wellFormed(c) && len(c) != 10 {
			t.Errorf("%q: %q", in, c)
		}
	})
}

// The three forms are equivalent, with the parameters of D-TOTP-05.
func TestAccess(t *testing.T) {
	u := user.New(id.New(time.Now()), time.Now())
	u.Email, u.Phone = strings.Repeat("x", 240)+"+a@example.com", "+905320000001" // the maximum length of an address
	short := u
	short.Email = ""
	for _, c := range []struct {
		issuer, account string
		u               user.User
	}{{"Castellan", u.Email, u}, {"Kale Borsası", u.Phone, short}, {"Alım & Satım + %20; A/B?#1", u.Phone, short}} {
		a := storetest.Value(access(c.issuer, c.u, rfc))(t)
		storetest.Equal(t, a.Base32, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "secret")
		for app, decode := range map[string]func(string) (string, error){"of a path": url.PathUnescape,
			"of a form": url.QueryUnescape} {
			label, query, _ := strings.Cut(strings.TrimPrefix(a.URL, "otpauth://totp/"), "?")
			issuer, account, _ := strings.Cut(label, ":")
			got := map[string]string{"label": issuer, "account": account}
			for pair := range strings.SplitSeq(query, "&") {
				name, value, _ := strings.Cut(pair, "=")
				got[name] = value
			}
			for name, want := range map[string]string{"label": c.issuer, "account": c.account, "issuer": c.issuer,
				"secret": a.Base32, "digits": "6", "period": "30", "algorithm": "SHA1"} {
				if v, err := decode(got[name]); err != nil || v != want {
					t.Errorf("an app with the rule %s reads %s as %q, %v in %s", app, name, v, err, a.URL)
				}
			}
			storetest.Equal(t, len(got), 7, "parameters in", a.URL)
		}
		text, ok := strings.CutPrefix(a.QRDataURL, "data:image/png;base64,")
		if !ok || len(text) > 8<<10 {
			t.Fatalf("picture %.40s, %d bytes", a.QRDataURL, len(text))
		}
		raw := storetest.Value(base64.StdEncoding.DecodeString(text))(t)
		p := storetest.Value(png.Decode(bytes.NewReader(raw)))(t)
		size := p.Bounds().Dx()
		light, dark := 0, 0
		for y := range size {
			for x := range size {
				r, _, _, _ := p.At(x, y).RGBA()
				margin := min(x, y, size-1-x, size-1-y) < marginPixels
				switch {
				case r == 0 && margin:
					t.Fatalf("a dark point in the margin: %d %d", x, y)
				case r == 0:
					dark++
				default:
					light++
				}
			}
		}
		if p.Bounds().Dy() != size || dark < size*size/8 || light < size*size/4 {
			t.Errorf("%v with %d dark and %d light points", p.Bounds(), dark, light)
		}
	}
	if one, two := mustURL(t, rfc), mustURL(t, newSecret()); one == two {
		t.Error("two secrets, one picture")
	}
}

func mustURL(t *testing.T, secret []byte) string {
	a := storetest.Value(access("Castellan", user.User{ID: "u1"}, secret))(t)
	return a.QRDataURL
}

func ExampleCodeAt() {
	fmt.Println(CodeAt(rfc, 1))
	// Output: 287082
}

// FuzzMatch: only the codes of three time steps match, letter by letter (SEC-06).
func FuzzMatch(f *testing.F) {
	secret, now := []byte("12345678901234567890"), time.Unix(1_700_000_000, 0)
	codes := map[string]bool{}
	for s := StepAt(now) - skewSteps; s <= StepAt(now)+skewSteps; s++ {
		codes[CodeAt(secret, s)] = true
		f.Add(CodeAt(secret, s))
		f.Add(" " + CodeAt(secret, s))
	}
	f.Add("１２３４５６")
	f.Fuzz(func(t *testing.T, code string) {
		if _, ok := Match(secret, now, code); ok != codes[code] {
			t.Fatalf("%q: %v", code, ok)
		}
	})
}
