package password

import (
	"crypto/md5"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/account/password/argon2id"
	"castellan/domain/account/password/legacy"
	"castellan/domain/kit/storetest"
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
	storetest.Must(t, err)
	h := legacy.Hash{Recipe: r, Salt: []byte("0123456789abcdef"), Size: 32}
	if r.Alg == legacy.Bcrypt {
		h.Size = 23
	}
	if h.Tag, err = h.Derive([]byte(typed), argonOver(&argon2id.Memory{})); err != nil {
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

// A password is right as the other service hashed it, and in NFC. One that is not in NFC takes twice the work, right or
// wrong.
func TestImportedSpellings(t *testing.T) {
	const composed, divided = "parola \u00fc\u011f\u015f", "parola u\u0308g\u0306s\u0327"
	h := small(t, HasherOptions{})
	for _, c := range []struct {
		hashed, typed string
		want          bool
	}{{composed, composed, true}, {composed, divided, true}, {divided, divided, true}, {divided, composed, false}} {
		hash := foreign(t, fmt.Sprintf("md5$salt$%x", md5.Sum([]byte("salt"+c.hashed))))
		text := storetest.Value(h.Adopt(t.Context(), hash))(t)
		work := func(typed string) (right bool, units uint64) {
			before := h.Work()
			right, _, err := h.Verify(t.Context(), typed, text)
			storetest.Must(t, err)
			return right, h.Work() - before
		}
		_, once := work("another")
		want := once
		if c.typed == divided {
			want = 2 * once
		}
		if right, units := work(c.typed); right != c.want || units != want {
			t.Errorf("%q for %q: %v, work %d, want %d", c.typed, c.hashed, right, units, want)
		}
	}
}

// A hash of another service that becomes the previous one is wrapped first.
func TestWrap(t *testing.T) {
	h := small(t, HasherOptions{})
	text := storetest.Value(h.Adopt(t.Context(), strong(t, "scrypt$ln=14,r=8,p=1")))(t)
	wrapped, err := ownPlace(h).Wrap(t.Context(), text)
	if err != nil || wrapped == text || strings.Contains(wrapped, text[strings.LastIndex(text, "$"):]) {
		t.Fatalf("%s became %s, %v", text, wrapped, err)
	}
	if right, stale, err := h.Verify(t.Context(), typed, wrapped); !right || !stale || err != nil {
		t.Errorf("right %v, stale %v, %v", right, stale, err)
	}
	native := storetest.Value(h.Hash(t.Context(), typed))(t)
	for _, same := range []string{wrapped, native, ""} {
		storetest.Equal(t, storetest.Value(ownPlace(h).Wrap(t.Context(), same))(t), same)
	}
}

// A damaged hash is an internal error, which does not show it.
func TestDamagedImportedHashes(t *testing.T) {
	h := small(t, HasherOptions{})
	weak := storetest.Value(h.Adopt(t.Context(), foreign(t, "{SSHA}3HYXY1RXiZmbOpJr8U2NBIVfc/hzYWx0")))(t)
	inner := weak[:strings.Index(weak, "$argon2id")]
	for _, text := range []string{inner, "$imported$", "$imported$md5", weak + "=",
		strings.Replace(weak, "n=20", "n=21", 1),
		strings.Replace(weak, "o=ps", "o=xx", 1), strings.Replace(weak, "t=1", "t=0", 1), weak + weak,
		"$imported$bcrypt$r=31$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY"} {
		if _, _, err := h.Verify(t.Context(), typed, text); err == nil || strings.Contains(err.Error(), "imported$") {
			t.Errorf("%s: %v", text, err)
		}
		storetest.Fails(t, storetest.Err(h.AdoptStored(t.Context(), text)), "", text)
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
