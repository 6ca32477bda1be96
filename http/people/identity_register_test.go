package people_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/identity"
	"castellan/domain/session/session"
	"castellan/http/apitest"
	outbound "castellan/outbound/identity"
)

// The national register over TLS: yes, no, and unknown.
func TestRegister(t *testing.T) {
	identityBoth(t, func(s *idSite) {
		s.As("u0").Wants(confirm, idBody(person, "useTCKNService", true), 503, "UNAVAILABLE") // not configured
		verdict, asked := "false", ""
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			asked = string(b)
			fmt.Fprintf(w, `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`+
				`<TCKimlikNoDogrulaResponse xmlns="http://tckimlik.nvi.gov.tr/WS"><TCKimlikNoDogrulaResult>%s`+
				`</TCKimlikNoDogrulaResult></TCKimlikNoDogrulaResponse></s:Body></s:Envelope>`, verdict)
		}))
		t.Cleanup(server.Close)
		ca := filepath.Join(t.TempDir(), "ca.pem")
		storetest.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
			Bytes: server.Certificate().Raw}), 0o600))
		register, err := outbound.New(outbound.Config{URL: server.URL, CAFile: ca, Timeout: 5 * time.Second,
			Now: func() time.Time { return s.now }, Failed: func(err error) {
				slog.New(slog.NewJSONHandler(&s.log, nil)).
					Warn("register", "err", err)
			}})
		storetest.Must(t, err)
		s.service.Registry = register
		request := idBody(person, "useTCKNService", true)
		s.As("u1").Wants(confirm, idBody(person, "useTCKNService", true, "userIdentityNumber", "10000000147"), 400,
			"INVALID_FIELD userIdentityNumber")
		s.confirms("u2", idBody(person, "useTCKNService", false, "userIdentityNumber", other),
			is("u2", "Ayşe Yılmaz", "waitingApproval"))
		storetest.Equal(t, asked, "", "asked")
		for range 5 {
			s.As("u1").Wants(confirm, request, 200, `{"token":null,"data":null}`)
		}
		if u := s.user("u1"); u.Name != "" || u.IdentityHash != "" || !strings.Contains(asked, "<Ad>AYŞE</Ad>") {
			t.Errorf("%+v, %s", u, asked)
		}
		verdict = "true"
		s.As("u1").Wants(confirm, request, 429, "RATE_LIMITED")
		s.now = s.now.Add(15 * time.Minute)
		verdict = "perhaps"
		storetest.Must(t, s.db.Commit(t.Context(), session.Add{CV: 1, Session: session.Session{ID: "u3b", UserID: "u3",
			CreatedAt: s.now, ExpiresAt: s.now.Add(time.Hour), SV: 1}}))
		for range 7 { // it counts against no user; after three failures the register is not called for a while
			res, answer := s.As("u3").Send(confirm, request)
			if res.StatusCode != 503 || apitest.Refusal(answer) != "UNAVAILABLE" || res.Header.Get("Retry-After") == "" {
				t.Errorf("%d %s", res.StatusCode, answer)
			}
		}
		s.now = s.now.Add(15 * time.Second)
		verdict = "true"
		c, err := s.service.Confirm(t.Context(), audit.By{UserID: "u3"}, identity.Request{Register: true,
			Session: session.Presented{SessionID: "u3b", ExpiresAt: s.now.Add(time.Hour)},

			Person: identity.Person{Number: number, Name: "Ayşe", Surname: "Yılmaz", BirthDate: "1990-05-01"},
			Info: identity.Info{Choices: [5]identity.Choice{{OptionID: 1}, {OptionID: 7}, {OptionID: 14}, {OptionID: 19},
				{OptionID: 23}}}})
		if err != nil || c.Token == "" || c.User.Name != "Ayşe" {
			t.Errorf("%+v, %v", c, err)
		}
		all := s.dump() + s.log.String()
		for _, secret := range []string{number, "10000000147", other} {
			storetest.Lacks(t, all, secret)
		}
		if strings.Count(all, "denied by the national register") != 5 || !strings.Contains(all, "neither true nor false") {
			t.Error("the audit or the log does not tell what happened")
		}
	})
}

// D-KYC-11: the confirmed data is compared with the current account, and unknown results are reported as unknown.
func TestChecks(t *testing.T) {
	identityBoth(t, func(s *idSite) {
		checks := func(id string) identity.Checks {
			t.Helper()
			u := storetest.Value(s.users.Get(t.Context(), id))(t)
			return storetest.Value(s.service.Checks(t.Context(), u))(t)
		}
		same := func(id string, want identity.Checks) {
			t.Helper()
			storetest.Same(t, checks(id), want)
		}
		yes, no := new(true), new(false)
		same("u0", identity.Checks{})
		s.confirms("u0", idBody(person), is("u0", "Ayşe Yılmaz", "waitingApproval"))
		same("u0", identity.Checks{Number: yes, Name: yes, BirthDate: yes})

		// Another account has the same number, as an installation may allow.
		s.service.Accounts = 2
		s.confirms("u1", idBody(person), is("u1", "Ayşe Yılmaz", "waitingApproval"))
		same("u0", identity.Checks{Number: yes, Name: yes, BirthDate: yes, Same: 1})

		// An administrator gave the account another name.
		u := storetest.Value(s.users.Get(t.Context(), "u1"))(t)
		storetest.Must(t, s.db.Commit(t.Context(), user.SetPerson{UserID: "u1", Name: "Fatma", Surname: u.Surname,
			IdentityHash: u.IdentityHash, BirthDate: "1991-05-01"}))
		same("u1", identity.Checks{Number: yes, Name: no, BirthDate: no, Same: 1})

		// The register was asked.
		s.service.Registry = meanwhile(func() {})
		s.confirms("u2", idBody(person, "userIdentityNumber", other, "useTCKNService", true),
			is("u2", "Ayşe Yılmaz", "waitingApproval"))
		same("u2", identity.Checks{Number: yes, Register: yes, Name: yes, BirthDate: yes})
	})
}
