package password

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/access/password/legacy"
)

// typed is the password of every hash.
const typed = "correct horse 42"

func foreign(t *testing.T, text string) legacy.Hash {
	t.Helper()
	h, none, err := legacy.Read(text)
	if none || err != nil {
		t.Fatalf("%s: none %v, %v", text, none, err)
	}
	return h
}

// strong computes a hash of a recipe that may be stored as it is.
func strong(t *testing.T, recipe string) legacy.Hash {
	t.Helper()
	r, err := legacy.ParseRecipe(recipe)
	if err != nil {
		t.Fatal(err)
	}
	h := legacy.Hash{Recipe: r, Salt: []byte("0123456789abcdef"), Size: 32}
	if r.Alg == legacy.Bcrypt {
		h.Size = 23
	}
	if h.Tag, err = h.Derive([]byte(typed), new(arena).foreign); err != nil {
		t.Fatal(err)
	}
	return h
}

// A weak hash of another service is stored as argon2id over it: its own tag is not stored. A strong one is stored as it
// is, and one like ours becomes one of ours. Each verifies the password, and is outdated.
func TestAdopt(t *testing.T) {
	h := small(t, HasherOptions{})
	for name, c := range map[string]struct {
		legacy.Hash
		prefix string
		stale  bool
	}{
		"MD5": {foreign(t, "md5$ERzRdd5VGmixhE0Glsn1PH$4c98388e7aad42a03212b59d05124f94"),
			"$imported$digest$h=md5,o=sp$", true},
		"SHA-1": {foreign(t, "{SSHA}3HYXY1RXiZmbOpJr8U2NBIVfc/hzYWx0"), "$imported$digest$h=sha1,o=ps$", true},
		"bcrypt4": {foreign(t, "$2b$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"),
			"$imported$bcrypt$r=4$", true},
		"PBKDF2": {foreign(t, "$pbkdf2-sha256$1000$3vtfy/l/z9l7T6n1fg.B8A$6SCjYJmVDOp1J0EnE1UfAm/AhiE15Xu5ASRbV145mbo"),
			"$imported$pbkdf2$h=sha256,i=1000$", true},
		"argon2i": {foreign(t, "$argon2i$v=19$m=1024,t=3,p=2$c29tZXNhbHQxMjM0NTY$"+
			"jWoO6JiCk9sbJSyA6leyL2tt+jdszWg2iRdTl2ZgZuc"),
			"$imported$argon2i$m=1024,t=3,p=2$", true},
		"scrypt": {strong(t, "scrypt$ln=14,r=8,p=1"), "$imported$scrypt$ln=14,r=8,p=1$", true},
		"bcrypt": {strong(t, "bcrypt$r=10"), "$imported$bcrypt$r=10$", true},
		"ours":   {strong(t, "argon2id$m=64,t=1,p=1"), "$argon2id$v=19$m=64,t=1,p=1$", false},
		"larger": {strong(t, "argon2id$m=20480,t=2,p=2"), "$imported$argon2id$m=20480,t=2,p=2$", true},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := h.Adopt(t.Context(), c.Hash)
			if err != nil || !strings.HasPrefix(text, c.prefix) {
				t.Fatalf("%s, %v", text, err)
			}
			wrapped := strings.Contains(text, "$argon2id$v=19$m=64,t=1,p=1$")
			if Imported(text) && wrapped == c.Strong() {
				t.Errorf("strong %v, wrapped %v: %s", c.Strong(), wrapped, text)
			}
			old := c.Hash.String()
			if tag := old[strings.LastIndex(old, "$"):]; Imported(text) && wrapped && strings.Contains(text, tag) {
				t.Errorf("the old hash is stored: %s", text)
			}
			if again, err := h.AdoptStored(t.Context(), text); Imported(text) && (err != nil || again != text) {
				t.Errorf("adopted again: %s, %v", again, err)
			}
			for try, want := range map[string]bool{typed: true, typed + "x": false, "": false, typed + "\x00": false,
				"\xff": false} {
				right, stale, err := h.Verify(t.Context(), try, text)
				if right != want || stale != (want && c.stale) || err != nil {
					t.Errorf("%q: right %v, stale %v, %v", try, right, stale, err)
				}
			}
		})
	}
}

// A hash of another service that becomes the previous one is wrapped first.
func TestWrap(t *testing.T) {
	h := small(t, HasherOptions{})
	text, err := h.Adopt(t.Context(), strong(t, "scrypt$ln=14,r=8,p=1"))
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := ownPlace(h).Wrap(t.Context(), text)
	if err != nil || wrapped == text || strings.Contains(wrapped, text[strings.LastIndex(text, "$"):]) {
		t.Fatalf("%s became %s, %v", text, wrapped, err)
	}
	if right, stale, err := h.Verify(t.Context(), typed, wrapped); !right || !stale || err != nil {
		t.Errorf("right %v, stale %v, %v", right, stale, err)
	}
	native, err := h.Hash(t.Context(), typed)
	for _, same := range []string{wrapped, native, ""} {
		if got, err := ownPlace(h).Wrap(t.Context(), same); got != same || err != nil {
			t.Errorf("%s became %s, %v", same, got, err)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// A damaged hash is an internal error, which does not show it.
func TestDamagedImportedHashes(t *testing.T) {
	h := small(t, HasherOptions{})
	weak, err := h.Adopt(t.Context(), foreign(t, "{SSHA}3HYXY1RXiZmbOpJr8U2NBIVfc/hzYWx0"))
	if err != nil {
		t.Fatal(err)
	}
	inner := weak[:strings.Index(weak, "$argon2id")]
	for _, text := range []string{inner, "$imported$", "$imported$md5", weak + "=",
		strings.Replace(weak, "n=20", "n=21", 1),
		strings.Replace(weak, "o=ps", "o=xx", 1), strings.Replace(weak, "t=1", "t=0", 1), weak + weak,
		"$imported$bcrypt$r=31$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY"} {
		if _, _, err := h.Verify(t.Context(), typed, text); err == nil || strings.Contains(err.Error(), "imported$") {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := h.AdoptStored(t.Context(), text); err == nil {
			t.Errorf("%s was adopted", text)
		}
	}
}

// While accounts have hashes of other services, every place ends at a multiple of one time, whatever it computed.
// Without them nothing waits.
func TestEven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := small(t, HasherOptions{})
		wait := func(spent time.Duration) time.Duration {
			t.Helper()
			p, began := ownPlace(h), time.Now()
			p.spent = spent
			if err := p.Even(t.Context()); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		if got := wait(3 * time.Millisecond); got != 0 {
			t.Errorf("waits %v without imported hashes", got)
		}
		h.SetImported([]legacy.Recipe{{Alg: legacy.Bcrypt, Cost: 4}})
		h.level.Load().step = 100 * time.Millisecond
		for spent, want := range map[time.Duration]time.Duration{
			0: 100, 1 * time.Millisecond: 99, 99 * time.Millisecond: 1, 100 * time.Millisecond: 0,
			101 * time.Millisecond: 99, 250 * time.Millisecond: 50} {
			if got := wait(spent); got != want*time.Millisecond {
				t.Errorf("after %v it waits %v, want %v ms", spent, got, want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := ownPlace(h).Even(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that left waits: %v", err)
		}
		h.SetImported(nil)
		if got := wait(3 * time.Millisecond); got != 0 {
			t.Errorf("waits %v after the last imported hash", got)
		}
	})
}

// The step is measured by running the recipes, and covers each of them; the hashes of a place are counted.
func TestEvenMeasures(t *testing.T) {
	h := small(t, HasherOptions{})
	h.SetImported([]legacy.Recipe{{Alg: legacy.Bcrypt, Cost: 6},
		{Alg: legacy.Digest, Function: "md5", Variant: legacy.SaltFirst},
		{Alg: legacy.PBKDF2, Function: "sha512", Cost: 1000}, {Alg: legacy.Scrypt, Cost: 4, Memory: 8, Lanes: 1},
		{Alg: legacy.FirebaseScrypt, Cost: 4, Memory: 8, Lanes: 1}, {Alg: legacy.PHPass, Cost: 7}, {Alg: legacy.MD5Crypt},
		{Alg: legacy.Argon2i, Memory: 64, Cost: 1, Lanes: 1}})
	p := ownPlace(h)
	if err := p.Even(t.Context()); err != nil {
		t.Fatal(err)
	}
	step := h.level.Load().step
	text, err := h.Adopt(t.Context(), foreign(t, "md5$ERzRdd5VGmixhE0Glsn1PH$4c98388e7aad42a03212b59d05124f94"))
	if err != nil || step < time.Millisecond {
		t.Fatalf("step %v, %v", step, err)
	}
	for _, phc := range []string{"", text} {
		p := ownPlace(h)
		if _, _, err := p.Verify(t.Context(), typed, phc); err != nil || p.spent == 0 {
			t.Errorf("%q spent %v, %v", phc, p.spent, err)
		}
	}
}

// Of thousands of recipes only the costliest of each function is measured.
func TestCostliestRecipes(t *testing.T) {
	h := small(t, HasherOptions{})
	var recipes []legacy.Recipe
	for i := range uint32(5000) {
		recipes = append(recipes, legacy.Recipe{Alg: legacy.PBKDF2, Function: "sha256", Cost: 1 + i*7%5000},
			legacy.Recipe{Alg: legacy.PBKDF2, Function: "sha512", Cost: 3}, legacy.Recipe{Alg: legacy.Bcrypt, Cost: 4 + i%3})
	}
	h.SetImported(recipes)
	got := h.level.Load().recipes
	if len(got) != 3 || got[0].Cost != 6 || got[1].Cost != 5000 || got[2].Cost != 3 {
		t.Errorf("%v", got)
	}
}

func FuzzImported(f *testing.F) {
	f.Add("$imported$digest$h=sha1,o=ps$c2FsdA$n=20$argon2id$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$" +
		"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY")
	f.Add("$imported$scrypt$ln=14,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg")
	f.Fuzz(func(t *testing.T, text string) {
		if i, err := parseImported(text); err == nil && i.String() != text {
			t.Fatalf("%q was read as %q", text, i)
		}
	})
}
