package intake_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/people/intake"
)

// A hash that costs more than the limit, or is of a kind that cannot be computed, is refused by its line. With
// MustReset its user comes without it, with a note, and must reset the password.
func TestCostlyHashes(t *testing.T) {
	const salted = "abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"
	text := `{"email":"a@b.example","hash":"$2b$12$` + salted + `"}
{"email":"b@b.example","hash":"$2b$13$` + salted + `"}
{"email":"c@b.example","hash":"$2b$31$` + salted + `"}
{"email":"d@b.example","hash":"$y$j9T$F5Jx5fExrKuPp53xLKQ..1$FOmsSv3ZOZd4s/fLy/CcaNXECU/FvzEEWaeL70HT0i4"}
{"email":"e@b.example","hash":{"alg":"pbkdf2-sha512","iterations":2000000,"salt":"c2FsdHNhbHQ","hash":"MDEyMzQ1Njc4OWFiY2RlZg"}}
{"email":"f@b.example","hash":"$2b$12$x"}
`
	reasons := []string{
		"2 hash: its cost of 491520 work units is above password.import_max_cost, which is 300000",
		"3 hash: the cost of the hash is out of bounds",
		"4 hash: hashes of yescrypt, gost-yescrypt and scrypt of crypt(3) are not supported",
		"5 hash: its cost of 800000 work units is above password.import_max_cost, which is 300000",
		"6 hash: the hash is malformed"}
	both(t, func(t *testing.T, d desk) {
		state, err := d.load(t, "one", text, false)
		if got := d.refusals(t, "one"); err != nil || state.Imported != 1 || !slices.Equal(got, reasons) {
			t.Errorf("%+v, %v\n%s", state, err, strings.Join(got, "\n"))
		}
		d.MustReset = true
		state, err = d.load(t, "two", strings.Replace(text, "a@", "z@", 1), false)
		if got := d.refusals(t, "two"); err != nil || state.Imported != 5 || !slices.Equal(got, reasons[4:]) {
			t.Errorf("%+v, %v\n%s", state, err, strings.Join(got, "\n"))
		}
		var notes []string
		storetest.Must(t, d.AllNotes(t.Context(), "two", func(n intake.Note) error {
			notes = append(notes, fmt.Sprint(n.Line, " ", n.Text))
			return nil
		}))
		for i, want := range reasons[:4] {
			want = strings.Replace(want, "hash: ", "the password must be reset: ", 1)
			if len(notes) != 4 || notes[i] != want {
				t.Errorf("notes %q, want %q", notes, want)
			}
		}
		for mail, reset := range map[string]bool{"z@b.example": false, "b@b.example": true, "d@b.example": true} {
			u := storetest.Value(d.Users.ByEmail(t.Context(), mail))(t)
			stored, err := d.Users.Secret(t.Context(), u.ID)
			if u.MustReset != reset || (stored.Hash == "") != reset || err != nil {
				t.Errorf("%s: must reset %v, hash %q, %v", mail, u.MustReset, stored.Hash, err)
			}
		}
	})
}

// noted reads a file: "line: note; note" for every entry with notes, "reset" for one whose password is not taken, and
// the ignored fields with their counts.
func noted(t *testing.T, f intake.Format, text string) (all []string) {
	t.Helper()
	s := storetest.Value(intake.Open(f, strings.NewReader(text), firebase))(t)
	for {
		r, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		storetest.Must(t, err)
		line := fmt.Sprintf("%d: %s", r.Line, strings.Join(r.Notes, "; "))
		if r.Refused != "" {
			line = fmt.Sprintf("%d! %s", r.Line, r.Refused)
		}
		if r.MustReset {
			line += " (reset)"
		}
		if r.TOTP != "" {
			line += " (" + r.TOTP + ")"
		}
		if r.Other {
			line += " (other)"
		}
		all = append(all, line)
	}
	counts := s.Ignored()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return all
}

// Parts of a user that are not taken are a note of the line, and every other field is counted.
func TestNotes(t *testing.T) {
	otp := func(secret string, more string) string {
		return `{"type":"otp","secretData":"{\"value\":\"` + secret + `\"}","credentialData":"{\"subType\":\"totp\",` +
			`\"digits\":6,\"period\":30,\"algorithm\":\"HmacSHA1\",\"secretEncoding\":\"BASE32\"}"` + more + `}`
	}
	const password = `{"type":"password","temporary":%v,"secretData":"{\"value\":\"MDEyMzQ1Njc4OWFiY2RlZg==\",\"salt\":` +
		`\"c2FsdA==\"}","credentialData":"{\"hashIterations\":1,\"algorithm\":\"pbkdf2-sha256\"}"}`
	for _, c := range []struct {
		format intake.Format
		text   string
		want   []string
	}{
		{intake.Keycloak, `{"users":[
			{"email":"a@b.c","username":"a","totp":true,"groups":[],"attributes":{"phone":["+90"],"team":["x"],"Size":["1"]},
				"credentials":[` + otp("SECOND", `,"priority":20`) + "," + otp("FIRST", `,"priority":10`) + `]},
			{"email":"b@b.c","username":"b","credentials":[` + otp("FIRST", "") + "," + otp("SECOND", "") +
			`,{"type":"recovery-authn-codes"},{"type":"webauthn"},{"type":"x"}]},
			{"email":"c@b.c","credentials":[` + fmt.Sprintf(password, true) + `]},
			{"email":"d@b.c","emailVerified":true,"requiredActions":["UPDATE_PASSWORD","VERIFY_EMAIL","CONFIGURE_TOTP","secret"],
				"credentials":[` + fmt.Sprintf(password, false) + `]},
			{"email":"e@b.c","credentials":[{"type":"password","value":"hunter2"}]}]}`,
			[]string{"1: a second authenticator is not taken (FIRST)", "2: a second authenticator is not taken; " +
				"recovery codes are not taken; a passkey is not taken; a credential of another kind is not taken (FIRST)",
				"3: the password is temporary and must be reset (reset)", "4: the required action UPDATE_PASSWORD means " +
					"that the password must be reset; the required action VERIFY_EMAIL means that the mail address is not " +
					"verified; the required action CONFIGURE_TOTP is not taken; a required action of another kind is not taken " +
					"(reset)", "5! credentials: are in plain text", "attributes.Size 1", "attributes.team 1", "totp 1",
				"username 2"}},
		{intake.Firebase, `{"users":[{"email":"a@b.c","lastLoginAt":"1","mfaInfo":[{"phoneInfo":"+90"},{"totpInfo":7},{}]},
			{"email":"b@b.c","lastLoginAt":"2","providerUserInfo":[],"photoUrl":""}]}`,
			[]string{"1: a second factor by SMS is not taken; an authenticator is not taken; a second factor is not taken",
				"2: ", "lastLoginAt 2"}},
		{intake.Django, `[{"model":"auth.user","pk":7,"fields":{"email":"a@b.c","password":"","is_staff":false,"groups":[]}},
			{"model":"otp_totp.totpdevice","pk":1,"fields":{"user":7,"key":"x"}},
			{"model":"otp_static.statictoken","pk":1,"fields":{}},{"model":"auth.permission","pk":1,"fields":{}},
			{"model":"two_factor.phonedevice","pk":1,"fields":{}},{"model":"mfa.authenticator","pk":1,"fields":{}},
			{"model":"agent_trust.trustedagent","pk":1,"fields":{}}]`,
			[]string{"1: ", "2: an authenticator is not taken (other)", "3: a recovery code is not taken (other)",
				"5: a second factor by SMS is not taken (other)", "6: a second factor is not taken (other)",
				"7: a remembered device is not taken (other)", "fields.is_staff 1"}},
		{intake.Auth0, `{"email":"a@b.c","nickname":"a","mfa_factors":[{"totp":{"secret":"FIRST"}},{"totp":{"secret":"S"}},` +
			`{"phone":{"value":"+90"}}]}`,
			[]string{"1: a second authenticator is not taken; a second factor other than an authenticator is not taken (FIRST)",
				"nickname 1"}},
		{intake.Cognito, "email,cognito:mfa_enabled,gender,picture\na@b.c,true,f,\nb@b.c,false,,\n",
			[]string{"2: the second factor is not taken", "3: ", "gender 1"}},
	} {
		storetest.Same(t, noted(t, c.format, c.text), c.want, c.format)
	}
}

// A file with many names of fields lists 200 of them, each of at most 64 bytes.
func TestIgnoredFieldsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, `{"email":"a@b.c","f%d%s":1}`+"\n", i, strings.Repeat("x", 80))
	}
	got := noted(t, intake.Auth0, b.String())[300:]
	if len(got) != 200 || len(got[0]) > 64+len("… 1") {
		t.Errorf("%d names, such as %q", len(got), got[0])
	}
}

// Notes of a dry run are those of the import, and those of refused lines are left out. An object that is no user is
// neither added nor refused.
func TestNotesOfAnImport(t *testing.T) {
	const text = `[{"model":"auth.user","pk":1,"fields":{"email":"a@b.example"}},
		{"model":"otp_totp.totpdevice","pk":1,"fields":{}},{"model":"auth.user","pk":1,"fields":{}}]`
	both(t, func(t *testing.T, d desk) {
		for _, dry := range []bool{true, false} {
			var notes []intake.Note
			d.Noted = func(n intake.Note) { notes = append(notes, n) }
			source := storetest.Value(intake.Open(intake.Django, strings.NewReader(text), firebase))(t)
			state := storetest.Value(d.Run(t.Context(), "one", source, dry))(t)
			if !dry {
				storetest.Must(t, d.AllNotes(t.Context(), "one", func(n intake.Note) error {
					notes = append(notes, n)
					return nil
				}))
			}
			want := []intake.Note{{Line: 2, Text: "an authenticator is not taken"}}
			if state.Imported != 1 || state.Refused != 1 || state.Cursor != 3 || !slices.Equal(notes, want) {
				t.Errorf("dry %v: %+v, notes %v", dry, state, notes)
			}
		}
	})
}
