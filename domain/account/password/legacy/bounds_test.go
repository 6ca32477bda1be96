package legacy_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"castellan/domain/account/password/legacy"
)

// Each parameter of a recipe has exact bounds. An unknown function, order or algorithm is malformed.
func TestBoundsOfRecipesAreExact(t *testing.T) {
	for recipe, want := range map[string]error{
		"bcrypt$r=4": nil, "bcrypt$r=3": legacy.ErrCost, "bcrypt$r=14": nil, "bcrypt$r=15": legacy.ErrCost,
		"bcrypt$r=10,pre=x":   legacy.ErrMalformed,
		"scrypt$ln=1,r=8,p=1": nil, "scrypt$ln=0,r=8,p=1": legacy.ErrCost, "scrypt$ln=20,r=1,p=1": nil,
		"scrypt$ln=21,r=1,p=1": legacy.ErrCost, "scrypt$ln=10,r=1024,p=1": nil, "scrypt$ln=9,r=1025,p=1": legacy.ErrCost,
		"scrypt$ln=10,r=0,p=1": legacy.ErrCost, "scrypt$ln=10,r=8,p=16": nil, "scrypt$ln=10,r=8,p=17": legacy.ErrCost,
		"scrypt$ln=10,r=8,p=0": legacy.ErrCost, "scrypt$ln=11,r=1024,p=1": legacy.ErrCost,
		"scrypt$ln=17,r=1,p=16": nil, "scrypt$ln=17,r=2,p=9": legacy.ErrCost, "fbscrypt$ln=21,r=1,p=1": legacy.ErrCost,
		"pbkdf2$h=sha1,i=1": nil, "pbkdf2$h=sha1,i=0": legacy.ErrCost, "pbkdf2$h=sha1,i=2000000": nil,
		"pbkdf2$h=sha1,i=2000001": legacy.ErrCost, "pbkdf2$h=md5,i=1000": legacy.ErrMalformed,
		"pbkdf2$h=sha3,i=1000": legacy.ErrMalformed,
		"argon2id$m=8,t=1,p=1": nil, "argon2id$m=7,t=1,p=1": legacy.ErrCost, "argon2id$m=16,t=1,p=2": nil,
		"argon2id$m=15,t=1,p=2": legacy.ErrCost, "argon2id$m=1024,t=1,p=0": legacy.ErrCost,
		"argon2id$m=1024,t=1,p=16": nil, "argon2id$m=1024,t=1,p=17": legacy.ErrCost,
		"argon2id$m=1024,t=0,p=1": legacy.ErrCost, "argon2id$m=1024,t=64,p=1": nil,
		"argon2id$m=1024,t=65,p=1": legacy.ErrCost, "argon2id$m=131072,t=8,p=1": nil,
		"argon2id$m=131073,t=1,p=1": legacy.ErrCost, "argon2id$m=131072,t=9,p=1": legacy.ErrCost,
		"argon2i$m=16384,t=64,p=1": nil, "argon2i$m=16385,t=64,p=1": legacy.ErrCost,
		"digest$h=sha512,o=sp": nil, "digest$h=md5,o=ps": nil, "digest$h=sha512,o=s": legacy.ErrMalformed,
		"digest$h=sha3,o=sp": legacy.ErrMalformed,
		"phpass$c=7":         nil, "phpass$c=6": legacy.ErrCost, "phpass$c=20": nil, "phpass$c=21": legacy.ErrCost,
		"md5crypt$i=1000": nil, "md5crypt$i=1001": legacy.ErrMalformed,
		"shacrypt$h=sha256,i=999": legacy.ErrCost, "shacrypt$h=sha256,i=1000": nil, "shacrypt$h=sha512,i=1000000": nil,
		"shacrypt$h=sha512,i=1000001": legacy.ErrCost, "shacrypt$h=sha1,i=5000": legacy.ErrMalformed,
		"bcrypt$r=10,pre=wp": nil,
		"bcrypt$r=04":        legacy.ErrMalformed, "bcrypt$r=x": legacy.ErrMalformed, "scrypt$ln=10,r=8": legacy.ErrMalformed,
		"argon2d$m=1024,t=1,p=1": legacy.ErrMalformed, "bcrypt": legacy.ErrMalformed, "": legacy.ErrMalformed,
	} {
		if r, err := legacy.ParseRecipe(recipe); !errors.Is(err, want) || err == nil && r.String() != recipe {
			t.Errorf("%q: %s, %v, want %v", recipe, r, err, want)
		}
	}
}

// Salt and tag of a stored hash have the lengths of its algorithm.
func TestLengthsOfSaltAndTag(t *testing.T) {
	for _, c := range []struct {
		recipe    string
		salt, tag int
		ok        bool
	}{
		{"bcrypt$r=10", 16, 23, true}, {"bcrypt$r=10", 15, 23, false}, {"bcrypt$r=10", 16, 22, false},
		{"bcrypt$r=10", 16, 24, false},
		{"digest$h=md5,o=sp", 0, 16, true}, {"digest$h=md5,o=sp", 0, 20, false}, {"digest$h=sha1,o=sp", 4, 20, true},
		{"digest$h=sha256,o=sp", 4, 32, true}, {"digest$h=sha512,o=sp", 4, 64, true},
		{"phpass$c=8", 8, 16, true}, {"phpass$c=8", 7, 16, false}, {"phpass$c=8", 9, 16, false},
		{"phpass$c=8", 8, 17, false},
		{"md5crypt$i=1000", 8, 16, true}, {"md5crypt$i=1000", 0, 16, true}, {"md5crypt$i=1000", 9, 16, false},
		{"md5crypt$i=1000", 8, 17, false},
		{"argon2id$m=1024,t=1,p=1", 8, 32, true}, {"argon2id$m=1024,t=1,p=1", 7, 32, false},
		{"pbkdf2$h=sha1,i=1000", 1, 20, true}, {"pbkdf2$h=sha1,i=1000", 1, 21, false},
		{"pbkdf2$h=sha1,i=1000", 0, 20, false}, {"pbkdf2$h=sha1,i=1000", 1, 16, true},
		{"scrypt$ln=10,r=8,p=1", 1, 64, true}, {"scrypt$ln=10,r=8,p=1", 0, 64, false},
		{"scrypt$ln=10,r=8,p=1", 128, 128, true}, {"scrypt$ln=10,r=8,p=1", 129, 64, false},
		{"scrypt$ln=10,r=8,p=1", 8, 129, false}, {"scrypt$ln=10,r=8,p=1", 8, 16, true},
		{"scrypt$ln=10,r=8,p=1", 8, 15, false},
	} {
		b64 := func(n int) string { return base64.RawStdEncoding.EncodeToString(make([]byte, n)) }
		for _, tag := range []string{b64(c.tag), fmt.Sprint("n=", c.tag)} {
			text := c.recipe + "$" + b64(c.salt) + "$" + tag
			if h, err := legacy.Parse(text); (err == nil) != c.ok || c.ok && (h.Size != c.tag || h.String() != text) {
				t.Errorf("%s with %d and %d bytes: %v", c.recipe, c.salt, c.tag, err)
			}
		}
	}
	for _, text := range []string{"md5crypt$i=1000$AAAA", "md5crypt$i=1000$AAA!$n=16", "md5crypt$i=1000$AAAA$n=x",
		"md5crypt$i=1000$AAAA$n=016", "md5crypt$i=1000$AAAA$n=16$", "md5crypt$i=9$AAAA$n=16"} {
		if h, err := legacy.Parse(text); err == nil || h.Size != 0 {
			t.Errorf("%s: %+v", text, h)
		}
	}
}

// The work of a recipe is that of the fixed table. The default of password.import_max_cost, 300,000, lies between the
// recommended costs and the ones above them.
func TestWork(t *testing.T) {
	for recipe, want := range map[string]uint64{"bcrypt$r=10": 61_440, "bcrypt$r=12": 245_760, "bcrypt$r=13": 491_520,
		"pbkdf2$h=sha1,i=1300000": 208_000, "pbkdf2$h=sha256,i=600000": 96_000, "pbkdf2$h=sha512,i=210000": 84_000,
		"pbkdf2$h=sha1,i=2000000": 320_000, "pbkdf2$h=sha512,i=2000000": 800_000, "pbkdf2$h=sha1,i=1": 1,
		"scrypt$ln=17,r=8,p=1": 293_601, "fbscrypt$ln=14,r=8,p=1": 36_700, "argon2id$m=19456,t=2,p=1": 19_456,
		"argon2i$m=131072,t=8,p=4": 524_288, "phpass$c=13": 819, "md5crypt$i=1000": 250,
		"shacrypt$h=sha512,i=5000": 1750, "shacrypt$h=sha256,i=5000": 750, "digest$h=md5,o=sp": 1} {
		if r, err := legacy.ParseRecipe(recipe); r.Work() != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", recipe, r.Work(), err, want)
		}
	}
}

// A hash in parts that is incomplete or contradicts itself is refused.
func TestPartsRefuse(t *testing.T) {
	const salt, tag = "MDEyMzQ1Njc4OWFiY2RlZg==", "MDEyMzQ1Njc4OWFiY2RlZg=="
	for name, c := range map[string]struct {
		legacy.Parts
		want error
	}{
		"an encoding":  {legacy.Parts{Alg: "md5", Salt: salt, Hash: tag, Encoding: "utf8"}, legacy.ErrMalformed},
		"a salt":       {legacy.Parts{Alg: "md5", Salt: "!", Hash: tag}, legacy.ErrMalformed},
		"a tag":        {legacy.Parts{Alg: "md5", Salt: salt, Hash: "!"}, legacy.ErrMalformed},
		"an order":     {legacy.Parts{Alg: "md5", Salt: salt, Hash: tag, Order: "middle"}, legacy.ErrMalformed},
		"a function":   {legacy.Parts{Alg: "pbkdf2-", Salt: salt, Hash: tag, Iterations: 1}, legacy.ErrUnknown},
		"an algorithm": {legacy.Parts{Alg: "sha3", Salt: salt, Hash: tag}, legacy.ErrUnknown},
		"a cost":       {legacy.Parts{Alg: "pbkdf2-sha1", Salt: salt, Hash: tag}, legacy.ErrCost},
		"N":            {legacy.Parts{Alg: "scrypt", Salt: salt, Hash: tag, N: 1023, R: 8, P: 1}, legacy.ErrMalformed},
		"another algorithm": {legacy.Parts{Alg: "argon2id",
			Hash: "$2b$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"}, legacy.ErrMalformed},
		"a length": {legacy.Parts{Alg: "sha1", Salt: salt, Hash: tag}, legacy.ErrMalformed},
	} {
		if _, err := c.Read(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	h, err := legacy.Parts{Alg: "md5", Salt: salt, Hash: tag}.Read()
	if err != nil || h.Variant != legacy.SaltFirst {
		t.Errorf("%+v, %v", h, err)
	}
}
