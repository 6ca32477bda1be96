package password

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

func TestPolicy(t *testing.T) {
	who := Personal{Phone: "+905321234567", DialCode: "90", Mail: "ayse.yilmaz@example.com"}
	for _, c := range []struct{ password, rule string }{
		{"kedi7şeker", ""},
		{"ğğğğğğ7ı", ""},                        // 8 letters of more bytes
		{"correct horse battery staple", ""},    // no composition rule
		{strings.Repeat("ab c", 32), ""},        // 128
		{"ayse.yilmaz@example.co", ""},          // not the address
		{"  kedi7şeker  ", ""},                  // spaces are letters
		{"kedi7şe", "at least 8"},               //
		{"s\u0327ekerse", "at least 8"},         // 8 code points, but 7 once composed
		{"", "at least 8"},                      //
		{" \t \u00a0    ", "blank"},             //
		{strings.Repeat("x", 129), "at most"},   //
		{strings.Repeat("x", 1<<20), "at most"}, //
		{"kedi\xff7seker", "text"},              //
		{"5321234567", "phone number"},          //
		{"05321234567", "phone number"},         //
		{"+90 532 123 45 67", "phone number"},   //
		{"0090 (532) 1234567", "phone number"},  //
		{"Ayse.Yilmaz@Example.com", "phone number or mail"},
		{"password123", "common"},
		{"PassWord123", "common"},
		{"Şifre123", "common"},
		{"ŞİFRE123", "common"},
		{"Galatasaray1905", "common"},
		{"Beşiktaş1903", "common"},
		{"fenerbahçe", "common"},
		{"12345678", "common"},
		{"qwertyuiop", "common"},
		{"iloveyou", "common"},
		{"seniseviyorum", "common"},
		{"Istanbul34", "common"},
	} {
		err := DefaultPolicy().Check(c.password, who)
		e, _ := err.(*fault.Error)
		switch {
		case c.rule == "" && err != nil:
			t.Errorf("%.40q: %v", c.password, err)
		case c.rule != "" && (e == nil || e.Code != fault.InvalidField || e.Field != "password" ||
			!strings.Contains(e.Message, c.rule)):
			t.Errorf("%.40q: %v, want %q", c.password, err, c.rule)
		case c.rule != "" && c.password != "" && strings.Contains(e.Error(), c.password):
			t.Errorf("the message shows the password: %v", err)
		}
	}
	storetest.Must(t, DefaultPolicy().Check("05321234567x1", Personal{})) // an account without phone and mail
}

// The search depends on the order of the list, and the list matches its description. The spellings of a Turkish word
// are one word, and other characters stay.
func TestCommonList(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(common, "\n"), "\n")
	if !strings.HasSuffix(common, "\n") || len(lines) < 3000 || len(common) > 128<<10 {
		t.Fatalf("%d passwords in %d bytes", len(lines), len(common))
	}
	if !slices.IsSorted(lines) || len(slices.Compact(slices.Clone(lines))) != len(lines) {
		t.Error("the list is not sorted or holds one twice")
	}
	for _, l := range lines {
		if fold(l) != l || len(l) < DefaultPolicy().MinChars {
			t.Errorf("%q is not folded or too short to matter", l)
		}
		if !Common(l) || !Common(strings.ToUpper(l)) {
			t.Errorf("%q is not found", l)
		}
		if Common(l+"\x01") || Common(l[:len(l)-1]+"\x01") || Common("\x01"+l) {
			t.Errorf("a neighbour of %q is found", l)
		}
	}
	for _, no := range []string{"", "\n", "a", "zzzzzzzzzzzzzzzzz~", "!", "kedi7şeker", "password123\n",
		lines[0] + "\n" + lines[1]} {
		if Common(no) {
			t.Errorf("%q is found", no)
		}
	}
	for text, want := range map[string]string{"ıİîÎ": "iiii", "şŞğĞçÇ": "ssggcc", "üÜûÛ": "uuuu",
		"öÖâÂ": "ooaa", "AZaz": "azaz", "@[`{09é": "@[`{09é"} {
		storetest.Equal(t, fold(text), want, text)
	}
}

// A hash made by another program verifies here: the text is the common format.
func TestParseForeignHashes(t *testing.T) {
	salt := []byte("somesaltsomesalt")
	b64 := base64.RawStdEncoding.EncodeToString
	phc := "$argon2id$v=19$m=1024,t=3,p=2$" + b64(salt) + "$" + b64(argon2.IDKey([]byte("pässword"), salt, 3, 1024, 2, 32))
	s, err := parse(phc)
	if err != nil || s.params != (Params{1024, 3, 2}) || string(s.salt) != string(salt) || s.String() != phc {
		t.Fatalf("%+v, %v", s, err)
	}
	h := small(t, HasherOptions{})
	for password, want := range map[string]bool{"pässword": true, "pa\u0308ssword": true, "passw0rd": false, "": false} {
		right, stale, err := h.Verify(t.Context(), password, phc)
		if err != nil || right != want || stale != want {
			t.Errorf("%q: right %v, stale %v, %v", password, right, stale, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	good := "$argon2id$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	storetest.Must(t, storetest.Err(parse(good)))
	for _, change := range [][2]string{
		{"argon2id", "argon2i"}, {"v=19", "v=16"}, {"$v=19", ""}, {"m=64", "m=064"}, {"m=64", "m=+64"}, {"m=64", "m=4"},
		{"m=64", "m=5000000"},
		{"t=1", "t=0"}, {"t=1", "t=1000"}, {"p=1", "p=0"}, {"p=1", "p=300"}, {"p=1", "p=1,x=2"}, {"m=64,t=1", "t=1,m=64"},
		{"MDEyMzQ1Njc4OWFiY2RlZg$", "MDEyMzQ1Njc4OWFiY2RlZh$"}, {"MDEyMzQ1Njc4OWFiY2RlZg$", "$"}, {"ZWY", "ZWY="},
		{"ZWY", "ZWZ"},
		{"$argon2id", "argon2id"}, {"ZWY", "ZWY$"}, {good, ""}, {good, "password123"}, {"$", "$$"},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if _, err := parse(text); err == nil {
			t.Errorf("%q was accepted", text)
		} else if strings.Contains(err.Error(), "MDEy") || strings.Contains(err.Error(), "password123") {
			t.Errorf("the error shows the text: %v", err)
		}
	}
}

func FuzzPHC(f *testing.F) {
	f.Add("$argon2id$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY")
	f.Fuzz(func(t *testing.T, phc string) {
		if s, err := parse(phc); err == nil && (s.String() != phc || s.params.Validate() != nil) {
			t.Fatalf("%q was read as %q", phc, s)
		}
	})
}
