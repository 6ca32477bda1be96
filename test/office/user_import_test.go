package office

import (
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// file writes a file for an import.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	storetest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// kinds are hashes that other programs made; domain/account/password/legacy tests every kind. The tag is the part of
// the text that must not be stored for a weak one, and must be gone after the login.
type importedHash struct{ name, password, hash, tag string }

var kinds = []importedHash{
	{"bcrypt, weak", "correct horse 42", `"$2b$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"`,
		"IXYkxgxdZ2hTawHK"},
	{"PBKDF2-SHA256", "correct horse 42",
		`"pbkdf2_sha256$260000$XmWujr6yE9uqtznsq7Ia9C$CPyQY5HlJT73OKRq0ekPSNmoVKquJWFq6Y6ssWZysuQ="`,
		"CPyQY5HlJT73OKRq0ekPSNmo"},
	{"scrypt, weak", "correct horse 42",
		`"$scrypt$ln=10,r=8,p=1$NwZASAlhTEkJwXiPMWYsxQ$9CrEHqawmHE0Lg3DZkjOvFEBnq4vPaPxZyc27Na82ts"`,
		"9CrEHqawmHE0Lg3DZkjOvFEBnq4vPaP"},
	{"Firebase", "user1password",
		`{"alg":"firebase-scrypt","salt":"42xEC+ixf3L2lw==","saltSeparator":"Bw==","rounds":8,"memCost":14,` +
			`"signerKey":"jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==",` +
			`"hash":"lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="}`,
		"lSrfV15cpx95/sZS2W9c9Kp6"},
	{"MD5 without a salt", "correct horse 42", `"md5$$9ed6210e741906ee73fa04b9225dd63f"`,
		"9ed6210e741906ee73fa04b9225dd63f"},
}

// strongKinds are hashes that are stored as they are until the login.
func strongKinds(t *testing.T) []importedHash {
	t.Helper()
	text := storetest.Value(bcrypt.GenerateFromPassword([]byte("correct horse 42"), 10))(t)
	salt := []byte("0123456789abcdef")
	tag := storetest.Value(pbkdf2.Key(sha512.New, "correct horse 42", salt, 210_000, 64))(t)
	b64 := base64.RawStdEncoding.EncodeToString
	return []importedHash{{"bcrypt, strong", "correct horse 42", `"` + string(text) + `"`, ""},
		{"PBKDF2-SHA512, strong", "correct horse 42",
			`{"alg":"pbkdf2-sha512","iterations":210000,"salt":"` + b64(salt) + `","hash":"` + b64(tag) + `"}`, ""}}
}

// Users with hashes of other services log in with the password of the other service, only with it, and have argon2id
// afterwards. Before the login no weak hash is in the database or its files. The running service takes the import over
// at once.
func TestImportedUsersLogIn(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Set(blackbox.Unlimited...).Start()
		users := slices.Concat(kinds, strongKinds(t))
		var lines strings.Builder
		accounts := make([]blackbox.Account, len(users))
		for i, u := range users {
			a := blackbox.NewAccount(700 + i)
			a.Password = u.password
			accounts[i] = a
			fmt.Fprintf(&lines, `{"email":%q,"emailVerified":true,"countryCode":"90","phoneNumber":%q,"hash":%s}`+"\n",
				a.Mail, a.Phone, u.hash)
		}
		s.Succeeds("", "user", "import", file(t, "users.jsonl", lines.String()))
		s.Has(len(users), "users WHERE substr(password_hash, 1, 10) = '$imported$'")
		dump := s.AtRest()
		for _, u := range kinds {
			weak := u.name != "Firebase"
			if hits := blackbox.Find(dump, u.tag); weak && len(hits) > 0 {
				t.Errorf("%s: the weak hash is in %v", u.name, hits)
			}
		}
		for _, a := range accounts {
			wrong := a
			wrong.Password += "x"
			n.Do(t, "POST", "/auth/login", blackbox.LoginBody(wrong), nil).Is(t, 401, "INVALID_CREDENTIALS")
			for range 2 {
				n.Ok(t, "POST", "/auth/login", blackbox.LoginBody(a), nil)
			}
		}
		n.Ok(t, "GET", "/user/user-profile", nil, n.Auth(t, accounts[0])) // through the second factor
		s.Has(len(users), "users WHERE password_hash LIKE '$argon2id$v=19$m=8,t=1,p=1$%' AND email LIKE 'user7%'")
		s.Has(0, "users WHERE password_hash LIKE '%imported%' OR previous_hash <> ''")
	})
}

// An import that is killed at any moment, several times, ends as if it had never been killed. No user is lost, none is
// made twice, and every refused line is reported.
func TestImportSurvivesKills(t *testing.T) {
	const users = 8000
	var lines, want strings.Builder
	for i := range users {
		address := fmt.Sprintf("k%d@example.test", i)
		if i%1000 == 999 {
			address = "nonsense"
			fmt.Fprintf(&want, "line %d: email must be a mail address\n", i+1)
		}
		fmt.Fprintf(&lines,
			`{"email":%q,"externalId":"k%d","hash":"$2b$10$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"}`+"\n",
			address, i)
	}
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		s.AddUser("user") // makes the tables
		path, before := file(t, "users.jsonl", lines.String()), s.Count("users")
		seen, middle := before, 0
		for range 6 {
			n := s.Run("user", "import", path)
			blackbox.Becomes(blackbox.Within(20), func() bool { return s.Count("users") > seen || n.Ended() })
			time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
			n.Kill()
			now := s.Count("users")
			if now < seen {
				t.Errorf("%d users after %d", now, seen)
			}
			if seen = now; seen < before+7992 {
				middle++
			}
		}
		if middle == 0 {
			t.Error("no import was killed in the middle")
		}
		for range 2 { // the second run repeats the report
			got := s.Command("", "user", "import", path)
			if got.Code != 3 || got.Out != want.String()+"added 7992 users, refused 8 lines\n" {
				t.Fatalf("exit %d: %s%s", got.Code, got.Out, got.ErrOut)
			}
		}
		for clause, want := range map[string]int{"users": before + 7992, "integration_claim": 7992, "user_import_refusal": 8,
			"users WHERE password_hash LIKE '$imported$bcrypt$r=10$%'": 7992} {
			s.Has(want, clause)
		}
	})
}

// The exit status and the report, a dry run, an export, and a user without a password who gets one by a reset.
func TestImportCommand(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Set(blackbox.Unlimited...).Start()
		before := s.Count("users")
		a := blackbox.NewAccount(900)
		cognito := file(t, "cognito.csv", "cognito:username,email,email_verified,phone_number\n"+
			"c1,"+a.Mail+",true,"+a.Number()+"\nc2,"+strings.ToUpper(a.Mail)+",true,\n")
		for _, c := range []struct {
			args string
			code int
			out  string
		}{
			{"--dry-run --format cognito " + cognito, 3,
				"line 3: email is already used by an account or an earlier line\nwould add 1 users, refused 1 lines\n"},
			{"--format cognito " + cognito, 3,
				"line 3: email is already used by an account or an earlier line\nadded 1 users, refused 1 lines\n"},
			{"--format cognito " + cognito, 3,
				"line 3: email is already used by an account or an earlier line\nadded 1 users, refused 1 lines\n"},
			{file(t, "ok.jsonl", `{"email":"x@example.test","externalId":"x","name":"Ada"}`+"\n"), 0,
				"added 1 users, refused 0 lines\n"},
			{"--format keycloak " + cognito, 1, "added 0 users, refused 0 lines\n"},
			{"--format firebase " + cognito, 1, ""},
			{"--format ldap " + cognito, 2, ""},
			{"/no/such/file", 1, ""},
		} {
			got := s.Command("", append([]string{"user", "import"}, strings.Fields(c.args)...)...)
			if got.Code != c.code || got.Out != c.out {
				t.Errorf("%s: exit %d: %s%s", c.args, got.Code, got.Out, got.ErrOut)
			}
		}
		s.Has(before+2, "users")
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(a), nil).Is(t, 401, "INVALID_CREDENTIALS")
		reset := blackbox.FlowOf(t, n.Ok(t, "POST", "/auth/password/reset", map[string]string{"countryCode": a.Country,
			"phoneNumber": a.Phone}, nil))
		n.Complete(t, reset, reset.Method(t, "SMS"), n.Code(t, a, "SMS")).Is(t, 200, "")
		once := n.Complete(t, reset, reset.Method(t, "MAIL"), n.Code(t, a, "MAIL")).Is(t, 200, "").Header.Get("ot-auth")
		n.Ok(t, "POST", "/auth/password/update", map[string]string{"password": a.Password, "passwordVerify": a.Password},
			blackbox.Headers{"ot-auth": once})
		n.Session(t, a)

		got := s.Command("", "user", "export")
		lines := strings.Split(strings.TrimSpace(got.Out), "\n")
		// The accounts of development are left out.
		if got.Code != 0 || len(lines) != 2 || strings.Contains(got.Out, "argon2id") ||
			!strings.Contains(got.Out, `{"externalId":"x","email":"x@example.test","name":"Ada","status":"active"}`) {
			t.Errorf("exit %d: %s%s", got.Code, got.Out, got.ErrOut)
		}
		for _, line := range lines {
			if !json.Valid([]byte(line)) {
				t.Errorf("no JSON: %s", line)
			}
		}
		to := filepath.Join(t.TempDir(), "out.jsonl")
		for _, code := range []int{0, 1} { // an existing file is not overwritten
			if got := s.Command("", "user", "export", "--output", to); got.Code != code || got.Out != "" {
				t.Errorf("exit %d: %s%s", got.Code, got.Out, got.ErrOut)
			}
		}
		if st, err := os.Stat(to); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st, err)
		}
		for action, want := range map[string]int{"USER_IMPORT": 2, "USER_EXPORT": 2} {
			s.Has(want, "audit WHERE action = $1", action)
		}
	})
}
