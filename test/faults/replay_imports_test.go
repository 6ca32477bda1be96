package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

// ownService is the settings of a service of its own: while accounts have imported hashes, its logins take longer.
var ownService = []string{}

// imported returns an account that the command made of a line with the given hash, and the output of the command.
func (st stage) imported(hash, password string) (blackbox.Account, blackbox.Output) {
	st.T.Helper()
	a := blackbox.NewAccount(500 + int(st.last.Add(1)))
	a.Password = password
	path := filepath.Join(st.T.TempDir(), "users.jsonl")
	line := fmt.Sprintf(`{"email":%q,"countryCode":%q,"phoneNumber":%q,"hash":%q}`, a.Mail, a.Country, a.Phone, hash)
	storetest.Must(st.T, os.WriteFile(path, []byte(line), 0o600))
	return a, st.s.Command("", "user", "import", path)
}

// denied sends a wrong password.
func (st stage) denied(a blackbox.Account, password string) {
	st.T.Helper()
	a.Password = password
	st.Login(a).Is(st.T, 401, "INVALID_CREDENTIALS")
}

// refusedLine fails the test unless the line was refused, and the account does not exist.
func (st stage) refusedLine(a blackbox.Account, got blackbox.Output) {
	st.T.Helper()
	if got.Code != 3 || !strings.HasPrefix(got.Out, "line 1: hash: ") || st.s.Count("users WHERE email = $1",
		a.Mail) != 0 {
		st.T.Errorf("exit %d: %s%s", got.Code, got.Out, got.ErrOut)
	}
}

const (
	oldPassword = "correct horse 42"
	oldBcrypt   = "$2b$04$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"
)

// Hashes of other services.
var replaysOfImports = []replay{
	{"CVE-2025-22228", "Spring Security: only the first 72 bytes of a password were compared",
		func(t *testing.T, s stage) {
			long := strings.Repeat("x", 72)
			a, _ := s.imported("$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i", long)
			s.denied(a, long+"y")
			s.denied(a, long[:71])
			s.begin(a)
		}, ownService},
	{"CVE-2023-0567", "PHP: a malformed bcrypt hash matched any password", func(t *testing.T, s stage) {
		for _, hash := range []string{"$2y$04$$bcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6", "$2y$04$" +
			strings.Repeat("$", 53), "$2y$04$", "$2b$04$abcdefghijklmnopqrstuu"} {
			a, got := s.imported(hash, "anything at all")
			s.refusedLine(a, got)
			s.denied(a, "anything at all")
		}
		a, _ := s.imported(oldBcrypt, oldPassword)
		s.begin(a)
	}, ownService},
	{"CVE-2011-2483", "crypt_blowfish: a hash of a faulty function matched several passwords",
		func(t *testing.T, s stage) {
			a, got := s.imported(strings.Replace(oldBcrypt, "$2b$", "$2x$", 1), oldPassword)
			s.refusedLine(a, got)
			a, _ = s.imported(strings.Replace(oldBcrypt, "$2b$", "$2y$", 1), oldPassword)
			s.begin(a)
		}, ownService},
	{"CVE-2013-1443", "Django: a long password was hashed at the cost of its length", func(t *testing.T, s stage) {
		a, _ := s.imported("pbkdf2_sha256$260000$XmWujr6yE9uqtznsq7Ia9C$CPyQY5HlJT73OKRq0ekPSNmoVKquJWFq6Y6ssWZysuQ=",
			oldPassword)
		s.denied(a, strings.Repeat("x", 1000))
		s.begin(a)
	}, ownService},
	{"CVE-2014-9034", "WordPress: the hash of a long password exhausted the processor",
		func(t *testing.T, s stage) {
			for _, cost := range "JSw" { // 2²¹, 2³⁰ and 2⁶⁰ rounds
				a, got := s.imported("$P$"+string(cost)+"IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0", "test12345")
				s.refusedLine(a, got)
			}
			a, _ := s.imported("$P$9IQRaTwmfeRo7ud9Fh4E2PdI0S3r.L0", "test12345")
			s.denied(a, strings.Repeat("x", 1000))
			s.begin(a)
		}, ownService},
	{"CVE-2016-2513", "Django: the time of a login revealed accounts with other hashes",
		func(t *testing.T, s stage) {
			// A hash of cost 12 takes more than a tenth of a second on any machine, and a native one a few milliseconds. So
			// a time names a kind of hash, and identifiers without an account have the kinds in the same proportions.
			const native = 100 * time.Millisecond
			hash := "$2b$12$abcdefghijklmnopqrstuuIXYkxgxdZ2hTawHKCAwj.tmZI.Ck6r6"
			slow, got := s.imported(hash, oldPassword)
			storetest.Equal(t, got.Code, 0, "exit", got.Out, got.ErrOut)
			for range 3 { // so that the kind has many identifiers
				s.imported(hash, oldPassword)
			}
			weak, _ := s.imported("md5$ERzRdd5VGmixhE0Glsn1PH$4c98388e7aad42a03212b59d05124f94", oldPassword)
			took := func(a blackbox.Account) time.Duration {
				began := time.Now()
				s.denied(a, "not-the-password")
				return time.Since(began)
			}
			if d := took(slow); d < native {
				t.Errorf("the account with a slow hash: refused after %v", d)
			}
			tries := 0
			blackbox.Until(t, 20*time.Second, "an identifier without an account takes as long", func() bool {
				if tries++; tries > 90 { // fewer than a network may send
					return false
				}
				return took(blackbox.NewAccount(int(s.last.Add(1))+5000)) >= native
			})
			s.begin(weak)
		}, ownService},
}
