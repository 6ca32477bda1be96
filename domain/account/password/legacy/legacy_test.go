package legacy_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"castellan/domain/account/password/legacy"
)

// A hash whose cost would hang a login, or fill the memory, is refused when it is read. At the bound it is accepted.
func TestCostsAreBounded(t *testing.T) {
	const b64 = "MDEyMzQ1Njc4OWFiY2RlZg"
	bcrypt := func(cost string) string {
		return "$2b$" + cost + "$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"
	}
	phc := func(recipe string) string { return "$" + recipe + "$" + b64 + "$" + b64 }
	for text, want := range map[string]error{
		bcrypt("04"): nil, bcrypt("14"): nil, bcrypt("03"): legacy.ErrCost, bcrypt("15"): legacy.ErrCost,
		bcrypt("31"): legacy.ErrCost, bcrypt("99"): legacy.ErrCost,
		phc("scrypt$ln=17,r=8,p=1"): nil, phc("scrypt$ln=17,r=8,p=2"): nil,
		phc("scrypt$ln=17,r=8,p=3"): legacy.ErrCost, phc("scrypt$ln=18,r=8,p=1"): legacy.ErrCost,
		phc("scrypt$ln=30,r=8,p=1"): legacy.ErrCost, phc("scrypt$ln=4294967295,r=8,p=1"): legacy.ErrCost,
		phc("scrypt$ln=14,r=4294967295,p=1"): legacy.ErrCost, phc("scrypt$ln=0,r=8,p=1"): legacy.ErrCost,
		"{scrypt}$x$AAAA$AAAA":       legacy.ErrMalformed,
		phc("pbkdf2-sha256$2000000"): nil, phc("pbkdf2-sha256$2000001"): legacy.ErrCost,
		phc("pbkdf2-sha256$4294967296"): legacy.ErrCost, phc("pbkdf2-sha256$0"): legacy.ErrCost,
		phc("argon2id$v=19$m=131072,t=8,p=16"): nil, phc("argon2id$v=19$m=131072,t=9,p=16"): legacy.ErrCost,
		phc("argon2id$v=19$m=131073,t=1,p=1"): legacy.ErrCost, phc("argon2id$v=19$m=4194304,t=4,p=1"): legacy.ErrCost,
		phc("argon2i$v=19$m=1024,t=4294967295,p=1"): legacy.ErrCost, phc("argon2i$v=19$m=1024,t=1,p=17"): legacy.ErrCost,
		"$P$60kR84/2CT.sPqmbxq.mkAa/yc1CmW1": nil, "$P$I0kR84/2CT.sPqmbxq.mkAa/yc1CmW1": nil,
		"$P$J0kR84/2CT.sPqmbxq.mkAa/yc1CmW1": legacy.ErrCost, "$P$S0kR84/2CT.sPqmbxq.mkAa/yc1CmW1": legacy.ErrCost,
	} {
		if _, _, err := legacy.Read(text); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
}

// A malformed or unknown hash is refused, and the error never shows it.
func TestReadRefuses(t *testing.T) {
	for _, v := range vectors {
		for _, change := range []func(string) string{
			func(s string) string { s = strings.TrimRight(s, "="); return s[:len(s)-1] },
			func(s string) string { return s + "$" },
			func(s string) string { return " " + s },
			func(s string) string { return s + "\n" },
			func(s string) string { return strings.Replace(s, "$", "", 1) },
			func(s string) string { return strings.Replace(s, "$", "x$", 1) },
			func(s string) string { return s + strings.Repeat("A", 1100) },
		} {
			text := change(v.text)
			if text == v.text {
				continue
			}
			if h, none, err := legacy.Read(text); err == nil && !none {
				t.Errorf("%s: %q was read as %s", v.name, text, h)
			} else if err != nil && len(err.Error()) > 60 {
				t.Errorf("the error may show the text: %v", err)
			}
		}
	}
	for _, text := range []string{"hunter2hunter2", "9ed6210e741906ee73fa04b9225dd63f",
		"$2x$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6",
		"$2b$004$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6", "$5$salt$x", "$6$a$b",
		"$5$rounds=1400$x$a$b", "$5$round=1400$s$YOFIouojBQyhS0/Va5BWl4/vOQiTiqYw4BWi4klTwc1",
		"$wp$2b$04$abcdefghijklmnopqrstuut9Bfv7ef5QC7GY2hrgHLnQcLuZYEbb.", "$wp$x", "{bcrypt}x", "{bcrypt}", "{pbkdf2}00",
		"{noop}hunter2", "{scrypt}$e0801$AAAA", "{scrypt}$x$AAAA$AAAA", "{bcrypt@SpringSecurity_v9}$2a$10$x",
		"AAABAgMEBQYHCAkKCwwNDg+ukCEMDf0yyQ29NYubggHIVY0sdEUfdyeM+E1LtH1uJg==AAAA", "AQAAAAMAAAAyAAAAEOMwvh3+FZxqkdMBz2ek",
		"AQAAAAEAACcQ/////wABAgMEBQYHCAkKCwwNDg+yWU7rLgUwPZb1Itsmra7cbxw2EFpwvVFIEtP+JIuUEw==",
		"$pbkdf2-sha512$i=1000,l=63$AAECAwQFBgcICQoLDA0ODw$TWrm2w2zrsS3Yh3iwLfbxvLJCMZatkx6zvJmDB8u1fUovfGaoGmddPIe1qeT",
		"$pbkdf2-sha512$i=1000,l$AAECAwQFBgcICQoLDA0ODw$TWrm2w2zrsS3Yh3iwLfbxg",
		"crypt$$abc", "{CRYPT}abc", "{SSHA}AAAA", "$argon2d$v=19$m=1024,t=2,p=2$c29tZXNhbHQxMjM0NTY$j1M2GRQVSfx",
		"$argon2id$v=16$m=1024,t=2,p=2$c29tZXNhbHQxMjM0NTY$j1M2GRQVSfx+oiwG25VO6NRdMIK4kgHRDXzTgnnB87I",
		"$argon2id$v=19$m=01024,t=2,p=2$c29tZXNhbHQxMjM0NTY$j1M2GRQVSfx+oiwG25VO6NRdMIK4kgHRDXzTgnnB87I",
		"$argon2id$v=19$m=1024,t=2,p=2$c2FsdA$j1M2GRQVSfx+oiwG25VO6NRdMIK4kgHRDXzTgnnB87I", "$pbkdf2-md5$1000$AAAA$AAAA",
		"scrypt$1023$0123456789abcdef$8$1$Fv9pzOh9itzxlDiW4tIo1A=="} {
		if h, none, err := legacy.Read(text); err == nil && !none {
			t.Errorf("%q was read as %s", text, h)
		}
	}
}

// A text that no password matches is no password, and no error: Django's unusable passwords, and the empty text.
func TestUnusablePasswords(t *testing.T) {
	for _, text := range []string{"", "!", "!2KLJCccOZPLkmPTGOlmRS7mGBKUkT9Aqm35si7mC", "*", "*0"} {
		if h, none, err := legacy.Read(text); !none || err != nil || len(h.Tag) != 0 {
			t.Errorf("%q: none %v, %v", text, none, err)
		}
	}
}

// WordPress removes blanks from both ends of a password. They do not match, because the first login would store them.
func TestBlanksOfWordPressDoNotMatch(t *testing.T) {
	h, _, err := legacy.Read("$wp$2y$04$abcdefghijklmnopqrstuut9Bfv7ef5QC7GY2hrgHLnQcLuZYEbb.")
	if err != nil || !matches(t, h, typed) || matches(t, h, typed+" ") || h.Fits("\t"+typed) || !h.Fits("a b") {
		t.Errorf("blanks match, %v", err)
	}
}

// Bytes that another program ignores do not match: those after the 72nd of bcrypt, and those after a NUL. An empty
// password matches nothing, even where the old hash is of an empty one.
func TestIgnoredBytesDoNotMatch(t *testing.T) {
	long := strings.Repeat("x", 72)
	h, _, err := legacy.Read("$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i")
	if err != nil || !matches(t, h, long) {
		t.Fatalf("72 bytes do not match: %v", err)
	}
	if got, _ := h.Derive([]byte(long+"y"), argon); !bytes.Equal(got, h.Tag) {
		t.Error("the tag of 73 bytes differs: the test proves nothing")
	}
	if matches(t, h, long+"y") {
		t.Error("73 bytes match")
	}
	for text, password := range map[string]string{
		"md5$$d41d8cd98f00b204e9800998ecf8427e":                         "",
		"sha1$$" + "da39a3ee5e6b4b0d3255bfef95601890afd80709":           "",
		"$2b$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6":  typed + "\x00" + "rest",
		"$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i ": long + "\x00",
	} {
		h, _, err := legacy.Read(strings.TrimSpace(text))
		if err != nil || matches(t, h, password) {
			t.Errorf("%q matches, %v", password, err)
		}
	}
	h, _, err = legacy.Read("md5$$9ed6210e741906ee73fa04b9225dd63f")
	longest := strings.Repeat("y", 512)
	if err != nil || h.Fits(longest+"y") || !h.Fits(longest) {
		t.Errorf("the bound of a password does not hold, %v", err)
	}
}

// Only hashes that cost an attacker about as much as ours are stored as they are.
func TestStrength(t *testing.T) {
	for recipe, want := range map[string]bool{
		"bcrypt$r=10": true, "bcrypt$r=9": false,
		"scrypt$ln=14,r=8,p=1": true, "scrypt$ln=13,r=8,p=1": false, "fbscrypt$ln=14,r=8,p=1": true,
		"pbkdf2$h=sha1,i=1300000": true, "pbkdf2$h=sha1,i=1299999": false, "pbkdf2$h=sha256,i=600000": true,
		"pbkdf2$h=sha256,i=599999": false, "pbkdf2$h=sha512,i=210000": true, "pbkdf2$h=sha512,i=209999": false,
		"argon2id$m=7168,t=5,p=1": true, "argon2id$m=7168,t=4,p=1": false, "argon2id$m=4096,t=20,p=1": false,
		"argon2i$m=19456,t=2,p=1": true, "digest$h=sha512,o=sp": false, "digest$h=md5,o=ps": false, "phpass$c=20": false,
		"md5crypt$i=1000": false,
	} {
		r, err := legacy.ParseRecipe(recipe)
		if err != nil || r.Strong() != want || r.String() != recipe {
			t.Errorf("%s: strong is %v, %s, %v", recipe, r.Strong(), r, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.text)
	}
	f.Add("!unusable")
	f.Fuzz(func(t *testing.T, text string) {
		h, none, err := legacy.Read(text)
		if err != nil || none {
			return
		}
		if again, err := legacy.Parse(h.String()); err != nil || again.String() != h.String() {
			t.Fatalf("%q became %s, read as %s, %v", text, h, again, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, v := range vectors {
		if h, _, err := legacy.Read(v.text); err == nil {
			f.Add(h.String())
			f.Add(h.Inner().String())
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := legacy.Parse(text); err == nil && h.String() != text {
			t.Fatalf("%q was read as %s", text, h)
		}
	})
}
