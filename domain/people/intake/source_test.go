package intake_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"castellan/domain/account/password/legacy"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/intake"
)

const bcrypt = "$2b$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"

var firebase = legacy.Firebase{SaltSeparator: "Bw==", Rounds: 8, MemCost: 14,
	SignerKey: "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=="}

// listed reads a file: "line: fields" for an entry, "line! reason" for a refused line.
func listed(t testing.TB, f intake.Format, text string) (all []string, end error) {
	t.Helper()
	s, err := intake.Open(f, strings.NewReader(text), firebase)
	if err != nil {
		return nil, err
	}
	for {
		r, err := s.Next()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		case r.Hash.Beyond != "":
			r.Refused = "hash: " + r.Hash.Beyond
			fallthrough
		case r.Refused != "":
			all = append(all, fmt.Sprintf("%d! %s", r.Line, r.Refused))
			continue
		}
		recipe := ""
		if r.Hash.Foreign != nil {
			recipe = r.Hash.Foreign.Recipe.String()
		}
		all = append(all, fmt.Sprintf("%d: %s|%s,%v|%s|%s|%s|%s|%s|%s|%s", r.Line, r.ExternalID, r.Email, r.EmailVerified,
			r.CountryCode+r.Phone+r.International, r.Name, r.Surname, r.Language, r.Status, recipe+r.Hash.Stored, r.TOTP))
	}
}

func wants(t *testing.T, f intake.Format, text string, want ...string) {
	t.Helper()
	storetest.Equal(t, strings.Join(storetest.Value(listed(t, f, text))(t), "\n"), strings.Join(want, "\n"), f)
}

func TestCastellanFormat(t *testing.T) {
	const wrapped = "$imported$digest$h=sha1,o=ps$c2FsdA$n=20$argon2id$v=19$m=64,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$" +
		"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"
	wants(t, intake.Castellan,
		"\ufeff"+`{"externalId":"x1","email":"a@b.c","emailVerified":true,"countryCode":"90","phoneNumber":"5","name":"Ada",`+
			`"surname":"L","language":"en","status":"blocked","hash":"`+bcrypt+`","totpSecret":"ABC"}`+"\r\n\n"+
			`{"email":"b@b.c","hash":{"alg":"scrypt","hash":"MDEyMzQ1Njc4OWFiY2RlZg","salt":"c2FsdA","n":1024,"r":8,"p":1}}
{"email":"c@b.c","hash":"`+wrapped+`"}
{"email":"d@b.c","hash":"!unusable"}
{"email":"e@b.c","hash":null}
{"email":"f@b.c","hash":"`+strings.Replace(wrapped, "t=1", "t=0", 1)+`"}
{"email":"f@b.c","hash":"hunter2"}
{"email":"f@b.c","hash":7}
{"email":"f@b.c","hash":{"alg":"md5","hash":"x","pepper":"y"}}
{"email":"f@b.c","password":"hunter2"}
{"email":"f@b.c","EMAIL":"g@b.c"}
{"email":"f@b.c"} x
["email"]
nonsense
{"email":"`+"\xff"+`"}
{"email":"`+strings.Repeat("x", 1<<20)+`"}
{"email":"z@b.c"}`,
		"1: x1|a@b.c,true|905|Ada|L|en|blocked|bcrypt$r=4|ABC",
		"3: |b@b.c,false||||||scrypt$ln=10,r=8,p=1|",
		"4: |c@b.c,false||||||"+wrapped+"|",
		"5: |d@b.c,false|||||||",
		"6: |e@b.c,false|||||||",
		"7! hash: the hash is malformed",
		"8! hash: the kind of the hash is not supported",
		"9! is not a JSON object of this format",
		"10! has an unknown field",
		"11! has an unknown field",
		"12! has a field twice",
		"13! is not a JSON object of this format",
		"14! is not a JSON object of this format",
		"15! is not a JSON object of this format",
		"16! is not UTF-8 but probably Windows-1252; save the file as UTF-8",
		"17! is longer than 1 MiB",
		"18: |z@b.c,false|||||||")
}

// The three shapes of Auth0: the export of profiles, the export of hashes, and the array of the import.
func TestAuth0Format(t *testing.T) {
	wants(t, intake.Auth0,
		`{"user_id":"auth0|5","email":"a@b.c","email_verified":true,"given_name":"Ada","family_name":"L",`+
			`"locale":"en-GB","blocked":true,"identities":[{"x":1}]}
{"_id":{"$oid":"60425dc4"},"email":"b@b.c","name":"b@b.c","passwordHash":"`+bcrypt+`","tenant":"dev"}
{"email":"c@b.c","name":"Ada King Lovelace","phone_number":"+905321234567"}`,
		"1: auth0|5|a@b.c,true||Ada|L|en|blocked||",
		"2: auth0|60425dc4|b@b.c,false|||||active|bcrypt$r=4|",
		"3: |c@b.c,false|+905321234567|Ada King|Lovelace||active||")
	wants(t, intake.Auth0, `[{"email":"a@b.c","custom_password_hash":{"algorithm":"sha256","hash":{"value":`+
		`"392e0f09fc68129ff84461180174db4e788599318d2314b6003277f69e68839c","encoding":"hex"},"salt":{"value":"salt",`+
		`"encoding":"utf8","position":"prefix"}},"mfa_factors":[{"totp":{"secret":"GEZDGNBVGY3TQOJQ"}}]},
{"email":"b@b.c","custom_password_hash":{"algorithm":"md5","hash":{"value":"nSEOdBkG7nP6BMqSJdXdXg==",
"encoding":"base64"}}},
{"email":"c@b.c","custom_password_hash":{"algorithm":"scrypt","hash":{"value":"MDEyMzQ1Njc4OWFiY2RlZg",
"encoding":"base64"},`+
		`"salt":{"value":"salt"},"cost":1024,"blockSize":8,"parallelization":1}},
{"email":"d@b.c","custom_password_hash":{"algorithm":"bcrypt","hash":{"value":"`+bcrypt+`"}}},
{"email":"e@b.c","custom_password_hash":{"algorithm":"hmac","hash":{"value":"x"}}},
{"email":"f@b.c","custom_password_hash":{"algorithm":"sha1","hash":{"value":"x"},"password":{"encoding":"utf16le"}}},
{"email":"g@b.c","password_hash":"`+bcrypt+`"}]`,
		"1: |a@b.c,false|||||active|digest$h=sha256,o=sp|GEZDGNBVGY3TQOJQ",
		"2: |b@b.c,false|||||active|digest$h=md5,o=ps|",
		"3: |c@b.c,false|||||active|scrypt$ln=10,r=8,p=1|",
		"4: |d@b.c,false|||||active|bcrypt$r=4|",
		"5! hash: the kind of the hash is not supported",
		"6! hash: the encoding of the password is not supported",
		"7: |g@b.c,false|||||active|bcrypt$r=4|")
}

func TestKeycloakFormat(t *testing.T) {
	credential := func(kind, secret, data string) string {
		return fmt.Sprintf(`{"type":%q,"secretData":%q,"credentialData":%q}`, kind, secret, data)
	}
	const salted = `{"value":"eqORUW6g15Y1DMEMdY88P5DF1yTxzyJxWPo9EHQ6Cu4wvpHCML5vcr8UW3TwmQE+95NDdOGnSM9G7dgm0Pxpnw==",` +
		`"salt":"MDEyMzQ1Njc4OWFiY2RlZg==","additionalParameters":{}}`
	wants(t, intake.Keycloak, `{"realm":"shop","clients":[{"users":[1,{"x":"]"}]},"\"users"],"n":1.5e3,"users":[
{"id":"k1","username":"ada","email":"a@b.c","emailVerified":true,"firstName":"Ada","lastName":"L","enabled":true,
 "attributes":{"locale":["tr"],"phoneNumber":["+905321234567"]},"credentials":[`+
		credential("password", salted, `{"hashIterations":27500,"algorithm":"pbkdf2-sha256","additionalParameters":{}}`)+`,`+
		credential("otp", `{"value":"12345678901234567890"}`,
			`{"subType":"totp","digits":6,"counter":0,"period":30,"algorithm":"HmacSHA1"}`)+`]},
{"id":"k2","email":"b@b.c","enabled":false,"credentials":[`+
		credential("password", salted,
			`{"hashIterations":5,"algorithm":"argon2","additionalParameters":{"hashLength":["32"],`+
				`"memory":["7168"],"type":["id"],"version":["1.3"],"parallelism":["1"]}}`)+`]},
{"id":"svc","username":"service-account-app","serviceAccountClientId":"app"},
{"id":"k3","email":"c@b.c","credentials":[`+credential("password", salted, `{"hashIterations":1,
"algorithm":"own"}`)+`]},
{"id":"k4","email":"d@b.c","credentials":[`+credential("password", `x`, `{}`)+`]},
{"id":"k5","email":"e@b.c","credentials":[`+credential("otp", `{"value":"x"}`, `{"subType":"totp","digits":8,
"period":30,"algorithm":"HmacSHA1"}`)+`]},
{"id":"k6","email":"f@b.c","credentials":[`+credential("otp", `{"value":"GEZDGNBVGY3TQOJQ"}`, `{"subType":"totp",
"digits":6,`+
		`"period":30,"algorithm":"HmacSHA1","secretEncoding":"BASE32"}`)+`,{"type":"webauthn"}]}],"enabled":true}`,
		"1: k1|a@b.c,true|+905321234567|Ada|L|tr|active|pbkdf2$h=sha256,i=27500|GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
		"2: k2|b@b.c,false|||||passive|argon2id$m=7168,t=5,p=1|",
		"4! hash: the kind of the hash is not supported",
		"5! credentials: are malformed",
		"6! totpSecret: only time-based codes of SHA-1 with 6 digits every 30 seconds are supported",
		"7: k6|f@b.c,false|||||active||GEZDGNBVGY3TQOJQ")
}

func TestFirebaseFormat(t *testing.T) {
	wants(t, intake.Firebase, `{"users":[{"localId":"f1","email":"a@b.c","emailVerified":true,"passwordHash":`+
		`"lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==","salt":"42xEC+ixf3L2lw==",
"displayName":"Ada Lovelace","disabled":false,"providerUserInfo":[]},{"localId":"f2","phoneNumber":"+905321234567",
"disabled":true},
{"localId":"f3","email":"c@b.c","passwordHash":"AAAA","salt":"AAAA"}]}`,
		"1: f1|a@b.c,true||Ada|Lovelace||active|fbscrypt$ln=14,r=8,p=1|",
		"2: f2|,false|+905321234567||||passive||",
		"3! hash: the hash is malformed")
}

func TestTableFormats(t *testing.T) {
	wants(t, intake.Cognito,
		"cognito:username,name,given_name,family_name,email,email_verified,phone_number,cognito:mfa_enabled\n"+
			"u1,,Ada,L,a@b.c,true,+905321234567,false\nu2,Ada Lovelace,,,b@b.c,FALSE,,\n",
		"2: u1|a@b.c,true|+905321234567|Ada|L||active||",
		"3: u2|b@b.c,false||Ada|Lovelace||active||")
	wants(t, intake.Django,
		"id,password,last_login,is_superuser,username,first_name,last_name,email,is_staff,is_active,date_joined\n"+
			"1,\"md5$ERzRdd5VGmixhE0Glsn1PH$4c98388e7aad42a03212b59d05124f94\",,t,ada,Ada,L,a@b.c,t,t,x\n"+
			"2,9ed6210e741906ee73fa04b9225dd63f,,f,b,,,b@b.c,f,f,x\n3,!abc,,f,c,,,c@b.c,f,1,x\n4,plain,,f,d,,,d@b.c,f,1,x\n",
		"2: 1|a@b.c,false||Ada|L||active|digest$h=md5,o=sp|",
		"3: 2|b@b.c,false|||||passive|digest$h=md5,o=sp|",
		"4: 3|c@b.c,false|||||active||",
		"5! hash: the kind of the hash is not supported")
	wants(t, intake.Django, `[{"model":"auth.group","pk":1,"fields":{}},{"model":"auth.user","pk":7,"fields":{"password":`+
		`"`+`bcrypt$`+bcrypt+`","email":"a@b.c","first_name":"Ada","last_name":"L","is_active":false,"is_superuser":true,
"groups":[1]}},
{"model":"accounts.customuser","pk":"u-8","fields":{"password":"!","email":"b@b.c"}}]`,
		"2: 7|a@b.c,false||Ada|L||passive|bcrypt$r=4|",
		"3: u-8|b@b.c,false|||||active||")
	wants(t, intake.CSV, "phoneNumber,countryCode,hash,name,email\n5321234567,90,"+bcrypt+",\"Ada\nKing\",\n"+
		"1,2\n\"x\"y,1,1,1,1\n,,,,b@b.c\n,,hunter2,,c@b.c\n,,,\xff,d@b.c\n",
		"2: |,false|905321234567|Ada\nKing||||bcrypt$r=4|",
		"4! has 2 fields, and the first line has 5",
		"5! has a quotation mark in the wrong place, at byte 3 of line 5",
		"6: |b@b.c,false|||||||",
		"7! hash: the kind of the hash is not supported",
		"8! column name is not UTF-8 but probably Windows-1252; save the file as UTF-8")
}

// A file that is not of the format is refused before anything is read from it, or ends where it breaks.
func TestBrokenFiles(t *testing.T) {
	for _, c := range []struct {
		format intake.Format
		text   string
		read   int
	}{
		{"ldap", "", 0}, {intake.CSV, "", 0}, {intake.CSV, "name,surname\n", 0}, {intake.CSV, "email,email\n", 0},
		{intake.CSV, "email,isAdmin\n", 0}, {intake.Cognito, "name\n", 0}, {intake.Django, "id,email\n", 0},
		{intake.Keycloak, `[]`, 0}, {intake.Keycloak, `{"realm":"x"}`, 0}, {intake.Keycloak, `{"users":{}}`, 0},
		{intake.Keycloak, ``, 0}, {intake.Keycloak, `{"a":` + strings.Repeat("[", 100), 0},
		{intake.Firebase, `{"users":[{"email":"a@b.c"},{"email":"b@b.c"}`, 2},
		{intake.Auth0, `[{"email":"a@b.c"} {"email":"b@b.c"}]`, 1},
		{intake.CSV, "email\n\"a@b.c\n" + strings.Repeat("x", 1<<20) + strings.Repeat("y\n", 1<<16), 0},
	} {
		all, err := listed(t, c.format, c.text)
		if err == nil || len(all) != c.read {
			t.Errorf("%s %.40q: read %d, %v; want %d and an error", c.format, c.text, len(all), err, c.read)
		}
	}
}

// zeros is a text without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// A user of 256 MiB is refused without being held, and the next one is read.
func TestReadersHoldOneUser(t *testing.T) {
	const size = 1 << 28
	for f, frame := range map[intake.Format][2]string{
		intake.Castellan: {`{"email":"`, `"}` + "\n" + `{"email":"a@b.c"}`},
		intake.Keycloak:  {`{"x":[],"users":[{"id":"`, `"},{"email":"a@b.c"}]}`},
		intake.Auth0:     {`[{"email":"`, `"},{"email":"a@b.c"}]`},
	} {
		s, err := intake.Open(f, io.MultiReader(strings.NewReader(frame[0]), io.LimitReader(zeros{}, size),
			strings.NewReader(frame[1])), firebase)
		storetest.Must(t, err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		storetest.Equal(t, storetest.Value(s.Next())(t).Refused, "is longer than 1 MiB", f)
		storetest.Equal(t, storetest.Value(s.Next())(t).Email, "a@b.c", f)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
			t.Errorf("%s: %d bytes were allocated", f, n)
		}
	}
}

func FuzzSource(f *testing.F) {
	for i, text := range []string{`{"email":"a@b.c","hash":"` + bcrypt + `"}`,
		`[{"email":"a@b.c","custom_password_hash":{}}]`,
		`{"users":[{"id":"k","credentials":[{"type":"password","secretData":"{}","credentialData":"{}"}]}]}`,
		`{"users":[{"localId":"f","passwordHash":"AAAA","salt":"AA"}]}`, "email,phone_number\na@b.c,+905321234567\n",
		`[{"model":"auth.user","pk":1,"fields":{"password":"!"}}]`, "email,hash\n\"a@b.c\"," + bcrypt + "\n"} {
		f.Add(i, text)
	}
	formats := []intake.Format{intake.Castellan, intake.Auth0, intake.Keycloak, intake.Firebase, intake.Cognito,
		intake.Django, intake.CSV}
	f.Fuzz(func(t *testing.T, format int, text string) {
		if format < 0 || format >= len(formats) {
			return
		}
		all, _ := listed(t, formats[format], text)
		if len(all) > len(text)+1 {
			t.Fatalf("%d users in %d bytes", len(all), len(text))
		}
		last := int64(0)
		for _, line := range all {
			n := int64(0)
			if fmt.Sscanf(line, "%d", &n); n <= last {
				t.Fatalf("line %d follows line %d", n, last)
			}
			last = n
		}
	})
}
