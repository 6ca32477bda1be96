package intake_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/people/intake"
)

// A hash of Auth0 is a text, or a value with an encoding. Another encoding or algorithm is refused.
func TestAuth0Hashes(t *testing.T) {
	value := func(algorithm, value, encoding, more string) string {
		return fmt.Sprintf(`{"algorithm":%q,"hash":{"value":%q,"encoding":%q}%s}`, algorithm, value, encoding, more)
	}
	salted := func(value, encoding, position string) string {
		return fmt.Sprintf(`,"salt":{"value":%q,"encoding":%q,"position":%q}`, value, encoding, position)
	}
	const (
		digest    = "5d41402abc4b2a76b9719d911017c592"
		tag       = "MDEyMzQ1Njc4OWFiY2RlZg"
		malformed = "! hash: the hash is malformed"
		costly    = "! hash: the cost of the hash is out of bounds"
		unknown   = "! hash: the kind of the hash is not supported"
		whole     = "$scrypt$ln=10,r=8,p=1$c2FsdA$" + tag
		tooSmall  = `,"cost":-1,"blockSize":8,"parallelization":1`
		noBlock   = `,"cost":1024,"blockSize":-8,"parallelization":1`
	)
	for _, c := range []struct{ custom, want string }{
		{value("md5", digest, "hex", ""), "digest$h=md5,o=ps"},
		{value("md5", digest, "hex", salted("c2FsdA==", "base64", "suffix")), "digest$h=md5,o=ps"},
		{value("md5", digest, "hex", salted("73616c74", "hex", "prefix")+`,"password":{"encoding":"utf8"}`),
			"digest$h=md5,o=sp"},
		{value("scrypt", whole, "", ""), "scrypt$ln=10,r=8,p=1"},
		{value("md5", "0123456789abcdef", "utf8", ""), malformed},
		{value("md5", "0123456789abcdef", "utf16", ""), malformed},
		{value("md5", "xyz", "hex", ""), malformed},
		{value("md5", digest, "hex", salted("x", "hex", "")), malformed},
		{value("md5", digest, "hex", salted("x", "rot13", "")), malformed},
		{value("scrypt", tag, "base64", salted("salt", "", "")+tooSmall), malformed},
		{value("scrypt", tag, "base64", salted("salt", "", "")+noBlock), costly},
		{value("", digest, "hex", ""), unknown},
	} {
		entry := "1: |a@b.c,false|||||active|" + c.want + "|"
		if c.want[0] == '!' {
			entry = "1" + c.want
		}
		wants(t, intake.Auth0, `{"email":"a@b.c","custom_password_hash":`+c.custom+`}`, entry)
	}
	wants(t, intake.Auth0, `["x",{"user_id":"u","_id":{"$oid":"o"},"email":"a@b.c","name":"Ada King","family_name":"L"},
`+`{"_id":{"$oid":7},"email":"b@b.c","mfa_factors":[{}]}]`,
		"1! is not a JSON object of this format", "2: u|a@b.c,false|||L||active||", "3: |b@b.c,false|||||active||")
}

// Before version 8, Keycloak wrote the fields of a credential in the credential itself.
func TestOldKeycloak(t *testing.T) {
	const hash = `"hashedSaltedValue":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=","salt":"MDEyMzQ1Njc4OWFiY2RlZg==",` +
		`"hashIterations":27500,"counter":0,"digits":0,"period":0,"createdDate":1500000000000,"config":{}`
	const otp = `{"type":"totp","hashedSaltedValue":"12345678901234567890","hashIterations":0,"counter":0,` +
		`"algorithm":"HmacSHA1","digits":%d,"period":30}`
	for credentials, want := range map[string]string{
		`{"type":"password","algorithm":"pbkdf2-sha256",` + hash + `}`: "1: |a@b.c,false|||||active|" +
			"pbkdf2$h=sha256,i=27500|",
		`{"type":"password","algorithm":"pbkdf2",` + hash + `},` + fmt.Sprintf(otp, 6): "1: |a@b.c,false|||||active|" +
			"pbkdf2$h=sha1,i=27500|GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
		fmt.Sprintf(otp, 8): "1! totpSecret: only time-based codes of SHA-1 with 6 digits every 30 seconds are supported",
		`{"type":"hotp","hashedSaltedValue":"x","algorithm":"HmacSHA1","digits":6,"period":30}`: "1! totpSecret: only " +
			"time-based codes of SHA-1 with 6 digits every 30 seconds are supported",
	} {
		wants(t, intake.Keycloak, `{"users":[{"email":"a@b.c","credentials":[`+credentials+`]}]}`, want)
	}
}

// A credential of Keycloak names its algorithm and its parameters; what the service cannot compute is refused.
func TestKeycloakCredentials(t *testing.T) {
	const salted = `{"value":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=","salt":"MDEyMzQ1Njc4OWFiY2RlZg=="}`
	argon := func(version, memory string) string {
		return fmt.Sprintf(`{"hashIterations":5,"algorithm":"argon2","additionalParameters":{"memory":[%q],"type":["id"],`+
			`"version":[%q],"parallelism":["1"]}}`, memory, version)
	}
	otp := func(changes ...string) string {
		text := `{"subType":"totp","digits":6,"period":30,"algorithm":"HmacSHA1","secretEncoding":"base32"}`
		return strings.NewReplacer(changes...).Replace(text)
	}
	const codes = "1! totpSecret: only time-based codes of SHA-1 with 6 digits every 30 seconds are supported"
	for _, c := range []struct{ kind, data, want string }{
		{"password", `{"hashIterations":27500,"algorithm":"pbkdf2"}`, "pbkdf2$h=sha1,i=27500|"},
		{"password", `{"hashIterations":27500,"algorithm":"pbkdf2-sha512"}`, "pbkdf2$h=sha512,i=27500|"},
		{"password", argon("1.3", "7168"), "argon2id$m=7168,t=5,p=1|"},
		{"password", argon("1.0", "7168"), "1! hash: the kind of the hash is not supported"},
		{"password", argon("1.3", "x"), "1! hash: the cost of the hash is out of bounds"},
		{"otp", otp(), "|MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="},
		{"otp", otp("base32", "base64"), "1! totpSecret: the encoding is not supported"},
		{"otp", otp("totp", "hotp"), codes},
		{"otp", otp("6", "7"), codes},
		{"otp", otp("30", "29"), codes},
		{"otp", otp("SHA1", "SHA256"), codes},
	} {
		if !strings.HasPrefix(c.want, "1!") {
			c.want = "1: |a@b.c,false|||||active|" + c.want
		}
		wants(t, intake.Keycloak, fmt.Sprintf(`{"users":[{"email":"a@b.c","credentials":[{"type":%q,"secretData":%q,`+
			`"credentialData":%q}]}]}`, c.kind, salted, c.data), c.want)
	}
	wants(t, intake.Keycloak, `{"users":[7,{"email":"a@b.c","enabled":true,"attributes":{"phoneNumber":[],`+
		`"phone_number":"","phone":["+1","+2"],"locale":"ar_EG"}},{"email":"b@b.c","attributes":{"phoneNumber":7,`+
		`"locale":["de"]}}]}`,
		"1! is not a JSON object of this format", "2: |a@b.c,false|+1|||ar|active||", "3: |b@b.c,false|||||active||")
	wants(t, intake.Firebase, `{"users":[7]}`, "1! is not a JSON object of this format")
	wants(t, intake.Django, `[7,{"model":"auth.user","pk":1,"fields":7},{"model":"user","pk":1,"fields":{}},`+
		`{"model":"a.users","pk":1,"fields":{}},{"model":"A.USER","pk":2,"fields":{"email":"a@b.c",`+
		`"password":"9ed6210e741906ee73fa04b9225dd63"}}]`,
		"1! is not a JSON object of this format", "2! is not a JSON object of this format",
		"5! hash: the kind of the hash is not supported")
}

// A field twice is refused in any notation of its letters, and so is an object that is torn.
func TestCastellanObjects(t *testing.T) {
	wants(t, intake.Castellan, `{"email":"a@b.c",7:1}
{"email":"a@b.c","name":}
{"email":"a@b.c" "name":"x"}
{"email":"a@b.c","hash":"$imported$digest$h=sha1,o=ps$c2FsdA$n=20$nonsense"}
   
{"email":"a@b.c","name":"x","surname":"x"}`,
		"1! is not a JSON object of this format", "2! is not a JSON object of this format",
		"3! is not a JSON object of this format", "4! hash: the hash is malformed", "6: |a@b.c,false||x|x||||")
}

// failing is a file that cannot be read to its end.
type failing struct{ text io.Reader }

var errDisk = errors.New("the disk is broken")

func (f failing) Read(p []byte) (int, error) {
	n, err := f.text.Read(p)
	if err == io.EOF {
		err = errDisk
	}
	return n, err
}

// The error of a file that cannot be read is reported, after what was read before it.
func TestUnreadableFiles(t *testing.T) {
	for _, c := range []struct {
		format intake.Format
		text   string
		read   int
	}{
		{intake.Castellan, "", 0}, {intake.Castellan, "{", 0}, {intake.Castellan, `{"email":"a@b.c"}` + "\n{", 1},
		{intake.CSV, "email\na@b.c\nb", 1}, {intake.CSV, "ema", 0}, {intake.Auth0, `[{"email":"a@b.c"},`, 1},
		{intake.Keycloak, `{"users":`, 0},
	} {
		s, err := intake.Open(c.format, failing{strings.NewReader(c.text)}, firebase)
		read := 0
		for ; err == nil; read++ {
			_, err = s.Next()
		}
		storetest.Is(t, err, errDisk, c.format, c.text)
		storetest.Equal(t, max(read-1, 0), c.read, c.format, c.text)
	}
}
